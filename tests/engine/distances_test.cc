// Tables of distances: buckets at their edges, slopes, angles.
#include "engine/distances.h"

#include <doctest/doctest.h>

#include <cmath>
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
