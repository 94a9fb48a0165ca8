#include "tools/cli/attention_options.h"

#include "tools/cli/report.h"

namespace pozor::tools {

void AddAttentionOptions(VerbParser& parser, AttentionRequest* request) {
  CLI::App& app = parser.app();
  app.add_option("--pair", request->pair, "two texts that the model reads together")
      ->expected(2)
      ->type_name("A B");
  app.add_option("-f,--input", request->inputs, "a file of texts, '-' for standard input")
      ->expected(1)
      ->take_all()
      ->type_name("F");
  AddInputFormat(parser, &request->input_options.format, &request->input_options.text_field,
                 &request->input_options.header);
  app.add_option("--layers", request->heads.layers, "0-3,11; from 0 (all)")->type_name("LIST");
  app.add_option("--heads", request->heads.heads,
                 "0,5 in each layer, or layer:head 2:5,3:0-4 (all)")
      ->type_name("LIST");
  app.add_option("-o,--output,--out", request->output, "file to write, or folder for a file a text")
      ->type_name("OUT");
  parser.AddCount("--threads", &request->encode.threads, "what the machine grants this process");
  parser.AddCount("--max-length", &request->encode.max_length,
                  "tokens of a text, specials included");
  app.add_option("--prompt", request->encode.prompt_name, "name of one of the model's prompts")
      ->type_name("NAME");
  app.add_option("--prompt-text", request->encode.prompt, "text to put in front of every text")
      ->type_name("T");
  app.add_flag("--plain-specials", request->encode.plain_specials,
               "\"[SEP]\" in a text is plain text");
  app.add_flag("--quiet", request->quiet, "no warnings and no summary");
}

void AddUnitOptions(VerbParser& parser, TransformOptions* options) {
  parser.AddChoice<WordRows>(
      "--words", &options->words,
      {{"mean", WordRows::kMean}, {"first", WordRows::kFirst}, {"max", WordRows::kMax}},
      "words instead of pieces: sum over the pieces looked at, and this "
      "of the pieces that look");
  parser.app().add_flag("--no-special", options->no_special,
                        "without the tokens that the tokenizer adds");
  parser.app().add_flag("--renormalise,--renormalize", options->renormalise, "rows sum to 1 again");
}

void AddReduction(VerbParser& parser, std::optional<Reduction>* reduction) {
  parser.AddChoice<Reduction>("--reduce", reduction,
                              {{"mean-heads", Reduction::kMeanHeads},
                               {"max-heads", Reduction::kMaxHeads},
                               {"rollout", Reduction::kRollout},
                               {"cls", Reduction::kCls}},
                              "heads to one matrix a layer, layers to one, or the first row only");
}

void TakeWords(const VerbParser& parser, AttentionRequest* request) {
  request->model = parser.model();
  if (!parser.words().empty()) request->text = parser.words()[0];
}

int EndOfVerb(const Status& status) {
  return status.ok() ? FinishStandardOutput(0) : ExitCodeOf(status);
}

}  // namespace pozor::tools
