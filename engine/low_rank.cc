#include "engine/low_rank.h"

#include <algorithm>
#include <utility>

namespace pozor {
namespace {

Status CheckShapes(const TensorInfo& weight, const LowRankUpdate& update) {
  const std::vector<size_t>&left = update.left->shape, &right = update.right->shape;
  const bool fit = weight.shape.size() == 2 && left.size() == 3 && right.size() == 3 &&
                   left[0] == right[0] && update.index < left[0] && left[1] == weight.shape[0] &&
                   left[2] == right[1] && left[2] > 0 && right[2] == weight.shape[1];
  if (fit) return {};
  return Corrupt("tensors '" + update.left->name + "' and '" + update.right->name +
                 "': their shapes are not those of an update of '" + weight.name +
                 "'; check lora_rank and lora_adaptations, or download the weights again");
}

// out[c] += scale * (left R)[c] for columns [begin, end) of one row, in double precision.
void AddRow(const float* left, const std::vector<float>& right, double scale, size_t cols,
            size_t begin, size_t end, std::vector<double>* sums, float* out) {
  const size_t rank = right.size() / cols;
  sums->assign(end - begin, 0.0);
  for (size_t k = 0; k < rank; ++k) {
    const double factor = left[k];
    const float* row = &right[k * cols + begin];
    for (size_t c = 0; c < end - begin; ++c) (*sums)[c] += factor * double{row[c]};
  }
  for (size_t c = 0; c < end - begin; ++c) {
    out[c] = static_cast<float>(double{out[c]} + scale * (*sums)[c]);
  }
}

}  // namespace

Result<std::shared_ptr<const TensorSource>> LowRankSource::Create(
    std::shared_ptr<const TensorSource> source,
    const std::map<const TensorInfo*, LowRankUpdate>& updates,
    const std::vector<const TensorInfo*>& unlisted) {
  std::shared_ptr<LowRankSource> made(new LowRankSource(std::move(source)));
  for (const auto& [weight, update] : updates) {
    POZOR_RETURN_IF_ERROR(CheckShapes(*weight, update));
    made->updates_[weight->source_index] = update;
  }
  for (const TensorInfo& tensor : made->source_->tensors()) {
    const bool hidden = std::find(unlisted.begin(), unlisted.end(), &tensor) != unlisted.end();
    if (!hidden) made->tensors_.push_back(tensor);
  }
  return std::shared_ptr<const TensorSource>(std::move(made));
}

Status LowRankSource::Read(const TensorInfo& tensor, size_t begin, size_t count, float* out) const {
  POZOR_RETURN_IF_ERROR(source_->Read(tensor, begin, count, out));
  const auto found = updates_.find(tensor.source_index);
  if (found == updates_.end() || count == 0) return {};
  const LowRankUpdate& update = found->second;
  const size_t rows = tensor.shape[0], cols = tensor.shape[1], rank = update.left->shape[2];
  const size_t first = begin / cols, end = (begin + count - 1) / cols + 1;
  std::vector<float> left((end - first) * rank), right(rank * cols);
  POZOR_RETURN_IF_ERROR(
      source_->Read(*update.left, (update.index * rows + first) * rank, left.size(), left.data()));
  POZOR_RETURN_IF_ERROR(
      source_->Read(*update.right, update.index * right.size(), right.size(), right.data()));
  std::vector<double> sums;
  for (size_t row = first; row < end; ++row) {
    const size_t from = std::max(begin, row * cols), to = std::min(begin + count, (row + 1) * cols);
    AddRow(&left[(row - first) * rank], right, update.scale, cols, from - row * cols,
           to - row * cols, &sums, out + (from - begin));
  }
  return {};
}

const float* LowRankSource::Map(const TensorInfo& tensor) const {
  return updates_.contains(tensor.source_index) ? nullptr : source_->Map(tensor);
}

}  // namespace pozor
