#include "tools/io/output_type.h"

#include <algorithm>
#include <cmath>

#include "models/json.h"

namespace pozor::tools {
namespace {

Result<std::vector<float>> ReadBound(const JsonValue& root, const char* key,
                                     const std::string& path) {
  const JsonValue* value = root.Find(key);
  std::vector<float> bound;
  if (value != nullptr && value->is_number()) {
    bound.push_back(static_cast<float>(value->as_double()));
  } else if (value != nullptr) {
    for (const JsonValue& item : value->items()) {
      if (!item.is_number()) break;
      bound.push_back(static_cast<float>(item.as_double()));
    }
    if (bound.size() != value->items().size()) bound.clear();
  }
  if (!bound.empty()) return bound;
  return Corrupt(path + ": \"" + key +
                 "\" is no number and no list of numbers; give {\"min\": -0.1, \"max\": 0.1}");
}

}  // namespace

Result<Int8Ranges> ReadInt8Ranges(const std::string& path) {
  POZOR_TRY(const JsonDocument document, ReadJsonFile(path));
  Int8Ranges ranges;
  POZOR_TRY(ranges.min, ReadBound(document.root(), "min", path));
  POZOR_TRY(ranges.max, ReadBound(document.root(), "max", path));
  return ranges;
}

Status ExpandRanges(size_t dimensions, const std::string& path, Int8Ranges* ranges) {
  for (std::vector<float>* bound : {&ranges->min, &ranges->max}) {
    if (bound->size() == 1) bound->resize(dimensions, bound->front());
    if (bound->size() == dimensions) continue;
    return Corrupt(path + ": has " + std::to_string(bound->size()) + " values, vectors have " +
                   std::to_string(dimensions) + "; give one value, or one a dimension");
  }
  for (size_t i = 0; i < dimensions; ++i) {
    if (ranges->min[i] < ranges->max[i]) continue;
    return Corrupt(path + ": min is not below max at dimension " + std::to_string(i) +
                   "; give a range that holds the vectors");
  }
  return Status();
}

size_t OutputRowBytes(OutputType type, size_t dimensions) {
  switch (type) {
    case OutputType::kInt8:
      return dimensions;
    case OutputType::kBinary:
    case OutputType::kUbinary:
      return (dimensions + 7) / 8;
    case OutputType::kF32:
      break;
  }
  return dimensions * sizeof(float);
}

void AppendQuantized(OutputType type, std::span<const float> row, const Int8Ranges& ranges,
                     std::string* out) {
  if (type == OutputType::kInt8) {
    for (size_t i = 0; i < row.size(); ++i) {
      const float step = (ranges.max[i] - ranges.min[i]) / 255.0f;
      const float level = std::clamp(std::floor((row[i] - ranges.min[i]) / step), 0.0f, 255.0f);
      *out += static_cast<char>(static_cast<int>(level) - 128);
    }
    return;
  }
  for (size_t begin = 0; begin < row.size(); begin += 8) {
    unsigned bits = 0;
    for (size_t i = begin; i < begin + 8; ++i) bits = 2 * bits + (i < row.size() && row[i] > 0);
    *out += static_cast<char>(type == OutputType::kBinary ? static_cast<int>(bits) - 128
                                                          : static_cast<int>(bits));
  }
}

}  // namespace pozor::tools
