// pozor verify --golden: hidden states, attention rows, pooled and sentence vectors, token ids.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "engine/batch.h"
#include "engine/memory.h"
#include "kernels/softmax.h"
#include "models/model_impl.h"
#include "tools/cli/report.h"
#include "tools/golden.h"
#include "tools/verify.h"
#include "tools/windowed_attention.h"

namespace pozor::tools {
namespace {

constexpr char kOutOfScope[] = "this version computes hidden states, attention and vectors only";

// Everything the encoder shows of one text.
struct Trace {
  size_t tokens = 0;
  std::vector<float> hidden;     // [layers + 1, tokens, hidden]
  std::vector<float> attention;  // [layers, heads, tokens, tokens]
  std::vector<float> pooled;     // [hidden], or empty: the model has no pooler

  // The rows of the last layer, [tokens, hidden].
  std::span<const float> last(size_t layers) const {
    return std::span(hidden).last(hidden.size() / (layers + 1));
  }
};

class GoldenVerifier {
 public:
  GoldenVerifier(const VerifyRequest& request, const Golden& golden)
      : request_(request), golden_(golden) {}

  // Unsupported if the model cannot run in this version.
  Status Load();
  Status Run();
  VerifyTable& table() { return table_; }

 private:
  Status VerifyIds();
  Status VerifyIdsOf(const std::string& name, const std::map<size_t, GoldenText>& texts);
  Status VerifyTensor(const TensorInfo& tensor);
  Status VerifyText(const TensorInfo& tensor, const std::string& kind, size_t index,
                    const std::string& what);
  Status VerifyBatch(const TensorInfo& tensor);
  Status VerifyVectors(const TensorInfo& tensor, const std::string& what);
  Result<std::vector<float>> EncodeIds(const EncodeOptions& options);
  Result<const Trace*> TraceOf(const std::string& key, const GoldenText& text,
                               std::span<const int32_t> globals);
  Status VerifyLayer(const TensorInfo& tensor, const std::string& what, const Trace& trace,
                     std::span<const int32_t> globals);
  void Compare(const TensorInfo& tensor, std::span<const float> got);
  void AddNotComputable(const TensorInfo& tensor, const std::string& why) {
    table_.AddNotComputable(golden_.ShortName(tensor), tensor.shape, why);
  }
  size_t layers() const { return model_->encoder->spec().layer_count(); }

  const VerifyRequest& request_;
  const Golden& golden_;
  VerifyTable table_;
  std::unique_ptr<Model::Impl> model_;
  std::optional<Model> api_;  // for sentence vectors, if the tokenizer can be read
  Workspace workspace_;
  std::string traced_;  // the text that trace_ is of
  Trace trace_;
};

Status GoldenVerifier::Load() {
  PartOptions parts;
  parts.requires_tokenizer = false;
  parts.with_pooler = true;
  POZOR_TRY(model_, LoadModelParts(request_.model, request_.load, parts));
  if (model_->tokenizer == nullptr) {
    table_.AddNote("the tokenizer cannot be read (" + model_->tokenizer_error +
                   "); the golden folder's token ids were used");
  } else if (golden_.sentence_vectors()) {
    POZOR_TRY(Model model, Model::Load(request_.model, request_.load));
    api_.emplace(std::move(model));
  }
  return Status();
}

Status GoldenVerifier::Run() {
  POZOR_RETURN_IF_ERROR(VerifyIds());
  for (const TensorInfo& tensor : golden_.tensors()) POZOR_RETURN_IF_ERROR(VerifyTensor(tensor));
  return Status();
}

Status GoldenVerifier::VerifyIds() {
  POZOR_RETURN_IF_ERROR(VerifyIdsOf("texts: token ids", golden_.texts()));
  return VerifyIdsOf("pairs: token ids", golden_.pairs());
}

// One row for all texts: ids, and type ids where they are recorded, must be equal.
Status GoldenVerifier::VerifyIdsOf(const std::string& name,
                                   const std::map<size_t, GoldenText>& texts) {
  size_t compared = 0, different = 0;
  std::string first;
  TokenizeOptions options;
  options.max_length = golden_.max_length() > 0 ? golden_.max_length() : model_->info.max_length;
  for (const auto& [index, text] : texts) {
    if (!text.has_ids) continue;
    ++compared;
    if (model_->tokenizer == nullptr) continue;
    std::string_view pair;
    if (text.pair.has_value()) pair = *text.pair;
    POZOR_TRY(
        const Encoding encoding,
        model_->tokenizer->Encode(text.text, text.pair.has_value() ? &pair : nullptr, options));
    const bool types_equal = text.type_ids.empty() || encoding.type_ids == text.type_ids;
    if (encoding.ids == text.ids && types_equal) continue;
    if (different++ == 0) first = "first at text " + std::to_string(index);
  }
  if (compared == 0) return Status();
  if (model_->tokenizer == nullptr) {
    table_.AddNotComputable(name, {compared}, model_->tokenizer_error);
    return Status();
  }
  table_.Add({name,
              {compared},
              static_cast<double>(different),
              {},
              different == 0 ? Outcome::kOk : Outcome::kDifferent,
              first});
  return Status();
}

Status GoldenVerifier::VerifyTensor(const TensorInfo& tensor) {
  const std::string name = golden_.ShortName(tensor);
  const size_t dot = name.find('.');
  const std::string kind = name.substr(0, dot);
  const std::string rest = dot == std::string::npos ? "" : name.substr(dot + 1);
  if (name == "token_ids" || name == "token_starts") return Status();  // see VerifyIds
  if (name == "batch.ids" || name == "batch.mask" || name == "batch.type_ids") return Status();
  if (name == "batch.last") return VerifyBatch(tensor);
  if (kind == "embeddings" && golden_.sentence_vectors()) return VerifyVectors(tensor, rest);
  if (kind == "text" || kind == "pair") {
    const size_t next = rest.find('.');
    const std::string what = next == std::string::npos ? "" : rest.substr(next + 1);
    if (!what.empty()) {
      return VerifyText(tensor, kind, std::strtoul(rest.c_str(), nullptr, 10), what);
    }
  }
  AddNotComputable(tensor, kOutOfScope);
  return Status();
}

Status GoldenVerifier::VerifyText(const TensorInfo& tensor, const std::string& kind, size_t index,
                                  const std::string& name) {
  const auto& texts = kind == "pair" ? golden_.pairs() : golden_.texts();
  const auto found = texts.find(index);
  if (found == texts.end() || !found->second.has_ids) {
    AddNotComputable(tensor, "golden.json has no token ids for it");
    return Status();
  }
  // "hidden", or "global_cls.hidden" for one of the choices of global tokens.
  const GoldenText& text = found->second;
  const size_t dot = name.find('.');
  const auto chosen = text.globals.find(name.substr(0, dot));
  const bool has_globals = dot != std::string::npos && chosen != text.globals.end();
  const std::string what = has_globals ? name.substr(dot + 1) : name;
  std::span<const int32_t> globals;
  if (has_globals) globals = chosen->second;
  const std::string key = kind + "." + std::to_string(index) + (has_globals ? chosen->first : "");
  const Result<const Trace*> trace = TraceOf(key, text, globals);
  if (!trace.ok()) {
    table_.AddDifferent(golden_.ShortName(tensor), tensor.shape, trace.status().message());
    return Status();
  }
  if (what == "pooler" && (*trace)->pooled.empty()) {
    AddNotComputable(tensor, "no pooler of a known kind in the weights");
    return Status();
  }
  if (what == "hidden") Compare(tensor, (*trace)->hidden);
  if (what == "last") Compare(tensor, (*trace)->last(layers()));
  if (what == "attn") Compare(tensor, (*trace)->attention);
  if (what == "pooler") Compare(tensor, (*trace)->pooled);
  if (what.starts_with("attn.") || what.starts_with("global_attn.")) {
    return VerifyLayer(tensor, what, **trace, globals);
  }
  const bool known = what == "hidden" || what == "last" || what == "attn" || what == "pooler";
  if (!known) AddNotComputable(tensor, kOutOfScope);
  return Status();
}

// Attention rows of one layer: "attn.L" through a window, "global_attn.L" of global queries.
Status GoldenVerifier::VerifyLayer(const TensorInfo& tensor, const std::string& what,
                                   const Trace& trace, std::span<const int32_t> globals) {
  const EncoderSpec& spec = model_->encoder->spec();
  const size_t layer = std::strtoul(what.c_str() + what.rfind('.') + 1, nullptr, 10);
  const bool inside = std::all_of(globals.begin(), globals.end(), [&](int32_t token) {
    return token >= 0 && static_cast<size_t>(token) < trace.tokens;
  });
  const bool known = layer < spec.layer_count();
  const size_t window = known ? spec.layers[spec.AttentionPlace(layer)].window : kNoWindow;
  if (!inside || window == kNoWindow || tensor.shape.size() != 3) {
    table_.AddDifferent(golden_.ShortName(tensor), tensor.shape, "another shape here");
    return Status();
  }
  const size_t size = spec.heads * trace.tokens * trace.tokens;
  const AttentionRows rows = {trace.attention.data() + layer * size, spec.heads, trace.tokens,
                              globals};
  const bool of_globals = what.starts_with("global_attn.");
  Compare(tensor, of_globals ? GlobalLayout(rows, tensor.shape[1]) : WindowedLayout(rows, window));
  return Status();
}

Result<const Trace*> GoldenVerifier::TraceOf(const std::string& key, const GoldenText& text,
                                             std::span<const int32_t> globals) {
  if (key == traced_) return &trace_;
  const size_t tokens = text.ids.size(), heads = model_->encoder->spec().heads;
  const size_t hidden = model_->encoder->spec().hidden;
  TokenBatch batch;
  batch.ids = text.ids;
  batch.types = text.type_ids;
  if (!globals.empty()) batch.globals.resize(tokens);
  for (const int32_t token : globals) {
    if (token >= 0 && static_cast<size_t>(token) < tokens) {
      batch.globals[static_cast<size_t>(token)] = 1;
    }
  }
  batch.EndText();
  POZOR_RETURN_IF_ERROR(model_->encoder->CheckBatch(batch.View()));

  Trace trace;
  trace.tokens = tokens;
  trace.hidden.resize((layers() + 1) * tokens * hidden);
  trace.attention.resize(layers() * heads * tokens * tokens);
  Sinks sinks;
  sinks.hidden_states = [&](size_t layer, MatView<const float> rows) {
    float* out = trace.hidden.data() + layer * tokens * hidden;
    for (size_t row = 0; row < tokens; ++row)
      std::copy_n(rows.Row(row), hidden, out + row * hidden);
  };
  sinks.wants_attention = [](size_t, size_t) { return true; };
  sinks.attention = [&](const AttentionBlock& block) {
    float* out = trace.attention.data() +
                 ((block.layer * heads + block.head) * tokens + block.query_begin) * tokens;
    for (size_t row = 0; row < block.weights.rows; ++row) {
      std::copy_n(block.weights.Row(row), tokens, out + row * tokens);
    }
  };
  const MatView<const float> last = model_->encoder->Forward(batch.View(), workspace_, sinks);
  if (model_->pooler.has_value() && tokens > 0) {
    trace.pooled.resize(hidden);
    const MatView<const float> first = {last.data, 1, last.cols, last.stride};
    model_->pooler->Apply(first, {trace.pooled.data(), 1, hidden, hidden});
  }
  trace_ = std::move(trace);
  traced_ = key;
  return &trace_;
}

// Texts of unlike lengths in one ragged batch; the reference padded them, and its rows of padding
// carry no meaning.
Status GoldenVerifier::VerifyBatch(const TensorInfo& tensor) {
  POZOR_TRY(const std::vector<int32_t> ids, golden_.ReadIntegers("batch.ids"));
  POZOR_TRY(const std::vector<int32_t> mask, golden_.ReadIntegers("batch.mask"));
  const Result<std::vector<int32_t>> types = golden_.ReadIntegers("batch.type_ids");
  const size_t hidden = model_->encoder->spec().hidden;
  const bool fits = tensor.shape.size() == 3 && tensor.shape[2] == hidden &&
                    mask.size() == ids.size() && ids.size() * hidden == tensor.elements();
  if (!fits) {
    table_.AddDifferent(golden_.ShortName(tensor), tensor.shape, "another shape here");
    return Status();
  }
  POZOR_TRY(const std::vector<float> all, golden_.ReadFloats(tensor));
  TokenBatch batch;
  std::vector<float> expected;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (mask[i] != 0) {
      batch.ids.push_back(ids[i]);
      if (types.ok()) batch.types.push_back((*types)[i]);
      const float* row = all.data() + i * hidden;
      expected.insert(expected.end(), row, row + hidden);
    }
    if ((i + 1) % tensor.shape[1] == 0) batch.EndText();
  }
  POZOR_RETURN_IF_ERROR(model_->encoder->CheckBatch(batch.View()));
  const MatView<const float> rows = model_->encoder->Forward(batch.View(), workspace_);
  std::vector<float> got;
  for (size_t row = 0; row < rows.rows; ++row) {
    got.insert(got.end(), rows.Row(row), rows.Row(row) + hidden);
  }
  const std::string name = golden_.ShortName(tensor);
  table_.Compare(name, tensor.shape, got, expected, golden_.ToleranceOf(name));
  return Status();
}

// The prompt under which a tensor of sentence vectors was made: "prompt.query", "encode_query", ...
std::optional<std::string> PromptOf(const std::string& what, const Pipeline& pipeline) {
  constexpr std::string_view kPrompt = "prompt.";
  if (what.starts_with(kPrompt)) return what.substr(kPrompt.size());
  const auto first_of = [&](std::initializer_list<const char*> names) {
    std::optional<std::string> found;
    for (const char* name : names) {
      for (const auto& [prompt, text] : pipeline.prompts) {
        if (!found.has_value() && prompt == name) found = prompt;
      }
    }
    return found;
  };
  if (what == "encode_query") return first_of({"query"});
  if (what == "encode_document") return first_of({"document", "passage", "corpus"});
  return std::nullopt;
}

Status GoldenVerifier::VerifyVectors(const TensorInfo& tensor, const std::string& what) {
  EncodeOptions options;
  options.prompt_name = PromptOf(what, model_->pipeline);
  if (what == "normalized") options.normalize = true;
  if (!api_.has_value()) {
    const bool needs_text =
        options.prompt_name.has_value() || !model_->pipeline.default_prompt.empty();
    if (needs_text) {
      AddNotComputable(tensor, "a prompt needs the tokenizer");
      return Status();
    }
    POZOR_TRY(const std::vector<float> got, EncodeIds(options));
    Compare(tensor, got);
    return Status();
  }
  std::vector<std::string> texts;
  for (const auto& [index, text] : golden_.texts()) texts.push_back(text.text);
  POZOR_TRY(const Vectors got, api_->Encode(std::span<const std::string>(texts), options));
  Compare(tensor, {got.data(), got.rows() * got.dimensions()});
  return Status();
}

// Vectors of the recorded ids.
Result<std::vector<float>> GoldenVerifier::EncodeIds(const EncodeOptions& options) {
  POZOR_TRY(const VectorOptions vector_options, ResolveVectorOptions(*model_, options));
  const Head& head = model_->pipeline.head;
  const size_t dimensions =
      vector_options.truncate_dim > 0 ? vector_options.truncate_dim : head.dimensions;
  std::vector<float> vectors;
  for (const auto& [index, text] : golden_.texts()) {
    TokenBatch batch;
    batch.ids = text.ids;
    batch.types = text.type_ids;
    batch.EndText();
    POZOR_RETURN_IF_ERROR(model_->encoder->CheckBatch(batch.View()));
    const MatView<const float> rows = model_->encoder->Forward(batch.View(), workspace_);
    vectors.resize(vectors.size() + dimensions);
    head.Apply(rows, 0, vector_options, vectors.data() + vectors.size() - dimensions);
  }
  return vectors;
}

void GoldenVerifier::Compare(const TensorInfo& tensor, std::span<const float> got) {
  const std::string name = golden_.ShortName(tensor);
  Result<std::vector<float>> expected = golden_.ReadFloats(tensor);
  if (!expected.ok()) {
    table_.AddDifferent(name, tensor.shape, expected.status().message());
    return;
  }
  // transformers hands out SqueezeBERT's scores where other models have the softmax of them.
  if (model_->info.architecture == "squeezebert" && name.ends_with(".attn") && !expected->empty()) {
    const size_t keys = tensor.shape.back();
    Softmax(expected->data(), expected->size() / keys, keys, keys);
  }
  table_.Compare(name, tensor.shape, got, *expected, golden_.ToleranceOf(name));
}

}  // namespace

Result<VerifyTable> VerifyGolden(const VerifyRequest& request) {
  POZOR_TRY(const Golden golden, Golden::Open(request.golden, request.model));
  GoldenVerifier verifier(request, golden);
  const Status loaded = verifier.Load();
  if (loaded.code() == StatusCode::kUnsupported) {
    VerifyTable table;
    table.AddNote(loaded.message());
    for (const TensorInfo& tensor : golden.tensors()) {
      table.AddNotComputable(golden.ShortName(tensor), tensor.shape, "the model is not supported");
    }
    return table;
  }
  if (!loaded.ok()) return AsFailure(loaded);
  POZOR_RETURN_IF_ERROR(AsFailure(verifier.Run()));
  return std::move(verifier.table());
}

}  // namespace pozor::tools
