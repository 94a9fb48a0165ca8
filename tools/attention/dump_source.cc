// Dumps read back: .npz, .safetensors, .npy with its .json.
#include <algorithm>
#include <cstring>
#include <map>

#include "models/formats/file.h"
#include "tools/attention/encoding.h"
#include "tools/attention/source.h"
#include "tools/io/npy.h"
#include "tools/io/zip.h"

namespace pozor::tools {
namespace {

constexpr size_t kRowsAtOnce = 64;

Status Broken(const std::string& path, const std::string& why) {
  return Corrupt(path + ": " + why + "; write the dump again");
}

// The matrices of a dump: one stretch of bytes a layer.
struct DumpData {
  std::string description;
  std::string_view all;                        // npy, npz: [layers, heads, rows, columns]
  std::map<std::string, std::string_view> by;  // safetensors: "attn.layer.00"
};

Result<WeightType> ReadEncoding(const JsonValue& json, const std::string& path) {
  const JsonValue* encoding = json.Find("encoding");
  for (const WeightType type : {WeightType::kF32, WeightType::kF16, WeightType::kSqrtU8}) {
    if (encoding != nullptr && encoding->as_string() == WeightTypeName(type)) return type;
  }
  return Broken(path, "its description names no known encoding");
}

bool IsWhole(const JsonValue& json) {
  const auto is = [&](const char* key, std::string_view text) {
    const JsonValue* value = json.Find(key);
    return value != nullptr && value->as_string() == text;
  };
  const JsonValue* words = json.Find("words_merged");
  const JsonValue* dropped = json.Find("no_special");
  const JsonValue* begin = json.Find("row_begin");
  return is("reduce", "none") && words != nullptr && words->is_null() && dropped != nullptr &&
         !dropped->as_bool() && begin != nullptr && begin->as_int() == 0;
}

Result<DumpData> ReadSafetensors(std::string_view bytes, const std::string& path) {
  uint64_t length = 0;
  if (bytes.size() >= 8) std::memcpy(&length, bytes.data(), 8);
  if (bytes.size() < 8 || length > bytes.size() - 8) return Broken(path, "ends within its header");
  POZOR_TRY(const JsonDocument header, ParseJson(bytes.substr(8, length), path));
  const std::string_view body = bytes.substr(8 + length);
  DumpData data;
  for (const JsonMember& member : header->members()) {
    if (member.key == "__metadata__") {
      const JsonValue* text = member.value.Find("pozor");
      if (text != nullptr) data.description = std::string(text->as_string());
      continue;
    }
    const JsonValue* offsets = member.value.Find("data_offsets");
    if (offsets == nullptr || offsets->size() != 2 || !offsets->is_array()) continue;
    const int64_t begin = offsets->items()[0].as_int(), end = offsets->items()[1].as_int();
    if (begin < 0 || end < begin || static_cast<uint64_t>(end) > body.size()) {
      return Broken(path, "a tensor lies outside the file");
    }
    data.by[std::string(member.key)] =
        body.substr(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
  }
  return data;
}

Result<DumpData> ReadData(std::string_view bytes, const std::string& path) {
  if (path.ends_with(".safetensors")) return ReadSafetensors(bytes, path);
  DumpData data;
  if (path.ends_with(".npy")) {
    POZOR_TRY(const NpyArray array, ParseNpy(bytes, path));
    data.all = array.data;
    POZOR_TRY(data.description, ReadWholeFile(path + ".json", kMaxJsonBytes));
    return data;
  }
  POZOR_TRY(const std::vector<ZipEntry> entries, ReadStoredZip(bytes, path));
  for (const ZipEntry& entry : entries) {
    if (entry.name == "meta.json") data.description = std::string(entry.data);
    if (entry.name != "attn.npy") continue;
    POZOR_TRY(const NpyArray array, ParseNpy(entry.data, path));
    data.all = array.data;
  }
  return data;
}

class DumpSource final : public AttentionSource {
 public:
  explicit DumpSource(MappedFile file) : file_(std::move(file)) {}

  Status Prepare();
  Status Stream(const StreamOptions& options, const AttentionSink& sink) override;
  Status StreamHidden(const HiddenSink&) override {
    return Unsupported(file_.path() + ": its hidden states are not read; give the model");
  }
  size_t hidden_size() const override { return 0; }

 private:
  Status FindMatrices(const DumpData& data);
  Status Emit(size_t slot, size_t layer, size_t head, size_t begin, size_t end,
              const AttentionSink& sink);

  MappedFile file_;
  WeightType type_ = WeightType::kF32;
  std::vector<const char*> matrices_;  // [tokens, tokens] of each head of the record, encoded
  std::vector<float> rows_;
};

Status DumpSource::FindMatrices(const DumpData& data) {
  const size_t matrix = record_.text.size() * record_.text.size() * SizeOf(type_);
  const char* next = data.all.data();
  size_t left = data.all.size();
  char name[32];
  for (size_t i = 0; i < record_.heads.layers.size(); ++i) {
    if (!data.by.empty()) {
      std::snprintf(name, sizeof name, "attn.layer.%02zu", record_.heads.layers[i]);
      const auto found = data.by.find(name);
      if (found == data.by.end()) return Broken(file_.path(), std::string("lacks ") + name);
      next = found->second.data();
      left = found->second.size();
    }
    for (size_t h = 0; h < record_.heads.heads[i].size(); ++h) {
      if (left < matrix) return Broken(file_.path(), "has fewer weights than its description says");
      matrices_.push_back(next);
      next += matrix;
      left -= matrix;
    }
  }
  return Status();
}

Status DumpSource::Prepare() {
  const std::string& path = file_.path();
  POZOR_TRY(const DumpData data,
            ReadData({reinterpret_cast<const char*>(file_.data()), file_.size()}, path));
  if (data.description.empty()) {
    return Broken(path, "has no description, so it was not written by pozor attention dump");
  }
  POZOR_TRY(const JsonDocument json, ParseJson(data.description, path));
  POZOR_TRY(record_, ReadRecord(*json, path));
  POZOR_TRY(type_, ReadEncoding(*json, path));
  if (!IsWhole(*json)) {
    return Unsupported(path +
                       ": holds merged, reduced or chosen rows; dump it without --words, --reduce, "
                       "--no-special and --rows");
  }
  const size_t tokens = record_.text.size();
  if (tokens > (size_t{1} << 24)) return Broken(path, "has more tokens than any text");
  return FindMatrices(data);
}

Status DumpSource::Emit(size_t slot, size_t layer, size_t head, size_t begin, size_t end,
                        const AttentionSink& sink) {
  const size_t tokens = record_.text.size();
  rows_.resize((end - begin) * tokens);
  Decode(matrices_[slot] + begin * tokens * SizeOf(type_), rows_.size(), type_, rows_.data());
  return sink({layer, head, begin, end - begin, tokens, tokens, rows_.data()});
}

Status DumpSource::Stream(const StreamOptions& options, const AttentionSink& sink) {
  const size_t end = std::min(options.query_end, record_.text.size());
  const HeadSet& set = record_.heads;
  for (size_t i = 0; i < set.layers.size(); ++i) {
    const size_t layer = set.layers[i], heads = set.heads[i].size();
    const size_t first = set.Slot(layer, set.heads[i][0]);
    if (options.query_begin >= end) continue;
    const size_t blocks = (end - options.query_begin + kRowsAtOnce - 1) / kRowsAtOnce;
    for (size_t n = 0; n < blocks * heads; ++n) {
      const size_t block = options.heads_together ? n / heads : n % blocks;
      const size_t h = options.heads_together ? n % heads : n / blocks;
      const size_t begin = options.query_begin + block * kRowsAtOnce;
      POZOR_RETURN_IF_ERROR(
          Emit(first + h, layer, set.heads[i][h], begin, std::min(begin + kRowsAtOnce, end), sink));
    }
  }
  return Status();
}

}  // namespace

bool IsDumpName(const std::string& path) {
  return path.ends_with(".npz") || path.ends_with(".safetensors") || path.ends_with(".npy");
}

Result<std::unique_ptr<AttentionSource>> OpenDump(const std::string& path) {
  POZOR_TRY(MappedFile file, MappedFile::Open(path));
  auto source = std::make_unique<DumpSource>(std::move(file));
  POZOR_RETURN_IF_ERROR(source->Prepare());
  return std::unique_ptr<AttentionSource>(std::move(source));
}

}  // namespace pozor::tools
