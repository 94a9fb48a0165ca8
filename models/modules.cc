// The modules after the Transformer: Pooling, Dense, LayerNorm, Normalize.
#include <optional>

#include "models/formats/file.h"
#include "models/formats/weights.h"
#include "models/pipeline.h"

namespace pozor {
namespace {

constexpr size_t kMostDenseOutputs = size_t{1} << 20;

// In the order in which the results stand side by side when the old booleans choose them.
struct PoolingMode {
  std::string_view flag;
  Pooling pooling;
};
constexpr PoolingMode kPoolingModes[] = {
    {"pooling_mode_cls_token", Pooling::kCls},
    {"pooling_mode_max_tokens", Pooling::kMax},
    {"pooling_mode_mean_tokens", Pooling::kMean},
    {"pooling_mode_mean_sqrt_len_tokens", Pooling::kMeanSqrt},
    {"pooling_mode_weightedmean_tokens", Pooling::kWeightedMean},
    {"pooling_mode_lasttoken", Pooling::kLastToken},
};

Status AddPooling(const JsonValue& name, const std::string& where, Head* head) {
  for (const PoolingMode& mode : kPoolingModes) {
    if (!name.is_string() || PoolingName(mode.pooling) != name.as_string()) continue;
    head->poolings.push_back(mode.pooling);
    return Status();
  }
  return Unsupported(where + ": pooling_mode " + name.Describe() +
                     " is not supported; use cls, max, mean, mean_sqrt_len_tokens, weightedmean " +
                     "or lasttoken");
}

// The new form is a name or a list of names, the old one a flag for each mode.
Status ReadPoolingModes(const JsonDocument& document, const std::string& where, Head* head) {
  const JsonValue* mode = document->Find("pooling_mode");
  if (mode != nullptr && mode->is_array()) {
    for (const JsonValue& name : mode->items()) {
      POZOR_RETURN_IF_ERROR(AddPooling(name, where, head));
    }
  } else if (mode != nullptr && !mode->is_null()) {
    POZOR_RETURN_IF_ERROR(AddPooling(*mode, where, head));
  } else {
    for (const JsonMember& member : document->members()) {
      if (!member.key.starts_with("pooling_mode_") || !member.value.as_bool()) continue;
      bool known = false;
      for (const PoolingMode& candidate : kPoolingModes) known |= candidate.flag == member.key;
      if (known) continue;
      return Unsupported(where + ": " + std::string(member.key) +
                         " is not supported; use another pooling");
    }
    for (const PoolingMode& candidate : kPoolingModes) {
      const JsonValue* flag = document->Find(candidate.flag);
      if (flag != nullptr && flag->as_bool()) head->poolings.push_back(candidate.pooling);
    }
  }
  if (head->poolings.empty()) head->poolings.push_back(Pooling::kMean);
  return Status();
}

Status CheckSize(const JsonDocument& document, std::string_view key, size_t expected,
                 const std::string& where) {
  const JsonValue* value = document->Find(key);
  if (value == nullptr || value->is_null()) return Status();
  if (value->is_int() && value->as_int() == static_cast<int64_t>(expected)) return Status();
  return Corrupt(where + ": " + std::string(key) + " is " + value->Describe() + ", " +
                 std::to_string(expected) + " numbers arrive there; check the file");
}

Status ReadPooling(const ModelFolder& folder, Pipeline* pipeline) {
  Head& head = pipeline->head;
  if (!head.poolings.empty()) {
    return Unsupported(folder.path() + ": a second Pooling module is not supported; " +
                       "use another model");
  }
  const std::string where = JoinPath(folder.path(), "config.json");
  POZOR_TRY(const JsonDocument document, folder.ReadJsonObject("config.json"));
  POZOR_RETURN_IF_ERROR(ReadPoolingModes(document, where, &head));
  POZOR_RETURN_IF_ERROR(CheckSize(document, "word_embedding_dimension", head.hidden, where));
  POZOR_RETURN_IF_ERROR(CheckSize(document, "embedding_dimension", head.hidden, where));
  const JsonValue* include = document->Find("include_prompt");
  pipeline->include_prompt = include == nullptr || !include->is_bool() || include->as_bool();
  head.dimensions = head.poolings.size() * head.hidden;
  return Status();
}

struct DenseActivation {
  std::string_view name;
  Activation activation;
};
// Class names of torch.nn.
constexpr DenseActivation kDenseActivations[] = {
    {"Identity", Activation::kNone},       {"Tanh", Activation::kTanh}, {"ReLU", Activation::kRelu},
    {"ReLU6", Activation::kRelu6},         {"GELU", Activation::kGelu}, {"SiLU", Activation::kSilu},
    {"Sigmoid", Activation::kSigmoid},     {"Mish", Activation::kMish}, {"ELU", Activation::kElu},
    {"LeakyReLU", Activation::kLeakyRelu},
};

Result<Activation> ReadDenseActivation(const JsonDocument& document, const std::string& where) {
  const JsonValue* value = document->Find("activation_function");
  if (value == nullptr || value->is_null()) return Activation::kTanh;  // the reference's default
  const std::string_view path = value->as_string();
  const std::string_view name = path.substr(path.rfind('.') + 1);
  for (const DenseActivation& known : kDenseActivations) {
    if (path.starts_with("torch.nn.") && known.name == name) return known.activation;
  }
  return Unsupported(where + ": activation_function " + value->Describe() +
                     " is not supported; use a model with another one");
}

// Both ends of a module must be the sentence vector.
Status CheckEnds(const JsonDocument& document, const std::string& where) {
  for (const char* key : {"module_input_name", "module_output_name"}) {
    const JsonValue* value = document->Find(key);
    if (value == nullptr || value->is_null() || value->as_string() == "sentence_embedding")
      continue;
    return Unsupported(where + ": " + key + " " + value->Describe() +
                       " is not supported; only modules on sentence_embedding are");
  }
  const JsonValue* residual = document->Find("use_residual");
  if (residual == nullptr || !residual->as_bool()) return Status();
  return Unsupported(where + ": use_residual is not supported; use another model");
}

Status ReadDense(const ModelFolder& folder, Head* head) {
  const std::string where = JoinPath(folder.path(), "config.json");
  POZOR_TRY(const JsonDocument document, folder.ReadJsonObject("config.json"));
  POZOR_RETURN_IF_ERROR(CheckEnds(document, where));
  POZOR_RETURN_IF_ERROR(CheckSize(document, "in_features", head->dimensions, where));
  const JsonValue* outputs = document->Find("out_features");
  if (outputs == nullptr || !outputs->is_int() || outputs->as_int() < 1 ||
      static_cast<size_t>(outputs->as_int()) > kMostDenseOutputs) {
    return Corrupt(where + ": out_features is missing or out of range; check the file");
  }
  const JsonValue* bias = document->Find("bias");
  LinearRef ref;
  ref.weight.name = "linear.weight";
  if (bias == nullptr || !bias->is_bool() || bias->as_bool()) ref.bias.name = "linear.bias";
  POZOR_TRY(const Activation activation, ReadDenseActivation(document, where));
  POZOR_TRY(auto source, OpenWeights(folder, nullptr));
  WeightReader weights(source);
  HeadStep step;
  step.kind = HeadKind::kDense;
  const size_t out = static_cast<size_t>(outputs->as_int());
  POZOR_TRY(step.dense, Linear::Create(weights, ref, head->dimensions, out, activation));
  for (const std::string& name : weights.Unused()) {
    return Corrupt(source->description() + ": tensor '" + name +
                   "' has no place in a Dense module; check the folder");
  }
  head->steps.push_back(std::move(step));
  head->dimensions = out;
  return Status();
}

Status ReadLayerNorm(const ModelFolder& folder, Head* head) {
  const std::string where = JoinPath(folder.path(), "config.json");
  POZOR_TRY(const JsonDocument document, folder.ReadJsonObject("config.json"));
  POZOR_RETURN_IF_ERROR(CheckSize(document, "dimension", head->dimensions, where));
  POZOR_TRY(auto source, OpenWeights(folder, nullptr));
  WeightReader weights(source);
  HeadStep step;
  step.kind = HeadKind::kLayerNorm;
  const size_t shape[] = {head->dimensions};
  for (auto [name, values] :
       {std::pair("norm.weight", &step.gamma), std::pair("norm.bias", &step.beta)}) {
    POZOR_TRY(const TensorInfo* tensor, weights.Take(name, shape));
    values->resize(head->dimensions);
    POZOR_RETURN_IF_ERROR(source->Read(*tensor, 0, values->size(), values->data()));
  }
  head->steps.push_back(std::move(step));
  return Status();
}

}  // namespace

Status ReadHead(const ModelFolder& folder, size_t hidden, Pipeline* pipeline) {
  Head& head = pipeline->head;
  head.hidden = hidden;
  if (pipeline->modules.empty()) {
    for (const PoolingMode& mode : kPoolingModes) {
      if (PoolingName(mode.pooling) == pipeline->default_pooling) head.poolings = {mode.pooling};
    }
    if (head.poolings.empty()) head.poolings = {Pooling::kMean};
    head.dimensions = hidden;
  }
  for (size_t i = 1; i < pipeline->modules.size(); ++i) {
    const ModuleEntry& module = pipeline->modules[i];
    const ModelFolder sub = folder.Sub(module.path);
    if (module.type == "Dropout") continue;  // the identity outside training
    if (module.type == "Pooling") {
      POZOR_RETURN_IF_ERROR(ReadPooling(sub, pipeline));
      continue;
    }
    if (head.poolings.empty()) {
      return Unsupported(sub.path() + ": a " + module.type +
                         " module before the Pooling is not supported; use another model");
    }
    if (module.type == "Dense") {
      POZOR_RETURN_IF_ERROR(ReadDense(sub, &head));
    } else if (module.type == "LayerNorm") {
      POZOR_RETURN_IF_ERROR(ReadLayerNorm(sub, &head));
    } else {
      if (sub.Has("config.json")) {
        POZOR_TRY(const JsonDocument document, sub.ReadJsonObject("config.json"));
        POZOR_RETURN_IF_ERROR(CheckEnds(document, JoinPath(sub.path(), "config.json")));
      }
      head.steps.emplace_back();
    }
  }
  if (!head.poolings.empty()) return Status();
  return Unsupported(folder.path() +
                     ": modules.json has no Pooling; vectors of single tokens are " +
                     "not supported, use a model with a Pooling module");
}

}  // namespace pozor
