#include "engine/machine.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>

namespace pozor {
namespace {

std::optional<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The whole of `text` as a decimal number, surrounding white space aside.
std::optional<int64_t> ParseInteger(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) {
    text.remove_suffix(1);
  }
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) {
    text.remove_prefix(1);
  }
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

size_t AffinityCpus() {
  // Masks of more than 1024 CPUs need a larger set; the kernel says so by EINVAL.
  for (size_t cpus = 1024; cpus <= (size_t{1} << 20); cpus *= 4) {
    cpu_set_t* set = CPU_ALLOC(cpus);
    if (set == nullptr) break;
    const size_t bytes = CPU_ALLOC_SIZE(cpus);
    CPU_ZERO_S(bytes, set);
    const bool known = sched_getaffinity(0, bytes, set) == 0;
    const int count = known ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (known && count > 0) return static_cast<size_t>(count);
  }
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  return online > 0 ? static_cast<size_t>(online) : 1;
}

struct CgroupMount {
  std::string root;   // the cgroup that is mounted
  std::string point;  // where
};

// The mount of the cgroup v2 hierarchy, or of the v1 `cpu` controller.
std::optional<CgroupMount> FindMount(const std::string& mountinfo, bool version2) {
  std::istringstream lines(mountinfo);
  for (std::string line; std::getline(lines, line);) {
    const size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    std::istringstream before(line.substr(0, dash)), after(line.substr(dash + 3));
    std::string id, parent, device, root, point, type, source, options;
    before >> id >> parent >> device >> root >> point;
    after >> type >> source >> options;
    const bool has_cpu = ("," + options + ",").find(",cpu,") != std::string::npos;
    if (version2 ? type == "cgroup2" : type == "cgroup" && has_cpu) return CgroupMount{root, point};
  }
  return std::nullopt;
}

// The path of this process in the hierarchy, as /proc/self/cgroup has it.
std::optional<std::string> FindCgroup(const std::string& cgroup, bool version2) {
  std::istringstream lines(cgroup);
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first == std::string::npos ? first : first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool has_cpu = ("," + controllers + ",").find(",cpu,") != std::string::npos;
    if (version2 ? controllers.empty() : has_cpu) return line.substr(second + 1);
  }
  return std::nullopt;
}

// CPUs that the quota files of one cgroup grant, or nothing if it has no quota.
std::optional<double> QuotaOf(const std::string& folder, bool version2) {
  int64_t quota = -1, period = 0;
  if (version2) {
    const std::optional<std::string> text = ReadFile(folder + "/cpu.max");
    if (!text) return std::nullopt;
    const size_t space = text->find(' ');
    quota = ParseInteger(std::string_view(*text).substr(0, space)).value_or(-1);
    if (space != std::string::npos) {
      period = ParseInteger(std::string_view(*text).substr(space)).value_or(0);
    }
  } else {
    quota = ParseInteger(ReadFile(folder + "/cpu.cfs_quota_us").value_or("")).value_or(-1);
    period = ParseInteger(ReadFile(folder + "/cpu.cfs_period_us").value_or("")).value_or(0);
  }
  if (quota <= 0 || period <= 0) return std::nullopt;
  return static_cast<double>(quota) / static_cast<double>(period);
}

// The tightest quota from the process's cgroup up to the mount. Inside a namespace or a container
// the path may name cgroups that are not visible here: missing folders just have no quota.
std::optional<double> TightestQuota(const std::string& prefix, bool version2) {
  const auto mount = FindMount(ReadFile(prefix + "/proc/self/mountinfo").value_or(""), version2);
  auto path = FindCgroup(ReadFile(prefix + "/proc/self/cgroup").value_or(""), version2);
  if (!mount || !path) return std::nullopt;
  if (mount->root != "/" && path->starts_with(mount->root)) path->erase(0, mount->root.size());
  std::optional<double> tightest;
  for (;;) {
    while (!path->empty() && path->back() == '/') path->pop_back();
    const std::optional<double> quota = QuotaOf(prefix + mount->point + *path, version2);
    if (quota && (!tightest || *quota < *tightest)) tightest = quota;
    if (path->empty()) return tightest;
    path->erase(path->find_last_of('/') == std::string::npos ? 0 : path->find_last_of('/'));
  }
}

std::string Shorten(std::string_view value) {
  std::string text(value.substr(0, 40));
  return value.size() > 40 ? text.append("...") : text;
}

// OpenMP's list of a count a nesting level; the first entry is the one that counts here.
std::optional<size_t> ParseOmpThreads(std::string_view value, std::vector<std::string>* warnings) {
  const std::optional<int64_t> count = ParseInteger(value.substr(0, value.find(',')));
  if (count && *count > 0) return static_cast<size_t>(*count);
  if (!value.empty()) {
    warnings->push_back("OMP_NUM_THREADS='" + Shorten(value) +
                        "': not a positive number of threads; ignored");
  }
  return std::nullopt;
}

std::string Plural(size_t n, const char* noun) {
  std::string text = std::to_string(n);
  return text.append(" ").append(noun).append(n == 1 ? "" : "s");
}

size_t StatusField(std::string_view field) {
  const std::string status = ReadFile("/proc/self/status").value_or("");
  const size_t at = status.find("\n" + std::string(field) + ":");
  if (at == std::string::npos) return 0;
  return std::strtoull(status.c_str() + at + field.size() + 2, nullptr, 10) * 1024;
}

// "48K", "2048K", "1M"
size_t ParseSize(const std::string& text) {
  char* end = nullptr;
  const size_t value = std::strtoull(text.c_str(), &end, 10);
  return *end == 'K' ? value << 10 : *end == 'M' ? value << 20 : value;
}

}  // namespace

MachineView MachineView::Current() {
  MachineView view;
  view.affinity_cpus = AffinityCpus();
  if (const char* value = std::getenv("OMP_NUM_THREADS")) view.omp_num_threads = value;
  return view;
}

ThreadPlan PlanThreads(const MachineView& view) {
  ThreadPlan plan;
  plan.threads = std::max<size_t>(1, view.affinity_cpus);
  plan.reason = "affinity mask of " + Plural(plan.threads, "CPU");
  for (const bool version2 : {true, false}) {
    const std::optional<double> quota = TightestQuota(view.root, version2);
    if (!quota || *quota >= static_cast<double>(plan.threads)) continue;
    const size_t cpus = std::max<size_t>(1, static_cast<size_t>(std::ceil(*quota)));
    if (cpus >= plan.threads) continue;
    char text[64];
    std::snprintf(text, sizeof(text), "cgroup v%d quota of %.2f CPUs", version2 ? 2 : 1, *quota);
    plan.threads = cpus;
    plan.reason = text;
  }
  if (const auto omp = ParseOmpThreads(view.omp_num_threads, &plan.warnings)) {
    if (*omp < plan.threads) {
      plan.threads = *omp;
      plan.reason = "OMP_NUM_THREADS=" + Shorten(view.omp_num_threads);
    }
  }
  plan.reason.insert(0, std::to_string(plan.threads) + ": ");
  return plan;
}

ThreadPlan PlanThreads() { return PlanThreads(MachineView::Current()); }

CacheSizes DetectCaches(const std::string& root) {
  CacheSizes caches;
  for (int index = 0; index < 8; ++index) {
    const std::string folder =
        root + "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index);
    const std::string type = ReadFile(folder + "/type").value_or("");
    const int64_t level = ParseInteger(ReadFile(folder + "/level").value_or("")).value_or(0);
    if (type.empty() || type.starts_with("Instruction")) continue;
    const size_t bytes = ParseSize(ReadFile(folder + "/size").value_or("0"));
    if (level == 1) caches.l1d = bytes;
    if (level == 2) caches.l2 = bytes;
    if (level == 3) caches.l3 = bytes;
  }
  return caches;
}

CacheSizes DetectCaches() { return DetectCaches(""); }

size_t PeakResidentBytes() { return StatusField("VmHWM"); }
size_t ResidentBytes() { return StatusField("VmRSS"); }

size_t ResidentBytesWith(size_t mapped) {
  const size_t files = StatusField("RssFile");  // 0: a system that does not tell them apart
  const size_t others = ResidentBytes() - std::min(files, ResidentBytes());
  constexpr size_t kProgram = size_t{8} << 20;  // code and libraries are file pages too
  return others + std::max(files, mapped + std::min(files, kProgram));
}

std::string MebibyteText(size_t bytes) {
  return std::to_string(bytes / (size_t{1} << 20) + (bytes % (size_t{1} << 20) != 0)) + " MiB";
}

Status CheckCeiling(const std::string& what, size_t ceiling, size_t needed) {
  if (ceiling == 0 || needed <= ceiling) return {};
  return ResourceExhausted("memory ceiling of " + MebibyteText(ceiling) + ": " + what + " need " +
                           MebibyteText(needed) + "; raise it to at least that");
}

}  // namespace pozor
