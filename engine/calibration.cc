#include "engine/calibration.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <string>
#include <utility>

#include "engine/executor.h"
#include "engine/memory.h"
#include "engine/parallel.h"

namespace pozor {
namespace {

// Texts are taken together up to this many tokens. It fixes the order of the sums.
constexpr size_t kPieceTokens = 256;

// Consecutive texts.
std::vector<TokenBatch> CutIntoPieces(const RaggedBatch& texts) {
  std::vector<TokenBatch> pieces;
  for (size_t text = 0; text < texts.texts(); ++text) {
    const auto begin = static_cast<size_t>(texts.starts[text]);
    const size_t length = texts.length(text);
    if (pieces.empty() || pieces.back().ids.size() + length > kPieceTokens) pieces.emplace_back();
    const int32_t starts[] = {0, static_cast<int32_t>(length)};
    pieces.back().Append({texts.ids.subspan(begin, length),
                          texts.types.empty() ? texts.types : texts.types.subspan(begin, length),
                          starts});
  }
  return pieces;
}

// Experts that no row goes to have inputs of 0.
Calibration Nothing(const EncoderSpec& spec) {
  Calibration nothing(spec.layers.size());
  for (size_t l = 0; l < nothing.size(); ++l) {
    for (size_t e = 0; e < spec.layers[l].experts.count; ++e) {
      ChannelStatistics none;
      none.min.resize(spec.intermediate);
      none.max.resize(spec.intermediate);
      none.sum.resize(spec.intermediate);
      nothing[l].experts.push_back(std::move(none));
    }
  }
  return nothing;
}

Calibration Observe(const Encoder& encoder, const RaggedBatch& piece, Workspace& workspace) {
  Calibration seen = Nothing(encoder.spec());
  Sinks sinks;
  sinks.product_inputs = [&](size_t layer, ProductKind kind, MatView<const float> x) {
    seen[layer][kind].Add(x);
  };
  sinks.expert_inputs = [&](size_t layer, size_t expert, MatView<const float> x) {
    seen[layer].experts[expert].Add(x);
  };
  encoder.Forward(piece, workspace, sinks);
  return seen;
}

bool AllFinite(const ChannelStatistics& statistics) {
  for (size_t c = 0; c < statistics.sum.size(); ++c) {
    if (!std::isfinite(statistics.sum[c])) return false;
  }
  return true;
}

Status CheckFinite(const Calibration& calibration) {
  for (size_t layer = 0; layer < calibration.size(); ++layer) {
    bool finite = true;
    for (const ChannelStatistics& statistics : calibration[layer].products) {
      finite = finite && AllFinite(statistics);
    }
    for (const ChannelStatistics& statistics : calibration[layer].experts) {
      finite = finite && AllFinite(statistics);
    }
    if (!finite) {
      return Corrupt("calibration: layer " + std::to_string(layer) +
                     " has inputs that are not finite; check the model's weights");
    }
  }
  return {};
}

}  // namespace

// A NaN is never smaller or larger, but it stays in the sum.
void ChannelStatistics::Add(MatView<const float> x) {
  if (x.rows == 0) return;
  if (rows == 0) {
    min.assign(x.Row(0), x.Row(0) + x.cols);
    max = min;
    sum.assign(x.cols, 0.0);
  }
  for (size_t r = 0; r < x.rows; ++r) {
    const float* row = x.Row(r);
    for (size_t c = 0; c < x.cols; ++c) {
      min[c] = std::min(min[c], row[c]);
      max[c] = std::max(max[c], row[c]);
      sum[c] += static_cast<double>(row[c]);
    }
  }
  rows += x.rows;
}

void ChannelStatistics::Add(const ChannelStatistics& other) {
  if (other.rows == 0) return;
  if (rows == 0) {
    *this = other;
    return;
  }
  for (size_t c = 0; c < sum.size(); ++c) {
    min[c] = std::min(min[c], other.min[c]);
    max[c] = std::max(max[c], other.max[c]);
    sum[c] += other.sum[c];
  }
  rows += other.rows;
}

void LayerStatistics::Add(const LayerStatistics& other) {
  for (size_t kind = 0; kind < kProductKinds; ++kind) products[kind].Add(other.products[kind]);
  for (size_t e = 0; e < experts.size(); ++e) experts[e].Add(other.experts[e]);
}

float ChannelStatistics::Largest(size_t channel) const {
  return rows == 0 ? 0.0f : std::max(std::fabs(min[channel]), std::fabs(max[channel]));
}

Result<Calibration> Calibrate(const Encoder& encoder, const RaggedBatch& texts, size_t threads) {
  POZOR_RETURN_IF_ERROR(encoder.CheckBatch(texts));
  Calibration total = Nothing(encoder.spec());
  const Status status = Guarded([&]() -> Status {
    const std::vector<TokenBatch> pieces = CutIntoPieces(texts);
    std::vector<Calibration> seen(pieces.size());
    std::atomic<size_t> next{0};
    FirstError error;
    RunTeam(std::min(ThreadsFor(threads), pieces.size()), [&](size_t) {
      Workspace workspace;
      for (size_t i = next++; i < pieces.size() && !error.stopped(); i = next++) {
        error.Set(Guarded([&]() -> Status {
          seen[i] = Observe(encoder, pieces[i].View(), workspace);
          return {};
        }));
      }
    });
    POZOR_RETURN_IF_ERROR(error.Take());
    for (const Calibration& piece : seen) {
      for (size_t layer = 0; layer < total.size(); ++layer) total[layer].Add(piece[layer]);
    }
    return CheckFinite(total);
  });
  if (!status.ok()) return status;
  return total;
}

TokenBatch RandomCalibrationTokens(const EncoderSpec& spec, size_t longest_text) {
  constexpr size_t kTokens = 2000, kLongest = 32;
  const size_t length = std::clamp<size_t>(longest_text, 1, kLongest);
  TokenBatch batch;
  uint64_t state = 1;
  while (batch.ids.size() < kTokens) {
    for (size_t t = 0; t < length; ++t) {
      state = state * 6364136223846793005u + 1442695040888963407u;  // Knuth, MMIX
      batch.ids.push_back(static_cast<int32_t>((state >> 33) % spec.embeddings.vocab_size));
    }
    batch.EndText();
  }
  return batch;
}

}  // namespace pozor
