// From a name to a loaded model.
#include <algorithm>
#include <future>
#include <limits>
#include <set>
#include <system_error>
#include <utility>

#include "engine/machine.h"
#include "engine/precision_plan.h"
#include "kernels/cpu.h"
#include "kernels/gemm.h"
#include "models/architectures/architecture.h"
#include "models/config.h"
#include "models/formats/file.h"
#include "models/formats/finite.h"
#include "models/formats/folder.h"
#include "models/formats/gguf.h"
#include "models/formats/weights.h"
#include "models/locate.h"
#include "models/model_impl.h"
#include "models/prepared.h"
#include "models/quantize.h"
#include "models/tasks.h"

namespace pozor {
namespace {

// What is collected on the way.
struct Loading {
  ModelFolder folder;       // the model
  ModelFolder transformer;  // config.json, weights, tokenizer
  std::string weights;      // the weight file that was named, or empty
  PartOptions parts;
  Model::Impl* model;
};

// Weights, and what says how they are to be used.
struct Checkpoint {
  std::shared_ptr<const TensorSource> weights;
  std::shared_ptr<const GgufFile> gguf;  // the same, if they are GGUF
};

Status CheckEnvironment() {
  const std::string bad_tier = ApplyCpuTierFromEnvironment();
  return bad_tier.empty() ? Status() : InvalidArgument(bad_tier);
}

// What weights are packed as when a model is loaded; int8 is made of f32.
NumberFormat FormatOfWeights(Precision precision) {
  if (precision == Precision::kBF16x3) return NumberFormat::kBf16x3;
  return precision == Precision::kBF16 ? NumberFormat::kBf16 : NumberFormat::kF32;
}

// What runs where bf16x3 would be slower than f32.
void NoteBf16x3(Precision asked, const Encoder& encoder, ModelInfo* info) {
  if (asked != Precision::kBF16x3 || HasFormat(encoder.precision(), NumberFormat::kBf16x3)) return;
  info->warnings.push_back("precision bf16x3: CPU tier " +
                           std::string(CpuTierName(ActiveCpuTier())) +
                           " has no AMX, which alone is quicker at it: products run in f32, with "
                           "the bits of precision f32");
}

// What bf16 costs where no bf16 kernel is quicker than f32's.
void NoteBf16(const Encoder& encoder, ModelInfo* info) {
  if (!HasFormat(encoder.precision(), NumberFormat::kBf16)) return;
  constexpr size_t kManyRows = 128;
  const std::string_view kernel = FindGemmKernel(PackedLayout::kBf16x16x2, kManyRows).name;
  if (kernel.find("-f32bf16") == kernel.npos) return;
  info->warnings.push_back("precision bf16: CPU tier " + std::string(CpuTierName(ActiveCpuTier())) +
                           " multiplies bf16 weights as f32: half the memory for weights, but a " +
                           "little slower than f32");
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
  info->layers = spec.layer_count();
  info->heads = spec.heads;
  info->hidden = spec.hidden;
  info->intermediate = spec.intermediate;
  info->vocabulary = spec.embeddings.vocab_size;
}

// What can be done while the weights are packed.
struct Aside {
  Result<std::unique_ptr<Tokenizer>> tokenizer = NotFound("");
  std::vector<std::string> warnings;  // the tokenizer's
  Status finite;
};

Aside DoAside(const ModelFolder& folder, const Checkpoint& checkpoint,
              const std::set<const TensorInfo*>& left_out) {
  Aside aside;
  aside.tokenizer = LoadTokenizer(folder, checkpoint.gguf.get(), &aside.warnings);
  if (checkpoint.weights != nullptr) {
    aside.finite = CheckFinite(*checkpoint.weights, left_out);
  }
  return aside;
}

// Runs it on a thread of its own if there is one to have, else when the result is asked for.
std::future<Aside> StartAside(const ModelFolder& folder, const Checkpoint& checkpoint,
                              const std::set<const TensorInfo*>& left_out) {
  const auto work = [&] { return DoAside(folder, checkpoint, left_out); };
  try {
    return std::async(std::launch::async, work);
  } catch (const std::system_error&) {
    return std::async(std::launch::deferred, work);
  }
}

// Tensors that need no look for infinities: passengers, and the word table, of which only the rows
// of the words that occur are ever read (a vector that is not finite is an error of its own).
std::set<const TensorInfo*> LeftOut(const Architecture& architecture, const EncoderSpec& spec,
                                    const WeightReader& weights) {
  std::set<const TensorInfo*> left_out = {weights.Find(spec.embeddings.word.name)};
  for (const std::string& name : weights.Unused()) {
    if (IsPassenger(architecture, name)) left_out.insert(weights.Find(name));
  }
  return left_out;
}

Status TakeTokenizer(const Loading& loading, Aside& aside) {
  Model::Impl& model = *loading.model;
  for (std::string& warning : aside.warnings) model.info.warnings.push_back(std::move(warning));
  if (!aside.tokenizer.ok()) {
    model.tokenizer_error = aside.tokenizer.status().message();
    return loading.parts.requires_tokenizer ? aside.tokenizer.status() : Status();
  }
  model.tokenizer = std::move(*aside.tokenizer);
  if (model.pipeline.lowercase) model.tokenizer->ForceLowercase();
  model.info.tokenizer = model.tokenizer->kind();
  const size_t rows = model.info.vocabulary;
  if (model.tokenizer->vocab_size() <= rows) return Status();
  return Corrupt(loading.transformer.path() + ": the tokenizer has ids up to " +
                 std::to_string(model.tokenizer->vocab_size() - 1) + ", the word table has " +
                 std::to_string(rows) + " rows (vocab_size); tokenizer and weights do not belong " +
                 "together");
}

// config.json and what it is of.
struct ModelConfig {
  const Architecture* architecture;
  Config config;
  TaskAdapters adapters;
  std::optional<size_t> task;  // of the adapters
};

Result<ModelConfig> ReadConfig(const Loading& loading, JsonDocument document,
                               const std::string& where) {
  POZOR_TRY(const std::string type, FindModelType(*document, where));
  POZOR_TRY(const Architecture* architecture, FindArchitecture(type, where, &*document));
  Model::Impl& model = *loading.model;
  const std::string& task = model.options.task;
  if (model.pipeline.own_transformer && !architecture->has_adapters) {
    return Unsupported(where + ": a Transformer module of the folder's own code is supported for " +
                       "jina-embeddings-v3 only; use another model");
  }
  TaskAdapters adapters;
  if (architecture->has_adapters) {
    POZOR_TRY(adapters, ReadTaskAdapters(*document, where));
    model.info.tasks = adapters.tasks;
  }
  std::optional<size_t> place;
  if (!task.empty()) {
    POZOR_TRY(place, FindTask(adapters, task));
    UseInstruction(adapters, task, &model.pipeline);
    model.info.task = task;
  }
  return ModelConfig{architecture, Config(std::move(document), where), std::move(adapters), place};
}

// config.json, or what a GGUF file says in its place; then the weights.
Result<ModelConfig> OpenCheckpoint(const Loading& loading, Checkpoint* checkpoint) {
  const ModelFolder& folder = loading.transformer;
  POZOR_TRY(const WeightFile file, FindWeights(folder, loading.weights));
  std::string where = JoinPath(folder.path(), "config.json");
  std::optional<JsonDocument> document;
  if (file.format == WeightFormat::kGguf) {
    POZOR_TRY(where, folder.Resolve(file.name));
    POZOR_TRY(checkpoint->gguf, OpenGguf(where));
    POZOR_TRY(const std::string json, checkpoint->gguf->ConfigJson());
    POZOR_TRY(document, ParseJson(json, where));
  } else {
    POZOR_TRY(document, folder.ReadJsonObject("config.json"));
  }
  POZOR_TRY(ModelConfig of, ReadConfig(loading, std::move(*document), where));
  checkpoint->weights = checkpoint->gguf;
  if (checkpoint->gguf == nullptr) {
    POZOR_TRY(checkpoint->weights, OpenWeights(folder, file, &loading.model->info.warnings));
  }
  if (of.task.has_value()) {
    POZOR_TRY(checkpoint->weights,
              MergeTask(std::move(checkpoint->weights), of.adapters, *of.task));
  }
  return of;
}

Result<EncoderSpec> MakeSpec(ModelConfig& of, WeightReader& weights, ModelInfo* info) {
  POZOR_RETURN_IF_ERROR(NormalizeNames(*of.architecture, weights));
  EncoderSpec spec = of.architecture->make_spec(of.config, weights);
  spec.architecture = std::string(of.architecture->model_type);
  of.config.Finish(&info->warnings);
  POZOR_RETURN_IF_ERROR(of.config.status());
  DescribeSpec(spec, info);
  info->config = of.config.Effects();
  return spec;
}

// What a file prepared from this model has to say about it.
PreparedFacts DescribeForFile(const ModelConfig& of, const WeightReader& weights,
                              const ModelInfo& info) {
  PreparedFacts facts;
  facts.architecture = info.architecture;
  facts.task = info.task;
  facts.config = of.config.Decisive();
  const std::span<const TensorInfo> tensors = weights.source().tensors();
  facts.original.assign(tensors.begin(), tensors.end());
  facts.ignored = info.ignored_tensors;
  facts.parameters = info.parameters;
  return facts;
}

// config.json, weights and tokenizer.
Status LoadTransformer(const Loading& loading) {
  ModelInfo& info = loading.model->info;
  const ModelFolder& folder = loading.transformer;
  Checkpoint checkpoint;
  POZOR_TRY(ModelConfig of, OpenCheckpoint(loading, &checkpoint));
  WeightReader weights(checkpoint.weights);
  POZOR_TRY(EncoderSpec spec, MakeSpec(of, weights, &info));

  const std::set<const TensorInfo*> left_out = LeftOut(*of.architecture, spec, weights);
  std::future<Aside> running = StartAside(folder, checkpoint, left_out);
  EncoderOptions options;
  options.max_memory = loading.model->options.max_memory;
  options.weights = FormatOfWeights(loading.model->options.precision);
  POZOR_TRY(loading.model->encoder, Encoder::Create(std::move(spec), weights, options));
  NoteBf16(*loading.model->encoder, &info);
  NoteBf16x3(loading.model->options.precision, *loading.model->encoder, &info);
  if (loading.parts.with_pooler) {
    POZOR_RETURN_IF_ERROR(
        LoadPooler(*of.architecture, weights, info.hidden, &loading.model->pooler));
  }
  POZOR_TRY(info.ignored_tensors, ListPassengers(*of.architecture, weights));
  info.parameters = CountParameters(weights, info.ignored_tensors);
  if (checkpoint.gguf != nullptr) {
    loading.model->has_config_file = false;
    loading.model->pipeline.default_pooling = checkpoint.gguf->PoolingMode();
  }
  loading.model->facts = DescribeForFile(of, weights, info);
  Aside aside = running.get();
  POZOR_RETURN_IF_ERROR(aside.finite);
  return TakeTokenizer(loading, aside);
}

// The same from prepared weights.
Status LoadPreparedTransformer(const Loading& loading,
                               const std::shared_ptr<const PreparedFile>& file) {
  ModelInfo& info = loading.model->info;
  const ModelFolder& folder = loading.transformer;
  const Checkpoint nothing;
  const std::set<const TensorInfo*> none;
  std::future<Aside> running = StartAside(folder, nothing, none);
  const std::string where = JoinPath(folder.path(), "config.json");
  POZOR_TRY(JsonDocument document, folder.ReadJsonObject("config.json"));
  POZOR_TRY(ModelConfig of, ReadConfig(loading, std::move(document), where));
  WeightReader weights(OriginalNames(file));
  POZOR_TRY(EncoderSpec spec, MakeSpec(of, weights, &info));
  POZOR_RETURN_IF_ERROR(file->CheckTask(info.task));
  POZOR_RETURN_IF_ERROR(file->CheckConfig(of.config.Decisive()));
  POZOR_RETURN_IF_ERROR(CheckCeiling("the model's weights", loading.model->options.max_memory,
                                     ResidentBytes() + file->bytes()));
  POZOR_TRY(loading.model->encoder, file->MakeEncoder(std::move(spec)));
  NoteBf16(*loading.model->encoder, &info);
  loading.model->facts = file->facts();
  info.ignored_tensors = file->facts().ignored;
  info.parameters = file->facts().parameters;
  Aside aside = running.get();
  return TakeTokenizer(loading, aside);
}

// The precision to ask for that a plan answers.
Precision PrecisionOf(const PrecisionPlan& plan) {
  if (HasFormat(plan, NumberFormat::kInt8)) return Precision::kInt8;
  return HasFormat(plan, NumberFormat::kBf16) ? Precision::kBF16 : Precision::kF32;
}

// The prepared weights, if they are for the precision that is asked for, or that is left to them
// where there is nothing else; null: the original ones.
Result<std::shared_ptr<const PreparedFile>> ChoosePrepared(const Loading& loading) {
  const ModelFolder& folder = loading.transformer;
  const bool named = loading.weights == kPreparedName;
  const Precision asked = loading.model->options.precision;
  const std::shared_ptr<const PreparedFile> original;
  if (!folder.Has(kPreparedName) || (!loading.weights.empty() && !named)) return original;
  bool alone = named;
  if (!named) {
    POZOR_TRY(const WeightFile file, FindWeights(folder, ""));
    alone = file.format == WeightFormat::kNone;
  }
  const bool prepares = asked == Precision::kInt8 || asked == Precision::kBF16;
  if (!alone && !prepares) return original;
  POZOR_TRY(const std::string path, folder.Resolve(kPreparedName));
  POZOR_TRY(std::shared_ptr<const PreparedFile> file, PreparedFile::Open(path));
  const PrecisionPlan& plan = file->facts().precision;
  if (asked == Precision::kAuto || asked == PrecisionOf(plan)) return file;
  if (!alone) return original;
  const char* wanted = asked == Precision::kF32      ? "f32"
                       : asked == Precision::kBF16   ? "bf16"
                       : asked == Precision::kBF16x3 ? "bf16x3"
                                                     : "int8";
  const std::string name(PrecisionName(plan));
  return Unsupported(folder.path() + ": holds weights prepared for " + name + ", not those for " +
                     wanted + "; leave the precision out, or give the model it was prepared from");
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

Result<std::unique_ptr<Tokenizer>> LoadTokenizer(const ModelFolder& folder, const GgufFile* gguf,
                                                 std::vector<std::string>* warnings) {
  if (gguf == nullptr || folder.Has("tokenizer.json")) {
    return Tokenizer::Load(folder.path(), warnings);
  }
  return Tokenizer::FromGguf(gguf->metadata(), gguf->description());
}

Result<std::unique_ptr<Model::Impl>> LoadModelParts(const std::string& name,
                                                    const LoadOptions& options,
                                                    const PartOptions& parts) {
  POZOR_RETURN_IF_ERROR(CheckEnvironment());
  auto model = std::make_unique<Model::Impl>();
  POZOR_TRY(ModelPlace place, LocateModelPlace(name));
  model->folder = std::move(place.folder);
  model->options = options;
  model->info.name = name;
  model->info.path = model->folder;
  POZOR_TRY(ModelFolder folder, ModelFolder::Open(model->folder));
  POZOR_TRY(model->pipeline, ReadPipeline(folder, &model->info.warnings));
  const Loading loading = {folder, folder.Sub(model->pipeline.transformer_path),
                           std::move(place.weights), parts, model.get()};
  POZOR_TRY(const auto prepared, ChoosePrepared(loading));
  if (options.precision == Precision::kAuto) {
    model->options.precision =
        prepared == nullptr ? Precision::kF32 : PrecisionOf(prepared->facts().precision);
  }
  POZOR_RETURN_IF_ERROR(prepared == nullptr ? LoadTransformer(loading)
                                            : LoadPreparedTransformer(loading, prepared));
  POZOR_RETURN_IF_ERROR(ReadHead(folder, model->info.hidden, &model->pipeline));
  model->info.max_length = FindMaxLength(loading);
  DescribePipeline(model->pipeline, &model->info);
  if (prepared == nullptr && options.precision == Precision::kInt8) {
    POZOR_RETURN_IF_ERROR(QuantizeAtLoad(model.get()));
  }
  return model;
}

}  // namespace pozor
