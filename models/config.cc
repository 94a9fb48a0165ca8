#include "models/config.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <utility>

namespace pozor {
namespace {

struct ActivationName {
  std::string_view name;
  Activation activation;
};
// The names of transformers' ACT2FN.
constexpr ActivationName kActivations[] = {
    {"gelu", Activation::kGelu},
    {"gelu_python", Activation::kGelu},
    {"gelu_new", Activation::kGeluTanh},
    {"gelu_fast", Activation::kGeluTanh},
    {"gelu_accurate", Activation::kGeluTanh},
    {"gelu_pytorch_tanh", Activation::kGeluTanh},
    {"gelu_python_tanh", Activation::kGeluTanh},
    {"quick_gelu", Activation::kQuickGelu},
    {"relu", Activation::kRelu},
    {"relu2", Activation::kReluSquared},
    {"relu6", Activation::kRelu6},
    {"leaky_relu", Activation::kLeakyRelu},
    {"silu", Activation::kSilu},
    {"swish", Activation::kSilu},
    {"tanh", Activation::kTanh},
    {"sigmoid", Activation::kSigmoid},
    {"mish", Activation::kMish},
    {"elu", Activation::kElu},
    {"linear", Activation::kNone},
};

constexpr std::string_view kTrainingKeys[] = {
    "attention_probs_dropout_prob",
    "hidden_dropout_prob",
    "classifier_dropout",
    "initializer_range",
    "initializer_factor",
    "gradient_checkpointing",
    "layerdrop",
    "dropout",
    "attention_dropout",
    "activation_dropout",
    "train_batch_size",
    "problem_type",
    "finetuning_task",
    "summary_type",
    "use_mean_pooling",
    "classifier_dropout_prob",
    "embedding_dropout",
    "mlp_dropout",
    "attn_pdrop",
    "embd_pdrop",
    "resid_pdrop",
    "init_std",
    "qa_dropout",
    "seq_classif_dropout",
};
constexpr std::string_view kGenerationKeys[] = {
    "use_cache",
    "bos_token_id",
    "eos_token_id",
    "sep_token_id",
    "mask_token_id",
    "pad_token_id",
    "unk_token_id",
    "decoder_start_token_id",
    "max_length",
    "min_length",
    "num_beams",
    "do_sample",
    "top_k",
    "top_p",
    "temperature",
    "repetition_penalty",
    "task_specific_params",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "bad_words_ids",
    "num_return_sequences",
    "diversity_penalty",
    "early_stopping",
    "length_penalty",
    "no_repeat_ngram_size",
    "prefix",
};
constexpr std::string_view kBookkeepingKeys[] = {
    "_name_or_path",
    "architectures",
    "transformers_version",
    "dtype",
    "torch_dtype",
    "model_type",
    "return_dict",
    "output_attentions",
    "output_hidden_states",
    "torchscript",
    "use_bfloat16",
    "tie_word_embeddings",
    "tie_encoder_decoder",
    "chunk_size_feed_forward",
    "tokenizer_class",
    "directionality",
    "_attn_implementation",
    "attn_implementation",
    "language",
    "model_name",
    "_commit_hash",
    "attn_implementation_autoset",
    "_attn_implementation_autoset",
    "sentence_transformers",
    "add_cross_attention",
    "vocab_file",
    "auto_map",
    "pretraining_tp",
    "output_past",
};
constexpr std::string_view kHeadKeys[] = {
    "num_labels",
    "id2label",
    "label2id",
    "pooler_fc_size",
    "pooler_num_attention_heads",
    "pooler_num_fc_layers",
    "pooler_size_per_head",
    "pooler_type",
    "problem_type",
    "sbert_ce_default_activation_function",
    "classifier_pooling",
    "classifier_bias",
    "classifier_activation",
    "summary_activation",
    "summary_first_dropout",
    "summary_last_dropout",
    "summary_proj_to_labels",
    "summary_use_proj",
};

bool IsOff(const JsonValue& value) {
  return value.is_null() || (value.is_bool() && !value.as_bool()) ||
         ((value.is_array() || value.is_object()) && value.size() == 0);
}

std::string Plain(const JsonValue& value) {
  if (value.is_array()) {
    std::string list;
    for (const JsonValue& item : value.items()) list += (list.empty() ? "" : ", ") + Plain(item);
    return "[" + list + "]";
  }
  return value.is_string() ? std::string(value.as_string()) : value.Describe();
}

// With all that is in it.
std::string WholeText(const JsonValue& value) {
  if (value.is_object()) {
    std::string text = "{";
    for (const JsonMember& member : value.members()) {
      text += std::string(member.key) + ": " + WholeText(member.value) + ", ";
    }
    return text + "}";
  }
  if (!value.is_array()) return Plain(value);
  std::string text = "[";
  for (const JsonValue& item : value.items()) text += WholeText(item) + ", ";
  return text + "]";
}

}  // namespace

bool ParseActivation(std::string_view name, Activation* activation) {
  for (const ActivationName& known : kActivations) {
    if (known.name != name) continue;
    *activation = known.activation;
    return true;
  }
  return false;
}

Config::Config(JsonDocument document, std::string name)
    : document_(std::move(document)), name_(std::move(name)) {}

const JsonValue* Config::Find(std::string_view path) const {
  const JsonValue* value = &*document_;
  while (value != nullptr) {
    const size_t dot = path.find('.');
    value = value->Find(path.substr(0, dot));
    if (dot == std::string_view::npos) break;
    path.remove_prefix(dot + 1);
  }
  return value;
}

bool Config::Has(std::string_view key) const {
  const JsonValue* value = Find(key);
  return value != nullptr && !value->is_null();
}

const JsonValue* Config::Take(std::string_view key, std::string_view effect) {
  const JsonValue* value = Find(key);
  if (value == nullptr) return nullptr;
  if (!IsKnown(key)) effects_.emplace_back(std::string(key), std::string(effect));
  return value->is_null() ? nullptr : value;
}

bool Config::IsKnown(std::string_view key) const {
  return std::any_of(effects_.begin(), effects_.end(),
                     [&](const auto& entry) { return entry.first == key; });
}

void Config::Fail(Status status) {
  if (status_.ok()) status_ = std::move(status);
}

void Config::Wrong(std::string_view key, const JsonValue* value, const std::string& why) {
  Fail(Corrupt(name_ + ": " + std::string(key) + " is " +
               (value == nullptr ? "missing" : value->Describe()) + ", " + why +
               "; check the configuration"));
}

size_t Config::Size(std::string_view key, size_t most, std::string_view effect) {
  const JsonValue* value = Take(key, effect);
  const std::string why = "a whole number from 1 to " + std::to_string(most) + " is needed";
  if (value == nullptr || !value->is_int() || value->as_int() < 1 ||
      static_cast<size_t>(value->as_int()) > most) {
    Wrong(key, value, why);
    return 1;
  }
  return static_cast<size_t>(value->as_int());
}

size_t Config::SizeOr(std::string_view key, size_t absent, size_t most, std::string_view effect) {
  const JsonValue* value = Take(key, effect);
  if (value == nullptr) return absent;
  if (!value->is_int() || value->as_int() < 0 || static_cast<size_t>(value->as_int()) > most) {
    Wrong(key, value, "a whole number from 0 to " + std::to_string(most) + " is needed");
    return absent;
  }
  return static_cast<size_t>(value->as_int());
}

std::vector<size_t> Config::SizesOr(std::string_view key, size_t absent, size_t count, size_t most,
                                    std::string_view effect) {
  std::vector<size_t> sizes(count, absent);
  const JsonValue* value = Take(key, effect);
  if (value == nullptr) return sizes;
  const bool list = value->is_array();
  if (list && value->size() != count) {
    Wrong(key, value, std::to_string(count) + " whole numbers are needed");
    return sizes;
  }
  for (size_t i = 0; i < count; ++i) {
    const JsonValue& item = list ? value->items()[i] : *value;
    if (!item.is_int() || item.as_int() < 0 || static_cast<size_t>(item.as_int()) > most) {
      Wrong(key, value, "whole numbers from 0 to " + std::to_string(most) + " are needed");
      return sizes;
    }
    sizes[i] = static_cast<size_t>(item.as_int());
  }
  return sizes;
}

size_t Config::SizeOrNone(std::string_view key, size_t most, std::string_view effect) {
  const JsonValue* value = Take(key, effect);
  if (value == nullptr || (value->is_int() && value->as_int() < 0)) return 0;
  if (value->is_int() && value->as_int() > 0 && static_cast<size_t>(value->as_int()) <= most) {
    return static_cast<size_t>(value->as_int());
  }
  Wrong(key, value,
        "a whole number from 1 to " + std::to_string(most) + ", or -1 for none, is needed");
  return 0;
}

float Config::PositiveOr(std::string_view key, double absent, std::string_view effect) {
  const JsonValue* value = Take(key, effect);
  if (value == nullptr) return static_cast<float>(absent);
  const double number = value->as_double();
  const bool finite = value->is_number() && std::abs(number) <= FLT_MAX;
  if (!finite || static_cast<float>(number) <= 0) {
    Wrong(key, value, "a positive number is needed");
    return static_cast<float>(absent);
  }
  return static_cast<float>(number);
}

bool Config::FlagOr(std::string_view key, bool absent, std::string_view effect) {
  const JsonValue* value = Take(key, effect);
  if (value == nullptr) return absent;
  if (!value->is_bool()) Wrong(key, value, "true or false is needed");
  return value->as_bool();
}

std::string Config::TextOr(std::string_view key, std::string_view absent, std::string_view effect) {
  const JsonValue* value = Take(key, effect);
  if (value == nullptr) return std::string(absent);
  if (!value->is_string()) Wrong(key, value, "a text is needed");
  return std::string(value->as_string());
}

std::vector<std::string> Config::Texts(std::string_view key, std::string_view effect) {
  std::vector<std::string> texts;
  const JsonValue* value = Take(key, effect);
  if (value == nullptr) return texts;
  bool all = value->is_array();
  for (size_t i = 0; all && i < value->size(); ++i) {
    const JsonValue& item = value->items()[i];
    all = item.is_string();
    if (all) texts.emplace_back(item.as_string());
  }
  if (!all) Wrong(key, value, "a list of texts is needed");
  return texts;
}

std::vector<std::string> Config::Parts(std::string_view key, std::string_view effect) {
  const JsonValue* value = Find(key);
  std::vector<std::string> parts;
  if (value == nullptr || !value->is_string()) {
    parts = Texts(key, effect);
  } else {
    const std::string text = TextOr(key, "", effect) + "|";
    for (size_t begin = 0, end; (end = text.find('|', begin)) != text.npos; begin = end + 1) {
      parts.push_back(text.substr(begin, end - begin));
    }
  }
  for (std::string& part : parts) {
    const size_t first = std::min(part.find_first_not_of(' '), part.size());
    part = part.substr(first, part.find_last_not_of(' ') + 1 - first);
    for (char& c : part) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return parts;
}

Activation Config::ActivationOr(std::string_view key, std::string_view absent,
                                std::string_view effect) {
  const std::string name = TextOr(key, absent, effect);
  Activation activation = Activation::kNone;
  if (!ParseActivation(name, &activation)) {
    std::string known;
    for (const ActivationName& entry : kActivations) {
      known += (known.empty() ? "" : ", ") + std::string(entry.name);
    }
    Fail(Unsupported(name_ + ": " + std::string(key) + " " + name +
                     " is not among the supported activations; use a model with one of " + known));
  }
  return activation;
}

void Config::Refuse(std::string_view key, std::string_view why,
                    std::initializer_list<std::string_view> admitted) {
  const JsonValue* value = Take(key, "checked: the value that Pozor computes");
  if (value == nullptr || IsOff(*value)) return;
  if (std::find(admitted.begin(), admitted.end(), Plain(*value)) != admitted.end()) return;
  Fail(Unsupported(name_ + ": " + std::string(key) + " is " + value->Describe() + ", " +
                   std::string(why) + " is not supported; use another model"));
}

void Config::Demand(std::string_view key, std::string_view why) {
  if (FlagOr(key, true, "checked: the value that Pozor computes")) return;
  Fail(Unsupported(name_ + ": " + std::string(key) + " is false, a model without " +
                   std::string(why) + " is not supported; use another model"));
}

void Config::Ignore(std::span<const std::string_view> keys, std::string_view why) {
  for (std::string_view key : keys) {
    Take(key, why);
    ignored_.emplace_back(key);
  }
}

void Config::Finish(std::vector<std::string>* warnings) {
  if (const JsonValue* quantization = Take("quantization_config", "none")) {
    if (!IsOff(*quantization)) {
      const JsonValue* method = quantization->Find("quant_method");
      Fail(Unsupported(name_ + ": quantization_config " +
                       (method == nullptr ? quantization->Describe() : Plain(*method)) +
                       ": weights quantised by others are not supported; use the original model"));
    }
  }
  Refuse("pruned_heads", "a model with pruned heads");
  if (!IsKnown("is_encoder_decoder")) Refuse("is_encoder_decoder", "an encoder-decoder model");
  if (!IsKnown("is_decoder")) Refuse("is_decoder", "a causal mask");
  Refuse("cross_attention_hidden_size", "cross-attention");
  Refuse("add_cross_attention", "cross-attention");
  Ignore(kTrainingKeys, "of training only");
  Ignore(kGenerationKeys, "of generation or padding; Pozor does neither");
  Ignore(kBookkeepingKeys, "bookkeeping");
  Ignore(kHeadKeys, "of a task head, which makes no vectors");
  ReportUnknown(*document_, "", warnings);
}

// Objects of which some member was read are looked into.
void Config::ReportUnknown(const JsonValue& object, const std::string& stem,
                           std::vector<std::string>* warnings) {
  for (const JsonMember& member : object.members()) {
    const std::string key = stem + std::string(member.key);
    if (IsKnown(key)) continue;
    const auto inside = [&](const auto& entry) { return entry.first.starts_with(key + "."); };
    if (std::any_of(effects_.begin(), effects_.end(), inside)) {
      ReportUnknown(member.value, key + ".", warnings);
      continue;
    }
    effects_.emplace_back(key, "unknown to Pozor: ignored");
    ignored_.emplace_back(key);
    if (IsOff(member.value)) continue;
    warnings->push_back(name_ + ": " + key + " = " + member.value.Describe() +
                        " is unknown to Pozor and was ignored");
  }
}

std::vector<std::pair<std::string, std::string>> Config::Decisive() const {
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& [key, effect] : effects_) {
    if (std::find(ignored_.begin(), ignored_.end(), key) != ignored_.end()) continue;
    if (const JsonValue* value = Find(key)) out.emplace_back(key, WholeText(*value));
  }
  return out;
}

std::vector<std::pair<std::string, std::string>> Config::Effects() const {
  std::vector<std::pair<std::string, std::string>> out;
  for (const JsonMember& member : document_->members()) {
    const std::string inside = std::string(member.key) + ".";
    for (const auto& [key, effect] : effects_) {
      if (key != member.key && !key.starts_with(inside)) continue;
      const JsonValue* value = key == member.key ? &member.value : Find(key);
      if (value != nullptr) out.emplace_back(key + " = " + Plain(*value), effect);
    }
  }
  return out;
}

Result<std::string> FindModelType(const JsonValue& config, const std::string& name) {
  const JsonValue* type = config.Find("model_type");
  if (type != nullptr && type->is_string() && type->size() > 0) {
    return std::string(type->as_string());
  }
  const JsonValue* classes = config.Find("architectures");
  if (classes != nullptr && classes->size() > 0 && classes->is_array() &&
      classes->items()[0].is_string()) {
    return std::string(classes->items()[0].as_string());
  }
  return Unsupported(name + ": neither model_type nor architectures is there; " +
                     "add the model_type to the configuration");
}

}  // namespace pozor
