// pozor quantize: a model folder with prepared weights.
#ifndef POZOR_TOOLS_QUANTIZE_H_
#define POZOR_TOOLS_QUANTIZE_H_

#include <optional>
#include <string>

#include "pozor/pozor.hpp"
#include "tools/io/records.h"

namespace pozor::tools {

enum class QuantizeTarget : uint8_t {
  kInt8,
  kBf16,
  kMixed,  // int8 but for the feed-forward's second product, the most sensitive one, in bf16
};

struct QuantizeRequest {
  std::string model;
  std::string output;  // the folder to make
  QuantizeTarget target = QuantizeTarget::kInt8;
  std::string products;     // "down=bf16,5.qkv=f32": [LAYER.]PRODUCT=PRECISION
  std::string calibration;  // file of texts; empty: the built-in ones
  std::string gate_texts;   // likewise
  std::optional<InputFormat> input_format;
  std::string text_field;
  bool header = true;
  bool gate = true;
  bool force = false;  // writes the weights whatever the gate says
  bool json = false;
  LoadOptions load;
};

// The report goes to standard output. kInvalidArgument: the request itself.
Status RunQuantize(const QuantizeRequest& request);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_QUANTIZE_H_
