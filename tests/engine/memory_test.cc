#include "engine/memory.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

#include "engine/machine.h"
#include "kernels/types.h"

namespace pozor {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

bool AlignedTo(const void* data, size_t alignment) {
  return reinterpret_cast<uintptr_t>(data) % alignment == 0;
}

TEST_CASE("buffers are aligned, writable and counted") {
  const size_t before = CountMemory().current;
  for (const size_t bytes : {size_t{1}, size_t{64}, size_t{1000}, kHugePage, 3 * kHugePage + 5}) {
    for (const bool huge_pages : {false, true}) {
      CAPTURE(bytes);
      CAPTURE(huge_pages);
      const AlignedBuffer buffer(bytes, huge_pages);
      CHECK(buffer.size() >= bytes);
      CHECK(AlignedTo(buffer.data(), kAlignment));
      if (huge_pages && bytes >= kHugePage) CHECK(AlignedTo(buffer.data(), kHugePage));
      std::memset(buffer.data(), 0xAB, buffer.size());
      CHECK(CountMemory().current == before + buffer.size());
      CHECK(CountMemory().peak >= CountMemory().current);
    }
  }
  CHECK(CountMemory().current == before);
}

TEST_CASE("buffers move and are counted once") {
  const size_t before = CountMemory().current;
  AlignedBuffer first(100);
  AlignedBuffer second = std::move(first);
  CHECK(first.data() == nullptr);
  CHECK(second.size() >= 100);
  second = AlignedBuffer(5000);
  CHECK(second.size() >= 5000);
  CHECK(CountMemory().current == before + second.size());
  second = AlignedBuffer();
  CHECK(CountMemory().current == before);
}

TEST_CASE("an empty buffer holds nothing") {
  const AlignedBuffer buffer(0);
  CHECK(buffer.data() == nullptr);
  CHECK(buffer.size() == 0);
}

TEST_CASE("an impossible size is bad_alloc") {
  CHECK_THROWS_AS(AlignedBuffer(SIZE_MAX - 10), std::bad_alloc);
  CHECK_THROWS_AS(AlignedBuffer(SIZE_MAX / 4, true), std::bad_alloc);
}

TEST_CASE("a workspace hands out aligned pieces and keeps its memory") {
  Workspace workspace;
  workspace.Reset(1000);
  float* first = workspace.Take(3);
  float* second = workspace.Take(16);
  CHECK(AlignedTo(first, kAlignment));
  CHECK(AlignedTo(second, kAlignment));
  CHECK(second == first + 16);
  const size_t capacity = workspace.capacity();
  workspace.Reset(500);
  CHECK(workspace.capacity() == capacity);
  CHECK(workspace.Take(1) == first);
  workspace.Reset(10'000);
  CHECK(workspace.capacity() >= 10'000);
}

TEST_CASE("a workspace never holds its old and its new memory together") {
  const size_t before = CountMemory().current;
  Workspace workspace;
  workspace.Reset(kHugePage);
  workspace.Reset(4 * kHugePage);
  CHECK(CountMemory().current == before + workspace.capacity());
  const AlignedBuffer released = std::move(workspace).Release();
  CHECK(released.size() == 4 * kHugePage);
  CHECK(workspace.capacity() == 0);
}

TEST_CASE("memory that is given back leaves the process") {
  const size_t bytes = size_t{64} << 20;
  {
    const AlignedBuffer buffer(bytes, true);
    std::memset(buffer.data(), 1, bytes);
    if (ResidentBytes() == 0) return;  // a system that does not tell
    CHECK(ResidentBytes() >= bytes);
  }
  CHECK(ResidentBytes() < bytes);
  CHECK(PeakResidentBytes() >= bytes);
}

}  // namespace
}  // namespace pozor
