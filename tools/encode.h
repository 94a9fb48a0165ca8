// pozor encode: texts of files or standard input to vectors.
#ifndef POZOR_TOOLS_ENCODE_H_
#define POZOR_TOOLS_ENCODE_H_

#include <optional>
#include <string>
#include <vector>

#include "pozor/pozor.hpp"
#include "tools/io/output_type.h"
#include "tools/io/records.h"
#include "tools/io/vector_writer.h"

namespace pozor::tools {

struct EncodeRequest {
  std::string model;
  std::vector<std::string> inputs = {"-"};
  std::optional<InputFormat> input_format;
  std::string text_field;
  bool header = true;

  std::string output = "-";
  std::optional<OutputFormat> format;
  OutputType output_type = OutputType::kF32;
  std::string ranges;  // file for OutputType::kInt8

  LoadOptions load;
  EncodeOptions options;  // cancel, progress and profile are set by RunEncode

  bool profile = false;
  bool json = false;   // the summary as JSON
  bool quiet = false;  // no summary, warnings or progress
};

// Warnings, progress and the summary go to standard error. kInvalidArgument: the request itself.
Status RunEncode(EncodeRequest request);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_ENCODE_H_
