// The real all-MiniLM-L6-v2, if this machine has it, from every format: the same bits, soon.
#include <doctest/doctest.h>
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "models/formats/file.h"
#include "models/formats/safetensors.h"
#include "models/locate.h"
#include "pozor/pozor.hpp"
#include "tests/models/golden.h"
#include "tests/support/compare.h"
#include "tests/support/weight_writers.h"

namespace pozor {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr const char* kName = "all-MiniLM-L6-v2";

std::string_view BytesOf(const TensorSource& source, const TensorInfo& tensor) {
  const float* values = source.Map(tensor);
  return {reinterpret_cast<const char*>(values), tensor.elements() * sizeof(float)};
}

// Parameters of the encoder and its tables; the buffers of integers stay out.
std::vector<const TensorInfo*> Parameters(const TensorSource& source) {
  std::vector<const TensorInfo*> list;
  for (const TensorInfo& tensor : source.tensors()) {
    if (tensor.dtype == DType::kF32) list.push_back(&tensor);
  }
  return list;
}

std::string AsTorch(const TensorSource& source) {
  std::vector<test::TorchTensor> tensors;
  std::vector<std::string_view> storages;
  for (const TensorInfo* tensor : Parameters(source)) {
    tensors.push_back({.name = tensor->name, .shape = tensor->shape, .storage = storages.size()});
    storages.push_back(BytesOf(source, *tensor));
  }
  return test::WriteTorch(tensors, storages);
}

// As the TorchScript exporter: weights of Linear layers are anonymous and transposed.
std::string AsOnnx(const TensorSource& source) {
  test::OnnxWriter out;
  size_t number = 0;
  for (const TensorInfo* tensor : Parameters(source)) {
    const std::string_view bytes = BytesOf(source, *tensor);
    const bool linear = tensor->shape.size() == 2 && tensor->name.starts_with("encoder.");
    if (!linear) {
      out.Tensor(tensor->name, tensor->shape, 1, bytes);
      continue;
    }
    const size_t rows = tensor->shape[0], cols = tensor->shape[1];
    const auto* values = reinterpret_cast<const float*>(bytes.data());
    std::vector<float> swapped(rows * cols);
    for (size_t r = 0; r < rows; ++r) {
      for (size_t c = 0; c < cols; ++c) swapped[c * rows + r] = values[r * cols + c];
    }
    const std::string name = "onnx::MatMul_" + std::to_string(++number);
    const std::string stem = tensor->name.substr(0, tensor->name.size() - 6);
    out.Tensor(name, {cols, rows}, 1, test::RawList(swapped));
    out.Add({"MatMul", "", {"x", name}, {"y" + name}});
    out.Add({"Add", "", {stem + "bias", "y" + name}, {"z" + name}});
  }
  return out.Finish();
}

std::string GgufName(const std::string& name) {
  const std::map<std::string, std::string> table = {
      {"embeddings.word_embeddings", "token_embd"},
      {"embeddings.position_embeddings", "position_embd"},
      {"embeddings.token_type_embeddings", "token_types"},
      {"embeddings.LayerNorm", "token_embd_norm"},
      {"attention.self.query", "attn_q"},
      {"attention.self.key", "attn_k"},
      {"attention.self.value", "attn_v"},
      {"attention.output.dense", "attn_output"},
      {"attention.output.LayerNorm", "attn_output_norm"},
      {"intermediate.dense", "ffn_up"},
      {"output.dense", "ffn_down"},
      {"output.LayerNorm", "layer_output_norm"}};
  const size_t dot = name.rfind('.');
  std::string stem = name.substr(0, dot), block;
  const std::string layer = "encoder.layer.";
  if (stem.starts_with(layer)) {
    const size_t end = stem.find('.', layer.size());
    block = "blk." + stem.substr(layer.size(), end - layer.size()) + ".";
    stem = stem.substr(end + 1);
  }
  const auto found = table.find(stem);
  return found == table.end() ? "" : block + found->second + name.substr(dot);
}

// As llama.cpp converts it, with the tokens of vocab.txt.
std::string AsGguf(const TensorSource& source, const std::string& vocabulary) {
  test::GgufWriter out;
  out.Text("general.architecture", "bert");
  out.Uint("bert.context_length", 512);
  out.Uint("bert.embedding_length", 384);
  out.Uint("bert.feed_forward_length", 1536);
  out.Uint("bert.block_count", 6);
  out.Uint("bert.attention.head_count", 12);
  out.Float("bert.attention.layer_norm_epsilon", 1e-12f);
  out.Bool("bert.attention.causal", false);
  out.Uint("bert.pooling_type", 1);
  std::vector<std::string> tokens;
  std::vector<int32_t> kinds;
  std::ifstream file(vocabulary);
  const std::set<std::string> special = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
  for (std::string token; std::getline(file, token);) {
    kinds.push_back(special.contains(token) ? 3 : 1);
    const bool continues = token.starts_with("##");
    tokens.push_back(kinds.back() == 3 ? token
                     : continues       ? token.substr(2)
                                       : "\xE2\x96\x81" + token);
  }
  out.Text("tokenizer.ggml.model", "bert");
  out.Texts("tokenizer.ggml.tokens", tokens);
  out.Ints("tokenizer.ggml.token_type", kinds);
  out.Uint("tokenizer.ggml.unknown_token_id", 100);
  out.Uint("tokenizer.ggml.cls_token_id", 101);
  out.Uint("tokenizer.ggml.seperator_token_id", 102);
  for (const TensorInfo* tensor : Parameters(source)) {
    const std::string name = GgufName(tensor->name);
    if (!name.empty()) out.Tensor(name, tensor->shape, 0, BytesOf(source, *tensor));
  }
  return out.Finish();
}

class Scratch {
 public:
  Scratch() : path_((fs::temp_directory_path() / "pozor-minilm-XXXXXX").string()) {
    REQUIRE(::mkdtemp(path_.data()) != nullptr);
  }
  ~Scratch() { fs::remove_all(path_); }
  const fs::path path() const { return path_; }

 private:
  std::string path_;
};

// Milliseconds from nothing to the first vector, the best of a few.
double FirstVectorMilliseconds(const std::string& path) {
  double best = 1e9;
  for (int i = 0; i < 3; ++i) {
    const auto start = Clock::now();
    const auto model = Model::Load(path);
    REQUIRE(model.ok());
    REQUIRE(model->Encode({"A man is eating."}).ok());
    best = std::min(best, std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  }
  return best;
}

TEST_CASE("all-MiniLM-L6-v2 from torch, ONNX and GGUF has the bits of safetensors") {
  const auto folder = LocateModel(kName);
  if (!folder.ok()) {
    MESSAGE("left out: " << folder.status().message());
    return;
  }
  const std::vector<std::string> texts = {"A man is eating.", "", "Caf\u00e9 na\u00efve \u4e2d.",
                                          std::string(3000, 'x'), "The [SEP] of it all, at last!"};
  const auto source = OpenSafetensors(JoinPath(*folder, "model.safetensors")).value();
  const Vectors expected =
      test::LoadOrFail(*folder).Encode(std::span<const std::string>(texts)).value();
  struct Format {
    const char* file;
    std::function<std::string()> write;
    bool own_tokenizer;
  };
  const Format formats[] = {
      {"pytorch_model.bin", [&] { return AsTorch(*source); }, false},
      {"model.onnx", [&] { return AsOnnx(*source); }, false},
      {"model.gguf", [&] { return AsGguf(*source, JoinPath(*folder, "vocab.txt")); }, true}};
  for (const Format& format : formats) {
    const std::string file = format.file;
    CAPTURE(file);
    const Scratch scratch;
    for (const auto& entry : fs::directory_iterator(*folder)) {
      const std::string name = entry.path().filename().string();
      const bool tokenizer = name.starts_with("tokenizer") || name == "vocab.txt";
      if (name == "model.safetensors" || (format.own_tokenizer && tokenizer)) continue;
      fs::copy(entry.path(), scratch.path() / name, fs::copy_options::recursive);
    }
    std::ofstream(scratch.path() / format.file, std::ios::binary) << format.write();
    const Model model = test::LoadOrFail(scratch.path().string());
    const Vectors got = model.Encode(std::span<const std::string>(texts)).value();
    REQUIRE(got.rows() == expected.rows());
    for (size_t i = 0; i < texts.size(); ++i) CHECK(test::SameBits(got[i], expected[i]));
    WARN(FirstVectorMilliseconds(scratch.path().string()) < 150);
  }
}

}  // namespace
}  // namespace pozor
