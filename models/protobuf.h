// Protocol buffers field by field, from memory that may hold anything. protobuf.cc is the only file
// that knows protozero.
#ifndef POZOR_MODELS_PROTOBUF_H_
#define POZOR_MODELS_PROTOBUF_H_

#include <cstdint>
#include <string_view>
#include <vector>

namespace pozor {

// Walks over the fields of one message; nested messages are bytes for another reader. Nothing is
// copied: what bytes() gives lies in the message.
class ProtoFields {
 public:
  explicit ProtoFields(std::string_view message) : rest_(message) {}

  // Moves to the next field; false at the end or at damage, which bad() tells apart.
  bool Next();
  bool bad() const { return bad_; }

  uint32_t number() const { return number_; }
  uint64_t value() const { return value_; }  // of a varint or a fixed number: its bits
  int64_t as_int() const { return static_cast<int64_t>(value_); }
  float as_float() const;                            // of a fixed 32-bit number
  std::string_view bytes() const { return bytes_; }  // of a string or a message, else empty

  // Appends the integers of a repeated field, packed or one by one; false at damage.
  bool AppendInts(std::vector<int64_t>* out) const;

 private:
  std::string_view rest_, bytes_;
  uint64_t value_ = 0;
  uint32_t number_ = 0;
  bool is_bytes_ = false;
  bool bad_ = false;
};

}  // namespace pozor

#endif  // POZOR_MODELS_PROTOBUF_H_
