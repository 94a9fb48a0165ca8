// GGUF files: ggml blocks, what they say of the model and its tokenizer, hostile files.
#include "models/formats/gguf.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/formats/safetensors.h"
#include "models/formats/weights.h"
#include "models/json.h"
#include "models/text/tokenizer.h"
#include "tests/models/formats.h"
#include "tests/models/golden.h"
#include "tests/support/compare.h"
#include "tests/support/weight_writers.h"

namespace pozor {
namespace {

using test::AsBytes;
using test::DataPath;
using test::Find;
using test::ReadAll;
using test::ReadInPieces;

TEST_CASE("ggml blocks become the reference's numbers, bit by bit, in pieces of any size") {
  const auto source = OpenGguf(DataPath("formats/blocks.gguf")).value();
  const auto expected = OpenSafetensors(DataPath("formats/blocks.safetensors")).value();
  REQUIRE(expected->tensors().size() == 14);
  for (const TensorInfo& tensor : expected->tensors()) {
    CAPTURE(tensor.name);
    const std::vector<float> numbers = ReadAll(*expected, tensor.name);
    CHECK(test::SameBits(ReadAll(*source, tensor.name), numbers));
    CHECK(test::SameBits(ReadInPieces(*source, tensor.name), numbers));
  }
}

TEST_CASE("hostile GGUF files are refused by the name of their fault") {
  constexpr test::Hostile kFiles[] = {
      {"magic.gguf", "magic", ""},
      {"version-1.gguf", "version 1", ""},
      {"version-big-endian.gguf", "big-endian", ""},
      {"truncated.gguf", "the end of the file", ""},
      {"kv-count-huge.gguf", "number of keys", ""},
      {"tensor-count-huge.gguf", "number of tensors", ""},
      {"string-huge.gguf", "string length", ""},
      {"array-huge.gguf", "tokenizer.ggml.tokens", "array length"},
      {"array-nested.gguf", "nests arrays", ""},
      {"value-type.gguf", "value type 99", ""},
      {"alignment-zero.gguf", "general.alignment", ""},
      {"alignment-odd.gguf", "general.alignment", ""},
      {"duplicate-key.gguf", "general.architecture", "duplicate"},
      {"duplicate-tensor.gguf", "tensor a", "duplicate"},
      {"dims-5.gguf", "tensor a", "5 dimensions"},
      {"dims-overflow.gguf", "tensor a", "overflows"},
      {"offset-outside.gguf", "tensor a", "outside the file"},
      {"offset-unaligned.gguf", "tensor a", "not aligned"},
      {"overlap.gguf", "tensor b", "overlap"},
      {"type-unknown.gguf", "tensor a", "type 250"},
      {"q8-row.gguf", "tensor a", "a row of 33 is not a multiple of 32"},
      {"name-long.gguf", "longer than 64 bytes", ""},
      {"no-architecture.gguf", "general.architecture", ""},
      {"architecture-unknown.gguf", "architecture bertosaurus", ""},
  };
  test::CheckRefused("gguf", kFiles, OpenGguf);
  const auto good = OpenGguf(DataPath("malformed/gguf/good.gguf")).value();
  CHECK(ReadAll(*good, test::kWord) == std::vector<float>(8, 0.0f));
  CHECK(Find(*good, test::kWord)->shape == std::vector<size_t>{2, 4});
}

TEST_CASE("the tokenizers of GGUF files, and those that are refused by name") {
  const auto tokens = [](const char* model) {
    test::GgufWriter gguf;
    gguf.Text("general.architecture", "bert");
    gguf.Text("tokenizer.ggml.model", model);
    gguf.Texts("tokenizer.ggml.tokens", {"<s>", "<unk>", "</s>", "\u2581a", "\u2581man", "n"});
    gguf.Ints("tokenizer.ggml.token_type", {3, 2, 3, 1, 1, 1});
    gguf.Uint("tokenizer.ggml.bos_token_id", 0);
    gguf.Uint("tokenizer.ggml.unknown_token_id", 1);
    gguf.Uint("tokenizer.ggml.eos_token_id", 2);
    gguf.Bool("tokenizer.ggml.add_bos_token", true);
    gguf.Bool("tokenizer.ggml.add_eos_token", true);
    return gguf;
  };
  const auto load = [](const test::GgufWriter& writer) {
    const std::string file = writer.Finish();
    const auto gguf = ReadGgufBytes(AsBytes(file), "file").value();
    return Tokenizer::FromGguf(gguf->metadata(), "file");
  };
  test::GgufWriter unigram = tokens("t5");
  unigram.Floats("tokenizer.ggml.scores", {0, 0, 0, -1, -2, -3});
  const std::string_view pair = "man";
  CHECK(load(unigram).value()->Encode("a man", nullptr, {})->ids ==
        std::vector<int32_t>{0, 3, 4, 2});
  CHECK(load(unigram).value()->Encode("a", &pair, {})->ids ==
        std::vector<int32_t>{0, 3, 2, 2, 4, 2});
  CHECK(load(tokens("bert")).value()->Encode("A Mann", nullptr, {})->ids ==
        std::vector<int32_t>{0, 3, 4, 5, 2});
  test::GgufWriter infinite = tokens("t5");
  infinite.Floats("tokenizer.ggml.scores", {0, 0, 0, -1, HUGE_VALF, -3});
  CHECK(load(infinite).status().message().find("entry 4") != std::string::npos);
  CHECK(load(tokens("t5")).status().message().find("tokenizer.ggml.scores") != std::string::npos);
  CHECK(load(tokens("rwkv")).status().message().find("GGUF tokenizer rwkv") != std::string::npos);
  test::GgufWriter bpe = tokens("gpt2");
  bpe.Text("tokenizer.ggml.pre", "smollm");
  CHECK(load(bpe).status().message().find("pre-tokenizer smollm") != std::string::npos);
}

TEST_CASE("what a GGUF file says of the model") {
  test::GgufWriter writer;
  writer.Text("general.architecture", "nomic-bert");
  for (const char* key : {"embedding_length", "feed_forward_length", "block_count",
                          "attention.head_count", "context_length"}) {
    writer.Uint(std::string("nomic-bert.") + key, 8);
  }
  writer.Float("nomic-bert.attention.layer_norm_epsilon", 1e-12f);
  writer.Float("nomic-bert.rope.freq_base", 1000);
  writer.Uint("nomic-bert.pooling_type", 2);
  writer.Tensor("blk.7.attn_qkv.weight", {1, 1}, 0, std::string(4, '\0'));
  writer.Tensor("token_embd.weight", {3, 1}, 0, std::string(12, '\0'));
  const std::string file = writer.Finish();
  const auto gguf = ReadGgufBytes(AsBytes(file), "file").value();
  CHECK(gguf->PoolingMode() == "cls");
  CHECK(Find(*gguf, "encoder.layers.7.attn.Wqkv.weight") != nullptr);
  const JsonDocument config = ParseJson(gguf->ConfigJson().value(), "config").value();
  CHECK(config->Find("model_type")->as_string() == "nomic_bert");
  CHECK(config->Find("vocab_size")->as_int() == 3);
  CHECK(static_cast<float>(config->Find("layer_norm_eps")->as_double()) == 1e-12f);
  CHECK(config->Find("rope_parameters")->Find("rope_theta")->as_double() == 1000);
}

}  // namespace
}  // namespace pozor
