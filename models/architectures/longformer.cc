// Longformer (Beltagy et al. 2020): RoBERTa whose tokens see a window; global tokens see and are
// seen by all.
#include <string>

#include "models/architectures/bert_family.h"

namespace pozor {
namespace {

// Window of every layer, in tokens to either side.
std::vector<size_t> ReadWindows(Config& config, size_t layers) {
  const std::vector<size_t> widths = config.SizesOr(
      "attention_window", 512, layers, kMostPositions,
      "width of the window of each layer: half of it to either side, besides the token");
  std::vector<size_t> windows;
  for (const size_t width : widths) {
    windows.push_back(width / 2);
    if (width > 0 && width % 2 == 0) continue;
    config.Fail(Unsupported(config.name() + ": attention_window " + std::to_string(width) +
                            " is not even and positive; check the configuration"));
  }
  return windows;
}

EncoderSpec MakeSpec(Config& config, const WeightReader&) {
  EncoderSpec spec = BertSpec(config);
  CountPositionsFromPad(config, &spec);
  config.Refuse("attention_mode", "this kind of attention", {"longformer"});
  config.Refuse("attention_dilation", "a window with gaps");
  config.Refuse("autoregressive", "a causal mask");
  constexpr std::string_view kNoEffect[] = {"onnx_export", "ignore_attention_mask"};
  config.Ignore(kNoEffect, "without effect on hidden states");
  const std::vector<size_t> windows = ReadWindows(config, spec.layers.size());
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    const std::string self = "encoder.layer." + std::to_string(i) + ".attention.self.";
    spec.layers[i].window = windows[i];
    spec.layers[i].global_query = Dense(self + "query_global");
    spec.layers[i].global_key = Dense(self + "key_global");
    spec.layers[i].global_value = Dense(self + "value_global");
  }
  return spec;
}

}  // namespace

extern const Architecture kLongformer;
const Architecture kLongformer = {
    .model_type = "longformer",
    .class_name = "Longformer",
    .description = "Longformer",
    .make_spec = MakeSpec,
    .anchor = "embeddings.word_embeddings.weight",
    .passengers = kBertPassengers,
    .pooler_weight = "pooler.dense.weight",
    .pooler_bias = "pooler.dense.bias",
};

}  // namespace pozor
