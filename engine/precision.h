// Which number format each product of an encoder runs in.
#ifndef POZOR_ENGINE_PRECISION_H_
#define POZOR_ENGINE_PRECISION_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/spec.h"

namespace pozor {

// Stored in prepared files: never renumber.
// kBf16x3: f32 values in two bf16 parts, three products of them. Near f32, and only AMX has it.
enum class NumberFormat : uint8_t { kF32 = 0, kBf16 = 1, kInt8 = 2, kBf16x3 = 3 };
std::string_view NumberFormatName(NumberFormat format);

// The products of a layer. kAttention is Q K^T and P V together; kUp is the gate's product as well.
enum class ProductKind : uint8_t { kQkv, kAttention, kOutput, kUp, kDown };
inline constexpr size_t kProductKinds = 5;
// "qkv", "attention", "output", "up", "down"
std::string_view ProductName(ProductKind kind);

// One choice, and why it is not the plain one.
struct ProductChoice {
  NumberFormat format = NumberFormat::kF32;
  std::string reason;
};

struct LayerPrecision {
  std::array<ProductChoice, kProductKinds> products;

  ProductChoice& operator[](ProductKind kind) { return products[static_cast<size_t>(kind)]; }
  const ProductChoice& operator[](ProductKind kind) const {
    return products[static_cast<size_t>(kind)];
  }
  bool IsInt8(ProductKind kind) const { return (*this)[kind].format == NumberFormat::kInt8; }
};

// A choice for each layer; empty: everything in f32.
using PrecisionPlan = std::vector<LayerPrecision>;

// True if a constant may be added to every key of the layer without changing what attention gives:
// scores move alike in a row, and softmax does not see it. Not if keys turn with their position,
// are normed, or are scored by anything but their query.
bool KeysShiftFreely(const EncoderSpec& spec, const LayerSpec& layer);

// Every product in int8, but for what int8 cannot compute exactly as the model defines it; the
// reason says so.
PrecisionPlan Int8Plan(const EncoderSpec& spec);

// Every product with weights in bf16; attention's own in f32.
PrecisionPlan Bf16Plan(const EncoderSpec& spec);

// Every product with weights in bf16x3 if the active tier runs it, else in f32, and the reasons say
// so; attention's own in f32.
PrecisionPlan Bf16x3Plan(const EncoderSpec& spec, bool runs);

// Makes choices agree: attention's integers are made of keys around their mean, which only an int8
// product of Q, K and V gives.
void CompletePlan(PrecisionPlan* plan);

// Whether the plan, one that Pozor did not make perhaps, has every product in a format that
// Int8Plan or Bf16Plan has it in, or in f32, and its choices agree.
bool CanHavePlan(const EncoderSpec& spec, const PrecisionPlan& plan);

}  // namespace pozor

#endif  // POZOR_ENGINE_PRECISION_H_
