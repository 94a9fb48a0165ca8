#include "tools/tokenize.h"

#include <algorithm>
#include <cstdio>

#include "models/formats/file.h"
#include "models/formats/folder.h"
#include "models/formats/gguf.h"
#include "models/formats/weights.h"
#include "models/locate.h"
#include "models/model_impl.h"
#include "models/pipeline.h"
#include "models/text/tokenizer.h"
#include "tools/bench/json_writer.h"
#include "tools/cli/report.h"
#include "tools/cli/signals.h"
#include "tools/io/text_files.h"

namespace pozor::tools {
namespace {

// The tokenizer with what the rest of the folder says about it.
struct LoadedTokenizer {
  std::unique_ptr<Tokenizer> tokenizer;
  size_t max_length = 0;  // 0: no limit
};

// A module that cannot be run (a sparse encoder's, a late interaction's) changes no token.
Result<Pipeline> PipelineOfTokens(const ModelFolder& folder) {
  std::vector<std::string> of_vectors;
  Result<Pipeline> pipeline = ReadPipeline(folder, &of_vectors);
  if (pipeline.ok() || pipeline.status().code() != StatusCode::kUnsupported) return pipeline;
  PrintWarning(pipeline.status().message() + "; its tokens are shown all the same");
  return Pipeline();
}

Result<LoadedTokenizer> OpenTokenizer(const std::string& model) {
  POZOR_TRY(const ModelPlace place, LocateModelPlace(model));
  POZOR_TRY(const ModelFolder folder, ModelFolder::Open(place.folder));
  std::vector<std::string> warnings;
  LoadedTokenizer loaded;
  POZOR_TRY(const Pipeline pipeline, PipelineOfTokens(folder));
  const ModelFolder transformer = folder.Sub(pipeline.transformer_path);
  POZOR_TRY(const WeightFile weights, FindWeights(transformer, place.weights));
  std::shared_ptr<const GgufFile> gguf;
  if (weights.format == WeightFormat::kGguf && !transformer.Has("tokenizer.json")) {
    POZOR_TRY(gguf, OpenGguf(JoinPath(transformer.path(), weights.name)));
  }
  POZOR_TRY(loaded.tokenizer, LoadTokenizer(transformer, gguf.get(), &warnings));
  if (pipeline.lowercase) loaded.tokenizer->ForceLowercase();
  loaded.max_length =
      pipeline.max_seq_length > 0 ? pipeline.max_seq_length : loaded.tokenizer->model_max_length();
  if (transformer.Has("config.json")) {
    POZOR_TRY(const JsonDocument config, transformer.ReadJsonObject("config.json"));
    const JsonValue* positions = config->Find("max_position_embeddings");
    const size_t most =
        positions == nullptr ? 0 : static_cast<size_t>(std::max<int64_t>(0, positions->as_int()));
    if (most > 0)
      loaded.max_length = std::min(loaded.max_length == 0 ? most : loaded.max_length, most);
  }
  for (const std::string& warning : warnings) PrintWarning(warning);
  return loaded;
}

void WriteSpans(const char* key, const std::vector<Span>& spans, JsonWriter* json) {
  json->Key(key).BeginArray();
  for (const Span& span : spans) json->BeginArray().Value(span.begin).Value(span.end).EndArray();
  json->EndArray();
}

void WriteIntegers(const char* key, const std::vector<int32_t>& numbers, JsonWriter* json) {
  json->Key(key).BeginArray();
  for (const int32_t number : numbers) json->Value(number);
  json->EndArray();
}

std::string AsJson(const Encoding& encoding) {
  JsonWriter json;
  json.BeginObject();
  WriteIntegers("ids", encoding.ids, &json);
  json.Key("tokens").Array(encoding.tokens);
  WriteSpans("offsets", encoding.offsets, &json);
  WriteSpans("byte_offsets", encoding.byte_offsets, &json);
  WriteIntegers("type_ids", encoding.type_ids, &json);
  json.Field("truncated", !encoding.overflow.empty());
  json.EndObject();
  return json.text();
}

std::string AsText(const Encoding& encoding) {
  std::string line;
  for (const int32_t id : encoding.ids) line += (line.empty() ? "" : " ") + std::to_string(id);
  for (size_t i = 0; i < encoding.tokens.size(); ++i) {
    line += (i == 0 ? '\t' : ' ') + encoding.tokens[i];
  }
  return line;
}

Status TokenizeOne(const LoadedTokenizer& loaded, const TokenizeRequest& request,
                   const std::string& text) {
  TokenizeOptions options;
  options.max_length = request.max_length > 0 ? request.max_length : loaded.max_length;
  options.plain_specials = request.plain_specials;
  std::string_view second;
  if (request.pair.has_value()) second = *request.pair;
  POZOR_TRY(const Encoding encoding,
            loaded.tokenizer->Encode(text, request.pair.has_value() ? &second : nullptr, options));
  const std::string line = (request.json ? AsJson(encoding) : AsText(encoding)) + "\n";
  std::fwrite(line.data(), 1, line.size(), stdout);
  return Status();
}

}  // namespace

Status RunTokenize(const TokenizeRequest& request) {
  TextFilesOptions source_options;
  source_options.format = request.input_format;
  source_options.text_field = request.text_field;
  source_options.header = request.header;
  source_options.cancel = CancelOnSignals();
  const Result<LoadedTokenizer> loaded = OpenTokenizer(request.model);
  if (!loaded.ok()) return AsFailure(loaded.status());
  if (request.text.has_value()) return AsFailure(TokenizeOne(*loaded, request, *request.text));
  POZOR_TRY(const std::unique_ptr<TextFiles> texts,
            TextFiles::Open(request.inputs, source_options));
  while (!source_options.cancel->load() && !std::ferror(stdout)) {
    POZOR_TRY(const std::optional<std::string> text, texts->Next());
    if (!text.has_value()) return Status();
    const Status status = TokenizeOne(*loaded, request, *text);
    if (!status.ok()) {
      return AsFailure(status.WithContext("text " + std::to_string(texts->texts())));
    }
  }
  if (source_options.cancel->load()) return Cancelled("tokenize: interrupted; run it again");
  return Status();
}

}  // namespace pozor::tools
