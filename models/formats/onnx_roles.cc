#include "models/formats/onnx_roles.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace pozor {
namespace {

constexpr std::string_view kQuantized = "_quantized";
constexpr std::string_view kTransposed = "_Transposed";
constexpr size_t kMostSteps = 4;  // from a product to its bias

bool IsFloat(OnnxType type) {
  return type == OnnxType::kFloat || type == OnnxType::kFloat16 || type == OnnxType::kDouble ||
         type == OnnxType::kBfloat16;
}

// "encoder.layer.0.output.dense.bias", not "onnx::MatMul_314", "val_53" or "/encoder/Constant".
bool IsParameterName(std::string_view name) {
  return name.find('.') != std::string_view::npos && name.find('/') == std::string_view::npos &&
         name.find("::") == std::string_view::npos;
}

// "a.b.bias" -> "a.b.weight"
std::optional<std::string> WeightOfBias(std::string_view bias) {
  constexpr std::string_view kBias = ".bias";
  if (!IsParameterName(bias) || !bias.ends_with(kBias)) return std::nullopt;
  return std::string(bias.substr(0, bias.size() - kBias.size())) + ".weight";
}

// "a.b.weight_Transposed_quantized" -> "a.b.weight_Transposed"
std::string_view WithoutSuffix(std::string_view name, std::string_view suffix) {
  return name.ends_with(suffix) ? name.substr(0, name.size() - suffix.size()) : name;
}

// "/encoder/layer.0/attention/self/query/MatMul_quant" -> "encoder.layer.0....query.weight"
std::optional<std::string> WeightOfPath(std::string_view node) {
  if (!node.starts_with('/')) return std::nullopt;
  const size_t end = node.rfind('/');
  if (end < 2) return std::nullopt;
  std::string name(node.substr(1, end - 1));
  std::replace(name.begin(), name.end(), '/', '.');
  return name + ".weight";
}

// A constant that a value stands for, seen through operators that only hand it on.
struct Constant {
  size_t tensor = 0;
  bool swapped = false;
};

class RoleFinder {
 public:
  RoleFinder(const OnnxGraph& graph, const std::string& name) : graph_(graph), name_(name) {}

  Result<std::vector<OnnxWeight>> Find() {
    IndexValues();
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const OnnxNode& node = graph_.nodes[i];
      POZOR_RETURN_IF_ERROR(CheckOperator(node));
      const bool product = node.op == "MatMul" || node.op == "Gemm" || node.op == "MatMulInteger";
      if (product && node.inputs.size() >= 2) POZOR_RETURN_IF_ERROR(Product(node));
    }
    AddNamed();
    return std::move(weights_);
  }

 private:
  // What the exporters of plain models use; a graph that an optimiser has fused has other ones.
  Status CheckOperator(const OnnxNode& node) const {
    if (node.domain.empty() || node.domain == "ai.onnx") return Status();
    return Unsupported(name_ + ": operator " + std::string(node.domain.substr(0, 80)) + "." +
                       std::string(node.op.substr(0, 80)) +
                       " belongs to an optimised graph, whose weights are not read; use the plain "
                       "export (model.onnx)");
  }

  void IndexValues() {
    for (size_t i = 0; i < graph_.tensors.size(); ++i) {
      const std::string_view name = graph_.tensors[i].name;
      if (!name.empty()) values_.emplace(name, Constant{i, false});
      if (!name.empty()) by_name_.emplace(name, i);
    }
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const OnnxNode& node = graph_.nodes[i];
      for (const std::string_view input : node.inputs) readers_.emplace(input, i);
      ReadAxis(node);
      HandOn(node);
    }
  }

  // An integer product has a zero point for each column of its right side [in, out].
  void ReadAxis(const OnnxNode& node) {
    const bool product = node.op == "MatMulInteger" && node.inputs.size() >= 2;
    if (!product && (node.op != "DequantizeLinear" || node.inputs.empty())) return;
    const auto found = values_.find(node.inputs[product ? 1 : 0]);
    if (found == values_.end()) return;
    const Constant& constant = found->second;
    const int64_t rank = static_cast<int64_t>(graph_.tensors[constant.tensor].dims.size());
    int64_t axis = product ? rank - 1 : node.axis < 0 ? node.axis + rank : node.axis;
    if (axis < 0 || axis >= rank || (constant.swapped && rank != 2)) axis = kContradictory;
    if (constant.swapped && axis >= 0) axis = 1 - axis;
    const auto [known, fresh] = axes_.emplace(constant.tensor, axis);
    if (!fresh && known->second != axis) known->second = kContradictory;
  }

  // Nodes stand in the order of the data flow.
  void HandOn(const OnnxNode& node) {
    if (node.outputs.empty()) return;
    if (node.value >= 0) {
      values_.emplace(node.outputs[0], Constant{static_cast<size_t>(node.value), false});
      return;
    }
    const bool passes = node.op == "Identity" || node.op == "Cast" || node.op == "Transpose" ||
                        node.op == "DequantizeLinear";
    if (!passes || node.inputs.empty()) return;
    const auto source = values_.find(node.inputs[0]);
    if (source == values_.end() || (node.op == "Transpose" && !node.swaps)) return;
    Constant constant = source->second;
    constant.swapped ^= node.op == "Transpose";
    values_.emplace(node.outputs[0], constant);
    // An exporter that finds two equal parameters keeps one and hands it on by the other's name.
    if (node.op == "Identity" && IsParameterName(node.outputs[0])) {
      aliases_.emplace_back(node.outputs[0], constant.tensor);
    }
  }

  // A weight times the activations.
  Status Product(const OnnxNode& node) {
    const auto found = values_.find(node.inputs[1]);
    if (found == values_.end()) return Status();
    const Constant constant = found->second;
    const OnnxTensor& tensor = graph_.tensors[constant.tensor];
    if (tensor.dims.size() != 2) return Status();
    const std::string_view base = WithoutSuffix(tensor.name, kQuantized);
    const std::string_view original = WithoutSuffix(base, kTransposed);
    const bool named = IsParameterName(base);
    if (named && original == base) return Status();  // AddNamed takes it as it is
    std::optional<std::string> role = named ? std::string(original) : RoleOf(node);
    if (!role.has_value()) {
      return Unsupported(name_ + ": which weight the tensor '" +
                         std::string(tensor.name.substr(0, 200)) + "' of node '" +
                         std::string(node.name.substr(0, 200)) +
                         "' is does not show, neither by a bias nor by the node's name; export "
                         "the model with named modules");
    }
    // A product takes [in, out], a parameter is [out, in].
    const bool takes_out_in = node.op == "Gemm" && node.transposes_b;
    return Take(std::move(*role), constant.tensor, takes_out_in == constant.swapped);
  }

  std::optional<std::string> RoleOf(const OnnxNode& node) const {
    if (node.op == "Gemm" && node.inputs.size() > 2) {
      if (auto role = WeightOfBias(node.inputs[2])) return role;
    }
    if (auto role = FollowToBias(node)) return role;
    return WeightOfPath(node.name);
  }

  // Through the steps that scale an integer product, to the addition of a bias.
  std::optional<std::string> FollowToBias(const OnnxNode& product) const {
    if (product.outputs.empty()) return std::nullopt;
    std::string_view value = product.outputs[0];
    for (size_t step = 0; step < kMostSteps; ++step) {
      const auto [begin, end] = readers_.equal_range(value);
      if (begin == end || std::next(begin) != end) return std::nullopt;
      const OnnxNode& reader = graph_.nodes[begin->second];
      if (reader.op == "Add") {
        for (const std::string_view input : reader.inputs) {
          if (input == value) continue;
          if (auto role = WeightOfBias(input)) return role;
        }
        return std::nullopt;
      }
      const bool passes = reader.op == "Cast" || reader.op == "Mul" || reader.op == "Identity";
      if (!passes || reader.outputs.empty()) return std::nullopt;
      value = reader.outputs[0];
    }
    return std::nullopt;
  }

  Status Take(std::string role, size_t tensor, bool transposed) {
    const auto [known, fresh] = roles_.emplace(role, tensor);
    if (!fresh) {
      if (known->second == tensor) return Status();  // a layer that is used more than once
      return Unsupported(name_ + ": two tensors, '" +
                         std::string(graph_.tensors[known->second].name.substr(0, 200)) +
                         "' and '" + std::string(graph_.tensors[tensor].name.substr(0, 200)) +
                         "', would be " + role + "; export the model again");
    }
    OnnxWeight weight;
    weight.name = std::move(role);
    weight.tensor = tensor;
    weight.transposed = transposed;
    Scale(&weight);
    taken_.insert(tensor);
    weights_.push_back(std::move(weight));
    return Status();
  }

  // Parameters that kept their names, quantised or not.
  void AddNamed() {
    const auto add = [&](std::string_view name, size_t tensor) {
      if (!IsParameterName(name) || !roles_.emplace(std::string(name), tensor).second) return;
      OnnxWeight weight;
      weight.name = std::string(name);
      weight.tensor = tensor;
      Scale(&weight);
      weights_.push_back(std::move(weight));
    };
    for (size_t i = 0; i < graph_.tensors.size(); ++i) {
      const OnnxTensor& tensor = graph_.tensors[i];
      std::string_view name = tensor.name;
      const bool quantized = name.ends_with(kQuantized);
      if (quantized) name.remove_suffix(kQuantized.size());
      const bool companion =
          by_name_.contains(BaseOf(name, "_scale") + std::string(kQuantized)) ||
          by_name_.contains(BaseOf(name, "_zero_point") + std::string(kQuantized));
      if (!companion && !taken_.contains(i) && (quantized || IsFloat(tensor.type))) add(name, i);
    }
    for (const auto& [name, tensor] : aliases_) add(name, tensor);
  }

  static std::string BaseOf(std::string_view name, std::string_view suffix) {
    return name.ends_with(suffix) ? std::string(name.substr(0, name.size() - suffix.size())) : "";
  }

  // Where the scale of a quantised tensor is: by the names that ONNX Runtime's quantiser gives.
  void Scale(OnnxWeight* weight) const {
    const std::string_view name = graph_.tensors[weight->tensor].name;
    if (!name.ends_with(kQuantized)) return;
    const std::string base = BaseOf(name, kQuantized);
    const auto scale = by_name_.find(base + "_scale");
    const auto zero = by_name_.find(base + "_zero_point");
    if (scale != by_name_.end()) weight->scale = scale->first;
    if (zero != by_name_.end()) weight->zero = zero->first;
    const auto axis = axes_.find(weight->tensor);
    if (axis != axes_.end() && axis->second >= 0) weight->scale_axis = axis->second;
  }

  static constexpr int64_t kContradictory = -1;

  const OnnxGraph& graph_;
  const std::string& name_;
  std::unordered_map<std::string_view, Constant> values_;
  std::unordered_map<size_t, int64_t> axes_;  // of scales, by tensor
  std::map<std::string_view, size_t, std::less<>> by_name_;
  std::unordered_multimap<std::string_view, size_t> readers_;
  std::vector<std::pair<std::string_view, size_t>> aliases_;
  std::map<std::string, size_t> roles_;
  std::set<size_t> taken_;  // tensors that a product told the role of
  std::vector<OnnxWeight> weights_;
};

}  // namespace

Result<std::vector<OnnxWeight>> FindOnnxWeights(const OnnxGraph& graph, const std::string& name) {
  return RoleFinder(graph, name).Find();
}

}  // namespace pozor
