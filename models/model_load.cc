// From a name to a loaded model.
#include <algorithm>
#include <limits>
#include <utility>

#include "kernels/cpu.h"
#include "models/architectures/architecture.h"
#include "models/config.h"
#include "models/formats/file.h"
#include "models/formats/finite.h"
#include "models/formats/folder.h"
#include "models/formats/weights.h"
#include "models/locate.h"
#include "models/model_impl.h"

namespace pozor {
namespace {

// What is collected on the way.
struct Loading {
  ModelFolder folder;       // the model
  ModelFolder transformer;  // config.json, weights, tokenizer
  PartOptions parts;
  Model::Impl* model;
};

Status CheckOptions(const LoadOptions& options) {
  const std::string bad_tier = ApplyCpuTierFromEnvironment();
  if (!bad_tier.empty()) return InvalidArgument(bad_tier);
  if (options.precision == Precision::kF32) return Status();
  const char* name = options.precision == Precision::kBF16 ? "bf16" : "int8";
  return Unsupported(std::string("precision ") + name + ": not supported yet; use f32");
}

size_t CountParameters(const WeightReader& weights, const std::vector<std::string>& passengers) {
  size_t count = 0;
  for (const TensorInfo& tensor : weights.source().tensors()) count += tensor.elements();
  for (const std::string& name : passengers) count -= weights.Find(name)->elements();
  return count;
}

Status LoadPooler(const Architecture& architecture, WeightReader& weights, size_t hidden,
                  std::optional<Linear>* pooler) {
  LinearRef ref;
  ref.weight.name = std::string(architecture.pooler_weight);
  ref.bias.name = std::string(architecture.pooler_bias);
  if (ref.weight.name.empty() || !weights.Has(ref.weight.name)) return Status();
  POZOR_TRY(*pooler, Linear::Create(weights, ref, hidden, hidden, Activation::kTanh));
  return Status();
}

void DescribeSpec(const EncoderSpec& spec, ModelInfo* info) {
  info->architecture = spec.architecture;
  info->layers = spec.layers.size();
  info->heads = spec.heads;
  info->hidden = spec.hidden;
  info->intermediate = spec.intermediate;
  info->vocabulary = spec.embeddings.vocab_size;
}

// config.json and the weights: the encoder.
Status LoadEncoder(const Loading& loading) {
  ModelInfo& info = loading.model->info;
  const ModelFolder& folder = loading.transformer;
  const std::string where = JoinPath(folder.path(), "config.json");
  POZOR_TRY(JsonDocument document, folder.ReadJsonObject("config.json"));
  POZOR_TRY(const std::string type, FindModelType(*document, where));
  POZOR_TRY(const Architecture* architecture, FindArchitecture(type, where));
  Config config(std::move(document), where);

  POZOR_TRY(auto source, OpenWeights(folder, &info.warnings));
  WeightReader weights(source);
  POZOR_RETURN_IF_ERROR(NormalizeNames(*architecture, weights));
  EncoderSpec spec = architecture->make_spec(config, weights);
  spec.architecture = std::string(architecture->model_type);
  config.Finish(&info.warnings);
  POZOR_RETURN_IF_ERROR(config.status());
  DescribeSpec(spec, &info);
  info.config = config.Effects();

  const size_t hidden = spec.hidden;
  const std::string word_table = spec.embeddings.word.name;
  EncoderOptions encoder_options;
  encoder_options.max_memory = loading.model->options.max_memory;
  POZOR_TRY(loading.model->encoder, Encoder::Create(std::move(spec), weights, encoder_options));
  if (loading.parts.with_pooler) {
    POZOR_RETURN_IF_ERROR(LoadPooler(*architecture, weights, hidden, &loading.model->pooler));
  }
  POZOR_TRY(info.ignored_tensors, ListPassengers(*architecture, weights));
  info.parameters = CountParameters(weights, info.ignored_tensors);
  return CheckFinite(weights, word_table);
}

Status LoadTokenizer(const Loading& loading) {
  Model::Impl& model = *loading.model;
  auto tokenizer = Tokenizer::Load(loading.transformer.path(), &model.info.warnings);
  if (!tokenizer.ok()) {
    model.tokenizer_error = tokenizer.status().message();
    return loading.parts.requires_tokenizer ? tokenizer.status() : Status();
  }
  model.tokenizer = std::move(*tokenizer);
  if (model.pipeline.lowercase) model.tokenizer->ForceLowercase();
  model.info.tokenizer = model.tokenizer->kind();
  const size_t rows = model.info.vocabulary;
  if (model.tokenizer->vocab_size() <= rows) return Status();
  return Corrupt(loading.transformer.path() + ": the tokenizer has ids up to " +
                 std::to_string(model.tokenizer->vocab_size() - 1) + ", the word table has " +
                 std::to_string(rows) + " rows (vocab_size); tokenizer and weights do not belong " +
                 "together");
}

// The limit that the folder states, within what the position table admits.
size_t FindMaxLength(const Loading& loading) {
  Model::Impl& model = *loading.model;
  const size_t table = model.encoder->max_tokens();
  size_t length = model.pipeline.max_seq_length;
  if (length == 0 && model.tokenizer != nullptr) length = model.tokenizer->model_max_length();
  if (model.pipeline.max_seq_length > table) {
    model.info.warnings.push_back(loading.folder.path() + ": max_seq_length " +
                                  std::to_string(length) + " exceeds the position table; " +
                                  std::to_string(table) + " is used");
  }
  if (length == 0) length = table;
  length = std::min(length, table);
  return length == std::numeric_limits<size_t>::max() ? 0 : length;
}

void DescribePipeline(const Pipeline& pipeline, ModelInfo* info) {
  info->pooling = pipeline.head.PoolingNames();
  info->dimensions = pipeline.head.dimensions;
  if (pipeline.truncate_dim != 0) {
    info->dimensions = std::min(info->dimensions, pipeline.truncate_dim);
  }
  info->normalizes = pipeline.head.EndsNormalized() && info->dimensions == pipeline.head.dimensions;
  info->prompts = pipeline.prompts;
  info->default_prompt = pipeline.default_prompt;
  info->similarity = pipeline.similarity;
}

}  // namespace

Result<std::unique_ptr<Model::Impl>> LoadModelParts(const std::string& name,
                                                    const LoadOptions& options,
                                                    const PartOptions& parts) {
  POZOR_RETURN_IF_ERROR(CheckOptions(options));
  auto model = std::make_unique<Model::Impl>();
  POZOR_TRY(model->folder, LocateModel(name));
  model->options = options;
  model->info.name = name;
  model->info.path = model->folder;
  POZOR_TRY(ModelFolder folder, ModelFolder::Open(model->folder));
  POZOR_TRY(model->pipeline, ReadPipeline(folder, &model->info.warnings));
  const Loading loading = {folder, folder.Sub(model->pipeline.transformer_path), parts,
                           model.get()};
  POZOR_RETURN_IF_ERROR(LoadEncoder(loading));
  POZOR_RETURN_IF_ERROR(ReadHead(folder, model->info.hidden, &model->pipeline));
  POZOR_RETURN_IF_ERROR(LoadTokenizer(loading));
  model->info.max_length = FindMaxLength(loading);
  DescribePipeline(model->pipeline, &model->info);
  return model;
}

}  // namespace pozor
