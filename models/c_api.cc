// The C interface: thin over the C++ one. No exception passes it.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pozor/pozor.h"
#include "pozor/pozor.hpp"

struct pozor_model {
  pozor::Model model;
};

struct pozor_cancel {
  std::atomic<bool> stop{false};
};

namespace {

using pozor::Status;
using pozor::StatusCode;

static_assert(POZOR_INTERNAL == static_cast<int>(StatusCode::kInternal));
static_assert(POZOR_INT8 == static_cast<int>(pozor::Precision::kInt8));
static_assert(POZOR_AUTO == static_cast<int>(pozor::Precision::kAuto));
static_assert(POZOR_BF16X3 == static_cast<int>(pozor::Precision::kBF16x3));

std::string& LastError() {
  static thread_local std::string message;
  return message;
}

pozor_status Report(const Status& status) {
  if (!status.ok()) LastError() = status.message();
  return static_cast<pozor_status>(status.code());
}

// Runs a call of the C++ interface; whatever an allocation throws becomes a status.
template <class Call>
pozor_status Guard(Call&& call) {
  try {
    return Report(call());
  } catch (const std::bad_alloc&) {
    return POZOR_RESOURCE_EXHAUSTED;
  } catch (const std::exception&) {
    return POZOR_INTERNAL;
  }
}

// The caller's struct, with defaults for what its version did not have yet.
template <class Options>
Status CopyOptions(const Options* given, void (*init)(Options*), Options* out) {
  init(out);
  if (given == nullptr) return Status();
  if (given->struct_size < sizeof given->struct_size || given->struct_size > 4096) {
    return pozor::InvalidArgument("options: struct_size is wrong; call the init function first");
  }
  std::memcpy(out, given, std::min(given->struct_size, sizeof *out));
  return Status();
}

std::string_view View(pozor_text text) {
  return text.size == 0 ? std::string_view() : std::string_view(text.data, text.size);
}

Status CheckText(pozor_text text) {
  if (text.size == 0 || text.data != nullptr) return Status();
  return pozor::InvalidArgument("text: null with a size; give its data");
}

Status NotNull(const void* pointer, const char* name) {
  if (pointer != nullptr) return Status();
  return pozor::InvalidArgument(std::string(name) + ": null; give what the header asks for");
}

// `stop` belongs to the call and is used if the caller brings no switch.
Status ToEncodeOptions(const pozor_encode_options* given, std::atomic<bool>* stop,
                       pozor::EncodeOptions* out) {
  pozor_encode_options c;
  POZOR_RETURN_IF_ERROR(CopyOptions(given, pozor_encode_options_init, &c));
  POZOR_RETURN_IF_ERROR(CheckText(c.prompt));
  POZOR_RETURN_IF_ERROR(CheckText(c.prompt_name));
  out->threads = c.threads;
  out->batch_tokens = c.batch_tokens;
  out->max_length = c.max_length;
  out->max_memory = c.max_memory;
  if (c.truncate_dim != 0) out->truncate_dim = c.truncate_dim;
  if (c.normalize != POZOR_NORMALIZE_AS_MODEL) out->normalize = c.normalize != 0;
  out->overflow =
      c.overflow == POZOR_TRUNCATE ? pozor::Overflow::kTruncate : pozor::Overflow::kError;
  out->plain_specials = c.plain_specials != 0;
  if (c.has_prompt != 0) out->prompt = std::string(View(c.prompt));
  if (c.prompt_name.size != 0) out->prompt_name = std::string(View(c.prompt_name));
  std::atomic<bool>* flag = c.cancel == nullptr ? stop : &c.cancel->stop;
  out->cancel = flag;
  if (c.progress != nullptr) {
    out->progress = [call = c.progress, user = c.user, flag](const pozor::Progress& progress) {
      const pozor_progress copy = {progress.texts, progress.tokens, progress.bytes,
                                   progress.seconds};
      if (call(user, &copy) != 0) flag->store(true);
    };
  }
  return Status();
}

Status Encode(const pozor_model& model, std::span<const pozor_text> texts, float* out,
              size_t stride, const pozor_encode_options* given, pozor_encode_stats* stats) {
  std::atomic<bool> stop{false};
  pozor::EncodeOptions options;
  POZOR_RETURN_IF_ERROR(ToEncodeOptions(given, &stop, &options));
  if (!texts.empty()) {
    POZOR_RETURN_IF_ERROR(NotNull(texts.data(), "texts"));
    POZOR_RETURN_IF_ERROR(NotNull(out, "out"));
  }
  std::vector<std::string_view> views;
  views.reserve(texts.size());
  for (pozor_text text : texts) {
    POZOR_RETURN_IF_ERROR(CheckText(text));
    views.push_back(View(text));
  }
  const auto result = model.model.EncodeInto(views, out, stride, options);
  if (!result.ok()) return result.status();
  if (stats != nullptr) {
    *stats = {result->texts, result->tokens, result->truncated, result->threads, result->seconds};
  }
  return Status();
}

using RowsCall = int32_t (*)(void* user, const pozor_attention_rows* block);

Status ToSelection(const pozor_attention_options* given, pozor::AttentionSelection* out) {
  pozor_attention_options c;
  POZOR_RETURN_IF_ERROR(CopyOptions(given, pozor_attention_options_init, &c));
  POZOR_RETURN_IF_ERROR(CheckText(c.pair));
  if (c.head_count > 0 && c.heads == nullptr) {
    return pozor::InvalidArgument("heads: null with a count; give the pairs of layer and head");
  }
  for (size_t i = 0; i < c.head_count; ++i) {
    out->heads.emplace_back(c.heads[2 * i], c.heads[2 * i + 1]);
  }
  out->query_begin = c.query_begin;
  out->query_end = c.query_end;
  out->heads_together = c.heads_together != 0;
  if (c.has_pair != 0) out->pair = std::string(View(c.pair));
  return Status();
}

Status Attention(const pozor_model& model, std::string_view text,
                 const pozor::AttentionSelection& selection, RowsCall rows, void* user,
                 size_t* tokens) {
  const auto sink = [rows, user](const pozor::AttentionRows& block) {
    const pozor_attention_rows copy = {block.layer, block.head,   block.query_begin, block.queries,
                                       block.keys,  block.stride, block.weights};
    if (rows(user, &copy) == 0) return Status();
    return pozor::Cancelled("attention: stopped by its caller; call it again");
  };
  const auto result = model.model.Attention(text, selection, sink);
  if (!result.ok()) return result.status();
  if (tokens != nullptr) *tokens = result->tokens.ids.size();
  return Status();
}

}  // namespace

extern "C" {

uint32_t pozor_abi_version(void) { return POZOR_ABI_VERSION; }

const char* pozor_version(void) { return pozor::Version().data(); }

const char* pozor_error_message(void) { return LastError().c_str(); }

void pozor_load_options_init(pozor_load_options* options) {
  if (options == nullptr) return;
  *options = {};
  options->struct_size = sizeof *options;
  options->precision = POZOR_AUTO;
}

void pozor_encode_options_init(pozor_encode_options* options) {
  if (options == nullptr) return;
  *options = {};
  options->struct_size = sizeof *options;
  options->normalize = POZOR_NORMALIZE_AS_MODEL;
}

pozor_status pozor_model_load(const char* name, size_t name_size, const pozor_load_options* options,
                              pozor_model** model) {
  return Guard([&]() -> Status {
    pozor_load_options c;
    POZOR_RETURN_IF_ERROR(CopyOptions(options, pozor_load_options_init, &c));
    POZOR_RETURN_IF_ERROR(NotNull(model, "model"));
    POZOR_RETURN_IF_ERROR(CheckText({name, name_size}));
    POZOR_RETURN_IF_ERROR(CheckText(c.task));
    if (c.precision < POZOR_F32 || c.precision > POZOR_BF16X3) {
      return pozor::InvalidArgument("precision: no such value; use POZOR_AUTO");
    }
    pozor::LoadOptions load;
    load.precision = static_cast<pozor::Precision>(c.precision);
    load.max_memory = c.max_memory;
    load.task = std::string(View(c.task));
    POZOR_TRY(pozor::Model loaded, pozor::Model::Load(std::string(View({name, name_size})), load));
    *model = new pozor_model{std::move(loaded)};
    return Status();
  });
}

void pozor_model_free(pozor_model* model) { delete model; }

pozor_cancel* pozor_cancel_create(void) { return new (std::nothrow) pozor_cancel; }
void pozor_cancel_set(pozor_cancel* cancel) {
  if (cancel != nullptr) cancel->stop.store(true);
}
void pozor_cancel_free(pozor_cancel* cancel) { delete cancel; }

size_t pozor_model_dimensions(const pozor_model* model, const pozor_encode_options* options) {
  size_t dimensions = 0;
  Guard([&]() -> Status {
    POZOR_RETURN_IF_ERROR(NotNull(model, "model"));
    pozor::EncodeOptions encode;
    POZOR_RETURN_IF_ERROR(ToEncodeOptions(options, nullptr, &encode));
    dimensions = model->model.Dimensions(encode);
    return Status();
  });
  return dimensions;
}

size_t pozor_model_max_length(const pozor_model* model) {
  return model == nullptr ? 0 : model->model.Info().max_length;
}

pozor_status pozor_model_encode(const pozor_model* model, const pozor_text* texts, size_t count,
                                float* out, size_t stride, const pozor_encode_options* options,
                                pozor_encode_stats* stats) {
  return Guard([&]() -> Status {
    POZOR_RETURN_IF_ERROR(NotNull(model, "model"));
    return Encode(*model, {texts, count}, out, stride, options, stats);
  });
}

pozor_status pozor_model_tokenize(const pozor_model* model, pozor_text text,
                                  const pozor_encode_options* options, int32_t* ids,
                                  size_t capacity, size_t* count) {
  return Guard([&]() -> Status {
    POZOR_RETURN_IF_ERROR(NotNull(model, "model"));
    POZOR_RETURN_IF_ERROR(NotNull(count, "count"));
    if (capacity > 0) POZOR_RETURN_IF_ERROR(NotNull(ids, "ids"));
    pozor::EncodeOptions encode;
    POZOR_RETURN_IF_ERROR(ToEncodeOptions(options, nullptr, &encode));
    POZOR_RETURN_IF_ERROR(CheckText(text));
    POZOR_TRY(const pozor::TokenizeResult tokens, model->model.Tokenize(View(text), encode));
    std::copy_n(tokens.ids.data(), std::min(capacity, tokens.ids.size()), ids);
    *count = tokens.ids.size();
    return Status();
  });
}

void pozor_attention_options_init(pozor_attention_options* options) {
  if (options == nullptr) return;
  *options = {};
  options->struct_size = sizeof *options;
  options->query_end = SIZE_MAX;
}

pozor_status pozor_model_attention(const pozor_model* model, pozor_text text,
                                   const pozor_attention_options* attention,
                                   const pozor_encode_options* options, RowsCall rows, void* user,
                                   size_t* tokens) {
  return Guard([&]() -> Status {
    POZOR_RETURN_IF_ERROR(NotNull(model, "model"));
    std::atomic<bool> stop{false};
    pozor::AttentionSelection selection;
    POZOR_RETURN_IF_ERROR(ToSelection(attention, &selection));
    POZOR_RETURN_IF_ERROR(ToEncodeOptions(options, &stop, &selection.options));
    POZOR_RETURN_IF_ERROR(CheckText(text));
    if (rows == nullptr) return pozor::InvalidArgument("rows: null; give a function");
    return Attention(*model, View(text), selection, rows, user, tokens);
  });
}

float pozor_cosine(const float* a, const float* b, size_t n) {
  return pozor::Cosine({a, n}, {b, n});
}

}  // extern "C"
