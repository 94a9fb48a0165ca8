#include "tools/system_record.h"

#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "engine/machine.h"
#include "kernels/cpu.h"
#include "pozor/pozor.hpp"
#include "tools/bench/text.h"

#if __has_include(<gnu/libc-version.h>)
#include <gnu/libc-version.h>
#endif

extern char** environ;

namespace pozor::tools {
namespace {

constexpr std::string_view kCpu = "/sys/devices/system/cpu/cpu0/";

std::string Trim(std::string text) {
  const char* blanks = " \t\n\r\"";
  text.erase(0, std::min(text.find_first_not_of(blanks), text.size()));
  const size_t last = text.find_last_not_of(blanks);
  text.erase(last == std::string::npos ? 0 : last + 1);
  return text;
}

std::string ReadLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return Trim(line);
}

// Value of "key <separator> value" in a file of such lines.
std::string ReadField(const std::string& path, std::string_view key, char separator) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    const size_t at = line.find(separator);
    if (at != std::string::npos && Trim(line.substr(0, at)) == key)
      return Trim(line.substr(at + 1));
  }
  return "";
}

std::string CpuInfo(std::string_view key) { return ReadField("/proc/cpuinfo", key, ':'); }

class Builder {
 public:
  explicit Builder(SystemRecord* record) : record_(record) {
    const std::string flags = Cat({" ", CpuInfo("flags"), " "});
    virtual_ = flags.find(" hypervisor ") != std::string::npos;
  }
  bool is_virtual() const { return virtual_; }
  void Section(std::string section) { section_ = std::move(section); }
  void Add(std::string key, std::string value, std::string why_not = "") {
    if (value.empty() && why_not.empty()) {
      why_not = virtual_ ? "not visible (virtual machine)" : "not visible";
    }
    if (!value.empty()) why_not.clear();
    record_->facts.push_back({section_, std::move(key), std::move(value), std::move(why_not)});
  }

 private:
  SystemRecord* record_;
  std::string section_;
  bool virtual_ = false;
};

// The flags that a kernel could ask for, in a fixed order.
std::string EngineFlags() {
  const std::string every = Cat({" ", CpuInfo("flags"), CpuInfo("Features"), " "});
  std::string found;
  for (const char* flag :
       {"sse4_2",      "avx",      "f16c",     "fma",      "avx2",        "avx_vnni",
        "avx512f",     "avx512bw", "avx512vl", "avx512dq", "avx512_vnni", "avx512_bf16",
        "avx512_fp16", "amx_tile", "amx_int8", "amx_bf16", "asimd",       "asimdhp",
        "asimddp",     "i8mm",     "bf16",     "sve",      "sve2"}) {
    if (every.find(Cat({" ", flag, " "})) == std::string::npos) continue;
    if (!found.empty()) found += ' ';
    found += flag;
  }
  return found;
}

std::string AllowedCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return "";
  std::string list;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &set)) continue;
    int last = cpu;
    while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, &set)) ++last;
    if (!list.empty()) list += ',';
    list += std::to_string(cpu);
    if (last > cpu) list += Cat({"-", std::to_string(last)});
    cpu = last;
  }
  return list;
}

void AddCpu(Builder& add) {
  add.Section("cpu");
  add.Add("name", CpuModelName() == "unknown" ? "" : CpuModelName());
  add.Add("vendor",
          CpuInfo("vendor_id").empty() ? CpuInfo("CPU implementer") : CpuInfo("vendor_id"));
  add.Add("family",
          CpuInfo("cpu family").empty() ? CpuInfo("CPU architecture") : CpuInfo("cpu family"));
  add.Add("model", CpuInfo("model").empty() ? CpuInfo("CPU part") : CpuInfo("model"));
  add.Add("stepping", CpuInfo("stepping").empty() ? CpuInfo("CPU revision") : CpuInfo("stepping"));
  std::string microcode = CpuInfo("microcode");
  if (add.is_virtual() && (microcode == "0x1" || microcode == "0xffffffff")) microcode.clear();
  add.Add("microcode", microcode);
  add.Add("flags", EngineFlags());
  std::string tiers;
  for (const CpuTier tier : SupportedCpuTiers()) {
    if (!tiers.empty()) tiers += ' ';
    tiers += CpuTierName(tier);
  }
  add.Add("tiers", tiers);
  add.Add("online", ReadLine("/sys/devices/system/cpu/online"));
  add.Add("smt", ReadLine("/sys/devices/system/cpu/smt/active"));
  add.Add("hypervisor", add.is_virtual() ? "yes" : "no");
  const std::string frequency = Cat({kCpu, "cpufreq/"});
  add.Add("governor", ReadLine(frequency + "scaling_governor"));
  add.Add("frequency driver", ReadLine(frequency + "scaling_driver"));
  add.Add("minimum kHz", ReadLine(frequency + "cpuinfo_min_freq"));
  add.Add("maximum kHz", ReadLine(frequency + "cpuinfo_max_freq"));
  const std::string no_turbo = ReadLine("/sys/devices/system/cpu/intel_pstate/no_turbo");
  const std::string boost = ReadLine("/sys/devices/system/cpu/cpufreq/boost");
  add.Add("turbo", !no_turbo.empty() ? (no_turbo == "0" ? "on" : "off")
                   : !boost.empty()  ? (boost == "1" ? "on" : "off")
                                     : "");
}

void AddCaches(Builder& add) {
  add.Section("caches");
  bool any = false;
  for (int index = 0; index < 8; ++index) {
    const std::string folder = Cat({kCpu, "cache/index", std::to_string(index), "/"});
    const std::string type = ReadLine(folder + "type");
    if (type.empty() || type == "Instruction") continue;
    any = true;
    add.Add(
        Cat({"L", ReadLine(folder + "level")}),
        Cat({ReadLine(folder + "size"), " shared by CPUs ", ReadLine(folder + "shared_cpu_list")}));
  }
  if (!any) {
    const CacheSizes sizes = DetectCaches();
    const auto kib = [](size_t bytes) {
      return bytes == 0 ? std::string() : std::to_string(bytes >> 10) + "K";
    };
    add.Add("L1", kib(sizes.l1d));
    add.Add("L2", kib(sizes.l2));
    add.Add("L3", kib(sizes.l3));
  }
  if (add.is_virtual())
    add.Add("note", "virtual machine: sizes may be the host's, shared with others");
}

void AddMemory(Builder& add) {
  add.Section("memory");
  add.Add("total", ReadField("/proc/meminfo", "MemTotal", ':'));
  add.Add("transparent huge pages", ReadLine("/sys/kernel/mm/transparent_hugepage/enabled"));
  add.Add("reserved huge pages", ReadField("/proc/meminfo", "HugePages_Total", ':'));
  add.Add("NUMA nodes", ReadLine("/sys/devices/system/node/online"));
}

// What cgroups write for "no limit": "max" and "max PERIOD" (v2), -1 and the largest page count
// (v1).
std::string LimitText(const std::string& text) {
  const bool none = text.starts_with("max") || text == "-1" || text == "9223372036854771712";
  return none ? "none" : text;
}

void AddLimits(Builder& add) {
  add.Section("limits");
  add.Add("allowed CPUs", AllowedCpus());
  const ThreadPlan plan = PlanThreads();
  add.Add("threads", plan.reason.empty() ? std::to_string(plan.threads) : plan.reason);
  std::string own = ReadField("/proc/self/cgroup", "0", ':');  // "0::/path"
  own = own.empty() ? "" : own.substr(own[0] == ':' ? 1 : 0);
  std::string quota = ReadLine(Cat({"/sys/fs/cgroup", own, "/cpu.max"}));
  if (quota.empty()) quota = ReadLine("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  add.Add("cgroup CPU quota", LimitText(quota), "no cgroup limit visible");
  std::string memory = ReadLine(Cat({"/sys/fs/cgroup", own, "/memory.max"}));
  if (memory.empty()) memory = ReadLine("/sys/fs/cgroup/memory/memory.limit_in_bytes");
  add.Add("cgroup memory", LimitText(memory), "no cgroup limit visible");
}

void AddSystem(Builder& add, bool redact) {
  add.Section("os");
  utsname name{};
  if (uname(&name) == 0) {
    add.Add("kernel", Cat({name.sysname, " ", name.release}));
    add.Add("machine", name.machine);
    if (!redact) add.Add("host", name.nodename);
  }
  add.Add("distribution", ReadField("/etc/os-release", "PRETTY_NAME", '='));
#ifdef __GLIBC__
  add.Add("libc", std::string("glibc ") + gnu_get_libc_version());
#endif
  add.Add("load average", ReadLine("/proc/loadavg"));
}

void AddBuild(Builder& add) {
  add.Section("build");
  const BuildInfo build = ReadBuildInfo();
  add.Add("pozor", build.version);
  add.Add("commit", build.commit, "not built from a git checkout");
  add.Add("compiler", build.compiler);
  add.Add("flags", build.flags);
  add.Add("type", build.type);
  add.Add("Highway", build.highway);
  add.Add("oneTBB", build.tbb);
  add.Add("allocator", build.allocator);
}

// Only variables that change what an engine does.
void AddEnvironment(Builder& add) {
  add.Section("environment");
  std::set<std::string> lines;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string line = *entry;
    for (const char* prefix : {"POZOR_", "OMP_", "MKL_", "KMP_", "OPENBLAS_", "TBB_", "MIMALLOC_",
                               "MALLOC_", "GLIBC_TUNABLES", "LD_PRELOAD", "ONEDNN_", "CT2_"}) {
      if (line.starts_with(prefix)) lines.insert(line);
    }
  }
  for (const std::string& line : lines) {
    const size_t equals = line.find('=');
    add.Add(line.substr(0, equals), line.substr(equals + 1), "set to nothing");
  }
}

// Fields of the first line of /proc/stat: user nice system idle iowait irq softirq steal.
std::vector<double> MachineTicks() {
  std::istringstream line(ReadLine("/proc/stat"));
  std::string name;
  line >> name;
  std::vector<double> ticks;
  for (double value; ticks.size() < 8 && line >> value;) ticks.push_back(value);
  return ticks;
}

}  // namespace

std::string SystemRecord::Get(std::string_view section, std::string_view key) const {
  for (const SystemFact& fact : facts) {
    if (fact.section == section && fact.key == key) return fact.value;
  }
  return "";
}

SystemRecord ReadSystem(bool redact) {
  SystemRecord record;
  Builder add(&record);
  AddCpu(add);
  AddCaches(add);
  AddMemory(add);
  AddLimits(add);
  AddSystem(add, redact);
  AddBuild(add);
  AddEnvironment(add);
  return record;
}

double MachineBusySeconds() {
  const std::vector<double> ticks = MachineTicks();
  if (ticks.size() < 8) return 0;
  const double busy = ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6] + ticks[7];
  return busy / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double MachineStealSeconds() {
  const std::vector<double> ticks = MachineTicks();
  return ticks.size() < 8 ? 0 : ticks[7] / static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace pozor::tools
