#include "models/heads.h"

#include <algorithm>

#include "kernels/norm.h"

namespace pozor {
namespace {

// x: [in], y: [out]; for a normalising step they are the same.
void ApplyStep(const HeadStep& step, std::vector<float>* vector, std::vector<float>* spare) {
  const size_t size = vector->size();
  switch (step.kind) {
    case HeadKind::kNormalize:
      L2Normalize(vector->data(), size);
      return;
    case HeadKind::kLayerNorm: {
      NormArgs args;
      args.x = vector->data();
      args.x_stride = size;
      args.gamma = step.gamma.data();
      args.beta = step.beta.data();
      args.epsilon = step.epsilon;
      args.rows = 1;
      args.cols = size;
      args.out = vector->data();
      args.out_stride = size;
      LayerNorm(args);
      return;
    }
    case HeadKind::kDense:
      spare->resize(step.dense.out());
      step.dense.Apply({vector->data(), 1, size, size},
                       {spare->data(), 1, spare->size(), spare->size()});
      vector->swap(*spare);
      return;
  }
}

}  // namespace

void Head::Apply(MatView<const float> rows, size_t first, const VectorOptions& options,
                 float* out) const {
  // Kept from text to text: the steady state allocates nothing.
  static thread_local std::vector<float> vector, spare;
  vector.resize(poolings.size() * hidden);
  for (size_t i = 0; i < poolings.size(); ++i) {
    Pool(poolings[i], rows.data, rows.stride, first, rows.rows, hidden, vector.data() + i * hidden);
  }
  size_t count = steps.size();
  if (options.keep_length) {
    while (count > 0 && steps[count - 1].kind == HeadKind::kNormalize) --count;
  }
  for (size_t i = 0; i < count; ++i) ApplyStep(steps[i], &vector, &spare);
  const size_t size = options.truncate_dim == 0 ? dimensions : options.truncate_dim;
  std::copy_n(vector.data(), size, out);
  if (options.normalize) L2Normalize(out, size);
}

std::string Head::PoolingNames() const {
  std::string names;
  for (Pooling pooling : poolings) {
    names += (names.empty() ? "" : " + ") + std::string(PoolingName(pooling));
  }
  return names;
}

std::string_view PoolingName(Pooling pooling) {
  switch (pooling) {
    case Pooling::kCls:
      return "cls";
    case Pooling::kMax:
      return "max";
    case Pooling::kMean:
      return "mean";
    case Pooling::kMeanSqrt:
      return "mean_sqrt_len_tokens";
    case Pooling::kWeightedMean:
      return "weightedmean";
    case Pooling::kLastToken:
      return "lasttoken";
  }
  return "?";
}

}  // namespace pozor
