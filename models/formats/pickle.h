// Python pickles as torch.save writes them, read as data: nothing is imported, called or run.
//
// A closed list of names may occur; a call is only ever compared with the few that rebuild tensors
// and dictionaries. Every other opcode, name or call is an error that says which.
#ifndef POZOR_MODELS_FORMATS_PICKLE_H_
#define POZOR_MODELS_FORMATS_PICKLE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/types.h"
#include "pozor/status.h"

namespace pozor {

// One Python object. Objects refer to others by their index, so that cycles do no harm.
struct PickleValue {
  enum class Kind : uint8_t {
    kNone,
    kBool,     // integer
    kInt,      // integer
    kFloat,    // number
    kText,     // text
    kTuple,    // items
    kList,     // items
    kDict,     // items: key, value, key, value, ...
    kGlobal,   // integer: index into the list of known names
    kStorage,  // type, text: its key, integer: elements
    kTensor,   // items: storage, offset, size, stride
    kOther,    // something known that no weight needs
  };
  Kind kind = Kind::kNone;
  DType type = DType::kF32;
  int64_t integer = 0;
  double number = 0;
  std::string_view text = {};  // in the bytes that were read
  std::vector<uint32_t> items = {};
};

class Pickle {
 public:
  // Reads one pickle from the start of `bytes`, which must outlive it; `name` is for messages.
  static Result<Pickle> Read(std::span<const uint8_t> bytes, const std::string& name);

  const PickleValue& root() const { return values_[root_]; }
  const PickleValue& operator[](uint32_t index) const { return values_[index]; }
  size_t size_in_bytes() const { return bytes_; }  // what was read

 private:
  friend class Unpickler;
  std::vector<PickleValue> values_;
  uint32_t root_ = 0;
  size_t bytes_ = 0;
};

}  // namespace pozor

#endif  // POZOR_MODELS_FORMATS_PICKLE_H_
