#include "models/formats/onnx_graph.h"

#include <utility>

#include "models/protobuf.h"

namespace pozor {
namespace {

// Far above any real model, and small enough for memory to stay small.
constexpr size_t kMostNodes = size_t{1} << 17;
constexpr size_t kMostTensors = size_t{1} << 17;
constexpr size_t kMostNames = size_t{1} << 19;
constexpr size_t kMostInts = size_t{1} << 22;
constexpr size_t kMostDims = 16;

// Field numbers of the messages.
enum ModelField : uint32_t { kGraph = 7, kFunctions = 25 };
enum GraphField : uint32_t { kNode = 1, kInitializer = 5 };
enum NodeField : uint32_t { kInput = 1, kOutput, kNodeName, kOpType, kAttribute, kDomain = 7 };
enum AttributeField : uint32_t { kAttributeName = 1, kInt = 3, kTensor = 5, kInts = 8 };
enum TensorField : uint32_t {
  kDims = 1,
  kDataType,
  kFloatData = 4,
  kInt32Data,
  kInt64Data = 7,
  kTensorName,
  kRawData,
  kDoubleData,
  kExternalData = 13,
  kDataLocation
};
enum EntryField : uint32_t { kKey = 1, kEntryValue };

class OnnxParser {
 public:
  explicit OnnxParser(OnnxGraph* out) : out_(*out) {}

  // Why the file is refused; nothing if it is good.
  std::string Model(std::string_view bytes) {
    ProtoFields fields(bytes);
    bool has_graph = false;
    while (fields.Next()) {
      if (fields.number() == kFunctions) return "functions of its own are not supported";
      if (fields.number() != kGraph) continue;
      has_graph = true;
      Graph(fields.bytes());
    }
    if (too_many_) return "more nodes or values than any model has";
    if (bad_ || fields.bad()) return "damaged: the protobuf breaks off or is none";
    if (!has_graph || out_.tensors.empty()) return "an empty model: it has no weights";
    return {};
  }

 private:
  void Graph(std::string_view bytes) {
    ProtoFields fields(bytes);
    while (!too_many_ && fields.Next()) {
      if (fields.number() == kInitializer) AddTensor(fields.bytes());
      if (fields.number() == kNode) Node(fields.bytes());
    }
    bad_ |= fields.bad();
  }

  int64_t AddTensor(std::string_view bytes) {
    too_many_ |= out_.tensors.size() >= kMostTensors;
    if (too_many_) return -1;
    out_.tensors.emplace_back();
    OnnxTensor& tensor = out_.tensors.back();
    ProtoFields fields(bytes);
    while (fields.Next()) TensorField(fields, &tensor);
    bad_ |= fields.bad();
    ints_ += tensor.ints.size();
    too_many_ |= ints_ > kMostInts || tensor.dims.size() > kMostDims;
    return static_cast<int64_t>(out_.tensors.size()) - 1;
  }

  void TensorField(const ProtoFields& field, OnnxTensor* tensor) {
    // A packed number takes a byte at least.
    const bool fits = ints_ + tensor->ints.size() + field.bytes().size() <= kMostInts;
    switch (field.number()) {
      case kDims:
        if (field.bytes().size() > 10 * kMostDims) too_many_ = true;
        if (!too_many_) bad_ |= !field.AppendInts(&tensor->dims);
        return;
      case kDataType:
        tensor->type = static_cast<OnnxType>(field.as_int());
        return;
      case kFloatData:
        tensor->floats = field.bytes();
        return;
      case kInt32Data:
      case kInt64Data:
        too_many_ |= !fits;
        if (fits) bad_ |= !field.AppendInts(&tensor->ints);
        return;
      case kTensorName:
        tensor->name = field.bytes();
        return;
      case kRawData:
        tensor->raw = field.bytes();
        return;
      case kDoubleData:
        tensor->doubles = field.bytes();
        return;
      case kExternalData:
        return Location(field.bytes(), tensor);
      case kDataLocation:
        tensor->external = field.value() == 1;
        return;
      default:
        return;
    }
  }

  void Location(std::string_view bytes, OnnxTensor* tensor) {
    ProtoFields fields(bytes);
    std::pair<std::string_view, std::string_view> entry;
    while (fields.Next()) {
      if (fields.number() == kKey) entry.first = fields.bytes();
      if (fields.number() == kEntryValue) entry.second = fields.bytes();
    }
    bad_ |= fields.bad();
    too_many_ |= ++names_ > kMostNames;
    if (!too_many_) tensor->location.push_back(entry);
  }

  void Node(std::string_view bytes) {
    too_many_ |= out_.nodes.size() >= kMostNodes;
    if (too_many_) return;
    OnnxNode node;
    ProtoFields fields(bytes);
    while (!too_many_ && fields.Next()) {
      switch (fields.number()) {
        case kInput:
        case kOutput:
          too_many_ |= ++names_ > kMostNames;
          (fields.number() == kInput ? node.inputs : node.outputs).push_back(fields.bytes());
          break;
        case kNodeName:
          node.name = fields.bytes();
          break;
        case kOpType:
          node.op = fields.bytes();
          break;
        case kAttribute:
          Attribute(fields.bytes(), &node);
          break;
        case kDomain:
          node.domain = fields.bytes();
          break;
        default:
          break;
      }
    }
    bad_ |= fields.bad();
    out_.nodes.push_back(std::move(node));
  }

  void Attribute(std::string_view bytes, OnnxNode* node) {
    ProtoFields fields(bytes);
    std::string_view name, tensor;
    int64_t number = 0;
    std::vector<int64_t> list;
    while (fields.Next()) {
      if (fields.number() == kAttributeName) name = fields.bytes();
      if (fields.number() == kInt) number = fields.as_int();
      if (fields.number() == kTensor) tensor = fields.bytes();
      if (fields.number() == kInts && fields.bytes().size() <= kMostDims && list.size() < kMostDims)
        bad_ |= !fields.AppendInts(&list);
    }
    bad_ |= fields.bad();
    if (name == "axis") node->axis = number;
    if (name == "transB") node->transposes_b = number != 0;
    if (name == "perm") node->swaps = list == std::vector<int64_t>{1, 0};
    if (name == "value" && tensor.data() != nullptr) node->value = AddTensor(tensor);
  }

  OnnxGraph& out_;
  size_t names_ = 0, ints_ = 0;
  bool bad_ = false;
  bool too_many_ = false;
};

}  // namespace

Result<OnnxGraph> ParseOnnx(std::string_view file, const std::string& name) {
  OnnxGraph graph;
  const std::string why = OnnxParser(&graph).Model(file);
  if (why.empty()) return graph;
  if (why.ends_with("not supported")) {
    return Unsupported(name + ": " + why + "; export the model with the TorchScript exporter");
  }
  return Corrupt(name + ": " + why + "; export the model again");
}

}  // namespace pozor
