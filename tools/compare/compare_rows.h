// Rows of two results side by side: which are the same, how their speeds relate, and whether the
// difference is one.
#ifndef POZOR_TOOLS_COMPARE_COMPARE_ROWS_H_
#define POZOR_TOOLS_COMPARE_COMPARE_ROWS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/compare/load.h"
#include "tools/stats.h"

namespace pozor::tools {

enum class Verdict : uint8_t { kFaster, kSlower, kNoDifference, kNotComparable };
std::string_view VerdictName(Verdict verdict);

struct CompareOptions {
  double level = 0.95;  // of all verdicts together: each row's interval is wider (Bonferroni)
  // A smaller difference is never believed: where code and pages happen to lie does that. It grows
  // with the share w of its time that a row waited for a CPU, to (1 + 3 w) times as much: what is
  // left after the waiting is taken off still wanders with caches that others have filled. Rounds
  // of one interleaved run need no such allowance.
  double resolution = 0.02;
  size_t draws = 4000;
  uint64_t seed = 1;
  bool paired = false;  // both sides are of one interleaved run
};

struct RowComparison {
  const Row* base = nullptr;   // null: only in the other
  const Row* other = nullptr;  // null: only in the base
  Verdict verdict = Verdict::kNotComparable;
  std::string why;          // of "not comparable"
  bool normalised = false;  // each round divided by the roof probed around it
  double resolution = 0;    // of this row
  Estimate speed;           // of other over base: above 1, the other is faster
  Estimate plain_speed;     // the same from wall time as it came
  Bootstrap time;           // of other over base: where `speed` comes from
};

// All comparable rows together: the geometric mean of their speeds. More rounds stand behind it
// than behind a row, so it tells smaller differences.
struct Overall {
  Verdict verdict = Verdict::kNotComparable;
  double resolution = 0;
  Estimate speed;
};
Overall JudgeTogether(const std::vector<RowComparison>& rows, double level = 0.95);

// Every row of the base, then those of the other that the base has not.
std::vector<RowComparison> CompareResults(const LoadedResult& base, const LoadedResult& other,
                                          const CompareOptions& options);

// A fact of two systems or builds that is not the same.
struct Difference {
  std::string section, key, base, other;
};
std::vector<Difference> DiffSystems(const BenchResult& base, const BenchResult& other);

// True if both ran on the same kind of machine, so that a round may be divided by its roof.
bool IsSameMachine(const BenchResult& base, const BenchResult& other);

// One value a visit: seconds of a round, or the lower quartile of a query's calls in it.
enum class Timing : uint8_t { kWall, kQuiet, kQuietTimesRoof };
Samples VisitSeconds(const Row& row, Timing timing);

// "fixed-128, f32, auto, 2 threads"
std::string DescribeKey(const RowKey& key);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_COMPARE_COMPARE_ROWS_H_
