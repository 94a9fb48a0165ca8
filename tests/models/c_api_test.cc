#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "pozor/pozor.h"
#include "pozor/pozor.hpp"
#include "tests/models/golden.h"
#include "tests/support/compare.h"

namespace pozor {
namespace {

using test::DataPath;

pozor_text Text(const std::string& text) { return {text.data(), text.size()}; }

struct Loaded {
  Loaded() {
    const std::string folder = DataPath("st-prompts");
    REQUIRE(pozor_model_load(folder.data(), folder.size(), nullptr, &model) == POZOR_OK);
  }
  ~Loaded() { pozor_model_free(model); }
  pozor_model* model = nullptr;
};

TEST_CASE("the C interface gives the bits of the C++ one") {
  const Loaded loaded;
  const Model model = test::LoadOrFail(DataPath("st-prompts"));
  const size_t width = pozor_model_dimensions(loaded.model, nullptr);
  CHECK(width == 36);
  CHECK(pozor_model_max_length(loaded.model) == model.Info().max_length);
  const std::string texts[] = {"A man is playing a guitar.", "", "guitar"};
  const pozor_text views[] = {Text(texts[0]), {nullptr, 0}, Text(texts[2])};
  std::vector<float> out(3 * (width + 4), -1.0f);
  pozor_encode_options options;
  pozor_encode_options_init(&options);
  const std::string name = "passage";
  options.prompt_name = Text(name);
  pozor_encode_stats stats;
  REQUIRE(pozor_model_encode(loaded.model, views, 3, out.data(), width + 4, &options, &stats) ==
          POZOR_OK);
  EncodeOptions same;
  same.prompt_name = name;
  const Vectors expected = model.Encode(std::span<const std::string>(texts), same).value();
  for (size_t i = 0; i < 3; ++i) {
    CHECK(test::SameBits(std::span(out).subspan(i * (width + 4), width), expected[i]));
  }
  CHECK(stats.texts == 3);
  CHECK(pozor_cosine(&out[0], &out[width + 4], width) == Cosine(expected[0], expected[1]));

  int32_t ids[4];
  size_t count = 0;
  options.prompt_name = {nullptr, 0};
  options.has_prompt = 1;
  REQUIRE(pozor_model_tokenize(loaded.model, views[0], &options, ids, 4, &count) == POZOR_OK);
  same = {};
  same.prompt = "";
  const std::vector<int32_t> all = model.Tokenize(texts[0], same).value().ids;
  CHECK(count == all.size());
  CHECK(std::equal(ids, ids + 4, all.begin()));
}

TEST_CASE("errors have a code and a message") {
  const Loaded loaded;
  pozor_model* none = nullptr;
  CHECK(pozor_model_load("no-such-model", 13, nullptr, &none) == POZOR_NOT_FOUND);
  CHECK(none == nullptr);
  CHECK(std::strstr(pozor_error_message(), "no-such-model") != nullptr);
  pozor_load_options load;
  pozor_load_options_init(&load);
  load.precision = POZOR_BF16X3 + 1;
  CHECK(pozor_model_load("x", 1, &load, &none) == POZOR_INVALID_ARGUMENT);
  float out[36];
  const pozor_text text = {"x", 1}, broken = {nullptr, 5}, invalid = {"\xFF", 1};
  CHECK(pozor_model_encode(loaded.model, &text, 1, out, 35, nullptr, nullptr) ==
        POZOR_INVALID_ARGUMENT);
  CHECK(std::strstr(pozor_error_message(), "stride") != nullptr);
  CHECK(pozor_model_encode(loaded.model, &broken, 1, out, 36, nullptr, nullptr) ==
        POZOR_INVALID_ARGUMENT);
  CHECK(pozor_model_encode(loaded.model, &invalid, 1, out, 36, nullptr, nullptr) != POZOR_OK);
  pozor_encode_options options = {};
  CHECK(pozor_model_encode(loaded.model, &text, 1, out, 36, &options, nullptr) ==
        POZOR_INVALID_ARGUMENT);
  CHECK(std::strstr(pozor_error_message(), "init function") != nullptr);
  CHECK(pozor_model_encode(loaded.model, nullptr, 0, out, 36, nullptr, nullptr) == POZOR_OK);
}

TEST_CASE("null where something is needed is an error that names it") {
  const Loaded loaded;
  const pozor_text text = {"x", 1};
  float out[36];
  int32_t ids[4];
  size_t count = 0;
  const auto is_error = [](pozor_status status, const char* name) {
    return status == POZOR_INVALID_ARGUMENT &&
           std::strstr(pozor_error_message(), name) == pozor_error_message();
  };
  CHECK(is_error(pozor_model_load("x", 1, nullptr, nullptr), "model"));
  CHECK(is_error(pozor_model_encode(nullptr, &text, 1, out, 36, nullptr, nullptr), "model"));
  CHECK(is_error(pozor_model_encode(loaded.model, nullptr, 1, out, 36, nullptr, nullptr), "texts"));
  CHECK(is_error(pozor_model_encode(loaded.model, &text, 1, nullptr, 36, nullptr, nullptr), "out"));
  CHECK(is_error(pozor_model_tokenize(nullptr, text, nullptr, ids, 4, &count), "model"));
  CHECK(is_error(pozor_model_tokenize(loaded.model, text, nullptr, nullptr, 4, &count), "ids"));
  CHECK(is_error(pozor_model_tokenize(loaded.model, text, nullptr, ids, 4, nullptr), "count"));
  CHECK(pozor_model_tokenize(loaded.model, text, nullptr, nullptr, 0, &count) == POZOR_OK);
  const auto rows = [](void*, const pozor_attention_rows*) -> int32_t { return 0; };
  CHECK(is_error(pozor_model_attention(nullptr, text, nullptr, nullptr, rows, nullptr, nullptr),
                 "model"));
  CHECK(is_error(
      pozor_model_attention(loaded.model, text, nullptr, nullptr, nullptr, nullptr, nullptr),
      "rows"));
  CHECK(pozor_model_dimensions(nullptr, nullptr) == 0);
  CHECK(pozor_model_max_length(nullptr) == 0);
  pozor_load_options_init(nullptr);
  pozor_encode_options_init(nullptr);
  pozor_attention_options_init(nullptr);
  pozor_cancel_set(nullptr);
  pozor_cancel_free(nullptr);
  pozor_model_free(nullptr);
}

TEST_CASE("a struct of an older version keeps the defaults of what it lacks") {
  const Loaded loaded;
  pozor_encode_options options;
  std::memset(&options, 0xFF, sizeof options);
  options.struct_size = offsetof(pozor_encode_options, max_memory);
  options.threads = 1;
  options.batch_tokens = 0;
  options.max_length = 0;
  options.truncate_dim = 7;
  CHECK(pozor_model_dimensions(loaded.model, &options) == 7);
  float out[7];
  const pozor_text text = {"guitar", 6};
  CHECK(pozor_model_encode(loaded.model, &text, 1, out, 7, &options, nullptr) == POZOR_OK);
}

TEST_CASE("every precision can be asked for") {
  const std::string folder = DataPath("st-prompts");
  for (const int32_t precision : {POZOR_F32, POZOR_BF16, POZOR_INT8, POZOR_AUTO, POZOR_BF16X3}) {
    CAPTURE(precision);
    pozor_load_options load;
    pozor_load_options_init(&load);
    load.precision = precision;
    pozor_model* model = nullptr;
    REQUIRE(pozor_model_load(folder.data(), folder.size(), &load, &model) == POZOR_OK);
    float out[36];
    const pozor_text text = {"guitar", 6};
    CHECK(pozor_model_encode(model, &text, 1, out, 36, nullptr, nullptr) == POZOR_OK);
    pozor_model_free(model);
  }
}

TEST_CASE("progress, and two ways to stop") {
  const Loaded loaded;
  const std::string word = "guitar";
  const std::vector<pozor_text> texts(20000, Text(word));
  std::vector<float> out(texts.size() * 36);
  pozor_encode_options options;
  pozor_encode_options_init(&options);
  uint64_t finished = 0;
  options.user = &finished;
  options.progress = [](void* user, const pozor_progress* progress) -> int32_t {
    *static_cast<uint64_t*>(user) = progress->texts;
    return 0;
  };
  REQUIRE(pozor_model_encode(loaded.model, texts.data(), texts.size(), out.data(), 36, &options,
                             nullptr) == POZOR_OK);
  CHECK(finished == texts.size());

  pozor_cancel* cancel = pozor_cancel_create();
  pozor_cancel_set(cancel);
  options.cancel = cancel;
  CHECK(pozor_model_encode(loaded.model, texts.data(), texts.size(), out.data(), 36, &options,
                           nullptr) == POZOR_CANCELLED);
  pozor_cancel_free(cancel);
}

TEST_CASE("versions") {
  CHECK(pozor_abi_version() == POZOR_ABI_VERSION);
  CHECK(std::string(pozor_version()) == Version());
}

}  // namespace
}  // namespace pozor
