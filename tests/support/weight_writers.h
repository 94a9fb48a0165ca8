// Small writers of the weight formats that Pozor reads, as far as the tests need them.
#ifndef POZOR_TESTS_SUPPORT_WEIGHT_WRITERS_H_
#define POZOR_TESTS_SUPPORT_WEIGHT_WRITERS_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace pozor::test {

// A value's bytes, little-endian.
template <class T>
std::string Raw(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}
template <class T>
std::string RawList(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

// A zip archive of stored entries, each on a 64-byte boundary as torch.save has them.
class ZipWriter {
 public:
  void Add(const std::string& name, std::string_view bytes);
  // With `zip64`, sizes and offsets stand in the ZIP64 records.
  std::string Finish(bool zip64 = false) const;

 private:
  struct Entry {
    std::string name;
    size_t offset, size;
  };
  std::string out_;
  std::vector<Entry> entries_;
};

struct TorchTensor {
  std::string name;
  std::string storage_type = "FloatStorage";  // of torch
  std::vector<size_t> shape = {};
  std::vector<size_t> strides = {};  // none: row-major
  size_t offset = 0;                 // in the storage, in elements
  size_t storage = 0;                // which
};

// pytorch_model.bin of these tensors in these storages.
std::string WriteTorch(const std::vector<TorchTensor>& tensors,
                       const std::vector<std::string_view>& storages, size_t element_size = 4);

// The protocol buffer of an ONNX model.
class OnnxWriter {
 public:
  // `type` as in TensorProto.DataType: 1 f32, 3 int8, 10 f16, 11 f64, 16 bf16.
  void Tensor(const std::string& name, const std::vector<size_t>& dims, int type,
              std::string_view raw);
  struct Node {
    std::string op, name;
    std::vector<std::string> inputs, outputs;
    std::string domain = {};
    bool transposes_b = false;
    bool swaps = false;
    int64_t axis = 1;  // an attribute only if it is another
  };
  void Add(const Node& node);
  std::string Finish() const;

 private:
  std::string graph_;
};

class GgufWriter {
 public:
  void Text(const std::string& key, std::string_view value);
  void Uint(const std::string& key, uint32_t value);
  void Float(const std::string& key, float value);
  void Bool(const std::string& key, bool value);
  void Texts(const std::string& key, const std::vector<std::string>& values);
  void Floats(const std::string& key, const std::vector<float>& values);
  void Ints(const std::string& key, const std::vector<int32_t>& values);
  // `shape` outermost first; `type` as ggml numbers it: 0 f32, 1 f16, 8 Q8_0, 30 bf16.
  void Tensor(const std::string& name, const std::vector<size_t>& shape, uint32_t type,
              std::string_view bytes);
  std::string Finish() const;

 private:
  std::string keys_, infos_, data_;
  uint64_t key_count_ = 0, tensor_count_ = 0;
};

}  // namespace pozor::test

#endif  // POZOR_TESTS_SUPPORT_WEIGHT_WRITERS_H_
