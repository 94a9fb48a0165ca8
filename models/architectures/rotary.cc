#include "models/architectures/rotary.h"

#include <cmath>
#include <string>

namespace pozor {
namespace {

constexpr std::string_view kTheta = "base of the rotary frequencies";

// Positions over a constant (linear), or as they are (default); others change with the frequency
// or with the length of the text.
void ReadScaling(Config& config, const std::string& stem, size_t columns, RotarySpec* rotary) {
  const std::string key = config.Has(stem + ".rope_type") ? ".rope_type" : ".type";
  const std::string type = config.TextOr(stem + key, "default",
                                         "default: positions as they are; linear: over a factor; "
                                         "ntk: larger theta, lower frequencies");
  if (type == "linear") {
    rotary->frequency_scale =
        1.0 / static_cast<double>(config.PositiveOr(stem + ".factor", 1, "positions over it"));
  } else if (type == "ntk") {
    const auto factor = static_cast<double>(
        config.PositiveOr(stem + ".factor", 1, "theta times it, frequencies lower"));
    rotary->theta *= factor;
    rotary->frequency_scale = std::pow(factor, -2.0 / static_cast<double>(columns));
  } else if (type != "default") {
    config.Fail(Unsupported(config.name() + ": " + stem + key + " is \"" + type +
                            "\", this scaling of rotary positions is not supported; use another "
                            "model"));
  }
}

// Files of two versions of transformers state the base under a key of each.
void RefuseTwoBases(Config& config, std::string_view key, const std::string& other) {
  if (!config.Has(key) || !config.Has(other)) return;
  const float a = config.PositiveOr(key, 1, kTheta), b = config.PositiveOr(other, 1, kTheta);
  if (a == b) return;
  config.Fail(Unsupported(config.name() + ": " + std::string(key) + " " + std::to_string(a) +
                          " and " + other + " " + std::to_string(b) +
                          " are two bases of one rotation; leave one of them out"));
}

}  // namespace

RotarySpec ReadRotary(Config& config, size_t head_dim, const RotaryKeys& keys) {
  RotarySpec rotary;
  rotary.theta = static_cast<double>(config.PositiveOr(keys.theta, keys.absent_theta, kTheta));
  float part = config.PositiveOr("partial_rotary_factor", 1, "part of a head that turns");
  if (config.Has("rope_parameters")) {
    std::string stem = "rope_parameters";
    const std::string own = stem + "." + std::string(keys.layer_type);
    if (config.Has(own)) stem = own;
    RefuseTwoBases(config, keys.theta, stem + ".rope_theta");
    rotary.theta =
        static_cast<double>(config.PositiveOr(stem + ".rope_theta", rotary.theta, kTheta));
    part = config.PositiveOr(stem + ".partial_rotary_factor", static_cast<double>(part),
                             "part of a head that turns");
    ReadScaling(config, stem, head_dim, &rotary);
  } else if (config.Has(keys.scaling)) {
    ReadScaling(config, std::string(keys.scaling), head_dim, &rotary);
  }
  config.Ignore({&keys.scaling, 1}, "none, or said by rope_parameters");
  rotary.columns = static_cast<size_t>(static_cast<double>(head_dim) * static_cast<double>(part));
  if (part > 1 || rotary.columns == 0 || rotary.columns % 2 != 0) {
    config.Fail(Unsupported(config.name() + ": rotation of " + std::to_string(rotary.columns) +
                            " of the " + std::to_string(head_dim) +
                            " columns of a head is not supported; use another model"));
  }
  return rotary;
}

}  // namespace pozor
