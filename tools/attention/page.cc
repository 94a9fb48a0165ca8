#include "tools/attention/page.h"

#include <future>
#include <utility>

#include "tools/bench/json_writer.h"
#include "tools/io/deflate.h"

namespace pozor::tools {
namespace {

std::string DataElement(const std::string& json) {
  return "<script type=\"application/json\" id=\"pozor-data\">" + json + "</script>\n";
}

// Collects the matrices of a layer and compresses them, beside the next layer unless there is only
// one thread, into its element.
class LayerElements {
 public:
  LayerElements(size_t run, const PageOptions& options, OutputFile& file)
      : run_(run), options_(options), file_(file) {}

  Status Add(const AttentionRows& rows) {
    if (begun_ && rows.layer != layer_) POZOR_RETURN_IF_ERROR(End());
    begun_ = true;
    layer_ = rows.layer;
    for (size_t i = 0; i < rows.queries; ++i) {
      AppendEncoded(rows.Row(i), rows.keys, options_.type, &block_);
    }
    return Status();
  }

  // A text without tokens has empty blocks.
  Status AddEmpty(size_t layer) {
    begun_ = true;
    layer_ = layer;
    return End();
  }

  Status Finish() {
    POZOR_RETURN_IF_ERROR(End());
    return WriteCompressed();
  }

 private:
  Status End() {
    if (!begun_) return Status();
    POZOR_RETURN_IF_ERROR(WriteCompressed());
    const auto policy =
        options_.one_thread ? std::launch::deferred : std::launch::async | std::launch::deferred;
    compressed_ = std::async(
        policy, [block = std::exchange(block_, std::string())] { return ZlibCompress(block); });
    compressed_layer_ = layer_;
    begun_ = false;
    return Status();
  }

  Status WriteCompressed() {
    if (!compressed_.valid()) return Status();
    POZOR_TRY(const std::string stream, compressed_.get());
    return file_.Write("<script type=\"text/plain\" id=\"pozor-run-" + std::to_string(run_) +
                       "-layer-" + std::to_string(compressed_layer_) + "\">" + Base64(stream) +
                       "</script>\n");
  }

  const size_t run_;
  const PageOptions options_;
  OutputFile& file_;
  bool begun_ = false;
  size_t layer_ = 0;
  std::string block_;
  std::future<Result<std::string>> compressed_;
  size_t compressed_layer_ = 0;
};

Status WriteLayers(AttentionSource& source, size_t run, const PageOptions& options,
                   OutputFile& file) {
  LayerElements elements(run, options, file);
  const AttentionRecord& record = source.record();
  if (record.text.size() == 0) {
    for (const size_t layer : record.heads.layers) {
      POZOR_RETURN_IF_ERROR(elements.AddEmpty(layer));
    }
    return elements.Finish();
  }
  POZOR_RETURN_IF_ERROR(
      source.Stream({}, [&](const AttentionRows& rows) { return elements.Add(rows); }));
  return elements.Finish();
}

// Weights before compression: a browser holds some 500 MB of text in a page, and must not be slow.
constexpr uint64_t kMostPageBytes = uint64_t{256} << 20;

Status CheckPageSize(const AttentionRecord& record, size_t runs, WeightType type) {
  const uint64_t tokens = record.text.size();
  const uint64_t bytes = tokens * tokens * record.heads.Count() * runs * SizeOf(type);
  if (bytes <= kMostPageBytes) return Status();
  return ResourceExhausted("page: " + std::to_string(tokens) + " tokens in " +
                           std::to_string(record.heads.Count()) + " heads are " +
                           std::to_string(bytes >> 20) +
                           " MB of weights, too many for a browser; choose some with --layers or "
                           "--heads, or look at them with 'pozor attention serve'");
}

}  // namespace

Status CheckComparable(const AttentionRecord& a, const AttentionRecord& b) {
  const char* what = nullptr;
  if (a.text.tokens.ids != b.text.tokens.ids || a.text.tokens.tokens != b.text.tokens.tokens) {
    what = "tokens";
  } else if (a.heads.Pairs() != b.heads.Pairs()) {
    what = "layers and heads";
  }
  if (what == nullptr) return Status();
  return Unsupported(std::string("diff: the two runs have different ") + what +
                     "; compare models that share a tokenizer and a shape, over the same text");
}

std::string PageJson(std::span<AttentionSource* const> sources, WeightType type,
                     std::string_view source) {
  AttentionRecord record = sources[0]->record();
  for (AttentionSource* other : sources.subspan(1)) record.runs.push_back(other->record().runs[0]);
  if (record.runs.size() == 2) {
    record.runs[0].label = "A";
    record.runs[1].label = "B";
  }
  JsonWriter json;
  json.BeginObject();
  WriteRecord(record, &json);
  json.Field("source", source).Field("encoding", WeightTypeName(type)).EndObject();
  return SafeJson(json.text());
}

std::string ServedPage(const std::string& json) {
  return std::string(kViewerHead) + DataElement(json) + std::string(kViewerTail);
}

Status WritePage(std::span<AttentionSource* const> sources, const PageOptions& options,
                 OutputFile& file) {
  for (AttentionSource* other : sources.subspan(1)) {
    POZOR_RETURN_IF_ERROR(CheckComparable(sources[0]->record(), other->record()));
  }
  POZOR_RETURN_IF_ERROR(CheckPageSize(sources[0]->record(), sources.size(), options.type));
  // The description stands first and holds self-checks, which are complete last.
  POZOR_TRY(const std::unique_ptr<OutputFile> layers, OutputFile::CreateSpool());
  for (size_t run = 0; run < sources.size(); ++run) {
    POZOR_RETURN_IF_ERROR(WriteLayers(*sources[run], run, options, *layers));
  }
  POZOR_RETURN_IF_ERROR(file.Write(kViewerHead));
  POZOR_RETURN_IF_ERROR(file.Write(DataElement(PageJson(sources, options.type, "embedded"))));
  POZOR_RETURN_IF_ERROR(layers->CopyTo(file));
  return file.Write(kViewerTail);
}

}  // namespace pozor::tools
