#include "engine/encoder.h"

#include <algorithm>
#include <string>
#include <utility>

#include "engine/executor.h"
#include "engine/forward.h"
#include "engine/tensors.h"

namespace pozor {

// Vaswani et al. 2017, figure 1 left, and its pre-norm form (Xiong et al. 2020).
MatView<const float> Encoder::Forward(const RaggedBatch& batch, Workspace& workspace,
                                      const Sinks& sinks, RowsRead rows) const {
  ForwardPass pass(*impl_, batch, workspace, sinks.profile);
  if (batch.tokens() == 0) return pass.hidden();
  const Range all;

  pass.Embed(all);
  for (size_t l = 0; l < impl_->layers.size(); ++l) {
    if (!impl_->Continues(l)) {
      const size_t number = impl_->numbers[l];
      if (sinks.hidden_states) sinks.hidden_states(number, pass.hidden());
      pass.PreNorm(l, Sublayer::kAttention, all);
      pass.EmitInput(l, ProductKind::kQkv, sinks);
      pass.Qkv(l, all);
      pass.FinishQkv(l, all);
      pass.Attend(l, all, all, 0);
      pass.EmitAttention(l, sinks);
      const bool last = number == impl_->numbers.back();
      if (last && rows == RowsRead::kFirst) pass.KeepFirstRows();
      pass.EmitInput(l, ProductKind::kOutput, sinks);
      pass.QuantizeContext(l, all);
      pass.AttentionOutput(l, all);
      pass.PostNorm(l, Sublayer::kAttention, all);
    }
    pass.PreNorm(l, Sublayer::kFeedForward, all);
    pass.Route(l, all);
    pass.EmitInput(l, ProductKind::kUp, sinks);
    pass.FeedForwardUp(l, all);
    pass.EmitInput(l, ProductKind::kDown, sinks);
    pass.QuantizeIntermediate(l, all);
    pass.FeedForwardDown(l, all);
    pass.PostNorm(l, Sublayer::kFeedForward, all);
    pass.Convolve(l, all);
  }
  pass.FinalNorm(all);
  if (sinks.hidden_states) sinks.hidden_states(impl_->numbers.back() + 1, pass.hidden());
  return pass.hidden();
}

Encoder::Encoder(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {
  impl_->executor = std::make_unique<Executor>(*this);
}
Encoder::~Encoder() = default;

std::unique_ptr<Encoder::Impl> Encoder::Dismantle(std::unique_ptr<Encoder> encoder) {
  encoder->impl_->executor.reset();
  return std::move(encoder->impl_);
}
std::unique_ptr<Encoder> Encoder::Assemble(std::unique_ptr<Impl> impl) {
  return std::unique_ptr<Encoder>(new Encoder(std::move(impl)));
}

const EncoderSpec& Encoder::spec() const { return impl_->spec; }
const PrecisionPlan& Encoder::precision() const { return impl_->precision; }
size_t Encoder::weight_bytes() const { return impl_->arena.capacity(); }
size_t Encoder::mapped_bytes() const { return impl_->mapped_bytes; }

size_t Encoder::max_tokens() const { return impl_->max_tokens(); }

size_t Encoder::Impl::max_tokens() const {
  const EmbeddingSpec& embeddings = spec.embeddings;
  const size_t limit = spec.token_limit == 0 ? SIZE_MAX : spec.token_limit;
  if (embeddings.position_kind == PositionKind::kNone) return limit;
  return std::min(limit, embeddings.max_positions - embeddings.position_offset);
}

size_t Encoder::WorkspaceBytes(size_t tokens, size_t longest_text) const {
  return ForwardPass::Bytes(*impl_, tokens, longest_text);
}

namespace {

Status CheckStarts(const RaggedBatch& batch) {
  const bool ends = batch.starts.empty()
                        ? batch.ids.empty()
                        : batch.starts.front() == 0 &&
                              static_cast<size_t>(batch.starts.back()) == batch.ids.size();
  bool ascending = true;
  for (size_t i = 0; i < batch.texts(); ++i) {
    ascending = ascending && batch.starts[i] <= batch.starts[i + 1];
  }
  const bool types = batch.types.empty() || batch.types.size() == batch.ids.size();
  const bool globals = batch.globals.empty() || batch.globals.size() == batch.ids.size();
  if (ends && ascending && types && globals) return {};
  return InvalidArgument(
      "batch: starts must ascend from 0 to the number of ids, types and globals be as many as "
      "ids; correct the call");
}

Status OutOfRange(const char* what, size_t text, int64_t value, size_t limit) {
  return InvalidArgument("text " + std::to_string(text) + ": " + what + " " +
                         std::to_string(value) + " is outside [0, " + std::to_string(limit) +
                         "); use the model's own tokenizer");
}

}  // namespace

Status Encoder::CheckBatch(const RaggedBatch& batch) const {
  POZOR_RETURN_IF_ERROR(CheckStarts(batch));
  if (!batch.globals.empty() && !impl_->layers.front().global_qkv.present()) {
    return InvalidArgument("batch: " + impl_->spec.architecture +
                           " has no global attention; leave the globals out");
  }
  const size_t vocab = impl_->spec.embeddings.vocab_size;
  const size_t types = impl_->type == nullptr ? 0 : impl_->spec.embeddings.type_count;
  for (size_t text = 0; text < batch.texts(); ++text) {
    if (batch.length(text) > max_tokens()) {
      return InvalidArgument("text " + std::to_string(text) + ": " +
                             std::to_string(batch.length(text)) +
                             " tokens are more than the model's limit of " +
                             std::to_string(max_tokens()) + "; truncate it");
    }
    for (int32_t t = batch.starts[text]; t < batch.starts[text + 1]; ++t) {
      const int32_t id = batch.ids[t];
      if (id < 0 || static_cast<size_t>(id) >= vocab) {
        return OutOfRange("token id", text, id, vocab);
      }
      if (types == 0 || batch.types.empty()) continue;
      const int32_t type = batch.types[t];
      if (type < 0 || static_cast<size_t>(type) >= types) {
        return OutOfRange("token type", text, type, types);
      }
    }
  }
  return impl_->row_check == nullptr ? Status() : impl_->row_check->CheckRows(batch.ids);
}

}  // namespace pozor
