#include "models/formats/torch_file.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "models/formats/byte_cursor.h"
#include "models/formats/elements.h"
#include "models/formats/pickle.h"
#include "models/formats/zip.h"

namespace pozor {
namespace {

using Kind = PickleValue::Kind;
using Bytes = std::span<const uint8_t>;

constexpr size_t kMostPickle = size_t{1} << 24;
constexpr size_t kMostDimensions = 32;
constexpr std::string_view kDataPickle = "/data.pkl";

// Protocol 2, a LONG1 of ten bytes: the magic number of the legacy form.
constexpr uint8_t kLegacyMagic[] = {0x80, 0x02, 0x8A, 0x0A, 0x6C, 0xFC, 0x9C, 0x46,
                                    0xF9, 0x20, 0x6A, 0xA8, 0x50, 0x19, '.'};

bool IsLegacy(Bytes file) {
  return file.size() >= sizeof kLegacyMagic &&
         std::memcmp(file.data(), kLegacyMagic, sizeof kLegacyMagic) == 0;
}

std::string Quoted(std::string_view name) {
  return "tensor '" + std::string(name.substr(0, 200)) + "'";
}

// Whole numbers of a tuple that are not negative; what is wrong otherwise.
std::string ReadSizes(const Pickle& pickle, const PickleValue& tuple, std::string_view what,
                      std::vector<size_t>* sizes) {
  if (tuple.kind != Kind::kTuple) return std::string(what) + " that is no tuple";
  if (tuple.items.size() > kMostDimensions) return "too many dimensions";
  for (const uint32_t index : tuple.items) {
    const PickleValue& size = pickle[index];
    if (size.kind != Kind::kInt) return std::string(what) + " that is no number";
    if (size.integer < 0) return "a negative " + std::string(what);
    sizes->push_back(static_cast<size_t>(size.integer));
  }
  return {};
}

// Whether the tensor stays within `limit` elements of its storage; what is wrong otherwise. It may
// have more elements than that: a broadcast view has strides of 0, other views overlap themselves.
// How many there may be of all tensors, StoredTensors::CheckTotal says.
std::string CheckReach(const std::vector<size_t>& size, const std::vector<size_t>& stride,
                       int64_t offset, size_t limit) {
  if (size.size() != stride.size()) return "a size and a stride of different lengths";
  if (offset < 0) return "a negative offset";
  const std::optional<size_t> count = ElementCount(size);
  if (!count.has_value()) return "a size that overflows";
  if (*count == 0) return {};
  size_t last = static_cast<size_t>(offset);
  if (last >= limit)
    return "the storage offset " + std::to_string(offset) + ", which reaches outside";
  for (size_t d = 0; d < size.size(); ++d) {
    const size_t steps = size[d] - 1;
    if (steps > 0 && stride[d] > limit / steps) {
      return "strides that overflow: it reaches outside its storage";
    }
    last += steps * stride[d];
    if (last >= limit) {
      return "a shape that, from the storage offset " + std::to_string(offset) +
             ", reaches outside its storage";
    }
  }
  return {};
}

// Finds the bytes of a storage by its key.
class Storages {
 public:
  void Add(std::string_view key, Bytes bytes) { bytes_.emplace(std::string(key), bytes); }
  const Bytes* Find(std::string_view key) const {
    const auto found = bytes_.find(key);
    return found == bytes_.end() ? nullptr : &found->second;
  }

 private:
  std::map<std::string, Bytes, std::less<>> bytes_;
};

class TensorCollector {
 public:
  TensorCollector(const Pickle& pickle, const Storages& storages, StoredTensors* out)
      : pickle_(pickle), storages_(storages), out_(*out) {}

  Status Collect() {
    const PickleValue& root = pickle_.root();
    if (root.kind != Kind::kDict) {
      return Corrupt(out_.description() +
                     ": an unexpected structure, not a dictionary of tensors; "
                     "save the state_dict of the model");
    }
    for (size_t i = 0; i + 1 < root.items.size(); i += 2) {
      const PickleValue& key = pickle_[root.items[i]];
      const PickleValue& value = pickle_[root.items[i + 1]];
      if (key.kind != Kind::kText || value.kind != Kind::kTensor) {
        return Corrupt(out_.description() + ": entry '" + std::string(key.text.substr(0, 200)) +
                       "' is not a tensor with a name; save the state_dict of the model");
      }
      POZOR_RETURN_IF_ERROR(Add(key.text, value));
    }
    return out_.CheckTotal();
  }

 private:
  Status Add(std::string_view name, const PickleValue& value) {
    const auto bad = [&](const std::string& why) {
      return Corrupt(out_.description() + ": " + Quoted(name) + " has " + why +
                     "; download the file again");
    };
    const PickleValue& storage = pickle_[value.items[0]];
    const PickleValue& offset = pickle_[value.items[1]];
    StoredTensor tensor;
    tensor.info.name = std::string(name);
    tensor.info.dtype = storage.type;
    if (offset.kind != Kind::kInt) return bad("an offset that is no number");
    std::string wrong = ReadSizes(pickle_, pickle_[value.items[2]], "size", &tensor.info.shape);
    if (!wrong.empty()) return bad(wrong);
    wrong = ReadSizes(pickle_, pickle_[value.items[3]], "stride", &tensor.strides);
    if (!wrong.empty()) return bad(wrong);
    const Bytes* bytes = storages_.Find(storage.text);
    const std::string key = "data/" + std::string(storage.text.substr(0, 200));
    if (bytes == nullptr) return bad("its storage in the entry " + key + ", which is missing");
    const size_t size = SizeOf(storage.type);
    if (storage.integer < 0 || static_cast<uint64_t>(storage.integer) != bytes->size() / size ||
        bytes->size() % size != 0) {
      return bad("a storage of " + std::to_string(storage.integer) + " elements, the entry " + key +
                 " has " + std::to_string(bytes->size()) + " bytes");
    }
    wrong = CheckReach(tensor.info.shape, tensor.strides, offset.integer, bytes->size() / size);
    if (!wrong.empty()) return bad(wrong);
    if (tensor.info.elements() == 0) tensor.strides.clear();
    tensor.bytes = bytes->data() + (tensor.info.elements() == 0 ? 0 : offset.integer * size);
    return out_.Add(std::move(tensor));
  }

  const Pickle& pickle_;
  const Storages& storages_;
  StoredTensors& out_;
};

Status ReadZip(Bytes file, const std::string& name, StoredTensors* out) {
  POZOR_TRY(const ZipDirectory directory, ReadZipDirectory(file, name));
  const auto entry = std::find_if(directory.begin(), directory.end(),
                                  [](const auto& e) { return e.first.ends_with(kDataPickle); });
  if (entry == directory.end()) {
    return Corrupt(name +
                   ": the zip archive has no data.pkl, torch.save did not write it; "
                   "download the file again");
  }
  const std::string folder = entry->first.substr(0, entry->first.size() - kDataPickle.size() + 1);
  const auto order = directory.find(folder + "byteorder");
  if (order != directory.end() && !order->second.empty() && order->second[0] == 'b') {
    return Unsupported(name + ": big-endian numbers are not supported; convert the weights");
  }
  if (entry->second.size() > kMostPickle) {
    return Corrupt(name + ": data.pkl has " + std::to_string(entry->second.size()) +
                   " bytes, more than the tensors of any model need; download the file again");
  }
  Storages storages;
  const std::string data = folder + "data/";
  for (auto it = directory.lower_bound(data); it != directory.end(); ++it) {
    if (!it->first.starts_with(data)) break;
    storages.Add(std::string_view(it->first).substr(data.size()), it->second);
  }
  POZOR_TRY(const Pickle pickle, Pickle::Read(entry->second, name + ": data.pkl"));
  return TensorCollector(pickle, storages, out).Collect();
}

// The element size of each storage that the pickle refers to.
std::map<std::string_view, size_t> ElementSizes(const Pickle& pickle, const PickleValue& root) {
  std::map<std::string_view, size_t> sizes;
  for (const uint32_t index : root.items) {
    if (pickle[index].kind != Kind::kTensor) continue;
    const PickleValue& storage = pickle[pickle[index].items[0]];
    sizes.emplace(storage.text, SizeOf(storage.type));
  }
  return sizes;
}

// Five pickles (magic, protocol, system, object, keys of the storages), then each storage: a count
// of elements and the elements.
Status ReadLegacy(Bytes file, const std::string& name, StoredTensors* out) {
  const std::string where = name + ": legacy format";
  Bytes rest = file;
  std::vector<Pickle> pickles;
  for (int i = 0; i < 5; ++i) {
    const Bytes bounded = rest.first(std::min(rest.size(), kMostPickle));
    // The magic number exceeds 64 bits; it was compared as bytes.
    if (i == 0) {
      rest = rest.subspan(sizeof kLegacyMagic);
      continue;
    }
    POZOR_TRY(Pickle pickle, Pickle::Read(bounded, where));
    rest = rest.subspan(pickle.size_in_bytes());
    pickles.push_back(std::move(pickle));
  }
  const Pickle& object = pickles[2];
  const Pickle& keys = pickles[3];
  const std::map<std::string_view, size_t> sizes = ElementSizes(object, object.root());
  Storages storages;
  ByteCursor cursor(rest);
  for (const uint32_t index : keys.root().items) {
    const std::string_view key = keys[index].text;
    const auto size = sizes.find(key);
    if (size == sizes.end()) {
      return Corrupt(where + ": the storage " + std::string(key.substr(0, 80)) +
                     " belongs to no tensor; download the file again");
    }
    const uint64_t count = cursor.Take<uint64_t>();
    const Bytes bytes = cursor.TakeBytes(count > file.size() ? ~uint64_t{0} : count * size->second);
    if (cursor.failed()) {
      return Corrupt(where + ": the storage " + std::string(key.substr(0, 80)) +
                     " passes the end of the file; download the file again");
    }
    storages.Add(key, bytes);
  }
  return TensorCollector(object, storages, out).Collect();
}

Status ReadBytes(Bytes file, const std::string& name, StoredTensors* out) {
  if (LooksLikeZip(file)) return ReadZip(file, name, out);
  if (IsLegacy(file)) return ReadLegacy(file, name, out);
  return Corrupt(name + ": an unknown file format, neither a zip archive nor a legacy file of " +
                 "torch.save; download the file again");
}

}  // namespace

Result<std::shared_ptr<const TensorSource>> OpenTorchFile(const std::string& path) {
  POZOR_TRY(MappedFile file, MappedFile::Open(path));
  auto source = std::make_shared<StoredTensors>(path);
  const MappedFile& kept = source->Keep(std::move(file));
  POZOR_RETURN_IF_ERROR(ReadBytes({kept.data(), kept.size()}, path, source.get()));
  return std::shared_ptr<const TensorSource>(std::move(source));
}

Result<std::shared_ptr<const TensorSource>> ReadTorchBytes(Bytes bytes, const std::string& name) {
  auto source = std::make_shared<StoredTensors>(name);
  POZOR_RETURN_IF_ERROR(ReadBytes(bytes, name, source.get()));
  return std::shared_ptr<const TensorSource>(std::move(source));
}

}  // namespace pozor
