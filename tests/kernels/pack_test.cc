#include "kernels/pack.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/buffer.h"
#include "tests/support/compare.h"
#include "tests/support/for_each_tier.h"
#include "tests/support/random.h"

using namespace pozor;
using namespace pozor::test;

namespace {

// The layout's definition, element by element.
std::vector<float> ReferencePack(const WeightView& weight, const int32_t* columns,
                                 size_t packed_n) {
  const size_t panels = DivCeil(packed_n, kPanelColumns);
  std::vector<float> out(panels * weight.k * kPanelColumns, 0.0f);
  for (size_t n = 0; n < packed_n; ++n) {
    const int64_t source = columns == nullptr ? static_cast<int64_t>(n) : columns[n];
    if (source < 0) continue;
    for (size_t k = 0; k < weight.k; ++k) {
      out[(n / kPanelColumns * weight.k + k) * kPanelColumns + n % kPanelColumns] =
          weight.data[k * weight.k_stride + static_cast<size_t>(source) * weight.n_stride];
    }
  }
  return out;
}

struct Order {
  const char* name;
  bool linear;  // [n, k], k_stride 1; else [k, n], n_stride 1
  size_t extra_stride;
};
constexpr Order kOrders[] = {{"linear", true, 0},
                             {"linear, padded", true, 3},
                             {"conv1d", false, 0},
                             {"conv1d, padded", false, 5}};

WeightView MakeView(const Order& order, const Buffer& data, size_t k, size_t n) {
  WeightView view{.data = data.data(), .k = k, .n = n};
  view.k_stride = order.linear ? 1 : n + order.extra_stride;
  view.n_stride = order.linear ? k + order.extra_stride : 1;
  return view;
}

// Heads of 10 columns padded to 16, with a hole and a repeated column.
std::vector<int32_t> PaddedHeads(size_t n) {
  std::vector<int32_t> columns;
  for (size_t j = 0; j < n; ++j) {
    columns.push_back(static_cast<int32_t>(j));
    if (j % 10 == 9) columns.insert(columns.end(), 6, -1);
  }
  columns[n / 2] = -1;
  columns.push_back(0);
  return columns;
}

}  // namespace

TEST_CASE("packing moves every element to its place") {
  for (const Order& order : kOrders) {
    const std::string order_name = order.name;
    CAPTURE(order_name);
    for (const size_t k : {1, 3, 4, 7, 16, 33}) {
      for (const size_t n : {1, 15, 16, 17, 40, 64}) {
        CAPTURE(k);
        CAPTURE(n);
        const size_t size = (k + order.extra_stride) * (n + order.extra_stride);
        const Buffer data(RandomFloats(size, k * 100 + n), 1);
        const WeightView view = MakeView(order, data, k, n);
        const std::vector<int32_t> heads = PaddedHeads(n);
        for (const std::vector<int32_t>* map :
             {static_cast<const std::vector<int32_t>*>(nullptr), &heads}) {
          const int32_t* columns = map == nullptr ? nullptr : map->data();
          const size_t packed_n = map == nullptr ? n : map->size();
          const std::vector<float> expected = ReferencePack(view, columns, packed_n);
          ForEachTier([&](CpuTier) {
            Buffer packed(expected.size(), 0, -1.0f);
            PackF32(view, columns, packed_n, 0, DivCeil(packed_n, kPanelColumns), packed.data());
            CHECK(SameBits(packed.span(), expected));
            CHECK(packed.GuardsIntact());
          });
        }
      }
    }
  }
}

TEST_CASE("panels can be packed one by one") {
  const size_t k = 21, n = 70;
  const Buffer data(RandomFloats(k * n, 5), 0);
  const WeightView view = MakeView(kOrders[0], data, k, n);
  const std::vector<float> expected = ReferencePack(view, nullptr, n);
  Buffer packed(expected.size(), 0, -1.0f);
  for (const size_t panel : {3, 0, 4, 2, 1}) {
    PackF32(view, nullptr, n, panel, panel + 1, packed.data());
  }
  CHECK(SameBits(packed.span(), expected));
  PackF32(view, nullptr, n, 2, 2, packed.data());
  CHECK(SameBits(packed.span(), expected));
}

TEST_CASE("panel sizes follow the layout's group") {
  CHECK(PackedGroup(PackedLayout::kF32x16) == 1);
  CHECK(PackedGroup(PackedLayout::kBf16x16x2) == 2);
  CHECK(PackedGroup(PackedLayout::kS8x16x4) == 4);
  CHECK(PackedPanelBytes(PackedLayout::kF32x16, 5) == 5 * 64);
  CHECK(PackedPanelBytes(PackedLayout::kBf16x16x2, 5) == 16 * 64);
  CHECK(PackedPanelBytes(PackedLayout::kS8x16x4, 5) == 16 * 64);
  CHECK(PackedPanelBytes(PackedLayout::kS8x16x4, 65) == 32 * 64);
}
