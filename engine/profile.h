// Named zones of the main path and the time spent in each.
#ifndef POZOR_ENGINE_PROFILE_H_
#define POZOR_ENGINE_PROFILE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace pozor {

enum class Zone : uint8_t {
  kRead,
  kTokenise,
  kPlan,
  kEmbed,
  kQkv,
  kAttention,
  kAttentionOutput,
  kNorm,
  kQuantize,
  kFeedForwardUp,
  kFeedForwardDown,
  kConvolution,
  kPool,
  kHead,
  kWrite,
  kCount,
};
std::string_view ZoneName(Zone zone);

// Sums over all threads. Adding is relaxed-atomic.
class Profile {
 public:
  void Add(Zone zone, uint64_t nanoseconds, uint64_t flops = 0) {
    Sum& sum = sums_[static_cast<size_t>(zone)];
    sum.nanoseconds.fetch_add(nanoseconds, std::memory_order_relaxed);
    sum.flops.fetch_add(flops, std::memory_order_relaxed);
    sum.calls.fetch_add(1, std::memory_order_relaxed);
  }

  struct Row {
    uint64_t nanoseconds, flops, calls;
  };
  Row Get(Zone zone) const;

  // Table: zone, calls, seconds, share of the sum, GFLOP/s where there are flops.
  std::string Table() const;

 private:
  struct Sum {
    std::atomic<uint64_t> nanoseconds{0}, flops{0}, calls{0};
  };
  std::array<Sum, static_cast<size_t>(Zone::kCount)> sums_;
};

// Adds the time from construction to destruction to `profile`; does nothing if that is null.
class ZoneTimer {
 public:
  ZoneTimer(Profile* profile, Zone zone, uint64_t flops = 0);
  ~ZoneTimer();
  void AddFlops(uint64_t flops) { flops_ += flops; }
  ZoneTimer(const ZoneTimer&) = delete;
  ZoneTimer& operator=(const ZoneTimer&) = delete;

 private:
  Profile* profile_;
  Zone zone_;
  uint64_t flops_;
  uint64_t start_ = 0;
};

}  // namespace pozor

#endif  // POZOR_ENGINE_PROFILE_H_
