// A model of tests/data/architectures, which has no tokenizer, with one that knows a few words.
#ifndef POZOR_TESTS_SUPPORT_WORD_MODEL_H_
#define POZOR_TESTS_SUPPORT_WORD_MODEL_H_

#include <filesystem>
#include <string>

#include "tests/support/pozor_command.h"

namespace pozor::testing {

inline constexpr char kWordTokenizer[] = R"({"version": "1.0", "truncation": null,
  "padding": null, "added_tokens": [], "normalizer": null,
  "pre_tokenizer": {"type": "Whitespace"}, "post_processor": null, "decoder": null,
  "model": {"type": "WordLevel", "unk_token": "other",
            "vocab": {"other": 0, "a": 1, "girl": 2, "is": 3, "styling": 4, "the": 5, "ferry": 6,
                      "leaves": 7, "at": 8, "nine": 9}}})";

// The folder's path.
inline std::string MakeWordModel(const TemporaryFolder& folder, const std::string& architecture) {
  const std::string path = folder.File(architecture);
  std::filesystem::create_directories(path);
  for (const char* name : {"config.json", "model.safetensors"}) {
    std::filesystem::copy(TestData("architectures/" + architecture + "/" + name), path);
  }
  folder.Write(architecture + "/tokenizer.json", kWordTokenizer);
  return path;
}

}  // namespace pozor::testing

#endif  // POZOR_TESTS_SUPPORT_WORD_MODEL_H_
