#include "tools/attention/dump_writer.h"

#include "tools/bench/json_writer.h"
#include "tools/io/npy.h"

namespace pozor::tools {

std::string_view DumpEnding(DumpFormat format) {
  constexpr std::string_view kEndings[] = {".npy", ".npz", ".safetensors", ".jsonl", ".csv"};
  return kEndings[static_cast<size_t>(format)];
}

std::string NpyType(WeightType type) {
  return type == WeightType::kF32 ? "<f4" : type == WeightType::kF16 ? "<f2" : "|u1";
}

WeightType HiddenType(const DumpOptions& options) {
  return options.type == WeightType::kSqrtU8 ? WeightType::kF32 : options.type;
}

std::vector<uint64_t> ArrayShape(const DumpText& text, const DumpOptions& options) {
  const HeadSet& heads = text.source.record().heads;
  std::vector<uint64_t> shape;
  if (text.shape.per_layer && text.shape.per_head && !heads.SameHeadsEverywhere()) {
    shape = {text.shape.matrices.size()};
  } else {
    if (text.shape.per_layer) shape.push_back(heads.layers.size());
    if (text.shape.per_head) shape.push_back(heads.heads[0].size());
  }
  if (options.transform.reduction != Reduction::kCls) shape.push_back(text.shape.rows);
  shape.push_back(text.shape.columns);
  return shape;
}

std::vector<uint64_t> HiddenShape(const DumpText& text) {
  const AttentionRecord& record = text.source.record();
  return {record.heads.layer_count + 1, record.text.size(), text.source.hidden_size()};
}

std::string DumpDescription(const DumpText& text, const DumpOptions& options) {
  constexpr std::string_view kRows[] = {"mean", "first", "max"};
  JsonWriter json;
  json.BeginObject();
  WriteRecord(text.source.record(), &json);
  json.Field("index", text.index);
  json.Field("encoding", WeightTypeName(options.type));
  json.Key("shape").BeginArray();
  for (const uint64_t size : ArrayShape(text, options)) json.Value(size);
  json.EndArray().Key("matrices").BeginArray();
  for (const auto& [layer, head] : text.shape.matrices) {
    json.BeginArray();
    text.shape.per_layer ? json.Value(layer) : json.Null();
    text.shape.per_head ? json.Value(head) : json.Null();
    json.EndArray();
  }
  json.EndArray();
  json.Field("reduce", ReductionName(options.transform.reduction));
  json.Key("words_merged");
  options.transform.words ? json.Value(kRows[static_cast<size_t>(*options.transform.words)])
                          : json.Null();
  json.Field("no_special", options.transform.no_special);
  json.Field("renormalised", options.transform.renormalise);
  json.Field("row_begin", options.transform.row_begin);
  json.Key("units").BeginArray();
  for (const Unit& unit : text.shape.units) {
    json.BeginObject().Field("text", unit.text).Key("tokens").BeginArray();
    json.Value(unit.first).Value(unit.past_end).EndArray().EndObject();
  }
  json.EndArray().EndObject();
  return SafeJson(json.text());
}

Status StreamEncoded(DumpText& text, const DumpOptions& options,
                     const std::function<Status(std::string_view)>& write) {
  std::string bytes;
  return StreamTransformed(text.source, options.transform, [&](const UnitRows& rows) {
    if (options.type == WeightType::kF32 && rows.stride == rows.columns) {
      return write(
          {reinterpret_cast<const char*>(rows.data), rows.rows * rows.columns * sizeof(float)});
    }
    bytes.clear();
    for (size_t i = 0; i < rows.rows; ++i) {
      AppendEncoded(rows.Row(i), rows.columns, options.type, &bytes);
    }
    return write(bytes);
  });
}

Status StreamHiddenEncoded(DumpText& text, const DumpOptions& options,
                           const std::function<Status(std::string_view)>& write) {
  std::string bytes;
  const WeightType type = HiddenType(options);
  return text.source.StreamHidden(
      [&](size_t, size_t tokens, size_t hidden, size_t stride, const float* rows) {
        bytes.clear();
        for (size_t i = 0; i < tokens; ++i) {
          AppendEncoded(rows + i * stride, hidden, type, &bytes);
        }
        return write(bytes);
      });
}

namespace {

// Hidden states or attention into a .npy; the description beside it.
class NpyDump final : public DumpWriter {
 public:
  NpyDump(std::unique_ptr<OutputFile> file, const DumpOptions& options, std::string path)
      : file_(std::move(file)), options_(options), path_(std::move(path)) {}

  Status Write(DumpText& text) override {
    const auto write = [&](std::string_view bytes) { return file_->Write(bytes); };
    const std::vector<uint64_t> shape =
        options_.hidden ? HiddenShape(text) : ArrayShape(text, options_);
    const WeightType type = options_.hidden ? HiddenType(options_) : options_.type;
    POZOR_RETURN_IF_ERROR(file_->Write(NpyHeader(NpyType(type), shape)));
    POZOR_RETURN_IF_ERROR(options_.hidden ? StreamHiddenEncoded(text, options_, write)
                                          : StreamEncoded(text, options_, write));
    description_ = DumpDescription(text, options_);
    return Status();
  }

  Status Finish() override {
    const bool beside = file_->can_write_at();
    POZOR_RETURN_IF_ERROR(file_->Commit());
    if (!beside) return Status();  // a pipe or a device has no place for it
    POZOR_TRY(const std::unique_ptr<OutputFile> json, OutputFile::Create(path_ + ".json"));
    POZOR_RETURN_IF_ERROR(json->Write(description_ + "\n"));
    return json->Commit();
  }

 private:
  std::unique_ptr<OutputFile> file_;
  const DumpOptions options_;
  const std::string path_;
  std::string description_;
};

}  // namespace

std::unique_ptr<DumpWriter> MakeNpyDump(std::unique_ptr<OutputFile> file,
                                        const DumpOptions& options, const std::string& path) {
  return std::make_unique<NpyDump>(std::move(file), options, path);
}

Result<std::unique_ptr<DumpWriter>> MakeDumpWriter(DumpFormat format, const std::string& path,
                                                   const DumpOptions& options,
                                                   const std::atomic<bool>* cancel) {
  POZOR_TRY(std::unique_ptr<OutputFile> file, OutputFile::Create(path, cancel));
  if (!options.one_thread) file->UseThread();
  switch (format) {
    case DumpFormat::kNpy:
      return MakeNpyDump(std::move(file), options, path);
    case DumpFormat::kNpz:
      return MakeNpzDump(std::move(file), options);
    case DumpFormat::kSafetensors:
      return MakeSafetensorsDump(std::move(file), options);
    case DumpFormat::kJsonLines:
      return MakeJsonLinesDump(std::move(file), options);
    case DumpFormat::kCsv:
      break;
  }
  return MakeCsvDump(std::move(file), options);
}

}  // namespace pozor::tools
