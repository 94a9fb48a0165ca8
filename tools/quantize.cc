#include "tools/quantize.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "engine/precision_plan.h"
#include "engine/sqnr.h"
#include "models/quantize.h"
#include "tools/bench/json_writer.h"
#include "tools/cli/progress.h"
#include "tools/cli/report.h"
#include "tools/cli/signals.h"
#include "tools/io/text_files.h"
#include "tools/prepared_folder.h"
#include "tools/quantize_gate.h"
#include "tools/quantize_plan.h"

namespace pozor::tools {
namespace {

// Beyond this share of promoted products int8 is not worth its error.
constexpr size_t kPromotedAtMostOneOf = 2;

// The texts of a file, or the built-in ones for an empty path.
Result<std::vector<std::string>> ReadTexts(const std::string& path,
                                           const QuantizeRequest& request) {
  std::vector<std::string> texts;
  if (path.empty()) {
    for (const std::string_view text : CalibrationTexts()) texts.emplace_back(text);
    return texts;
  }
  TextFilesOptions options;
  options.format = request.input_format;
  options.text_field = request.text_field;
  options.header = request.header;
  options.cancel = CancelOnSignals();
  POZOR_TRY(const std::unique_ptr<TextFiles> files, TextFiles::Open({path}, options));
  while (true) {
    POZOR_TRY(std::optional<std::string> text, files->Next());
    if (!text.has_value()) break;
    texts.push_back(std::move(*text));
  }
  if (texts.empty()) return InvalidArgument(path + ": has no texts; give some sentences");
  return texts;
}

const char* TargetName(QuantizeTarget target) {
  switch (target) {
    case QuantizeTarget::kInt8:
      return "int8";
    case QuantizeTarget::kBf16:
      return "bf16";
    case QuantizeTarget::kMixed:
      return "mixed";
  }
  return "?";
}

// What the quantising of one model goes through.
class Quantizing {
 public:
  explicit Quantizing(const QuantizeRequest& request) : request_(request) {}

  Status Run() {
    POZOR_RETURN_IF_ERROR(Prepare());
    POZOR_RETURN_IF_ERROR(TryPlan());
    POZOR_RETURN_IF_ERROR(ListTensors(*candidate_->encoder).status());
    if (request_.gate) POZOR_RETURN_IF_ERROR(PassGate());
    POZOR_RETURN_IF_ERROR(Interrupted());
    POZOR_TRY(bytes_, WritePreparedFolder(*candidate_, request_.output));
    request_.json ? PrintJson() : Print();
    return {};
  }

 private:
  Status Interrupted() const {
    return cancel_->load() ? Cancelled("quantize: interrupted; run it again") : Status();
  }

  Result<std::unique_ptr<Model::Impl>> LoadF32() const {
    LoadOptions options = request_.load;
    options.precision = Precision::kF32;
    auto model = LoadModelParts(request_.model, options, {});
    if (!model.ok()) return AsFailure(model.status());
    return model;
  }

  // Everything that the f32 model is needed for.
  Status Prepare() {
    std::vector<std::string> own;  // empty: the built-in text
    if (!request_.calibration.empty()) {
      POZOR_TRY(own, ReadTexts(request_.calibration, request_));
    }
    POZOR_TRY(const std::vector<std::string> gate, ReadTexts(request_.gate_texts, request_));
    POZOR_TRY(const std::unique_ptr<Model::Impl> f32, LoadF32());
    if (!f32->has_config_file) {
      return Unsupported(request_.model +
                         ": a prepared model needs a config.json and a tokenizer " +
                         "of its own, a GGUF file has them inside; give a model folder, or use " +
                         "--precision at load");
    }
    POZOR_RETURN_IF_ERROR(CheckPreparedOutput(*f32, request_.output));
    POZOR_TRY(plan_, MakePlan(request_.target, request_.products, f32->encoder->spec()));
    const std::vector<std::string_view> calibration(own.begin(), own.end());
    POZOR_TRY(calibration_, CalibrateModel(*f32, calibration, &calibrated_on_));
    POZOR_RETURN_IF_ERROR(Interrupted());
    const std::vector<std::string_view> views(gate.begin(), gate.end());
    if (!request_.gate) return {};
    gate_ = MakeGateTexts(views);
    if (gate_.texts.empty()) {
      return InvalidArgument(request_.gate_texts + ": has no texts; give the gate some sentences");
    }
    for (const std::string& line : TooFew(gate_)) PrintWarning(request_.gate_texts + ": " + line);
    POZOR_TRY(reference_, EncodeWithoutPrompt(*f32, gate_.Views(), cancel_));
    POZOR_TRY(const TokenBatch tokens, TokeniseForCalibration(*f32, views));
    POZOR_TRY(sqnr_, MeasureSqnr(*f32->encoder, calibration_, tokens.View()));
    return {};
  }

  Status TryPlan() {
    POZOR_TRY(candidate_, LoadF32());
    if (HasFormat(plan_, NumberFormat::kInt8)) candidate_->facts.calibration = calibrated_on_;
    POZOR_RETURN_IF_ERROR(QuantizeModel(calibration_, plan_, candidate_.get()));
    if (!request_.gate) return {};
    POZOR_RETURN_IF_ERROR(Interrupted());
    POZOR_TRY(const std::vector<float> vectors,
              EncodeWithoutPrompt(*candidate_, gate_.Views(), cancel_));
    result_ = Compare(reference_, vectors, gate_);
    candidate_->facts.quality = result_.Text();
    return {};
  }

  std::string Failures() const {
    const bool int8 = HasFormat(plan_, NumberFormat::kInt8);
    return result_.Failures(int8 ? kInt8Limits : kBf16Limits);
  }

  // Promotes the products whose inputs suffer most until the gate passes.
  Status PassGate() {
    const size_t all = CountProducts(candidate_->encoder->spec());
    const size_t step = std::max<size_t>(1, all / 16);
    while (!Failures().empty() && !request_.force) {
      const size_t before = promoted_;
      const bool too_many = (promoted_ + step) * kPromotedAtMostOneOf > all;
      for (size_t i = 0; i < step && !too_many; ++i) {
        promoted_ += PromoteWorst(request_.target, sqnr_, &plan_) ? 1 : 0;
      }
      if (promoted_ == before) {
        return Status(StatusCode::kUnsupported,
                      request_.model + ": " + TargetName(request_.target) +
                          " misses the quality gate with " + std::to_string(promoted_) + " of " +
                          std::to_string(all) + " products promoted: " + Failures() +
                          "; keep the model in f32, or write it all the same with --force");
      }
      POZOR_RETURN_IF_ERROR(TryPlan());
    }
    return {};
  }

  void Print() const {
    if (!candidate_->facts.calibration.empty()) {
      std::printf("calibrated on   %s\n", calibrated_on_.c_str());
    }
    if (!sqnr_.empty()) PrintSqnr();
    if (request_.gate) {
      const std::string failures = Failures();
      std::printf("quality         %s\n", result_.Text().c_str());
      std::printf("gate            %s\n",
                  failures.empty() ? "passed" : ("missed, forced: " + failures).c_str());
    }
    std::printf("precision       %s, %zu promoted\n", PrecisionText(*candidate_->encoder).c_str(),
                promoted_);
    std::printf("written         %s (%s of weights)\n", request_.output.c_str(),
                Megabytes(bytes_).c_str());
  }

  void PrintSqnr() const {
    static constexpr char kMarks[] = {'*', '+', ' '};  // by NumberFormat
    std::printf("SQNR in int8    layer    qkv  output      up    down   (dB, of each input)\n");
    const EncoderSpec& spec = candidate_->encoder->spec();
    for (size_t place = 0; place < sqnr_.size(); ++place) {
      std::printf("                %5s", LayerLabel(spec, place).c_str());
      for (const ProductKind product :
           {ProductKind::kQkv, ProductKind::kOutput, ProductKind::kUp, ProductKind::kDown}) {
        const bool in_every_part = product == ProductKind::kUp || product == ProductKind::kDown;
        if (!in_every_part && spec.layers[place].continues) {
          std::printf(" %6s ", "");
          continue;
        }
        const auto format = static_cast<size_t>(plan_[place][product].format);
        std::printf(" %6.1f%c", sqnr_[place][static_cast<size_t>(product)], kMarks[format]);
      }
      std::printf("\n");
    }
    const std::vector<ProductLine> products = DescribeProducts(*candidate_->encoder);
    for (const NumberFormat format : {NumberFormat::kBf16, NumberFormat::kF32}) {
      const std::string_view name = NumberFormatName(format);
      const bool shown = std::any_of(products.begin(), products.end(), [&](const auto& product) {
        return product.precision == name && product.name != ProductName(ProductKind::kAttention);
      });
      if (!shown) continue;
      std::printf("                %c in %s\n", kMarks[static_cast<size_t>(format)],
                  std::string(name).c_str());
    }
  }

  void PrintJson() const {
    JsonWriter json(2);
    json.BeginObject().Field("output", request_.output).Field("bytes", bytes_);
    json.Field("calibration", candidate_->facts.calibration)
        .Field("precision", PrecisionName(*candidate_->encoder));
    json.Field("promoted", promoted_);
    if (request_.gate) {
      json.Key("gate").BeginObject().Field("passed", Failures().empty());
      AddGate(&json);
      json.EndObject();
    }
    json.Key("products").BeginArray();
    for (const ProductLine& product : DescribeProducts(*candidate_->encoder)) {
      json.BeginObject().Field("layer", product.at.layer).Field("part", product.at.part);
      json.Field("product", product.name);
      json.Field("precision", product.precision).Field("kernel", product.kernel);
      if (!sqnr_.empty()) AddSqnr(product, &json);
      json.Field("reason", product.reason).EndObject();
    }
    json.EndArray().EndObject();
    std::printf("%s\n", json.text().c_str());
  }

  // null: a figure that the gate's texts do not admit.
  void AddGate(JsonWriter* json) const {
    const auto add = [json](const char* key, bool has, double value) {
      has ? json->Field(key, value) : json->Key(key).Null();
    };
    add("cosine_mean", true, result_.mean);
    add("cosine_p1", true, result_.p1);
    add("cosine_min", true, result_.least);
    add("long_cosine_mean", result_.HasLong(), result_.long_mean);
    add("long_cosine_min", result_.HasLong(), result_.long_least);
    add("rank_correlation", result_.HasRank(), result_.rank);
    add("top10_overlap", result_.HasTop10(), result_.top10);
  }

  void AddSqnr(const ProductLine& product, JsonWriter* json) const {
    for (size_t kind = 0; kind < kProductKinds; ++kind) {
      const auto of = static_cast<ProductKind>(kind);
      if (of == ProductKind::kAttention || product.name != ProductName(of)) continue;
      json->Field("sqnr_db", sqnr_[product.place][kind]);
    }
  }

  const QuantizeRequest& request_;
  const std::atomic<bool>* cancel_ = CancelOnSignals();
  PrecisionPlan plan_;
  Calibration calibration_;
  std::string calibrated_on_;
  GateTexts gate_;
  std::vector<float> reference_;  // the gate texts' vectors in f32
  std::vector<LayerSqnr> sqnr_;
  std::unique_ptr<Model::Impl> candidate_;
  GateResult result_;
  size_t promoted_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace

Status RunQuantize(const QuantizeRequest& request) { return Quantizing(request).Run(); }

}  // namespace pozor::tools
