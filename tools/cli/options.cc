#include "tools/cli/options.h"

#include <charconv>
#include <cmath>

#include "kernels/cpu.h"
#include "tools/cli/command.h"
#include "tools/cli/report.h"
#include "tools/cli/suggest.h"

namespace pozor::tools {
namespace {

constexpr size_t kHelpColumn = 34;

// One line of CLI11's message.
std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

// Help with our own usage line, which says what the words are, and without CLI11's marks for values
// of flags ("{false}") and for checks (":POSITIVE").
class VerbFormatter : public CLI::Formatter {
 public:
  explicit VerbFormatter(std::string usage) : usage_(std::move(usage)) {}
  std::string make_usage(const CLI::App* app, std::string) const override {
    std::string words;
    for (const CLI::Option* option : app->get_options()) {
      const bool shown = option->get_positional() && !option->get_group().empty();
      if (shown) words += " " + option->get_type_name();
    }
    return "\nusage: " + usage_ + words + " [options]\n";
  }
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    std::string name = CLI::Formatter::make_option_name(option, is_positional);
    for (size_t open; (open = name.find('{')) != std::string::npos;) {
      name.erase(open, name.find('}', open) - open + 1);
    }
    return name;
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_type_size() == 0) return "";
    const std::string type = option->get_type_name();
    return " " + type.substr(0, type.find(':'));
  }

 private:
  std::string usage_;
};

}  // namespace

std::string LongName(const std::string& flags) { return flags.substr(flags.find("--")); }

VerbParser::VerbParser(std::string verb, const std::string& description, const std::string& example)
    : verb_(std::move(verb)), app_(description, "pozor " + verb_) {
  app_.footer("Example:\n  " + example);
  app_.allow_extras();
}

void VerbParser::AddModelAndInputs(bool model_required, size_t most_inputs) {
  takes_model_ = true;
  model_required_ = model_required;
  most_inputs_ = most_inputs;
  app_.add_option("words", words_)
      ->expected(0, CLI::detail::expected_max_vector_size)
      ->group("");  // the usage line shows them
  app_.add_option("--model", model_, "folder, file or name of a model, instead of the first word")
      ->type_name("M");
  if (most_inputs > 0) {
    app_.add_option("--input", inputs_, "a file to read, '-' for standard input")
        ->type_name("F")
        ->expected(1)
        ->take_all();
  }
}

void VerbParser::AddModelAndWords(const std::string& usage, size_t most) {
  AddModelAndInputs(true, 0);
  most_words_ = most;
  usage_ = usage;
}

CLI::Option* VerbParser::AddCount(const std::string& flags, size_t* value,
                                  const std::string& help) {
  const auto read = [value, name = LongName(flags)](const std::string& text) {
    size_t count = 0;
    const auto end = std::from_chars(text.data(), text.data() + text.size(), count);
    if (end.ec != std::errc() || end.ptr != text.data() + text.size() || count == 0) {
      throw CLI::ValidationError(name, "'" + text + "' is no count of at least 1");
    }
    *value = count;
  };
  return app_.add_option_function<std::string>(flags, read, help)->type_name("N");
}

int VerbParser::Complain(const std::string& word) {
  std::vector<std::string> known;
  for (const CLI::Option* option : app_.get_options()) {
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  }
  const std::string closest = word.starts_with("-") ? Closest(word, known) : "";
  const std::string hint = closest.empty() ? "" : "did you mean '" + closest + "'? ";
  const char* why = word.starts_with("-") ? ": unknown option; " : ": one word too many; ";
  return UsedWrongly(verb_ + ": " + word + why + hint + "'pozor " + verb_ +
                     " --help' lists the options");
}

std::string VerbParser::Usage() const {
  std::string usage = "pozor " + verb_;
  if (!usage_.empty()) return usage + " " + usage_;
  if (takes_model_) usage += model_required_ ? " MODEL" : " [MODEL]";
  if (most_inputs_ > 0) usage += most_inputs_ == 1 ? " [FILE|-]" : " [FILE...|-]";
  return usage;
}

std::optional<int> VerbParser::AssignWords() {
  size_t next = 0;
  if (takes_model_ && model_.empty() && !words_.empty()) model_ = words_[next++];
  for (; next < words_.size(); ++next) {
    if (more_words_.size() < most_words_) {
      more_words_.push_back(words_[next]);
      continue;
    }
    if (inputs_.size() >= most_inputs_) return Complain(words_[next]);
    inputs_.push_back(words_[next]);
  }
  if (inputs_.size() > most_inputs_) return Complain(inputs_.back());
  if (model_required_ && model_.empty()) {
    return UsedWrongly(verb_ + ": no model given; name a folder, a file or a model: 'pozor " +
                       verb_ + " --help'");
  }
  return std::nullopt;
}

namespace {

// An option for a file or folder that was given an empty name, as by a shell variable that is not
// set; or "". Left to itself it would mean the same as no option.
std::string EmptyFileOption(const CLI::App& app) {
  const std::set<std::string> kinds = {"FILE", "FILE...", "OUT", "OUT.html", "DIR", "V.npy", "M"};
  for (const CLI::Option* option : app.get_options()) {
    if (!kinds.contains(option->get_type_name())) continue;
    for (const std::string& value : option->results()) {
      if (value.empty()) return option->get_name();
    }
  }
  return "";
}

}  // namespace

std::optional<int> VerbParser::Parse(std::span<char* const> arguments) {
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app_.parse(std::move(reversed));
  } catch (const CLI::CallForHelp&) {
    const auto formatter = std::make_shared<VerbFormatter>(Usage());
    formatter->column_width(kHelpColumn);
    app_.formatter(formatter);
    std::printf("%s\n", app_.help().c_str());
    return FinishStandardOutput(kExitDone);
  } catch (const CLI::ParseError& error) {
    return UsedWrongly(verb_ + ": " + FirstLine(error.what()) + "; see 'pozor " + verb_ +
                       " --help'");
  }
  const std::vector<std::string> extras = app_.remaining();
  if (!extras.empty()) return Complain(extras.front());
  if (const std::string option = EmptyFileOption(app_); !option.empty()) {
    return UsedWrongly(verb_ + ": " + option + ": its value is empty; name a file, or leave " +
                       option + " out");
  }
  return AssignWords();
}

void AddCpuOption(VerbParser& parser) {
  const auto read = [](const std::string& text) {
    CpuTier tier;
    if (!ParseCpuTier(text, &tier)) {
      throw CLI::ValidationError("--cpu",
                                 "'" + text + "' is no tier; the tiers are " + CpuTierNames());
    }
    if (SetCpuTierCap(tier)) return;
    std::string names;
    for (const CpuTier supported : SupportedCpuTiers()) {
      names += (names.empty() ? "" : " ") + std::string(CpuTierName(supported));
    }
    throw CLI::ValidationError("--cpu",
                               "this machine cannot run '" + text + "'; it can run " + names);
  };
  parser.app()
      .add_option_function<std::string>("--cpu", read, "cap the instruction set: " + CpuTierNames())
      ->type_name("TIER");
}

void AddMemoryOption(VerbParser& parser, LoadOptions* load) {
  const auto read_memory = [load](const std::string& text) {
    if (!ParseSize(text, &load->max_memory)) {
      throw CLI::ValidationError("--max-memory",
                                 "'" + text + "' is no size; give bytes, or 160M, 2G");
    }
  };
  parser.app()
      .add_option_function<std::string>("--max-memory", read_memory,
                                        "ceiling for the whole process, e.g. 160M")
      ->type_name("SIZE");
}

void AddTaskOption(VerbParser& parser, std::string* task) {
  parser.app()
      .add_option("--task", *task,
                  "whose adapter is used, and its prompt (none), of a model that has some")
      ->type_name("TASK");
}

void AddLoadOptions(VerbParser& parser, LoadOptions* load) {
  AddMemoryOption(parser, load);
  AddTaskOption(parser, &load->task);
  const auto read_precision = [load](const std::string& text) {
    if (text == "f32") load->precision = Precision::kF32;
    if (text == "bf16") load->precision = Precision::kBF16;
    if (text == "int8") load->precision = Precision::kInt8;
    if (text == "bf16x3") load->precision = Precision::kBF16x3;
    if (text != "f32" && text != "bf16" && text != "int8" && text != "bf16x3") {
      throw CLI::ValidationError("--precision", "'" + text + "' is none of f32|bf16|int8|bf16x3");
    }
  };
  parser.app()
      .add_option_function<std::string>("--precision", read_precision,
                                        "of the products (f32; a prepared model: its own)")
      ->type_name("f32|bf16|int8|bf16x3");
  AddCpuOption(parser);
}

void AddInputFormat(VerbParser& parser, std::optional<InputFormat>* format, std::string* text_field,
                    bool* header) {
  parser.AddChoice<InputFormat>("--input-format", format,
                                {{"text", InputFormat::kText},
                                 {"jsonl", InputFormat::kJsonLines},
                                 {"csv", InputFormat::kCsv},
                                 {"tsv", InputFormat::kTsv}},
                                "of every input (by the ending; standard input: text)");
  parser.app()
      .add_option("--text-field", *text_field,
                  "member or column (name, number) with the text (text)")
      ->type_name("F");
  parser.app().add_flag_callback(
      "--no-header", [header] { *header = false; }, "csv, tsv: the first record is a text too");
}

bool ParseSize(const std::string& text, size_t* bytes) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (parsed.ec != std::errc() || !(number > 0)) return false;
  const std::string unit(parsed.ptr, end);
  constexpr char kPrefixes[] = "KMGT";
  double factor = unit.empty() || unit == "B" ? 1 : 0;
  for (int power = 1; power <= 4 && factor == 0; ++power) {
    const std::string prefix(1, kPrefixes[power - 1]);
    std::string lower = unit;
    if (!lower.empty() && lower[0] == 'k') lower[0] = 'K';
    if (lower == prefix || lower == prefix + "iB") factor = std::pow(1024.0, power);
    if (lower == prefix + "B") factor = std::pow(1000.0, power);
  }
  constexpr double kMost = 9e18;
  if (factor == 0 || number * factor > kMost || number * factor < 1) return false;
  *bytes = static_cast<size_t>(number * factor);
  return true;
}

}  // namespace pozor::tools
