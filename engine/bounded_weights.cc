#include "engine/bounded_weights.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <new>
#include <utility>

#include "engine/executor.h"
#include "engine/forward.h"
#include "engine/parallel.h"

namespace pozor {

BoundedWeights::BoundedWeights(const PackedMatrix& matrix)
    : panels_(matrix.panel_count() * PackedPanelBytes(matrix.layout, matrix.k)) {
  const size_t panel_bytes = PackedPanelBytes(matrix.layout, matrix.k);
  const size_t most = MaxRestFours(matrix.k);
  AlignedBuffer fours(2 * most * sizeof(RestFour));
  std::vector<uint32_t> counts(matrix.groups());
  starts_.reserve(matrix.panel_count() * matrix.groups() + 1);
  starts_.push_back(0);
  for (size_t panel = 0; panel < matrix.panel_count(); ++panel) {
    RestFour* found = fours.As<RestFour>();
    const size_t count = BoundPanel({.matrix = &matrix,
                                     .panel = panel,
                                     .bounded = panels_.As<int8_t>() + panel * panel_bytes,
                                     .counts = counts.data(),
                                     .rests = found,
                                     .scratch = found + most});
    rests_.insert(rests_.end(), found, found + count);
    for (const uint32_t of_group : counts) starts_.push_back(starts_.back() + of_group);
  }
  rests_.shrink_to_fit();
}

BoundedS8 BoundedWeights::view() const {
  return {panels_.As<const int8_t>(), starts_.data(), rests_.data()};
}

namespace {

// What an encoder keeps of them: its matrices point at the views.
struct Kept {
  struct Matrix {
    explicit Matrix(const PackedMatrix& matrix) : weights(matrix), view(weights.view()) {}
    const BoundedWeights weights;
    const BoundedS8 view;
  };
  std::vector<std::unique_ptr<const Matrix>> matrices;
  std::shared_ptr<const void> other;  // that the model held before
};

std::vector<Linear*> ProductsOf(LayerWeights& layer) {
  std::vector<Linear*> products = {
      &layer.qkv,    &layer.value,    &layer.global_qkv,      &layer.ffn_gate,
      &layer.ffn_up, &layer.ffn_down, &layer.attention_output};
  for (Linear& expert : layer.experts.up) products.push_back(&expert);
  for (Linear& expert : layer.experts.down) products.push_back(&expert);
  return products;
}

}  // namespace

Status BoundInt8Weights(Encoder::Impl& model, const ReleaseFunction& release, size_t threads) try {
  if (!model.has_int8() || !PrefersBoundedS8()) return {};
  std::map<const void*, std::vector<Linear*>> products;  // by weights, which layers may share
  for (LayerWeights& layer : model.layers) {
    for (Linear* product : ProductsOf(layer)) {
      const bool fits = product->present() && product->is_int8();
      if (!fits || product->in() > kMaxBoundedInputs) continue;
      products[product->matrix().panels].push_back(product);
    }
  }
  std::vector<const std::vector<Linear*>*> lists;
  for (const auto& [panels, list] : products) lists.push_back(&list);
  auto kept = std::make_shared<Kept>();
  kept->matrices.resize(lists.size());
  std::atomic<size_t> next{0};
  FirstError error;
  RunTeam(std::min(ThreadsFor(threads), lists.size()), [&](size_t) {
    for (size_t i = next++; i < lists.size() && !error.stopped(); i = next++) {
      error.Set(Guarded([&]() -> Status {
        const PackedMatrix matrix = lists[i]->front()->matrix();
        kept->matrices[i] = std::make_unique<Kept::Matrix>(matrix);
        for (Linear* product : *lists[i]) product->SetBounded(&kept->matrices[i]->view);
        const size_t panel_bytes = PackedPanelBytes(matrix.layout, matrix.k);
        if (release) release(matrix.panels, matrix.panel_count() * panel_bytes);
        return {};
      }));
    }
  });
  POZOR_RETURN_IF_ERROR(error.Take());
  kept->other = std::move(model.holder);
  model.holder = std::move(kept);
  return {};
} catch (const std::bad_alloc&) {
  return ResourceExhausted("memory: the system has too little for the model; free some");
}

}  // namespace pozor
