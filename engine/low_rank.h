// Weights with low-rank updates that are added while they are read (Hu et al. 2021, LoRA).
#ifndef POZOR_ENGINE_LOW_RANK_H_
#define POZOR_ENGINE_LOW_RANK_H_

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/weights.h"
#include "pozor/status.h"

namespace pozor {

// W + scale * L R for a weight W [rows, cols], with the matrices L and R at one place of two
// stacks.
struct LowRankUpdate {
  const TensorInfo* left = nullptr;   // of the source: [stack, rows, rank]
  const TensorInfo* right = nullptr;  // of the source: [stack, rank, cols]
  size_t index = 0;                   // place in the stacks
  double scale = 1;
};

// Reads as `source` does, but for the weights that have an update. Sums are in double precision,
// rounded once, so a value does not depend on the range that is read. Holds no weights of its own.
class LowRankSource : public TensorSource {
 public:
  // `updates` by the tensor of `source` they belong to. Those tensors are no longer in place (Map),
  // and the tensors of the updates are no longer listed. Corrupt if shapes do not go together.
  static Result<std::shared_ptr<const TensorSource>> Create(
      std::shared_ptr<const TensorSource> source,
      const std::map<const TensorInfo*, LowRankUpdate>& updates,
      const std::vector<const TensorInfo*>& unlisted);

  std::span<const TensorInfo> tensors() const override { return tensors_; }
  Status Read(const TensorInfo& tensor, size_t begin, size_t count, float* out) const override;
  const float* Map(const TensorInfo& tensor) const override;
  void Release(const TensorInfo& tensor) const override { source_->Release(tensor); }
  const std::string& description() const override { return source_->description(); }

 private:
  explicit LowRankSource(std::shared_ptr<const TensorSource> source) : source_(std::move(source)) {}

  std::shared_ptr<const TensorSource> source_;
  std::vector<TensorInfo> tensors_;
  std::map<size_t, LowRankUpdate> updates_;  // by source_index
};

}  // namespace pozor

#endif  // POZOR_ENGINE_LOW_RANK_H_
