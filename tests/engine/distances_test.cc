// Tables of distances: buckets at their edges, slopes, angles.
#include "engine/distances.h"

#include <doctest/doctest.h>

#include <cmath>
#include <span>
#include <vector>

#include "tests/support/compare.h"

namespace pozor {
namespace {

TEST_CASE("buckets of distances") {
  const ScoreBiasSpec spec = {.kind = ScoreBias::kBuckets, .table = {}};
  struct Case {
    ptrdiff_t distance;
    size_t bucket;
  };
  // 32 buckets up to distance 128: one each below 8, then eight in steps of a factor 2^(1/2).
  const Case cases[] = {{0, 0},     {-1, 1},    {-7, 7},     {-8, 8},   {-11, 8},  {-12, 9},
                        {-15, 9},   {-16, 10},  {-22, 10},   {-23, 11}, {-31, 11}, {-32, 12},
                        {-45, 12},  {-46, 13},  {-63, 13},   {-64, 14}, {-90, 14}, {-91, 15},
                        {-127, 15}, {-128, 15}, {-5000, 15}, {1, 17},   {7, 23},   {8, 24},
                        {12, 25},   {91, 31},   {5000, 31}};
  for (const Case& c : cases) {
    CAPTURE(c.distance);
    CHECK(DistanceBucket(c.distance, spec) == c.bucket);
  }
}

struct RowCase {
  ptrdiff_t distance;
  size_t row;
};

void CheckRows(const RelativePositionSpec& spec, std::span<const RowCase> cases) {
  CAPTURE(spec.span);
  for (const RowCase& c : cases) {
    CAPTURE(c.distance);
    CHECK(RelativePositionRow(c.distance, spec) == c.row);
  }
  for (ptrdiff_t distance = -3000; distance < 3000; ++distance) {  // windows of columns need this
    CHECK(RelativePositionRow(distance, spec) <= RelativePositionRow(distance + 1, spec));
  }
  CHECK(RelativePositionRow(-100000, spec) == 0);
  CHECK(RelativePositionRow(100000, spec) == 2 * spec.span - 1);
}

TEST_CASE("rows of relative positions, as transformers gives them") {
  const RelativePositionSpec base = {
      .span = 256, .rows = DistanceRows::kLogarithmic, .max_distance = 512};
  const RowCase base_cases[] = {{0, 256},    {1, 257},    {-1, 255},  {127, 383}, {128, 384},
                                {129, 385},  {131, 387},  {132, 387}, {200, 425}, {255, 448},
                                {256, 448},  {300, 463},  {500, 510}, {509, 511}, {512, 511},
                                {-128, 128}, {-129, 127}, {-200, 87}, {-400, 23}, {-510, 1},
                                {-511, 1},   {-512, 0}};
  CheckRows(base, base_cases);
  const RelativePositionSpec small = {
      .span = 8, .rows = DistanceRows::kLogarithmic, .max_distance = 64};
  const RowCase small_cases[] = {{0, 8},   {3, 11},  {4, 12},  {5, 13},  {10, 13}, {11, 14},
                                 {25, 14}, {26, 15}, {63, 15}, {64, 15}, {-4, 4},  {-5, 3},
                                 {-10, 3}, {-11, 2}, {-26, 1}, {-63, 1}, {-64, 0}};
  CheckRows(small, small_cases);
  const RelativePositionSpec clipped = {.span = 3, .rows = DistanceRows::kClipped};
  const RowCase clipped_cases[] = {{0, 3}, {2, 5}, {3, 5}, {-2, 1}, {-3, 0}, {-4, 0}};
  CheckRows(clipped, clipped_cases);
  const RelativePositionSpec least = {
      .span = 2, .rows = DistanceRows::kLogarithmic, .max_distance = 40};
  const RowCase least_cases[] = {{0, 2}, {1, 3}, {7, 3}, {-1, 1}, {-7, 1}};
  for (const RowCase& c : least_cases) CHECK(RelativePositionRow(c.distance, least) == c.row);
}

TEST_CASE("slopes of heads: powers of two, then every second one of twice as many") {
  CHECK(HeadSlope(0, 8) == 0.5);
  CHECK(HeadSlope(7, 8) == std::exp2(-8));
  CHECK(HeadSlope(0, 12) == 0.5);
  CHECK(HeadSlope(8, 12) == std::exp2(-0.5));
  CHECK(HeadSlope(11, 12) == std::exp2(-3.5));
  CHECK(HeadSlope(0, 1) == std::exp2(-8));
}

TEST_CASE("a bias is laid out by head and distance") {
  const ScoreBiasSpec spec = {.kind = ScoreBias::kSlopes, .table = {}};
  std::vector<float> bias(4 * 5);
  FillScoreBias(spec, {}, 4, 3, bias.data());
  const std::vector<float> first = {-0.5f, -0.25f, 0, -0.25f, -0.5f};
  CHECK(test::SameBits(std::span(bias).first(5), first));
}

TEST_CASE("angles of a rotation") {
  RotarySpec spec = {.columns = 4, .theta = 100, .frequency_scale = 0.5};
  std::vector<float> table(3 * 4);
  for (const RotaryPairs pairs : {RotaryPairs::kHalves, RotaryPairs::kInterleaved}) {
    spec.pairs = pairs;
    FillRotaryTable(spec, 3, table.data());
    const bool halves = pairs == RotaryPairs::kHalves;
    const std::vector<double> second =
        halves ? std::vector<double>{std::cos(1.0), std::cos(0.1), std::sin(1.0), std::sin(0.1)}
               : std::vector<double>{std::cos(1.0), std::sin(1.0), std::cos(0.1), std::sin(0.1)};
    CHECK(test::MaxAbsDifference(std::span(table).subspan(8, 4), second) < 1e-6);
  }
}

}  // namespace
}  // namespace pozor
