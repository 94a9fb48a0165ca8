// Little-endian numbers and byte ranges from memory that may end anywhere.
#ifndef POZOR_MODELS_FORMATS_BYTE_CURSOR_H_
#define POZOR_MODELS_FORMATS_BYTE_CURSOR_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace pozor {

static_assert(std::endian::native == std::endian::little, "files are read in place");

// Reads forward. What would pass the end reads as zero or nothing, and the cursor then stays at the
// end with failed() true: a caller may read a few fields and ask once.
class ByteCursor {
 public:
  explicit ByteCursor(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  bool failed() const { return failed_; }
  size_t position() const { return at_; }
  size_t left() const { return bytes_.size() - at_; }

  template <class T>
  T Take() {
    T value{};
    const std::span<const uint8_t> bytes = TakeBytes(sizeof value);
    if (!failed_) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }

  std::span<const uint8_t> TakeBytes(uint64_t count) {
    if (count > left()) {
      failed_ = true;
      at_ = bytes_.size();
      return {};
    }
    at_ += static_cast<size_t>(count);
    return bytes_.subspan(at_ - static_cast<size_t>(count), static_cast<size_t>(count));
  }

  std::string_view TakeText(uint64_t count) {
    const std::span<const uint8_t> bytes = TakeBytes(count);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  // Up to the next '\n', which is passed over and left out.
  std::string_view TakeLine() {
    const std::string_view rest(reinterpret_cast<const char*>(bytes_.data()) + at_, left());
    const size_t end = rest.find('\n');
    if (end == std::string_view::npos) return TakeText(left() + uint64_t{1});
    const std::string_view line = TakeText(end);
    ++at_;
    return line;
  }

 private:
  std::span<const uint8_t> bytes_;
  size_t at_ = 0;
  bool failed_ = false;
};

}  // namespace pozor

#endif  // POZOR_MODELS_FORMATS_BYTE_CURSOR_H_
