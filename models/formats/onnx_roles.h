// Which constant tensor of an ONNX graph is which weight of the model.
//
// Exporters keep the names of most parameters, but fold the transposition of a Linear layer's
// weight: it becomes an anonymous constant [in, out]. What it is follows from the bias that is
// added to the product ("x.bias" belongs to "x.weight"), else from the node's name, which is the
// path of the module ("/encoder/layer.0/attention/self/query/MatMul"). ONNX Runtime's quantiser
// transposes a named one of a Gemm itself: "x.weight_Transposed".
#ifndef POZOR_MODELS_FORMATS_ONNX_ROLES_H_
#define POZOR_MODELS_FORMATS_ONNX_ROLES_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/formats/onnx_graph.h"
#include "pozor/status.h"

namespace pozor {

struct OnnxWeight {
  std::string name;         // of the parameter
  size_t tensor = 0;        // index into OnnxGraph::tensors
  bool transposed = false;  // the parameter is the tensor with its dimensions swapped
  // Names of the tensors that scale a quantised one, or empty.
  std::string_view scale = {}, zero = {};
  // The tensor's dimension that has a scale for each step, should there be more than one: what the
  // operators that read it say, if they agree.
  std::optional<size_t> scale_axis = std::nullopt;
};

// Every weight of the graph. Unsupported, by name, if the graph has fused operators or a weight
// whose role does not show. `name` stands in the messages.
Result<std::vector<OnnxWeight>> FindOnnxWeights(const OnnxGraph& graph, const std::string& name);

}  // namespace pozor

#endif  // POZOR_MODELS_FORMATS_ONNX_ROLES_H_
