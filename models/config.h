// config.json, read key by key, with a note of what each key did.
#ifndef POZOR_MODELS_CONFIG_H_
#define POZOR_MODELS_CONFIG_H_

#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/activation.h"
#include "models/json.h"
#include "pozor/status.h"

namespace pozor {

// Typed access to the configuration of one model. A key is a name, or a path into objects
// ("rope_parameters.rope_theta"). The first error sticks: the values read after it
// are harmless defaults, and status() tells it. So an architecture reads all it needs in a row and
// asks once.
class Config {
 public:
  // `document` is an object; `name` is its path, for messages.
  Config(JsonDocument document, std::string name);

  const Status& status() const { return status_; }
  const std::string& name() const { return name_; }

  bool Has(std::string_view key) const;
  // True if the file names the key, if only as null.
  bool Mentions(std::string_view key) const {
    return Find(key) != nullptr;
  }  // present and not null

  // A whole number in [1, most]; an absent key is an error.
  size_t Size(std::string_view key, size_t most, std::string_view effect);
  // The same with a value for an absent key or null; zero is admitted.
  size_t SizeOr(std::string_view key, size_t absent, size_t most, std::string_view effect);
  // `count` whole numbers, or one that stands for all.
  std::vector<size_t> SizesOr(std::string_view key, size_t absent, size_t count, size_t most,
                              std::string_view effect);
  // A positive whole number; 0 if it is negative, as some configs spell "none", absent or null.
  size_t SizeOrNone(std::string_view key, size_t most, std::string_view effect);
  // A positive finite number.
  float PositiveOr(std::string_view key, double absent, std::string_view effect);
  bool FlagOr(std::string_view key, bool absent, std::string_view effect);
  std::string TextOr(std::string_view key, std::string_view absent, std::string_view effect);
  // A list of texts; empty if the key is absent.
  std::vector<std::string> Texts(std::string_view key, std::string_view effect);
  // A list of texts, or one text with '|' between its parts; in lower case, without spaces around.
  // Empty if the key is absent.
  std::vector<std::string> Parts(std::string_view key, std::string_view effect);
  // hidden_act and its kin; refuses names that Pozor has no function for.
  Activation ActivationOr(std::string_view key, std::string_view absent, std::string_view effect);

  // Refuses the model unless the key is absent, null, false, or one of `admitted` (as Describe()
  // spells it, strings without quotes).
  void Refuse(std::string_view key, std::string_view why,
              std::initializer_list<std::string_view> admitted = {});

  // Refuses the model if the key is false: `why` names what only true stands for.
  void Demand(std::string_view key, std::string_view why);

  // Keys that change nothing here, and why.
  void Ignore(std::span<const std::string_view> keys, std::string_view why);

  // Refuses the model for a reason of the architecture's own.
  void Fail(Status status);

  // What every architecture does alike: refuses quantised checkpoints, pruned heads and the like,
  // sets aside keys of training, generation and bookkeeping, and warns about keys nobody knows.
  void Finish(std::vector<std::string>* warnings);

  // Keys that the architecture reads or checks, and their values.
  std::vector<std::pair<std::string, std::string>> Decisive() const;

  // key = value: effect, in the order of the file.
  std::vector<std::pair<std::string, std::string>> Effects() const;

 private:
  const JsonValue* Find(std::string_view path) const;
  const JsonValue* Take(std::string_view key, std::string_view effect);
  bool IsKnown(std::string_view key) const;
  void ReportUnknown(const JsonValue& object, const std::string& stem,
                     std::vector<std::string>* warnings);
  void Wrong(std::string_view key, const JsonValue* value, const std::string& why);

  JsonDocument document_;
  std::string name_;
  Status status_;
  std::vector<std::pair<std::string, std::string>> effects_;
  std::vector<std::string> ignored_;  // keys that change nothing
};

// False if Pozor has no such function.
bool ParseActivation(std::string_view name, Activation* activation);

// model_type of a config, or what its architectures[0] says; Unsupported if neither is there.
Result<std::string> FindModelType(const JsonValue& config, const std::string& name);

}  // namespace pozor

#endif  // POZOR_MODELS_CONFIG_H_
