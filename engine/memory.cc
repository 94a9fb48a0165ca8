#include "engine/memory.h"

#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "kernels/check.h"
#include "kernels/types.h"

#ifdef POZOR_USE_MIMALLOC
#include <mimalloc.h>
#endif

namespace pozor {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

std::atomic<size_t> current_bytes{0};
std::atomic<size_t> peak_bytes{0};

void Count(size_t bytes) {
  const size_t now = current_bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  size_t peak = peak_bytes.load(std::memory_order_relaxed);
  while (peak < now && !peak_bytes.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
}

void* AllocateSmall(size_t bytes) {
#ifdef POZOR_USE_MIMALLOC
  return mi_malloc_aligned(bytes, kAlignment);
#else
  return std::aligned_alloc(kAlignment, bytes);
#endif
}

void FreeSmall(void* data) {
#ifdef POZOR_USE_MIMALLOC
  mi_free(data);
#else
  std::free(data);
#endif
}

// Maps a little more than asked and gives the unaligned ends back.
void* MapHuge(size_t bytes) {
  const size_t padded = bytes + kHugePage;
  void* raw = mmap(nullptr, padded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  const auto address = reinterpret_cast<uintptr_t>(raw);
  const size_t lead = RoundUp(address, kHugePage) - address;
  if (lead > 0) munmap(raw, lead);
  char* data = static_cast<char*>(raw) + lead;
  const size_t tail = padded - lead - bytes;
  if (tail > 0) munmap(data + bytes, tail);
  madvise(data, bytes, MADV_HUGEPAGE);  // a wish: kernels without it just return an error
  return data;
}

}  // namespace

MemoryCount CountMemory() {
  return {current_bytes.load(std::memory_order_relaxed),
          peak_bytes.load(std::memory_order_relaxed)};
}

AlignedBuffer::AlignedBuffer(size_t bytes, bool huge_pages) {
  if (bytes == 0) return;
  if (bytes > SIZE_MAX / 2) throw std::bad_alloc();
  mapped_ = huge_pages && bytes >= kHugePage;
  size_ = RoundUp(bytes, mapped_ ? size_t{4096} : kAlignment);
  data_ = mapped_ ? MapHuge(size_) : AllocateSmall(size_);
  if (data_ == nullptr) throw std::bad_alloc();
  Count(size_);
}

AlignedBuffer& AlignedBuffer::operator=(AlignedBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(mapped_, other.mapped_);
  return *this;
}

AlignedBuffer::~AlignedBuffer() {
  if (data_ == nullptr) return;
  current_bytes.fetch_sub(size_, std::memory_order_relaxed);
  if (mapped_) {
    munmap(data_, size_);
  } else {
    FreeSmall(data_);
  }
}

void Workspace::Reset(size_t bytes, bool huge_pages) {
  used_ = 0;
  if (bytes <= buffer_.size()) return;
  buffer_ = AlignedBuffer();  // the old one goes first: the two are never held together
  buffer_ = AlignedBuffer(bytes, huge_pages);
}

float* Workspace::Take(size_t count) {
  const size_t bytes = RoundUp(count * sizeof(float), kAlignment);
  POZOR_CHECK(bytes <= buffer_.size() - used_);
  float* taken = reinterpret_cast<float*>(buffer_.As<char>() + used_);
  used_ += bytes;
  return taken;
}

}  // namespace pozor
