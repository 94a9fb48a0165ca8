#include "tools/bench/model_record.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "engine/precision_plan.h"
#include "kernels/gemm.h"
#include "models/model_impl.h"
#include "models/quantize.h"
#include "tools/bench/text.h"

namespace pozor::tools {
namespace {

double Product(size_t a, size_t b) { return 2 * static_cast<double>(a) * static_cast<double>(b); }

// Keys that the queries of a text of `length` tokens see in all: window keys on either side.
double PairsOf(size_t length, size_t window) {
  const double all = static_cast<double>(length) * static_cast<double>(length);
  if (window >= length) return all;
  const double outside =
      static_cast<double>(length - window) * static_cast<double>(length - window - 1);
  return all - outside;
}

bool IsWeightFile(const std::filesystem::path& path) {
  const std::string ending = path.extension().string();
  return ending == ".safetensors" || ending == ".bin" || ending == ".gguf" || ending == ".onnx";
}

uint64_t HashFile(const std::filesystem::path& path, uint64_t hash) {
  std::ifstream file(path, std::ios::binary);
  std::vector<uint64_t> block(1 << 17);
  while (file) {
    file.read(reinterpret_cast<char*>(block.data()),
              static_cast<std::streamsize>(block.size() * sizeof(uint64_t)));
    const size_t bytes = static_cast<size_t>(file.gcount());
    std::memset(reinterpret_cast<char*>(block.data()) + bytes, 0, (8 - bytes % 8) % 8);
    for (size_t i = 0; i < (bytes + 7) / 8; ++i) {
      hash = (hash ^ block[i]) * 0x9e3779b97f4a7c15u;
      hash ^= hash >> 32;
    }
  }
  return hash;
}

}  // namespace

double FlopsPerToken(const EncoderSpec& spec) {
  double flops = 0;
  const size_t inner = spec.heads * spec.head_dim;
  for (const LayerSpec& layer : spec.layers) {
    const double ffn = layer.ffn_gate.weight.present() ? 3 : 2;
    const size_t columns = spec.layer_columns();
    flops += ffn * Product(columns, spec.intermediate);
    if (!layer.continues) flops += 4 * Product(columns, inner);
    if (layer.narrow_query.weight.present()) flops += Product(spec.hidden - columns, inner);
    for (const LinearRef* linear : {&layer.narrow, &layer.narrow_query, &layer.widen}) {
      if (linear->weight.present()) flops += Product(spec.hidden, columns);
    }
  }
  return flops;
}

double EncoderFlops(const EncoderSpec& spec, std::span<const size_t> lengths) {
  double tokens = 0, attention = 0;
  const double pair = 2 * 2 * static_cast<double>(spec.heads * spec.head_dim);
  for (const size_t length : lengths) {
    tokens += static_cast<double>(length);
    for (const LayerSpec& layer : spec.layers) {
      if (!layer.continues) attention += pair * PairsOf(length, layer.window);
    }
  }
  return tokens * FlopsPerToken(spec) + attention;
}

std::vector<std::string> ChosenKernels(PackedLayout layout) {
  std::vector<std::string> names;
  for (const size_t m : {1, 8, 32, 128}) {
    names.push_back(Cat({"m=", std::to_string(m), ": ", FindGemmKernel(layout, m).name}));
  }
  return names;
}

std::string HashWeights(const std::string& path) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  if (std::filesystem::is_regular_file(path, error)) {
    files.emplace_back(path);
  } else {
    for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
      if (IsWeightFile(entry.path())) files.push_back(entry.path());
    }
  }
  if (files.empty()) return "";
  std::sort(files.begin(), files.end());
  uint64_t hash = 0xcbf29ce484222325u;
  for (const std::filesystem::path& file : files) hash = HashFile(file, hash);
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash));
  return digits;
}

void WriteModelInfo(const Model& model, JsonWriter* json) {
  const ModelInfo& info = model.Info();
  const EncoderSpec& spec = model.impl().encoder->spec();
  const NumberFormat format = LowestFormat(model.impl().encoder->precision());
  json->Key("kernels").Array(ChosenKernels(LayoutOf(format)));
  json->Field("precision", NumberFormatName(format));
  json->Field("name", info.name).Field("path", info.path).Field("architecture", info.architecture);
  json->Field("hash", HashWeights(info.path)).Field("layers", info.layers);
  json->Field("hidden", info.hidden).Field("heads", info.heads);
  json->Field("intermediate", info.intermediate).Field("parameters", info.parameters);
  json->Field("max_length", info.max_length).Field("dimensions", info.dimensions);
  json->Field("flops_per_token", FlopsPerToken(spec));
  json->Field("flops_per_token_and_key",
              4 * static_cast<double>(spec.heads * spec.head_dim * spec.layer_count()));
}

}  // namespace pozor::tools
