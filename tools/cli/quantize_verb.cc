#include <string>

#include "tools/cli/command.h"
#include "tools/cli/options.h"
#include "tools/cli/report.h"
#include "tools/cli/verbs.h"
#include "tools/quantize.h"

namespace pozor::tools {

namespace {

std::string RefuseBf16x3(const std::string& text) {
  if (text != "bf16x3") return "";
  return "bf16x3 is as large as f32 and is made when a model is loaded: nothing to prepare; give "
         "the other verbs --precision bf16x3";
}

}  // namespace

int QuantizeVerb(std::span<char* const> arguments) {
  VerbParser parser("quantize",
                    "A model folder with prepared weights: quantised on a calibration text or "
                    "rounded to bf16, packed, checked against f32 and mapped at load. The other "
                    "verbs take it as any model, with the bits that --precision int8 or bf16 "
                    "gives at load.",
                    "pozor quantize all-MiniLM-L6-v2 -o minilm-int8\n"
                    "  pozor encode minilm-int8 sentences.txt -o vectors.npy");
  QuantizeRequest request;
  std::optional<QuantizeTarget> target;
  CLI::App& app = parser.app();
  parser.AddModelAndInputs(true, 0);
  app.add_option("-o,--output", request.output, "folder to make")->type_name("OUT")->required();
  parser
      .AddChoice<QuantizeTarget>(
          "--precision", &target,
          {{"int8", QuantizeTarget::kInt8},
           {"bf16", QuantizeTarget::kBf16},
           {"mixed", QuantizeTarget::kMixed}},
          "int8 (default); bf16: weights in bf16; mixed: int8 but for the feed-forward's second "
          "product, in bf16")
      ->check(RefuseBf16x3);
  app.add_option("--products", request.products,
                 "precision of single products, e.g. down=bf16,5.qkv=f32; products are qkv, "
                 "attention, output, up and down")
      ->type_name("LIST");
  app.add_option("--calibration", request.calibration, "texts to calibrate on (a built-in text)")
      ->type_name("FILE");
  app.add_option("--gate-text", request.gate_texts, "texts of the gate (a built-in text)")
      ->type_name("FILE");
  app.add_flag(
      "--gate,!--no-gate", request.gate,
      "compare with f32; put products in f32 (mixed: in bf16) until it is near enough (on)");
  app.add_flag("--force", request.force, "write the weights whatever the gate says");
  AddInputFormat(parser, &request.input_format, &request.text_field, &request.header);
  AddMemoryOption(parser, &request.load);
  AddTaskOption(parser, &request.load.task);
  AddCpuOption(parser);
  app.add_flag("--json", request.json, "the report as one JSON object");
  if (const auto code = parser.Parse(arguments)) return *code;
  request.model = parser.model();
  request.target = target.value_or(QuantizeTarget::kInt8);
  const Status status = RunQuantize(request);
  return status.ok() ? FinishStandardOutput(kExitDone) : ExitCodeOf(status);
}

}  // namespace pozor::tools
