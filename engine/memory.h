// Aligned memory, reused and counted.
#ifndef POZOR_ENGINE_MEMORY_H_
#define POZOR_ENGINE_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <utility>

namespace pozor {

// Bytes that Pozor's own buffers hold now and held at most, over the whole process.
struct MemoryCount {
  size_t current = 0;
  size_t peak = 0;
};
MemoryCount CountMemory();

// A 64-byte aligned buffer, uninitialised. With `huge_pages`, one of at least 2 MiB is aligned to
// that and asks for huge pages. Throws std::bad_alloc, which the engine's entry points turn into a
// Status.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(size_t bytes, bool huge_pages = false);
  AlignedBuffer(AlignedBuffer&& other) noexcept { *this = std::move(other); }
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept;
  ~AlignedBuffer();

  void* data() const { return data_; }
  size_t size() const { return size_; }
  template <class T>
  T* As() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
  size_t size_ = 0;
  bool mapped_ = false;
};

// A bump allocator that keeps its memory from one forward pass to the next. One thread at a time.
class Workspace {
 public:
  // Forgets everything taken, and makes room for `bytes` in one piece. Throws std::bad_alloc.
  void Reset(size_t bytes, bool huge_pages = true);

  // `count` floats, 64-byte aligned, uninitialised; within what Reset made room for.
  float* Take(size_t count);

  size_t capacity() const { return buffer_.size(); }
  const void* data() const { return buffer_.data(); }
  size_t used() const { return used_; }  // bytes taken since Reset, from data() on

  // Hands the memory over; what was taken stays where it is.
  AlignedBuffer Release() && {
    used_ = 0;
    return std::move(buffer_);
  }

 private:
  AlignedBuffer buffer_;
  size_t used_ = 0;
};

}  // namespace pozor

#endif  // POZOR_ENGINE_MEMORY_H_
