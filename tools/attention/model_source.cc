#include <algorithm>
#include <cmath>
#include <future>

#include "kernels/cpu.h"
#include "models/model_impl.h"
#include "models/quantize.h"
#include "tools/attention/positions.h"
#include "tools/attention/source.h"
#include "tools/bench/model_record.h"

namespace pozor::tools {
namespace {

// Four sums, so that the compiler may add them side by side.
double RowSum(const float* row, size_t keys) {
  double sums[4] = {};
  size_t j = 0;
  for (; j + 4 <= keys; j += 4) {
    for (size_t k = 0; k < 4; ++k) sums[k] += static_cast<double>(row[j + k]);
  }
  for (; j < keys; ++j) sums[0] += static_cast<double>(row[j]);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

class ModelSource final : public AttentionSource {
 public:
  ModelSource(const Model& model, std::string text, std::optional<std::string> pair,
              const ModelSourceOptions& options)
      : model_(model), text_(std::move(text)), pair_(std::move(pair)), options_(options) {}

  Status Prepare();
  Status Stream(const StreamOptions& options, const AttentionSink& sink) override;
  Status StreamHidden(const HiddenSink& sink) override {
    return model_.HiddenStates(text_, sink, options_.encode, pair_).status();
  }
  size_t hidden_size() const override { return model_.Info().hidden; }

 private:
  Status ChooseFrom(const EncoderSpec& spec);
  // The text's vector without listeners, on another thread if the caller grants one.
  std::future<Result<Inspection>> StartFastPath() const;

  const Model& model_;
  std::string text_;
  std::optional<std::string> pair_;
  ModelSourceOptions options_;
};

Status ModelSource::ChooseFrom(const EncoderSpec& spec) {
  HeadSet& set = record_.heads;
  set.layer_count = spec.layer_count();
  set.head_count = spec.heads;
  set.causal = spec.causal;
  POZOR_TRY(const auto chosen, ChooseHeads(options_.heads, set.layer_count, set.head_count));
  for (size_t layer = 0; layer < chosen.size(); ++layer) {
    if (chosen[layer].empty()) continue;
    set.layers.push_back(layer);
    set.heads.push_back(chosen[layer]);
    const size_t window = spec.layers[spec.AttentionPlace(layer)].window;
    set.windows.push_back(window == kNoWindow ? std::nullopt : std::optional<size_t>(window));
  }
  return Status();
}

Status ModelSource::Prepare() {
  const Model::Impl& impl = model_.impl();
  POZOR_RETURN_IF_ERROR(ChooseFrom(impl.encoder->spec()));
  POZOR_TRY(TokenizeResult tokens, pair_ ? model_.TokenizePair(text_, *pair_, options_.encode)
                                         : model_.Tokenize(text_, options_.encode));
  POZOR_TRY(const std::string prompt, ResolvePrompt(impl, options_.encode));
  std::vector<std::string> texts = {prompt + text_};
  if (pair_) texts.push_back(*pair_);
  const size_t limit =
      options_.encode.max_length > 0 ? options_.encode.max_length : model_.Info().max_length;
  record_.text = MakeTextRecord(std::move(texts), limit, std::move(tokens));
  record_.positions = PositionKindName(impl.encoder->spec());
  if (options_.position_panel) record_.position_panel = PositionPanel(*impl.encoder);
  RunRecord run;
  run.model = options_.model_name;
  run.architecture = model_.Info().architecture;
  run.precision = PrecisionName(*impl.encoder);
  run.tier = CpuTierName(ActiveCpuTier());
  run.weights_hash = options_.weights_hash;
  record_.runs.push_back(std::move(run));
  return Status();
}

std::future<Result<Inspection>> ModelSource::StartFastPath() const {
  const auto run = [this]() -> Result<Inspection> {
    if (!options_.self_check || record_.text.size() == 0) return Inspection();
    AttentionSelection selection;
    selection.pair = pair_;
    selection.options = options_.encode;
    return model_.Attention(text_, selection, nullptr);
  };
  const bool alone = options_.encode.threads == 1;
  return std::async(alone ? std::launch::deferred : std::launch::async | std::launch::deferred,
                    run);
}

Status ModelSource::Stream(const StreamOptions& options, const AttentionSink& sink) {
  AttentionSelection selection;
  selection.heads = record_.heads.Pairs();
  selection.query_begin = options.query_begin;
  selection.query_end = options.query_end;
  selection.heads_together = options.heads_together;
  selection.pair = pair_;
  selection.options = options_.encode;
  double worst = 0;
  const auto checked = [&](const AttentionRows& rows) {
    for (size_t i = 0; i < rows.queries; ++i) {
      worst = std::max(worst, std::abs(1.0 - RowSum(rows.Row(i), rows.keys)));
    }
    return sink(rows);
  };
  std::future<Result<Inspection>> running = StartFastPath();
  POZOR_TRY(const Inspection seen, model_.Attention(text_, selection, checked));
  record_.runs[0].max_row_sum_error = worst;
  POZOR_TRY(const Inspection fast, running.get());
  if (fast.vector.empty()) return Status();
  double difference = 0;
  for (size_t i = 0; i < fast.vector.size(); ++i) {
    difference = std::max(difference, std::abs(static_cast<double>(seen.vector[i]) -
                                               static_cast<double>(fast.vector[i])));
  }
  record_.runs[0].max_vector_difference = difference;
  return Status();
}

}  // namespace

Result<std::unique_ptr<AttentionSource>> OpenModelSource(const Model& model, std::string text,
                                                         std::optional<std::string> pair,
                                                         const ModelSourceOptions& options) {
  auto source = std::make_unique<ModelSource>(model, std::move(text), std::move(pair), options);
  POZOR_RETURN_IF_ERROR(source->Prepare());
  return std::unique_ptr<AttentionSource>(std::move(source));
}

}  // namespace pozor::tools
