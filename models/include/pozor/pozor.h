/* Pozor's C interface: sentence vectors from BERT-style encoders on CPUs.
 *
 *   pozor_model* model;
 *   if (pozor_model_load("all-MiniLM-L6-v2", 16, NULL, &model) != POZOR_OK)
 * puts(pozor_error_message());
 *
 * A model is immutable: any number of threads may use it at once. Texts are UTF-8 with a length;
 * they need no terminating zero. Buffers are the caller's. Nothing is printed and nothing is
 * thrown. After fork() a child may load models of its own, but must not use the parent's.
 */
#ifndef POZOR_POZOR_H_
#define POZOR_POZOR_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Grows by one when something incompatible changes. */
#define POZOR_ABI_VERSION 1

uint32_t pozor_abi_version(void); /* of the library that was loaded */
const char* pozor_version(void);  /* "0.1.0" */

typedef int32_t pozor_status;
#define POZOR_OK 0
#define POZOR_INVALID_ARGUMENT 1   /* an option or a call is wrong */
#define POZOR_NOT_FOUND 2          /* a file, model or name does not exist */
#define POZOR_UNSUPPORTED 3        /* well-formed, but Pozor cannot run it correctly */
#define POZOR_CORRUPT 4            /* a file breaks its own format */
#define POZOR_IO 5                 /* the operating system refused to read or write */
#define POZOR_RESOURCE_EXHAUSTED 6 /* a memory ceiling or a limit would be passed */
#define POZOR_CANCELLED 7          /* the caller asked to stop */
#define POZOR_INTERNAL 8

/* What the last call of this thread that failed had to say: "<what>: <why>; <what to do>".
 * Valid until the thread's next call. */
const char* pozor_error_message(void);

typedef struct pozor_text {
  const char* data; /* may be null if size is 0 */
  size_t size;      /* bytes */
} pozor_text;

typedef struct pozor_model pozor_model;

/* Option structs may grow at their end: always begin with the matching init function. */
#define POZOR_F32 0
#define POZOR_BF16 1
#define POZOR_INT8 2
#define POZOR_AUTO 3   /* what the weights were prepared for, f32 if they were not prepared */
#define POZOR_BF16X3 4 /* near f32, by three bf16 products where there is AMX; elsewhere f32 */

typedef struct pozor_load_options {
  size_t struct_size;
  int32_t precision; /* POZOR_AUTO, ... */
  size_t max_memory; /* bytes for the whole process; 0: no ceiling */
  pozor_text task;   /* whose adapter is used, of a model that has some; size 0: none */
} pozor_load_options;

void pozor_load_options_init(pozor_load_options* options);

/* A folder, a weight file or a name. `options` may be null. */
pozor_status pozor_model_load(const char* name, size_t name_size, const pozor_load_options* options,
                              pozor_model** model);
void pozor_model_free(pozor_model* model); /* null is fine */

/* A switch that another thread may throw to stop a call. */
typedef struct pozor_cancel pozor_cancel;
pozor_cancel* pozor_cancel_create(void);      /* null if there is no memory */
void pozor_cancel_set(pozor_cancel* cancel);  /* calls that watch it stop */
void pozor_cancel_free(pozor_cancel* cancel); /* null is fine */

typedef struct pozor_progress {
  uint64_t texts, tokens; /* finished */
  uint64_t bytes;         /* of input taken in */
  double seconds;
} pozor_progress;

#define POZOR_TRUNCATE 0       /* cut a text that is too long */
#define POZOR_OVERFLOW_ERROR 1 /* refuse it */

#define POZOR_NORMALIZE_AS_MODEL (-1)

typedef struct pozor_encode_options {
  size_t struct_size;
  size_t threads;         /* 0: what the machine grants this process; 1024 at most */
  size_t batch_tokens;    /* tokens of a micro-batch; 0: the default. Speed only, never bits */
  size_t max_length;      /* tokens including specials; 0: the model's own limit */
  size_t truncate_dim;    /* keep the first numbers of each vector; 0: as the model says */
  size_t max_memory;      /* bytes for the whole process; 0: as at load */
  int32_t normalize;      /* 1: unit length, 0: not, POZOR_NORMALIZE_AS_MODEL */
  int32_t overflow;       /* POZOR_TRUNCATE, POZOR_OVERFLOW_ERROR */
  int32_t plain_specials; /* 1: "[SEP]" typed in a text is text */
  int32_t has_prompt;     /* 1: `prompt` stands in front of every text, even if it is empty */
  pozor_text prompt;
  pozor_text prompt_name; /* one of the model's prompts; size 0: its default */
  pozor_cancel* cancel;   /* may be null */
  /* Called now and then, from one thread at a time; a result other than 0 stops the call. */
  int32_t (*progress)(void* user, const pozor_progress* progress);
  void* user;
} pozor_encode_options;

void pozor_encode_options_init(pozor_encode_options* options);

typedef struct pozor_encode_stats {
  uint64_t texts, tokens;
  uint64_t truncated; /* texts that were cut */
  uint64_t threads;
  double seconds;
} pozor_encode_stats;

/* Numbers of a vector under these options; `options` may be null. 0 after an error. */
size_t pozor_model_dimensions(const pozor_model* model, const pozor_encode_options* options);

/* Tokens of a text that the model takes, specials included; 0: no limit. */
size_t pozor_model_max_length(const pozor_model* model);

/* Vector i goes to out + i * stride (in floats; stride >= dimensions). `options` and `stats` may be
 * null. After an error the buffer's content is undefined. */
pozor_status pozor_model_encode(const pozor_model* model, const pozor_text* texts, size_t count,
                                float* out, size_t stride, const pozor_encode_options* options,
                                pozor_encode_stats* stats);

/* Writes up to `capacity` token ids; *count is how many the text has, prompt and specials
 * included. */
pozor_status pozor_model_tokenize(const pozor_model* model, pozor_text text,
                                  const pozor_encode_options* options, int32_t* ids,
                                  size_t capacity, size_t* count);

/* A block of attention rows of one head: weights[i * stride + j] is what query query_begin + i
 * gives to key j. May grow at its end. */
typedef struct pozor_attention_rows {
  size_t layer, head;
  size_t query_begin;
  size_t queries; /* of this block */
  size_t keys;    /* tokens of the text */
  size_t stride;  /* floats from one row to the next */
  const float* weights;
} pozor_attention_rows;

typedef struct pozor_attention_options {
  size_t struct_size;
  const size_t* heads;    /* [head_count][2]: layer and head, from 0 */
  size_t head_count;      /* 0: all */
  size_t query_begin;     /* rows of tokens query_begin .. query_end - 1 */
  size_t query_end;       /* SIZE_MAX: to the end of the text */
  int32_t heads_together; /* 1: for each block of rows its heads, not for each head its blocks */
  int32_t has_pair;       /* 1: `pair` is the second text */
  pozor_text pair;
} pozor_attention_options;

void pozor_attention_options_init(pozor_attention_options* options);

/* Hands the attention weights of a text to `rows`, block by block, on the thread of the call; a
 * result other than 0 stops it (POZOR_CANCELLED). Both kinds of options may be null. *tokens, if
 * not null, is how many the text has. */
pozor_status pozor_model_attention(const pozor_model* model, pozor_text text,
                                   const pozor_attention_options* attention,
                                   const pozor_encode_options* options,
                                   int32_t (*rows)(void* user, const pozor_attention_rows* block),
                                   void* user, size_t* tokens);

/* Cosine similarity of two vectors of n numbers; 0 if either is zero. */
float pozor_cosine(const float* a, const float* b, size_t n);

#ifdef __cplusplus
}
#endif

#endif /* POZOR_POZOR_H_ */
