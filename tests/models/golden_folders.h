// The golden folders of all architectures, and the texts in them.
#ifndef POZOR_TESTS_MODELS_GOLDEN_FOLDERS_H_
#define POZOR_TESTS_MODELS_GOLDEN_FOLDERS_H_

#include <doctest/doctest.h>

#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "models/architectures/architecture.h"
#include "models/model_impl.h"
#include "tests/models/golden.h"
#include "tests/models/trace.h"

namespace pozor::test {

// Folders of whole models elsewhere in the test data, then those of architectures alone.
inline std::vector<std::string> GoldenFolders() {
  std::vector<std::string> folders;
  for (const char* name :
       {"bert", "bert-decoder", "bert-gelu-new", "bert-relu", "bert-silu-nopooler"}) {
    folders.push_back(DataPath(name));
  }
  std::set<std::string> sorted;
  for (const auto& entry : std::filesystem::directory_iterator(DataPath("architectures"))) {
    if (entry.is_directory()) sorted.insert(entry.path().string());
  }
  folders.insert(folders.end(), sorted.begin(), sorted.end());
  return folders;
}

inline std::unique_ptr<Model::Impl> LoadParts(const std::string& folder,
                                              Precision precision = Precision::kF32) {
  LoadOptions options;
  options.precision = precision;
  const auto golden = ReadJsonFile(folder + "/golden.json").value();
  if (const JsonValue* task = golden->Find("task")) options.task = std::string(task->as_string());
  auto model = LoadModelParts(folder, options, {.requires_tokenizer = false, .with_pooler = true});
  if (!model.ok()) FAIL(model.status().message());
  return std::move(*model);
}

// The same weights under other names have the numbers of another folder.
inline std::string NumbersOf(const std::string& folder) {
  const auto json = ReadJsonFile(folder + "/golden.json").value();
  const JsonValue* same = json->Find("same_as");
  return same == nullptr ? folder : folder + "/../" + std::string(same->as_string());
}

// visit(name of the text's tensors, its tokens)
template <class Visit>
void ForEachText(const Golden& golden, const Visit& visit) {
  for (const auto& [list, stem] : {std::pair("texts", "text."), std::pair("pairs", "pair.")}) {
    const JsonValue* texts = golden.json().Find(list);
    if (texts == nullptr) continue;
    for (size_t i = 0; i < texts->items().size(); ++i) {
      const JsonValue& text = texts->items()[i];
      if (!text.is_object() || text.Find("ids") == nullptr || text.Find("no_tokens") != nullptr) {
        continue;
      }
      const JsonValue* index = text.Find("index");
      const std::string name =
          stem + std::to_string(index == nullptr ? i : static_cast<size_t>(index->as_int()));
      visit(name, TokensOf(text));
      for (const char* globals : {"global_cls", "global_several"}) {
        const JsonValue* places = text.Find(globals);
        if (places != nullptr) visit(name + "." + globals, TokensOf(text, places));
      }
    }
  }
}

inline std::string DescriptionOf(const std::string& model_type) {
  for (const Architecture* architecture : AllArchitectures()) {
    if (architecture->model_type == model_type) return std::string(architecture->description);
  }
  return "";
}

}  // namespace pozor::test

#endif  // POZOR_TESTS_MODELS_GOLDEN_FOLDERS_H_
