// .npz and .safetensors: arrays of a text beside its attention.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "tools/attention/dump_writer.h"
#include "tools/io/npy.h"
#include "tools/io/zip.h"

namespace pozor::tools {
namespace {

// An array that is small and known at once.
struct SmallArray {
  std::string name;
  std::string npy_type, safetensors_type;
  std::vector<uint64_t> shape;
  std::string bytes;
};

template <class T>
std::string BytesOf(const std::vector<T>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

SmallArray Integers(const std::string& name, const std::vector<int32_t>& values) {
  return {name, "<i4", "I32", {values.size()}, BytesOf(values)};
}

SmallArray Spans(const std::string& name, const std::vector<std::pair<uint32_t, uint32_t>>& spans) {
  std::vector<uint32_t> flat;
  for (const auto& [begin, end] : spans) flat.insert(flat.end(), {begin, end});
  return {name, "<i4", "I32", {spans.size(), 2}, BytesOf(flat)};
}

std::vector<SmallArray> TokenArrays(const TextRecord& text) {
  const TokenizeResult& tokens = text.tokens;
  const std::vector<int32_t> special(tokens.special.begin(), tokens.special.end());
  return {Integers("ids", tokens.ids),
          Spans("offsets", tokens.offsets),
          Spans("byte_offsets", tokens.byte_offsets),
          Integers("segments", tokens.type_ids),
          Integers("special", special),
          Integers("word", text.word)};
}

// NumPy's fixed-width strings: UCS-4, padded with zeros.
SmallArray NumpyStrings(const std::string& name, const std::vector<std::string>& texts) {
  std::vector<std::vector<uint32_t>> wide;
  size_t longest = 1;
  for (const std::string& text : texts) {
    std::vector<uint32_t>& points = wide.emplace_back();
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      if ((byte & 0xC0) == 0x80 && !points.empty()) {
        points.back() = points.back() << 6 | (byte & 0x3F);
      } else {
        points.push_back(byte < 0x80   ? byte
                         : byte < 0xE0 ? byte & 31
                         : byte < 0xF0 ? byte & 15
                                       : byte & 7);
      }
    }
    longest = std::max(longest, points.size());
  }
  std::vector<uint32_t> flat;
  for (std::vector<uint32_t>& points : wide) {
    points.resize(longest, 0);
    flat.insert(flat.end(), points.begin(), points.end());
  }
  return {name, "<U" + std::to_string(longest), "", {texts.size()}, BytesOf(flat)};
}

SmallArray SelfCheck(const AttentionRecord& record) {
  const RunRecord& run = record.runs[0];
  const std::vector<double> numbers = {run.max_row_sum_error,
                                       run.max_vector_difference.value_or(0)};
  return {"self_check", "<f8", "F64", {2}, BytesOf(numbers)};
}

class NpzDump final : public DumpWriter {
 public:
  NpzDump(std::unique_ptr<OutputFile> file, const DumpOptions& options)
      : file_(std::move(file)), zip_(*file_), options_(options) {}

  Status Write(DumpText& text) override {
    const auto write = [&](std::string_view bytes) { return zip_.Write(bytes); };
    const AttentionRecord& record = text.source.record();
    POZOR_RETURN_IF_ERROR(Begin("attn", NpyType(options_.type), ArrayShape(text, options_)));
    POZOR_RETURN_IF_ERROR(StreamEncoded(text, options_, write));
    POZOR_RETURN_IF_ERROR(zip_.EndEntry());
    if (options_.hidden) {
      POZOR_RETURN_IF_ERROR(Begin("hidden", NpyType(HiddenType(options_)), HiddenShape(text)));
      POZOR_RETURN_IF_ERROR(StreamHiddenEncoded(text, options_, write));
      POZOR_RETURN_IF_ERROR(zip_.EndEntry());
    }
    std::vector<SmallArray> arrays = TokenArrays(record.text);
    std::vector<std::string> units;
    units.reserve(text.shape.units.size());
    for (const Unit& unit : text.shape.units) units.push_back(unit.text);
    arrays.push_back(NumpyStrings("tokens", record.text.tokens.tokens));
    arrays.push_back(NumpyStrings("units", units));
    arrays.push_back(SelfCheck(record));
    for (const SmallArray& array : arrays) {
      POZOR_RETURN_IF_ERROR(Begin(array.name, array.npy_type, array.shape));
      POZOR_RETURN_IF_ERROR(zip_.Write(array.bytes));
      POZOR_RETURN_IF_ERROR(zip_.EndEntry());
    }
    return zip_.AddEntry("meta.json", DumpDescription(text, options_));
  }

  Status Finish() override {
    POZOR_RETURN_IF_ERROR(zip_.Finish());
    return file_->Commit();
  }

 private:
  Status Begin(const std::string& name, const std::string& type,
               const std::vector<uint64_t>& shape) {
    POZOR_RETURN_IF_ERROR(zip_.BeginEntry(name + ".npy"));
    return zip_.Write(NpyHeader(type, shape));
  }

  std::unique_ptr<OutputFile> file_;
  ZipWriter zip_;
  const DumpOptions options_;
};

std::string SafetensorsType(WeightType type) {
  return type == WeightType::kF32 ? "F32" : type == WeightType::kF16 ? "F16" : "U8";
}

uint64_t Product(const std::vector<uint64_t>& shape) {
  uint64_t product = 1;
  for (const uint64_t size : shape) product *= size;
  return product;
}

// Sizes are known before the first row, so that the header stands in front.
class SafetensorsHeader {
 public:
  explicit SafetensorsHeader(const std::string& description) {
    json_.BeginObject().Key("__metadata__").BeginObject();
    json_.Field("format", "pozor-attention").Field("pozor", description).EndObject();
  }
  void Add(const std::string& name, const std::string& type, const std::vector<uint64_t>& shape,
           uint64_t bytes) {
    json_.Key(name).BeginObject().Field("dtype", type).Key("shape").BeginArray();
    for (const uint64_t size : shape) json_.Value(size);
    json_.EndArray().Key("data_offsets").BeginArray().Value(offset_).Value(offset_ + bytes);
    json_.EndArray().EndObject();
    offset_ += bytes;
  }
  std::string Finish() {
    std::string header = json_.EndObject().text();
    header.resize((header.size() + 7) / 8 * 8, ' ');
    const uint64_t length = header.size();
    std::string bytes(sizeof length, '\0');
    std::memcpy(bytes.data(), &length, sizeof length);
    return bytes + header;
  }

 private:
  JsonWriter json_;
  uint64_t offset_ = 0;
};

class SafetensorsDump final : public DumpWriter {
 public:
  SafetensorsDump(std::unique_ptr<OutputFile> file, const DumpOptions& options)
      : file_(std::move(file)), options_(options) {}

  Status Write(DumpText& text) override {
    const auto write = [&](std::string_view bytes) { return file_->Write(bytes); };
    const AttentionRecord& record = text.source.record();
    SafetensorsHeader header(DumpDescription(text, options_));
    AddMatrices(text, &header);
    if (options_.hidden) {
      const std::vector<uint64_t> shape = HiddenShape(text);
      header.Add("hidden", SafetensorsType(HiddenType(options_)), shape,
                 Product(shape) * SizeOf(HiddenType(options_)));
    }
    std::vector<SmallArray> arrays = TokenArrays(record.text);
    arrays.push_back(SelfCheck(record));
    for (const SmallArray& array : arrays) {
      header.Add(array.name, array.safetensors_type, array.shape, array.bytes.size());
    }
    POZOR_RETURN_IF_ERROR(file_->Write(header.Finish()));
    POZOR_RETURN_IF_ERROR(StreamEncoded(text, options_, write));
    if (options_.hidden) POZOR_RETURN_IF_ERROR(StreamHiddenEncoded(text, options_, write));
    arrays.back() = SelfCheck(record);  // complete by now
    for (const SmallArray& array : arrays) POZOR_RETURN_IF_ERROR(file_->Write(array.bytes));
    return Status();
  }

  Status Finish() override { return file_->Commit(); }

 private:
  void AddMatrices(const DumpText& text, SafetensorsHeader* header) const {
    const HeadSet& heads = text.source.record().heads;
    const size_t layers = text.shape.per_layer ? heads.layers.size() : 1;
    for (size_t i = 0; i < layers; ++i) {
      std::vector<uint64_t> shape;
      if (text.shape.per_head) shape.push_back(heads.heads[i].size());
      if (options_.transform.reduction != Reduction::kCls) shape.push_back(text.shape.rows);
      shape.push_back(text.shape.columns);
      char name[32] = "attn.rollout";
      if (text.shape.per_layer)
        std::snprintf(name, sizeof name, "attn.layer.%02zu", heads.layers[i]);
      header->Add(name, SafetensorsType(options_.type), shape,
                  Product(shape) * SizeOf(options_.type));
    }
  }

  std::unique_ptr<OutputFile> file_;
  const DumpOptions options_;
};

}  // namespace

std::unique_ptr<DumpWriter> MakeNpzDump(std::unique_ptr<OutputFile> file,
                                        const DumpOptions& options) {
  return std::make_unique<NpzDump>(std::move(file), options);
}

std::unique_ptr<DumpWriter> MakeSafetensorsDump(std::unique_ptr<OutputFile> file,
                                                const DumpOptions& options) {
  return std::make_unique<SafetensorsDump>(std::move(file), options);
}

}  // namespace pozor::tools
