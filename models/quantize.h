// int8 or bf16 of a loaded f32 model, at load or for a prepared file: the same bits either way.
#ifndef POZOR_MODELS_QUANTIZE_H_
#define POZOR_MODELS_QUANTIZE_H_

#include <atomic>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/calibration.h"
#include "engine/precision.h"
#include "engine/spec.h"
#include "models/model_impl.h"
#include "models/prepared.h"
#include "pozor/status.h"

namespace pozor {

// The text that comes with the library: a text a line, English, other languages, code.
extern const std::string_view kCalibrationText;

// A text a line.
std::vector<std::string_view> CalibrationTexts();

// Texts as the model reads them, without a prompt, cut at its limit.
Result<TokenBatch> TokeniseForCalibration(const Model::Impl& model,
                                          std::span<const std::string_view> texts);

// What Calibrate says of the model, which must be in f32, on these tokens; without a tokenizer on
// random ones. `texts` empty: the built-in ones. `described` says what it was.
Result<Calibration> CalibrateModel(const Model::Impl& model,
                                   std::span<const std::string_view> texts, std::string* described);

// [texts, dimensions], as Model::Encode gives them without a prompt. `cancel` set to true stops it.
Result<std::vector<float>> EncodeWithoutPrompt(const Model::Impl& model,
                                               std::span<const std::string_view> texts,
                                               const std::atomic<bool>* cancel);

// From f32 to `precision`.
Status QuantizeModel(const Calibration& calibration, PrecisionPlan precision, Model::Impl* model);

// --precision int8 without a prepared file: exactly what 'pozor quantize' does without options.
Status QuantizeAtLoad(Model::Impl* model);

// One product of one layer as `pozor info` names it.
struct ProductLine {
  size_t place = 0;       // in EncoderSpec::layers
  LayerPart at;           // what that is
  std::string label;      // "3", or "3.1" where layers have parts
  std::string name;       // ProductName
  std::string precision;  // NumberFormatName
  std::string kernel;     // for many rows, on the active tier
  std::string reason;
};
std::vector<ProductLine> DescribeProducts(const Encoder& encoder);

// "3", or "3.1" where the layer that stands at `place` has parts.
std::string LayerLabel(const EncoderSpec& spec, size_t place);

// What engine/precision_plan.h calls its plan.
std::string PrecisionName(const Encoder& encoder);

// The same for a reader, who learns that the bits of bf16 products depend on the CPU.
std::string PrecisionText(const Encoder& encoder);

}  // namespace pozor

#endif  // POZOR_MODELS_QUANTIZE_H_
