#include "tools/attention/transform.h"

#include <algorithm>

namespace pozor::tools {
namespace {

constexpr size_t kRowsAtOnce = 64;

// Drops and merges tokens. Rows of one matrix arrive in order; the next matrix begins when its
// first row does.
class UnitMerger {
 public:
  UnitMerger(const AttentionRecord& record, const TransformOptions& options,
             std::vector<Unit> units, const UnitSink& sink)
      : options_(options), units_(std::move(units)), sink_(sink) {
    unit_of_.assign(record.text.size(), units_.size());
    for (size_t u = 0; u < units_.size(); ++u) {
      std::fill(unit_of_.begin() + static_cast<std::ptrdiff_t>(units_[u].first),
                unit_of_.begin() + static_cast<std::ptrdiff_t>(units_[u].past_end), u);
    }
    whole_rows_ = options.reduction == Reduction::kCls;
  }

  // Row of token `token` of a matrix, [tokens].
  Status Add(size_t layer, size_t head, size_t token, const float* row) {
    const size_t unit = unit_of_[token];
    if (unit == units_.size() && !whole_rows_) return Status();
    if (rows_ > 0 && (layer != layer_ || head != head_ || rows_ == kRowsAtOnce)) {
      POZOR_RETURN_IF_ERROR(Flush());
    }
    layer_ = layer;
    head_ = head;
    Merge(row);
    if (whole_rows_) return EndRow(token, 1);
    const size_t piece = token - units_[unit].first;
    Accumulate(piece);
    if (token + 1 < units_[unit].past_end) return Status();
    const bool mean = options_.words == WordRows::kMean;
    return EndRow(unit, mean ? static_cast<double>(piece + 1) : 1);
  }

  Status Flush() {
    if (rows_ == 0) return Status();
    const UnitRows rows = {layer_,        head_,         row_begin_,   rows_,
                           units_.size(), units_.size(), block_.data()};
    rows_ = 0;
    const Status status = sink_(rows);
    block_.clear();
    return status;
  }

 private:
  void Merge(const float* row) {
    merged_.assign(units_.size(), 0.0f);
    for (size_t u = 0; u < units_.size(); ++u) {
      float sum = row[units_[u].first];
      for (size_t t = units_[u].first + 1; t < units_[u].past_end; ++t) sum += row[t];
      merged_[u] = sum;
    }
  }

  void Accumulate(size_t piece) {
    if (piece == 0) {
      row_ = merged_;
      return;
    }
    if (options_.words == WordRows::kFirst) return;
    for (size_t u = 0; u < merged_.size(); ++u) {
      row_[u] =
          options_.words == WordRows::kMax ? std::max(row_[u], merged_[u]) : row_[u] + merged_[u];
    }
  }

  Status EndRow(size_t row, double divisor) {
    std::vector<float>& done = whole_rows_ ? merged_ : row_;
    if (options_.renormalise) {
      double sum = 0;
      for (const float weight : done) sum += static_cast<double>(weight);
      divisor = sum > 0 ? sum : 1;
    }
    if (divisor != 1) {
      for (float& weight : done) weight = static_cast<float>(static_cast<double>(weight) / divisor);
    }
    if (rows_ == 0) row_begin_ = row;
    block_.insert(block_.end(), done.begin(), done.end());
    ++rows_;
    return Status();
  }

  const TransformOptions& options_;
  const std::vector<Unit> units_;
  const UnitSink& sink_;
  std::vector<size_t> unit_of_;  // [tokens]; past the end: dropped
  bool whole_rows_ = false;      // rows are of tokens, only columns are merged
  std::vector<float> merged_, row_, block_;
  size_t layer_ = 0, head_ = 0, row_begin_ = 0, rows_ = 0;
};

// Mean or maximum over the heads of a layer; their blocks come one after another.
class HeadReducer {
 public:
  HeadReducer(const HeadSet& heads, bool mean, AttentionSink sink)
      : heads_(heads), mean_(mean), sink_(std::move(sink)) {}

  Status Add(const AttentionRows& rows) {
    const std::vector<size_t>& heads = heads_.heads[heads_.LayerIndex(rows.layer)];
    const size_t size = rows.queries * rows.keys;
    const bool first = rows.head == heads.front();
    sum_.resize(size);
    for (size_t i = 0; i < rows.queries; ++i) {
      float* to = sum_.data() + i * rows.keys;
      const float* from = rows.Row(i);
      for (size_t j = 0; j < rows.keys; ++j) {
        to[j] = first ? from[j] : mean_ ? to[j] + from[j] : std::max(to[j], from[j]);
      }
    }
    if (rows.head != heads.back()) return Status();
    const float count = mean_ ? static_cast<float>(heads.size()) : 1.0f;
    for (float& weight : sum_) weight /= count;
    return sink_(
        {rows.layer, 0, rows.query_begin, rows.queries, rows.keys, rows.keys, sum_.data()});
  }

 private:
  const HeadSet& heads_;
  bool mean_;
  AttentionSink sink_;
  std::vector<float> sum_;
};

// Attention rollout (Abnar and Zuidema 2020): R_l = (A_l + I) / 2 R_(l-1), A_l the mean of the
// heads. Takes the means layer by layer; rows of the last layer go on.
class Rollout {
 public:
  Rollout(size_t tokens, size_t last_layer, AttentionSink sink)
      : tokens_(tokens), last_layer_(last_layer), sink_(std::move(sink)) {}

  Status Add(const AttentionRows& rows) {
    if (rows.layer != layer_ || !begun_) NextLayer(rows.layer);
    for (size_t i = 0; i < rows.queries; ++i) {
      const size_t query = rows.query_begin + i;
      float* out = next_.data() + query * tokens_;
      std::fill_n(out, tokens_, 0.0f);
      AddMultiple(0.5f, query, out);
      for (size_t j = 0; j < tokens_; ++j) {
        if (rows.Row(i)[j] != 0) AddMultiple(0.5f * rows.Row(i)[j], j, out);
      }
    }
    if (rows.layer != last_layer_) return Status();
    return sink_({0, 0, rows.query_begin, rows.queries, tokens_, tokens_,
                  next_.data() + rows.query_begin * tokens_});
  }

 private:
  void NextLayer(size_t layer) {
    if (begun_) before_.swap(next_);
    next_.resize(tokens_ * tokens_);
    identity_ = !begun_;
    begun_ = true;
    layer_ = layer;
  }
  // out += factor * row of R_(l-1)
  void AddMultiple(float factor, size_t row, float* out) const {
    if (identity_) {
      out[row] += factor;
      return;
    }
    const float* from = before_.data() + row * tokens_;
    for (size_t j = 0; j < tokens_; ++j) out[j] += factor * from[j];
  }

  const size_t tokens_, last_layer_;
  AttentionSink sink_;
  bool begun_ = false, identity_ = true;
  size_t layer_ = 0;
  std::vector<float> before_, next_;  // [tokens, tokens]
};

Status CheckOptions(const TransformOptions& options) {
  const bool rows = options.row_begin != 0 || options.row_end != SIZE_MAX;
  if (rows && (options.words || options.no_special || options.reduction == Reduction::kRollout ||
               options.reduction == Reduction::kCls)) {
    return InvalidArgument(
        "--rows: counts tokens of the whole text; leave out --words, --no-special and --reduce "
        "rollout or cls, or --rows");
  }
  return Status();
}

Status CheckRolloutMemory(size_t tokens, const TransformOptions& options) {
  const size_t bytes = 2 * tokens * tokens * sizeof(float);
  if (options.reduction != Reduction::kRollout || options.max_memory == 0 ||
      bytes <= options.max_memory) {
    return Status();
  }
  return ResourceExhausted("--reduce rollout: two matrices of " + std::to_string(tokens) +
                           " tokens need " + std::to_string(bytes >> 20) +
                           " MB, more than --max-memory; shorten the text or raise it");
}

}  // namespace

std::string_view ReductionName(Reduction reduction) {
  constexpr std::string_view kNames[] = {"none", "mean-heads", "max-heads", "rollout", "cls"};
  return kNames[static_cast<size_t>(reduction)];
}

std::vector<Unit> MakeUnits(const TextRecord& text, const TransformOptions& options) {
  std::vector<Unit> units;
  for (size_t t = 0; t < text.size(); ++t) {
    if (options.no_special && text.tokens.special[t] != 0) continue;
    const int32_t word = text.word[t];
    if (!options.words || word < 0) {
      units.push_back({text.tokens.tokens[t], t, t + 1, word});
      continue;
    }
    const Word& whole = text.words[static_cast<size_t>(word)];
    if (t == whole.first) units.push_back({WordText(text, whole), t, whole.past_end, word});
  }
  return units;
}

Result<TransformShape> ShapeOf(const AttentionRecord& record, const TransformOptions& options) {
  POZOR_RETURN_IF_ERROR(CheckOptions(options));
  TransformShape shape;
  shape.units = MakeUnits(record.text, options);
  shape.columns = shape.units.size();
  const size_t end = std::min(options.row_end, shape.columns);
  if (options.row_begin > end) {
    return InvalidArgument("--rows: begin at " + std::to_string(options.row_begin) +
                           ", the text has " + std::to_string(shape.columns) +
                           " tokens; choose among these");
  }
  shape.rows = options.reduction == Reduction::kCls ? std::min<size_t>(1, record.text.size())
                                                    : end - options.row_begin;
  switch (options.reduction) {
    case Reduction::kNone:
    case Reduction::kCls:
      shape.matrices = record.heads.Pairs();
      break;
    case Reduction::kMeanHeads:
    case Reduction::kMaxHeads:
      shape.per_head = false;
      for (const size_t layer : record.heads.layers) shape.matrices.emplace_back(layer, 0);
      break;
    case Reduction::kRollout:
      shape.per_head = shape.per_layer = false;
      shape.matrices = {{0, 0}};
      break;
  }
  return shape;
}

Status StreamTransformed(AttentionSource& source, const TransformOptions& options,
                         const UnitSink& sink) {
  POZOR_RETURN_IF_ERROR(CheckOptions(options));
  const AttentionRecord& record = source.record();
  POZOR_RETURN_IF_ERROR(CheckRolloutMemory(record.text.size(), options));
  UnitMerger merger(record, options, MakeUnits(record.text, options), sink);
  const bool as_they_are = !options.words && !options.no_special && !options.renormalise;
  const AttentionSink merge = [&](const AttentionRows& rows) {
    if (as_they_are) {
      return sink({rows.layer, rows.head, rows.query_begin, rows.queries, rows.keys, rows.stride,
                   rows.weights});
    }
    for (size_t i = 0; i < rows.queries; ++i) {
      POZOR_RETURN_IF_ERROR(merger.Add(rows.layer, rows.head, rows.query_begin + i, rows.Row(i)));
    }
    return Status();
  };
  StreamOptions stream;
  stream.query_begin = options.row_begin;
  stream.query_end = options.reduction == Reduction::kCls ? 1 : options.row_end;
  AttentionSink first = merge;
  Rollout rollout(record.text.size(), record.heads.layers.back(), merge);
  const AttentionSink roll = [&](const AttentionRows& rows) { return rollout.Add(rows); };
  HeadReducer reducer(record.heads, options.reduction != Reduction::kMaxHeads,
                      options.reduction == Reduction::kRollout ? roll : merge);
  if (options.reduction != Reduction::kNone && options.reduction != Reduction::kCls) {
    stream.heads_together = true;
    first = [&](const AttentionRows& rows) { return reducer.Add(rows); };
  }
  POZOR_RETURN_IF_ERROR(source.Stream(stream, first));
  return merger.Flush();
}

}  // namespace pozor::tools
