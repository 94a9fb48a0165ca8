// What an architecture is here: data. It maps config keys and tensor names to an EncoderSpec and
// never computes anything.
#ifndef POZOR_MODELS_ARCHITECTURES_ARCHITECTURE_H_
#define POZOR_MODELS_ARCHITECTURES_ARCHITECTURE_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/spec.h"
#include "engine/weights.h"
#include "models/config.h"
#include "pozor/status.h"

namespace pozor {

struct Architecture {
  std::string_view model_type;   // "bert"
  std::string_view class_name;   // architectures[0] up to the task: "Bert" of "BertForMaskedLM"
  std::string_view description;  // for lists: "BERT"

  // Reads every key that this architecture knows; errors stay in the config. `weights` tells which
  // optional tensors there are.
  EncoderSpec (*make_spec)(Config& config, const WeightReader& weights);

  // Among configs of a type that several share, which are this architecture's; null: by type alone.
  bool (*claims)(const JsonValue& config) = nullptr;

  // A tensor that every such model has; what stands before it in the file is the prefix of all.
  std::string_view anchor;

  // Tensors that a folder may carry and nobody needs; a '*' stands for any text.
  std::span<const std::string_view> passengers = {};

  // tanh(W h[0] + b), if there is one.
  std::string_view pooler_weight = {};
  std::string_view pooler_bias = {};

  // Checkpoints may have a low-rank adapter for each of several tasks (models/tasks.h).
  bool has_adapters = false;
};

// Every architecture, in the order of models/architectures/all.cc.
std::span<const Architecture* const> AllArchitectures();

// By model_type, or by a class name such as "BertForMaskedLM"; one that claims the config comes
// first. Unsupported, with the list of what there is, otherwise.
Result<const Architecture*> FindArchitecture(std::string_view type, const std::string& config_name,
                                             const JsonValue* config = nullptr);

// Strips the prefix that stands before the anchor and brings old spellings up to date.
Status NormalizeNames(const Architecture& architecture, WeightReader& weights);

// True for the name of a tensor that nobody needs.
bool IsPassenger(const Architecture& architecture, std::string_view name);

// Tensors that nobody took: the passengers' names, or Corrupt with the name of one that is not.
Result<std::vector<std::string>> ListPassengers(const Architecture& architecture,
                                                const WeightReader& weights);

// Upper bounds of sizes in a config, far above any real model.
inline constexpr size_t kMostHidden = 1 << 16;
inline constexpr size_t kMostIntermediate = 1 << 20;
inline constexpr size_t kMostHeads = 1 << 10;
inline constexpr size_t kMostLayers = 1 << 10;
inline constexpr size_t kMostPositions = 1 << 24;
inline constexpr size_t kMostVocabulary = 1 << 26;

// `stem`.weight and `stem`.bias
LinearRef Dense(const std::string& stem);
NormRef Norm(const std::string& stem);

// The same without a bias, or a norm without a shift, unless `has`.
LinearRef DenseWith(const std::string& stem, bool has);
NormRef NormWith(const std::string& stem, bool has);

// Outputs [index * count, (index + 1) * count) of a fused layer of `parts` times `count`.
LinearRef PartOf(LinearRef fused, size_t index, size_t count, size_t parts);

// The keys of the sizes that every encoder has; an empty one is not read.
struct SizeKeys {
  std::string_view hidden = "hidden_size";
  std::string_view heads = "num_attention_heads";
  std::string_view layers = "num_hidden_layers";
  std::string_view intermediate = "intermediate_size";
  std::string_view positions = "max_position_embeddings";
  std::string_view head_dim = {};  // a key for the columns of a head, and what it is without
  size_t absent_head_dim = 0;      // 0: hidden / heads
};

// Sizes of hidden rows, heads, feed-forward, layers (empty ones), vocabulary and position table.
EncoderSpec ReadSizes(Config& config, const SizeKeys& keys);

// No position table: as many tokens as there are positions, within what tables of angles admit.
void UseRotaryPositions(EncoderSpec* spec);

}  // namespace pozor

#endif  // POZOR_MODELS_ARCHITECTURES_ARCHITECTURE_H_
