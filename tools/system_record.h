// Where and with what a measurement was taken: CPU, caches, memory, limits, operating system,
// build. Everything is found out by itself, as root or not; what cannot be seen is said so.
#ifndef POZOR_TOOLS_SYSTEM_RECORD_H_
#define POZOR_TOOLS_SYSTEM_RECORD_H_

#include <string>
#include <string_view>
#include <vector>

namespace pozor::tools {

struct SystemFact {
  std::string section;  // "cpu", "caches", "memory", "limits", "os", "build", "environment"
  std::string key;
  std::string value;    // empty: not visible here
  std::string why_not;  // reason for an empty value

  bool visible() const { return why_not.empty(); }
};

struct SystemRecord {
  std::vector<SystemFact> facts;

  // Empty if there is no such fact or it is not visible.
  std::string Get(std::string_view section, std::string_view key) const;
};

// `redact`: without the host's name.
SystemRecord ReadSystem(bool redact = false);

// What this program was built from and with.
struct BuildInfo {
  std::string version, commit, compiler, flags, type, highway, tbb, allocator;
};
BuildInfo ReadBuildInfo();

// Busy CPU seconds of the whole machine since it started, stolen ones included; 0 if unknown.
double MachineBusySeconds();
// Seconds that the hypervisor gave to others; 0 if unknown.
double MachineStealSeconds();

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_SYSTEM_RECORD_H_
