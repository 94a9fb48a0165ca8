#include "tools/attention/positions.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/forward.h"
#include "pozor/pozor.hpp"
#include "tools/bench/json_writer.h"
#include "tools/io/deflate.h"

namespace pozor::tools {
namespace {

constexpr size_t kMostSamples = 64;

// At most kMostSamples numbers from [begin, end), evenly.
std::vector<size_t> Sample(size_t begin, size_t end) {
  const size_t size = end - begin, count = std::min(size, kMostSamples);
  std::vector<size_t> sample(count);
  for (size_t i = 0; i < count; ++i) sample[i] = begin + i * size / count;
  return sample;
}

char ToByte(double value) {
  return static_cast<char>(static_cast<int8_t>(std::lround(std::clamp(value, -127.0, 127.0))));
}

void WriteSample(const char* key, const std::vector<size_t>& sample, size_t offset,
                 JsonWriter* json) {
  json->Key(key).BeginArray();
  for (const size_t i : sample) json->Value(i - offset);
  json->EndArray();
}

}  // namespace

std::string PositionKindName(const EncoderSpec& spec) {
  std::string kinds;
  const auto add = [&](const char* kind) {
    kinds += (kinds.empty() ? "" : " + ") + std::string(kind);
  };
  const PositionKind table = spec.embeddings.position_kind;
  if (table == PositionKind::kLearned) add("learned");
  if (table == PositionKind::kSinusoidalInterleaved || table == PositionKind::kSinusoidalHalves) {
    add("sinusoidal");
  }
  if (!spec.rotaries.empty()) add("rotary");
  if (spec.score_bias.kind == ScoreBias::kSlopes) add("alibi");
  const bool distances = !spec.layers.empty() && spec.layers[0].distances.present();
  const bool relative = distances || spec.relative_positions.span != 0;
  if (spec.score_bias.kind == ScoreBias::kBuckets || relative) add("relative");
  return kinds.empty() ? "none" : kinds;
}

std::string PositionPanel(const Encoder& encoder) {
  const Encoder::Impl& impl = encoder.impl();
  const EmbeddingSpec& embeddings = impl.spec.embeddings;
  JsonWriter json;
  json.BeginObject().Field("kind", PositionKindName(impl.spec));
  if (impl.position == nullptr) return json.EndObject().text();
  const size_t first = embeddings.position_offset, columns = embeddings.size;
  const std::vector<size_t> rows = Sample(first, embeddings.max_positions);
  const std::vector<size_t> shown = Sample(0, columns);
  const auto row = [&](size_t i) { return impl.position + rows[i] * columns; };
  double largest = 1e-30;
  for (size_t i = 0; i < rows.size(); ++i) {
    for (const size_t c : shown) {
      largest = std::max(largest, std::abs(static_cast<double>(row(i)[c])));
    }
  }
  const double scale = largest / 127;
  std::string table, similarity;
  for (size_t i = 0; i < rows.size(); ++i) {
    for (const size_t c : shown) table += ToByte(static_cast<double>(row(i)[c]) / scale);
    for (size_t j = 0; j < rows.size(); ++j) {
      similarity += ToByte(127 * static_cast<double>(Cosine({row(i), columns}, {row(j), columns})));
    }
  }
  json.Field("count", embeddings.max_positions - first).Field("size", columns);
  WriteSample("sampled_positions", rows, first, &json);
  WriteSample("sampled_columns", shown, 0, &json);
  json.Field("table", Base64(table)).Field("table_scale", scale);
  json.Field("similarity", Base64(similarity));
  return json.EndObject().text();
}

}  // namespace pozor::tools
