// Packs the parameters of an encoder; Encoder::Create is its only user.
#ifndef POZOR_ENGINE_ENCODER_LOADER_H_
#define POZOR_ENGINE_ENCODER_LOADER_H_

#include <cstddef>
#include <span>

#include "engine/forward.h"
#include "engine/linear.h"
#include "engine/relative_positions.h"
#include "engine/spec.h"
#include "engine/weights.h"

namespace pozor {

// Walks all parameters of a spec twice in the same order: the first time it checks that each
// exists in the right shape and adds up the memory, the second time it fills that memory.
class EncoderLoader {
 public:
  EncoderLoader(WeightReader& weights, Encoder::Impl& model) : weights_(weights), model_(model) {}

  Status Check() {
    packing_ = false;
    return Walk();
  }
  Status Pack(bool huge_pages) {
    packing_ = true;
    model_.arena.Reset(bytes_, huge_pages);
    return Walk();
  }
  size_t bytes() const { return bytes_; }

 private:
  Status Walk();
  Status Embeddings();
  Status PositionTable();
  Status Layer(size_t l);
  Status Positions(const LayerSpec& ref, LayerWeights* layer);
  Status PositionScores(const LinearRef& ref, float scale, Linear* scores);
  Status RelativeTable();
  Status Convolution();
  Status Attention(size_t l, LayerWeights* layer);
  Status Bottleneck(const LayerSpec& ref, LayerWeights* layer);
  Status ScoreBiases();
  Status Rotations();
  Status StoredRotation(const RotarySpec& rotary, float* table);
  Status Product(std::span<const LinearBlock> blocks, size_t in, Activation activation,
                 Linear* linear, NumberFormat format = NumberFormat::kF32);
  Status FeedForward(size_t l, LayerWeights* layer);
  Status Experts(size_t l, ExpertWeights* experts);
  Status Norm(const NormRef& ref, size_t cols, NormWeights* norm, float scale = 1);
  Status LayerNorms(const LayerSpec& ref, LayerWeights* layer);
  Status Table(const TensorRef& ref, size_t rows, size_t cols, const float** table);
  Status Vector(const TensorRef& ref, size_t cols, float offset, float scale, const float** vector);
  float* Take(size_t floats);

  WeightReader& weights_;
  Encoder::Impl& model_;
  RelativePositions relative_positions_;
  bool packing_ = false;
  size_t bytes_ = 0;
};

}  // namespace pozor

#endif  // POZOR_ENGINE_ENCODER_LOADER_H_
