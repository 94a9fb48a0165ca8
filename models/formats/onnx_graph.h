// The parts of an ONNX file that say what its weights are: nodes and constant tensors, as views of
// the file (onnx.proto of the ONNX project, IR version 3 and up).
#ifndef POZOR_MODELS_FORMATS_ONNX_GRAPH_H_
#define POZOR_MODELS_FORMATS_ONNX_GRAPH_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pozor/status.h"

namespace pozor {

// TensorProto.DataType.
enum class OnnxType : int64_t {
  kFloat = 1,
  kUint8 = 2,
  kInt8 = 3,
  kInt32 = 6,
  kInt64 = 7,
  kBool = 9,
  kFloat16 = 10,
  kDouble = 11,
  kBfloat16 = 16,
};

// Values stand in `raw` (little-endian) or, one by one, in the list that belongs to the type.
struct OnnxTensor {
  std::string_view name;
  std::vector<int64_t> dims;
  OnnxType type = OnnxType::kFloat;
  std::string_view raw;
  std::string_view floats;   // packed float_data
  std::string_view doubles;  // packed double_data
  std::vector<int64_t> ints;
  bool external = false;
  std::vector<std::pair<std::string_view, std::string_view>> location;  // of external data
};

struct OnnxNode {
  std::string_view op, domain, name;
  std::vector<std::string_view> inputs, outputs;
  bool transposes_b = false;  // Gemm's transB
  bool swaps = false;         // Transpose with perm [1, 0]
  int64_t value = -1;         // Constant's: index into tensors
  int64_t axis = 1;           // DequantizeLinear's
};

struct OnnxGraph {
  std::vector<OnnxNode> nodes;
  std::vector<OnnxTensor> tensors;  // initialisers, then the values of Constant nodes
};

// `name` stands in the messages. The graph refers to `file`.
Result<OnnxGraph> ParseOnnx(std::string_view file, const std::string& name);

}  // namespace pozor

#endif  // POZOR_MODELS_FORMATS_ONNX_GRAPH_H_
