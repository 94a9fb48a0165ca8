#include "models/formats/gguf_names.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <span>
#include <utility>

namespace pozor {

namespace {

struct NamePair {
  std::string_view gguf, original;
};

// A key of the metadata (behind "<architecture>.") and the key of config.json it stands for.
struct KeyPair {
  std::string_view gguf, original;
  enum class Type : uint8_t { kSize, kNumber, kFlag, kRope } type = Type::kSize;
  bool is_needed = true;
};

}  // namespace

struct GgufArchitecture {
  std::string_view name;          // general.architecture
  std::string_view config;        // constant members of config.json
  std::string_view layer_prefix;  // what "blk." stands for
  std::span<const NamePair> tensors;
  std::span<const NamePair> of_layer;
  std::span<const KeyPair> keys;
};

namespace {

using Type = KeyPair::Type;

constexpr NamePair kBertTensors[] = {
    {"token_embd", "embeddings.word_embeddings"},
    {"position_embd", "embeddings.position_embeddings"},
    {"token_types", "embeddings.token_type_embeddings"},
    {"token_embd_norm", "embeddings.LayerNorm"},
};
constexpr NamePair kBertLayer[] = {
    {"attn_q", "attention.self.query"},
    {"attn_k", "attention.self.key"},
    {"attn_v", "attention.self.value"},
    {"attn_output", "attention.output.dense"},
    {"attn_output_norm", "attention.output.LayerNorm"},
    {"ffn_up", "intermediate.dense"},
    {"ffn_down", "output.dense"},
    {"layer_output_norm", "output.LayerNorm"},
};
constexpr KeyPair kBertKeys[] = {
    {"embedding_length", "hidden_size"},
    {"feed_forward_length", "intermediate_size"},
    {"block_count", "num_hidden_layers"},
    {"attention.head_count", "num_attention_heads"},
    {"attention.layer_norm_epsilon", "layer_norm_eps", Type::kNumber},
    {"attention.causal", "is_decoder", Type::kFlag, false},
};

constexpr NamePair kNomicTensors[] = {
    {"token_embd", "embeddings.word_embeddings"},
    {"token_types", "embeddings.token_type_embeddings"},
    {"token_embd_norm", "emb_ln"},
};
constexpr NamePair kNomicLayer[] = {
    {"attn_qkv", "attn.Wqkv"},      {"attn_output", "attn.out_proj"}, {"attn_output_norm", "norm1"},
    {"ffn_up", "mlp.fc11"},         {"ffn_gate", "mlp.fc12"},         {"ffn_down", "mlp.fc2"},
    {"layer_output_norm", "norm2"},
};
constexpr KeyPair kNomicKeys[] = {
    {"embedding_length", "hidden_size"},
    {"feed_forward_length", "intermediate_size"},
    {"block_count", "num_hidden_layers"},
    {"attention.head_count", "num_attention_heads"},
    {"attention.layer_norm_epsilon", "layer_norm_eps", Type::kNumber},
    {"rope.freq_base", "rope_parameters", Type::kRope},
    {"context_length", "max_position_embeddings"},
};

constexpr GgufArchitecture kArchitectures[] = {
    {"bert", R"("model_type": "bert", "hidden_act": "gelu")", "encoder.layer.", kBertTensors,
     kBertLayer, kBertKeys},
    {"nomic-bert", R"("model_type": "nomic_bert", "hidden_act": "silu")", "encoder.layers.",
     kNomicTensors, kNomicLayer, kNomicKeys},
};

// "attn_q.weight" by a table; empty if it is not there.
std::string Translate(std::span<const NamePair> table, std::string_view name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return {};
  for (const NamePair& pair : table) {
    if (pair.gguf == name.substr(0, dot)) {
      return std::string(pair.original) + std::string(name.substr(dot));
    }
  }
  return {};
}

const GgufTensor* FindTensor(const GgufHeader& header, std::string_view name) {
  const auto same = [&](const GgufTensor& tensor) { return tensor.name == name; };
  const auto found = std::find_if(header.tensors.begin(), header.tensors.end(), same);
  return found == header.tensors.end() ? nullptr : &*found;
}

size_t Rows(const GgufHeader& header, std::string_view name) {
  const GgufTensor* tensor = FindTensor(header, name);
  return tensor == nullptr || tensor->shape.empty() ? 0 : tensor->shape[0];
}

// The value of a key as JSON; nothing if it is absent or of another type.
std::optional<std::string> ValueOf(const GgufMetadata& metadata, const std::string& key,
                                   Type type) {
  if (type == Type::kSize) {
    const std::optional<int64_t> value = metadata.Int(key);
    return value.has_value() ? std::optional(std::to_string(*value)) : std::nullopt;
  }
  if (type == Type::kFlag) {
    const std::optional<bool> value = metadata.Flag(key);
    return value.has_value() ? std::optional<std::string>(*value ? "true" : "false") : std::nullopt;
  }
  const std::optional<double> value = metadata.Number(key);
  if (!value.has_value() || !(std::abs(*value) < 1e30)) return std::nullopt;
  // f32 there and here; no locale has a say.
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, static_cast<float>(*value)).ptr;
  std::string text(buffer, end);
  if (type == Type::kNumber) return text;
  return R"({"rope_type": "default", "rope_theta": )" + text + "}";
}

}  // namespace

Result<const GgufArchitecture*> FindGgufArchitecture(const GgufMetadata& metadata,
                                                     const std::string& file) {
  const std::string_view name = metadata.Text("general.architecture");
  std::string known;
  for (const GgufArchitecture& architecture : kArchitectures) {
    if (architecture.name == name) return &architecture;
    known += (known.empty() ? "" : ", ") + std::string(architecture.name);
  }
  if (name.empty()) {
    return Corrupt(file + ": general.architecture is missing; convert the model again");
  }
  return Unsupported(file + ": the GGUF architecture " + std::string(name.substr(0, 80)) +
                     " is not supported, only " + known +
                     " are; use the model in its original format");
}

std::string GgufTensorName(const GgufArchitecture& architecture, std::string_view name) {
  constexpr std::string_view kBlock = "blk.";
  std::string translated;
  if (name.starts_with(kBlock)) {
    const size_t dot = name.find('.', kBlock.size());
    if (dot != std::string_view::npos) {
      translated = Translate(architecture.of_layer, name.substr(dot + 1));
    }
    if (!translated.empty()) {
      translated = std::string(architecture.layer_prefix) +
                   std::string(name.substr(kBlock.size(), dot + 1 - kBlock.size())) + translated;
    }
  } else {
    translated = Translate(architecture.tensors, name);
  }
  return translated.empty() ? std::string(name) : translated;
}

Result<std::string> GgufConfigJson(const GgufArchitecture& architecture, const GgufHeader& header,
                                   const std::string& file) {
  std::string json = "{" + std::string(architecture.config);
  const auto add = [&](std::string_view key, const std::string& value) {
    json += ", \"" + std::string(key) + "\": " + value;
  };
  const auto missing = [&](const std::string& key) {
    return Corrupt(file + ": " + key + " is missing or no number; convert the model again");
  };
  for (const KeyPair& pair : architecture.keys) {
    const std::string key = std::string(architecture.name) + "." + std::string(pair.gguf);
    const std::optional<std::string> value = ValueOf(header.metadata, key, pair.type);
    if (value.has_value()) add(pair.original, *value);
    if (!value.has_value() && pair.is_needed) return missing(key);
  }
  add("vocab_size", std::to_string(Rows(header, "token_embd.weight")));
  add("type_vocab_size", std::to_string(Rows(header, "token_types.weight")));
  const size_t positions = Rows(header, "position_embd.weight");
  if (positions > 0) add("max_position_embeddings", std::to_string(positions));
  return json + "}";
}

}  // namespace pozor
