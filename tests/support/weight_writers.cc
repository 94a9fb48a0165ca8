#include "tests/support/weight_writers.h"

#include <algorithm>

namespace pozor::test {
namespace {

void AppendText32(std::string_view text, std::string* out) {
  *out += 'X';  // BINUNICODE
  *out += Raw(static_cast<uint32_t>(text.size()));
  *out += text;
}

void AppendInt(size_t value, std::string* out) {
  *out += "\x8A\x08";  // LONG1 of eight bytes
  *out += Raw(static_cast<uint64_t>(value));
}

void AppendTuple(const std::vector<size_t>& values, std::string* out) {
  *out += '(';
  for (const size_t value : values) AppendInt(value, out);
  *out += 't';
}

std::vector<size_t> RowMajor(const std::vector<size_t>& shape) {
  std::vector<size_t> strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

std::string Varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out + static_cast<char>(value);
}

std::string NumberField(uint32_t number, uint64_t value) {
  return Varint(number << 3) + Varint(value);
}

std::string BytesField(uint32_t number, std::string_view bytes) {
  return Varint(number << 3 | 2) + Varint(bytes.size()) + std::string(bytes);
}

std::string GgufText(std::string_view text) {
  return Raw(static_cast<uint64_t>(text.size())) + std::string(text);
}

}  // namespace

void ZipWriter::Add(const std::string& name, std::string_view bytes) {
  const size_t header = 30 + name.size();
  const size_t padding = (64 - (out_.size() + header) % 64) % 64;
  entries_.push_back({name, out_.size(), bytes.size()});
  const auto size = static_cast<uint32_t>(bytes.size());
  out_ += Raw(uint32_t{0x04034B50}) + std::string(14, '\0') + Raw(size) + Raw(size) +
          Raw(static_cast<uint16_t>(name.size())) + Raw(static_cast<uint16_t>(padding)) + name +
          std::string(padding, '\0');
  out_ += bytes;
}

std::string ZipWriter::Finish(bool zip64) const {
  std::string out = out_;
  const size_t directory = out.size();
  for (const Entry& entry : entries_) {
    const uint32_t in64 = 0xFFFFFFFF;
    const uint32_t size = zip64 ? in64 : static_cast<uint32_t>(entry.size);
    const uint32_t offset = zip64 ? in64 : static_cast<uint32_t>(entry.offset);
    std::string extra;
    if (zip64) {
      extra = Raw(uint16_t{1}) + Raw(uint16_t{24}) + Raw(uint64_t{entry.size}) +
              Raw(uint64_t{entry.size}) + Raw(uint64_t{entry.offset});
    }
    out += Raw(uint32_t{0x02014B50}) + std::string(16, '\0') + Raw(size) + Raw(size) +
           Raw(static_cast<uint16_t>(entry.name.size())) +
           Raw(static_cast<uint16_t>(extra.size())) + std::string(10, '\0') + Raw(offset) +
           entry.name + extra;
  }
  const size_t size = out.size() - directory;
  if (zip64) {
    const size_t end64 = out.size();
    out += Raw(uint32_t{0x06064B50}) + Raw(uint64_t{44}) + std::string(12, '\0') +
           Raw(uint64_t{entries_.size()}) + Raw(uint64_t{entries_.size()}) + Raw(uint64_t{size}) +
           Raw(uint64_t{directory});
    out += Raw(uint32_t{0x07064B50}) + Raw(uint32_t{0}) + Raw(uint64_t{end64}) + Raw(uint32_t{1});
  }
  const auto count = static_cast<uint16_t>(zip64 ? 0xFFFF : entries_.size());
  return out + Raw(uint32_t{0x06054B50}) + Raw(uint32_t{0}) + Raw(count) + Raw(count) +
         Raw(static_cast<uint32_t>(zip64 ? 0xFFFFFFFF : size)) +
         Raw(static_cast<uint32_t>(zip64 ? 0xFFFFFFFF : directory)) + Raw(uint16_t{0});
}

std::string WriteTorch(const std::vector<TorchTensor>& tensors,
                       const std::vector<std::string_view>& storages, size_t element_size) {
  std::string pickle = "\x80\x02";
  pickle += "ccollections\nOrderedDict\n)R(";
  for (const TorchTensor& tensor : tensors) {
    AppendText32(tensor.name, &pickle);
    pickle += "ctorch._utils\n_rebuild_tensor_v2\n((";
    AppendText32("storage", &pickle);
    pickle += "ctorch\n" + tensor.storage_type + "\n";
    AppendText32(std::to_string(tensor.storage), &pickle);
    AppendText32("cpu", &pickle);
    AppendInt(storages[tensor.storage].size() / element_size, &pickle);
    pickle += "tQ";
    AppendInt(tensor.offset, &pickle);
    AppendTuple(tensor.shape, &pickle);
    AppendTuple(tensor.strides.empty() ? RowMajor(tensor.shape) : tensor.strides, &pickle);
    pickle +=
        "\x89"
        "ccollections\nOrderedDict\n)RtR";
  }
  pickle += "u.";
  ZipWriter zip;
  zip.Add("archive/data.pkl", pickle);
  for (size_t i = 0; i < storages.size(); ++i) {
    zip.Add("archive/data/" + std::to_string(i), storages[i]);
  }
  zip.Add("archive/version", "3\n");
  return zip.Finish();
}

void OnnxWriter::Tensor(const std::string& name, const std::vector<size_t>& dims, int type,
                        std::string_view raw) {
  std::string tensor;
  for (const size_t dim : dims) tensor += NumberField(1, dim);
  tensor += NumberField(2, static_cast<uint64_t>(type)) + BytesField(8, name) + BytesField(9, raw);
  graph_ += BytesField(5, tensor);
}

void OnnxWriter::Add(const Node& node) {
  std::string out;
  for (const std::string& input : node.inputs) out += BytesField(1, input);
  for (const std::string& output : node.outputs) out += BytesField(2, output);
  out += BytesField(3, node.name) + BytesField(4, node.op);
  if (node.transposes_b) out += BytesField(5, BytesField(1, "transB") + NumberField(3, 1));
  if (node.axis != 1) {
    out += BytesField(5, BytesField(1, "axis") + NumberField(3, static_cast<uint64_t>(node.axis)));
  }
  if (node.swaps) {
    out += BytesField(5, BytesField(1, "perm") + NumberField(8, 1) + NumberField(8, 0));
  }
  if (!node.domain.empty()) out += BytesField(7, node.domain);
  graph_ += BytesField(1, out);
}

std::string OnnxWriter::Finish() const { return NumberField(1, 8) + BytesField(7, graph_); }

void GgufWriter::Text(const std::string& key, std::string_view value) {
  keys_ += GgufText(key) + Raw(uint32_t{8}) + GgufText(value);
  ++key_count_;
}

void GgufWriter::Uint(const std::string& key, uint32_t value) {
  keys_ += GgufText(key) + Raw(uint32_t{4}) + Raw(value);
  ++key_count_;
}

void GgufWriter::Float(const std::string& key, float value) {
  keys_ += GgufText(key) + Raw(uint32_t{6}) + Raw(value);
  ++key_count_;
}

void GgufWriter::Bool(const std::string& key, bool value) {
  keys_ += GgufText(key) + Raw(uint32_t{7}) + Raw(static_cast<uint8_t>(value));
  ++key_count_;
}

void GgufWriter::Texts(const std::string& key, const std::vector<std::string>& values) {
  keys_ += GgufText(key) + Raw(uint32_t{9}) + Raw(uint32_t{8}) + Raw(uint64_t{values.size()});
  for (const std::string& value : values) keys_ += GgufText(value);
  ++key_count_;
}

void GgufWriter::Floats(const std::string& key, const std::vector<float>& values) {
  keys_ += GgufText(key) + Raw(uint32_t{9}) + Raw(uint32_t{6}) + Raw(uint64_t{values.size()});
  keys_ += RawList(values);
  ++key_count_;
}

void GgufWriter::Ints(const std::string& key, const std::vector<int32_t>& values) {
  keys_ += GgufText(key) + Raw(uint32_t{9}) + Raw(uint32_t{5}) + Raw(uint64_t{values.size()});
  keys_ += RawList(values);
  ++key_count_;
}

void GgufWriter::Tensor(const std::string& name, const std::vector<size_t>& shape, uint32_t type,
                        std::string_view bytes) {
  data_.resize((data_.size() + 31) / 32 * 32, '\0');
  infos_ += GgufText(name) + Raw(static_cast<uint32_t>(shape.size()));
  for (size_t d = shape.size(); d-- > 0;) infos_ += Raw(uint64_t{shape[d]});
  infos_ += Raw(type) + Raw(uint64_t{data_.size()});
  data_ += bytes;
  ++tensor_count_;
}

std::string GgufWriter::Finish() const {
  std::string out =
      "GGUF" + Raw(uint32_t{3}) + Raw(tensor_count_) + Raw(key_count_) + keys_ + infos_;
  out.resize((out.size() + 31) / 32 * 32, '\0');
  return out + data_;
}

}  // namespace pozor::test
