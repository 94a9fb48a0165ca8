#include "engine/profile.h"

#include <chrono>
#include <cstdio>

namespace pozor {
namespace {

uint64_t Now() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

}  // namespace

std::string_view ZoneName(Zone zone) {
  switch (zone) {
    case Zone::kRead:
      return "read";
    case Zone::kTokenise:
      return "tokenise";
    case Zone::kPlan:
      return "plan";
    case Zone::kEmbed:
      return "embed";
    case Zone::kQkv:
      return "qkv";
    case Zone::kAttention:
      return "attention";
    case Zone::kAttentionOutput:
      return "attention-output";
    case Zone::kNorm:
      return "norm";
    case Zone::kQuantize:
      return "quantise";
    case Zone::kFeedForwardUp:
      return "feed-forward-up";
    case Zone::kFeedForwardDown:
      return "feed-forward-down";
    case Zone::kConvolution:
      return "convolution";
    case Zone::kPool:
      return "pool";
    case Zone::kHead:
      return "head";
    case Zone::kWrite:
      return "write";
    case Zone::kCount:
      break;
  }
  return "unknown";
}

Profile::Row Profile::Get(Zone zone) const {
  const Sum& sum = sums_[static_cast<size_t>(zone)];
  return {sum.nanoseconds.load(std::memory_order_relaxed),
          sum.flops.load(std::memory_order_relaxed), sum.calls.load(std::memory_order_relaxed)};
}

std::string Profile::Table() const {
  uint64_t total = 0;
  for (size_t z = 0; z < sums_.size(); ++z) total += Get(static_cast<Zone>(z)).nanoseconds;

  std::string table = "zone                   calls    seconds  share  GFLOP/s\n";
  for (size_t z = 0; z < sums_.size(); ++z) {
    const Zone zone = static_cast<Zone>(z);
    const Row row = Get(zone);
    if (row.calls == 0) continue;
    const double seconds = static_cast<double>(row.nanoseconds) * 1e-9;
    const double share =
        total == 0 ? 0 : 100.0 * static_cast<double>(row.nanoseconds) / static_cast<double>(total);
    char line[128];
    std::snprintf(line, sizeof(line), "%-18.*s %9llu %10.4f %5.1f%%",
                  static_cast<int>(ZoneName(zone).size()), ZoneName(zone).data(),
                  static_cast<unsigned long long>(row.calls), seconds, share);
    table += line;
    if (row.flops != 0 && row.nanoseconds != 0) {
      std::snprintf(line, sizeof(line), " %8.1f",
                    static_cast<double>(row.flops) / static_cast<double>(row.nanoseconds));
      table += line;
    }
    table += '\n';
  }
  return table;
}

ZoneTimer::ZoneTimer(Profile* profile, Zone zone, uint64_t flops)
    : profile_(profile), zone_(zone), flops_(flops), start_(profile == nullptr ? 0 : Now()) {}

ZoneTimer::~ZoneTimer() {
  if (profile_ != nullptr) profile_->Add(zone_, Now() - start_, flops_);
}

}  // namespace pozor
