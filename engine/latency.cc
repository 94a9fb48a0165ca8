#include "engine/latency.h"

#include <algorithm>

namespace pozor {
namespace {

// With at least this many rows a worker, row blocks read the weights often enough; with fewer the
// workers share the columns.
constexpr size_t kRowsPerWorker = 16;

// A row block reads all weights of the model, and pays for that with its rows: as many blocks as
// workers, unless they are so high that cutting them costs nothing and evens out the work.
constexpr size_t kRowsPerBlock = 128;

// More column parts than workers, so that one who comes late or is held up does not hold up the
// rest; a part reads its own weights only.
constexpr size_t kPartsPerWorker = 2;

// Piece i of n of [0, size), cut at multiples of `unit`.
Range Piece(size_t size, size_t unit, size_t i, size_t n) {
  const size_t units = DivCeil(size, unit);
  return {std::min(units * i / n * unit, size), std::min(units * (i + 1) / n * unit, size)};
}

// Columns of a product are cut where the widest tiles end, if there are enough of them.
size_t PanelUnit(size_t panels, size_t pieces) {
  return panels >= 4 * pieces ? 4 : panels >= 2 * pieces ? 2 : 1;
}

}  // namespace

LatencyPass::LatencyPass(const Encoder::Impl& model, const RaggedBatch& batch, Workspace& workspace,
                         Profile* profile, size_t workers)
    : model_(model), batch_(batch), pass_(model, batch, workspace, profile, workers) {
  const size_t rows = batch.tokens();
  if (rows == 0) return;
  if (rows >= kRowsPerWorker * workers) {
    BuildRowBlocks(workers * DivCeil(rows, workers * kRowsPerBlock), workers);
  } else {
    BuildColumnParts(kPartsPerWorker * workers, workers);
  }
  graph_.Start(workers);
}

uint32_t LatencyPass::Add(const Task& task, size_t lane, std::span<const uint32_t> after) {
  const uint32_t node = graph_.Add(lane, after);
  tasks_.resize(node + 1);
  tasks_[node] = task;
  return node;
}

// Rows of all texts that have rows in `rows`.
Range LatencyPass::TextsOf(Range rows) const {
  Range whole = rows;
  for (size_t text = 0; text < batch_.texts(); ++text) {
    const auto begin = static_cast<size_t>(batch_.starts[text]);
    const size_t end = begin + batch_.length(text);
    if (end <= rows.begin || begin >= rows.end) continue;
    whole.begin = std::min(whole.begin, begin);
    whole.end = std::max(whole.end, end);
  }
  return whole;
}

void LatencyPass::BuildRowBlocks(size_t blocks, size_t workers) {
  const size_t layers = model_.layers.size();
  std::vector<Range> rows(blocks);
  std::vector<uint32_t> last(blocks);  // the task after which a block's rows of Q, K, V are there
  for (size_t b = 0; b < blocks; ++b) {
    rows[b] = Piece(pass_.rows(), 1, b, blocks);
    last[b] = Add({kEmbed | kNextQkv, 0, rows[b], {}}, b * workers / blocks, {});
  }
  for (size_t l = 0; l < layers; ++l) {
    std::vector<uint32_t> done(blocks);
    for (size_t b = 0; b < blocks; ++b) {
      const size_t lane = b * workers / blocks;
      const Range texts = TextsOf(rows[b]);
      std::vector<uint32_t> after;
      for (size_t other = 0; other < blocks; ++other) {
        if (rows[other].begin < texts.end && rows[other].end > texts.begin) {
          after.push_back(last[other]);
        }
      }
      uint32_t attended = last[b];
      if (!model_.Continues(l)) {
        attended =
            Add({kAttend | kContextBytes | kOutput | kAttentionNorm, l, rows[b], {}}, lane, after);
      }
      const uint32_t next = l + 1 < layers && !model_.Continues(l + 1) ? kNextQkv : 0u;
      done[b] = Add({kUp | kUpBytes | kDown | kFeedForwardNorm | next, l, rows[b], {}}, lane,
                    {&attended, 1});
    }
    last = done;
  }
}

void LatencyPass::BuildColumnParts(size_t parts, size_t workers) {
  const EncoderSpec& spec = model_.spec;
  const size_t group = spec.heads / model_.kv_heads();  // queries that share keys and values
  const size_t head_parts = std::min(parts, model_.kv_heads());
  // All parts of a stage wait for all parts of the stage before; `join` is done once between.
  const auto stage = [&](uint32_t stages, size_t l, size_t size, size_t unit, size_t count,
                         uint32_t before, uint32_t join = 0) {
    std::vector<uint32_t> added;
    for (size_t i = 0; i < count; ++i) {
      const Range columns = Piece(size, unit, i, count);
      if (columns.begin == columns.end) continue;
      added.push_back(
          Add({stages, l, {0, pass_.rows()}, columns}, i * workers / count, {&before, 1}));
    }
    const bool works = join != 0 && model_.has_int8();
    return works ? Add({join, l, {0, pass_.rows()}, {}}, 0, added) : graph_.Join(added);
  };
  const auto product = [&](uint32_t stages, size_t l, const Linear& linear, uint32_t before,
                           uint32_t join = 0) {
    const size_t panels = linear.panels();
    return stage(stages, l, panels, PanelUnit(panels, parts), parts, before, join);
  };
  const Range all = {0, pass_.rows()};
  uint32_t done = Add({kEmbed, 0, all, {}}, 0, {});
  for (size_t l = 0; l < model_.layers.size(); ++l) {
    const LayerWeights& layer = model_.layers[l];
    if (!model_.Continues(l)) {
      if (model_.norms_whole_rows()) {
        done = product(kQkv, l, layer.qkv, done);
        done = Add({kFinishQkv, l, all, {}}, 0, {&done, 1});
        done = stage(kAttend, l, spec.heads, 1, head_parts, done, kContextBytes);
      } else {
        done = stage(kHeads, l, spec.heads, group, head_parts, done, kContextBytes);
      }
      done = product(kOutput, l, layer.attention_output, done);
      done = Add({kAttentionNorm, l, all, {}}, 0, {&done, 1});
    }
    const ExpertWeights& experts = layer.experts;
    done = product(kUp, l, experts.present() ? experts.up[0] : layer.ffn_up, done, kUpBytes);
    done = product(kDown, l, experts.present() ? experts.down[0] : layer.ffn_down, done);
    done = Add({kFeedForwardNorm, l, all, {}}, 0, {&done, 1});
  }
}

// Q, K and V of a range of heads, then their attention: needs no other head.
void LatencyPass::RunHeads(const Task& task, size_t worker) {
  const size_t heads = model_.spec.heads, kv_heads = model_.kv_heads(), group = heads / kv_heads;
  const Range queries = task.columns, keys = {queries.begin / group, queries.end / group};
  const auto units = [&](size_t first, Range range) {
    const size_t panels = model_.head_stride / kPanelColumns;
    pass_.Qkv(task.layer, task.rows,
              {(first + range.begin) * panels, (first + range.end) * panels});
  };
  units(0, queries);
  units(heads, keys);
  units(heads + kv_heads, keys);
  pass_.Attend(task.layer, task.rows, queries, worker);
}

void LatencyPass::RunQkv(size_t layer, Range rows) {
  pass_.Qkv(layer, rows);
  pass_.FinishQkv(layer, rows);
}

void LatencyPass::Run(const Task& task, size_t worker) {
  const size_t l = task.layer;
  const bool last = l + 1 == model_.layers.size();
  if (task.stages & kEmbed) {
    pass_.Embed(task.rows);
    pass_.PreNorm(0, Sublayer::kAttention, task.rows);
    if (task.stages & kNextQkv) RunQkv(0, task.rows);
    return;
  }
  if (task.stages & kQkv) pass_.Qkv(l, task.rows, task.columns);
  if (task.stages & kFinishQkv) pass_.FinishQkv(l, task.rows);
  if (task.stages & kHeads) RunHeads(task, worker);
  if (task.stages & kAttend) pass_.Attend(l, task.rows, task.columns, worker);
  if (task.stages & kContextBytes) pass_.QuantizeContext(l, task.rows);
  if (task.stages & kOutput) pass_.AttentionOutput(l, task.rows, task.columns);
  if (task.stages & kAttentionNorm) {
    pass_.PostNorm(l, Sublayer::kAttention, task.rows);
    pass_.PreNorm(l, Sublayer::kFeedForward, task.rows);
    pass_.Route(l, task.rows);
  }
  if (task.stages & kUp) pass_.FeedForwardUp(l, task.rows, task.columns);
  if (task.stages & kUpBytes) pass_.QuantizeIntermediate(l, task.rows);
  if (task.stages & kDown) pass_.FeedForwardDown(l, task.rows, task.columns);
  if (task.stages & kFeedForwardNorm) {
    pass_.PostNorm(l, Sublayer::kFeedForward, task.rows);
    pass_.Convolve(l, task.rows);
    if (last) pass_.FinalNorm(task.rows);
    if (!last) pass_.PreNorm(l + 1, Sublayer::kAttention, task.rows);
  }
  if (task.stages & kNextQkv) RunQkv(l + 1, task.rows);
}

void LatencyPass::Work(size_t worker, const std::function<bool()>& leave) {
  graph_.Work(worker, [this](uint32_t task, size_t w) { Run(tasks_[task], w); }, leave);
}

}  // namespace pozor
