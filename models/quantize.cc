#include "models/quantize.h"

#include <algorithm>
#include <utility>

#include "engine/graph.h"
#include "engine/machine.h"
#include "engine/precision_plan.h"
#include "engine/quantize.h"
#include "kernels/gemm.h"
#include "models/encode.h"

namespace pozor {
namespace {

// Without a limit of its own a model is calibrated on texts of at most this many tokens.
constexpr size_t kLongestRandomText = 128;

std::string KernelOf(const LayerPrecision* layer, ProductKind kind) {
  const NumberFormat format = layer == nullptr ? NumberFormat::kF32 : (*layer)[kind].format;
  if (kind == ProductKind::kAttention) {
    return format == NumberFormat::kInt8 ? "attention-s8s8s32" : "attention-f32";
  }
  constexpr size_t kManyRows = 128;
  return std::string(FindGemmKernel(LayoutOf(format), kManyRows).name);
}

// What happens to the inputs of bf16 weights is the CPU's, so no plan and no prepared file has it.
std::string ReasonOf(const ProductChoice& choice, const std::string& kernel) {
  if (choice.format != NumberFormat::kBf16) return choice.reason;
  const bool widened = kernel.find("-f32bf16") != kernel.npos;
  return choice.reason + (widened ? "; inputs stay f32" : "; inputs rounded to bf16 as well");
}

}  // namespace

std::vector<std::string_view> CalibrationTexts() {
  std::vector<std::string_view> texts;
  std::string_view rest = kCalibrationText;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    if (end > 0) texts.push_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return texts;
}

Result<TokenBatch> TokeniseForCalibration(const Model::Impl& model,
                                          std::span<const std::string_view> texts) {
  EncodeOptions options;
  options.prompt = "";
  POZOR_TRY(const EncodePlan plan, EncodePlan::Make(model, options));
  TextTokeniser tokeniser(model, plan);
  TokenBatch batch;
  for (size_t i = 0; i < texts.size(); ++i) {
    POZOR_RETURN_IF_ERROR(tokeniser.Append(texts[i], i + 1, &batch));
  }
  return batch;
}

Result<Calibration> CalibrateModel(const Model::Impl& model,
                                   std::span<const std::string_view> texts,
                                   std::string* described) {
  const std::vector<std::string_view> own = CalibrationTexts();
  TokenBatch tokens;
  std::string what = "random tokens";
  if (model.tokenizer != nullptr) {
    POZOR_TRY(tokens, TokeniseForCalibration(model, texts.empty() ? own : texts));
    what = (texts.empty() ? "built-in text, " : "text of the user, ") +
           std::to_string(tokens.texts()) + " texts";
  } else {
    const size_t limit = std::min(model.encoder->max_tokens(), kLongestRandomText);
    tokens = RandomCalibrationTokens(model.encoder->spec(), limit);
  }
  if (tokens.ids.empty()) {
    return InvalidArgument("calibration: the text has no tokens; give one with some sentences");
  }
  *described = what + ", " + std::to_string(tokens.ids.size()) + " tokens";
  return Calibrate(*model.encoder, tokens.View(), 0);
}

Result<std::vector<float>> EncodeWithoutPrompt(const Model::Impl& model,
                                               std::span<const std::string_view> texts,
                                               const std::atomic<bool>* cancel) {
  EncodeOptions options;
  options.prompt = "";
  POZOR_TRY(const EncodePlan plan, EncodePlan::Make(model, options));
  POZOR_TRY(const TokenBatch tokens, TokeniseForCalibration(model, texts));
  std::vector<float> vectors(texts.size() * plan.dimensions);
  GraphOptions graph;
  graph.max_memory = model.options.max_memory;
  graph.cancel = cancel;
  POZOR_RETURN_IF_ERROR(EncodeTokens(
      *model.encoder, tokens.View(), graph, [&](size_t text, MatView<const float> hidden) {
        return MakeVector(model, plan, hidden, text + 1, &vectors[text * plan.dimensions]);
      }));
  return vectors;
}

Status QuantizeModel(const Calibration& calibration, PrecisionPlan precision, Model::Impl* model) {
  POZOR_TRY(model->encoder,
            QuantizeEncoder(std::move(model->encoder), calibration, std::move(precision)));
  return {};
}

Status QuantizeAtLoad(Model::Impl* model) {
  POZOR_RETURN_IF_ERROR(CheckCeiling("the model while it is quantised", model->options.max_memory,
                                     ResidentBytes() + model->encoder->weight_bytes()));
  POZOR_TRY(const Calibration calibration, CalibrateModel(*model, {}, &model->facts.calibration));
  return QuantizeModel(calibration, Int8Plan(model->encoder->spec()), model);
}

std::vector<ProductLine> DescribeProducts(const Encoder& encoder) {
  const PrecisionPlan& plan = encoder.precision();
  std::vector<ProductLine> lines;
  const EncoderSpec& spec = encoder.spec();
  for (size_t place = 0; place < spec.layers.size(); ++place) {
    const LayerPrecision* choices = plan.empty() ? nullptr : &plan[place];
    const LayerPart at = spec.PartAt(place);
    const std::string label = LayerLabel(spec, place);
    for (size_t kind = 0; kind < kProductKinds; ++kind) {
      const auto product = static_cast<ProductKind>(kind);
      if (spec.layers[place].continues && product != ProductKind::kUp &&
          product != ProductKind::kDown) {
        continue;
      }
      const ProductChoice choice = choices == nullptr
                                       ? ProductChoice{NumberFormat::kF32, "as the model is stored"}
                                       : (*choices)[product];
      const std::string kernel = KernelOf(choices, product);
      lines.push_back({place, at, label, std::string(ProductName(product)),
                       std::string(NumberFormatName(choice.format)), kernel,
                       ReasonOf(choice, kernel)});
    }
  }
  return lines;
}

std::string LayerLabel(const EncoderSpec& spec, size_t place) {
  const LayerPart at = spec.PartAt(place);
  const std::string layer = std::to_string(at.layer);
  return spec.PartsOf(at.layer) == 1 ? layer : layer + "." + std::to_string(at.part);
}

std::string PrecisionName(const Encoder& encoder) {
  return std::string(PrecisionName(encoder.precision()));
}

std::string PrecisionText(const Encoder& encoder) {
  const std::string name = PrecisionName(encoder);
  if (!HasFormat(encoder.precision(), NumberFormat::kBf16)) return name;
  const bool mixed = HasFormat(encoder.precision(), NumberFormat::kInt8);
  return name + (mixed ? " with bf16 products" : "") + ", whose bits depend on the CPU";
}

}  // namespace pozor
