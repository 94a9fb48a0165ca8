// pozor verify: a model's results against recorded ones.
#ifndef POZOR_TOOLS_VERIFY_H_
#define POZOR_TOOLS_VERIFY_H_

#include <optional>
#include <string>

#include "pozor/pozor.hpp"
#include "tools/io/records.h"
#include "tools/verify_table.h"

namespace pozor::tools {

struct VerifyRequest {
  std::string model;
  // Either a folder with golden.json and golden.safetensors ...
  std::string golden;
  // ... or vectors of a file's texts, and perhaps the gold score of each pair of texts i, i + n/2.
  std::string reference;
  std::string texts;
  std::string scores;
  std::optional<InputFormat> input_format;
  std::string text_field;
  bool header = true;
  double tolerance = 2e-5;  // for --reference; a golden folder states its own

  LoadOptions load;
  EncodeOptions options;
  bool json = false;
};

// A row a tensor on standard output. The exit code: 0 all within tolerance, 1 a difference,
// 3 nothing wrong but some tensors not computable in this version (listed).
Result<int> RunVerify(const VerifyRequest& request);

// The checksums of prepared weights; InvalidArgument if the model has none.
Status VerifyPrepared(const VerifyRequest& request);

// The two kinds.
Result<VerifyTable> VerifyGolden(const VerifyRequest& request);
Result<VerifyTable> VerifyReference(const VerifyRequest& request);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_VERIFY_H_
