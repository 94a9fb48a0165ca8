// The only door to CLI11: one parser a verb, with the options that several verbs share.
#ifndef POZOR_TOOLS_CLI_OPTIONS_H_
#define POZOR_TOOLS_CLI_OPTIONS_H_

#include <CLI/CLI.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "pozor/pozor.hpp"
#include "tools/io/records.h"

namespace pozor::tools {

inline constexpr size_t kAnyNumberOfInputs = size_t{1} << 30;

class VerbParser {
 public:
  VerbParser(std::string verb, const std::string& description, const std::string& example);

  CLI::App& app() { return app_; }

  // --model M, or the first word that is no option; --input F (any number), or the words after it.
  // Words beyond `most_inputs` are an error.
  void AddModelAndInputs(bool model_required, size_t most_inputs);

  // --model M, or the first word; up to `most` further words, which words() gives. `usage` names
  // them all.
  void AddModelAndWords(const std::string& usage, size_t most);

  // An option that takes one of some names.
  template <class T>
  CLI::Option* AddChoice(const std::string& flags, std::optional<T>* value,
                         std::vector<std::pair<std::string, T>> names, const std::string& help);

  // A count of at least 1.
  CLI::Option* AddCount(const std::string& flags, size_t* value, const std::string& help);

  // Nothing: go on. Otherwise the exit code (help was printed, or an error).
  std::optional<int> Parse(std::span<char* const> arguments);

  // After Parse().
  const std::string& model() const { return model_; }
  const std::vector<std::string>& inputs() const { return inputs_; }
  const std::vector<std::string>& words() const { return more_words_; }

 private:
  std::string Usage() const;
  std::optional<int> AssignWords();
  int Complain(const std::string& word);

  std::string verb_;
  CLI::App app_;
  bool takes_model_ = false;
  bool model_required_ = false;
  size_t most_inputs_ = 0;
  size_t most_words_ = 0;
  std::string usage_;  // of the words, if they are no inputs
  std::vector<std::string> words_;
  std::string model_;
  std::vector<std::string> inputs_;
  std::vector<std::string> more_words_;
};

// --cpu, applied as it is read.
void AddCpuOption(VerbParser& parser);
// --max-memory
void AddMemoryOption(VerbParser& parser, LoadOptions* load);
// --task
void AddTaskOption(VerbParser& parser, std::string* task);
// --threads, --batch-tokens, --max-length, --max-memory, --precision, --plain-specials, ...
void AddLoadOptions(VerbParser& parser, LoadOptions* load);
void AddInputFormat(VerbParser& parser, std::optional<InputFormat>* format, std::string* text_field,
                    bool* header);

// "160M", "1.5GiB", "500000": K, M, G (and KiB ...) are powers of 1024, KB, MB, GB of 1000. False
// if it is no size.
bool ParseSize(const std::string& text, size_t* bytes);

// "--output" of "-o,--output".
std::string LongName(const std::string& flags);

template <class T>
CLI::Option* VerbParser::AddChoice(const std::string& flags, std::optional<T>* value,
                                   std::vector<std::pair<std::string, T>> names,
                                   const std::string& help) {
  std::string list;
  for (const auto& [name, choice] : names) list += (list.empty() ? "" : "|") + name;
  const auto read = [value, names = std::move(names), list,
                     name_of = LongName(flags)](const std::string& text) {
    for (const auto& [name, choice] : names) {
      if (text == name) *value = choice;
      if (text == name) return;
    }
    throw CLI::ValidationError(name_of, "'" + text + "' is none of " + list);
  };
  return app_.add_option_function<std::string>(flags, read, help)->type_name(list);
}

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_CLI_OPTIONS_H_
