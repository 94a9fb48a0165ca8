// Thread plans on made-up machines: folders with proc/ and sys/ stand for the root.
#include "engine/machine.h"

#include <doctest/doctest.h>
#include <sched.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace pozor {
namespace {

namespace fs = std::filesystem;

// A root folder that goes away with its owner.
class FakeRoot {
 public:
  FakeRoot() {
    static int count = 0;
    path_ = fs::temp_directory_path() /
            ("pozor-machine-test-" + std::to_string(getpid()) + "-" + std::to_string(count++));
    fs::create_directories(path_);
  }
  ~FakeRoot() { fs::remove_all(path_); }
  FakeRoot(const FakeRoot&) = delete;
  FakeRoot& operator=(const FakeRoot&) = delete;

  void Write(const std::string& file, const std::string& text) const {
    const fs::path path = path_ / file;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

const char kV2Mount[] =
    "24 1 0:22 / /proc rw - proc proc rw\n"
    "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
const char kV1Mounts[] =
    "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
    "32 31 0:29 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
    "33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n";

using Files = std::vector<std::pair<std::string, std::string>>;

struct Case {
  const char* name;
  size_t affinity;
  const char* omp;
  Files files;
  size_t threads;
  size_t warnings;
  const char* reason;
};

Files V2(const std::string& cgroup, Files quotas) {
  quotas.emplace_back("proc/self/mountinfo", kV2Mount);
  quotas.emplace_back("proc/self/cgroup", "0::" + cgroup + "\n");
  return quotas;
}
Files V1(const std::string& cgroup, Files quotas) {
  quotas.emplace_back("proc/self/mountinfo", kV1Mounts);
  quotas.emplace_back("proc/self/cgroup", "9:cpuset:/\n4:cpu,cpuacct:" + cgroup + "\n0::/\n");
  return quotas;
}
Files V1Quota(const std::string& folder, const std::string& quota) {
  return {{folder + "/cpu.cfs_quota_us", quota + "\n"},
          {folder + "/cpu.cfs_period_us", "100000\n"}};
}

const Case kCases[] = {
    {"nothing known", 4, "", {}, 4, 0, "affinity mask of 4 CPUs"},
    {"one CPU", 1, "", {}, 1, 0, "affinity mask of 1 CPU"},
    {"OMP smaller", 8, "3", {}, 3, 0, "OMP_NUM_THREADS=3"},
    {"OMP larger than the mask", 1, "64", {}, 1, 0, "affinity"},
    {"OMP list: first entry", 4, "1,4", {}, 1, 0, "OMP_NUM_THREADS=1,4"},
    {"OMP with spaces", 4, " 2 ", {}, 2, 0, "OMP_NUM_THREADS"},
    {"OMP zero", 4, "0", {}, 4, 1, "affinity"},
    {"OMP negative", 4, "-2", {}, 4, 1, "affinity"},
    {"OMP word", 4, "abc", {}, 4, 1, "affinity"},
    {"OMP number and word", 4, "2x", {}, 4, 1, "affinity"},
    {"OMP too large for a number", 4, "99999999999999999999", {}, 4, 1, "affinity"},
    {"v2 without quota", 4, "", V2("/a", {{"sys/fs/cgroup/a/cpu.max", "max 100000\n"}}), 4, 0,
     "affinity"},
    {"v2 half a CPU", 4, "", V2("/a", {{"sys/fs/cgroup/a/cpu.max", "50000 100000\n"}}), 1, 0,
     "cgroup v2 quota of 0.50 CPUs"},
    {"v2 one CPU", 4, "", V2("/a", {{"sys/fs/cgroup/a/cpu.max", "100000 100000\n"}}), 1, 0, "v2"},
    {"v2 one and a half", 4, "", V2("/a", {{"sys/fs/cgroup/a/cpu.max", "150000 100000\n"}}), 2, 0,
     "cgroup v2 quota of 1.50 CPUs"},
    {"v2 more than the mask", 2, "", V2("/a", {{"sys/fs/cgroup/a/cpu.max", "800000 100000\n"}}), 2,
     0, "affinity"},
    {"v2 quota of an outer cgroup", 8, "",
     V2("/a/b/c", {{"sys/fs/cgroup/a/b/c/cpu.max", "max 100000\n"},
                   {"sys/fs/cgroup/a/cpu.max", "200000 100000\n"}}),
     2, 0, "v2"},
    {"v2 tightest of two", 8, "",
     V2("/a/b", {{"sys/fs/cgroup/a/b/cpu.max", "300000 100000\n"},
                 {"sys/fs/cgroup/a/cpu.max", "500000 100000\n"}}),
     3, 0, "v2"},
    {"v2 in a namespace: quota at the mount", 8, "",
     V2("/", {{"sys/fs/cgroup/cpu.max", "250000 100000\n"}}), 3, 0, "v2"},
    {"v2 path of the host, not visible here", 8, "",
     V2("/../../docker/123", {{"sys/fs/cgroup/cpu.max", "250000 100000\n"}}), 3, 0, "v2"},
    {"v2 short period", 8, "", V2("/a", {{"sys/fs/cgroup/a/cpu.max", "10000 5000\n"}}), 2, 0, "v2"},
    {"v2 garbage", 4, "", V2("/a", {{"sys/fs/cgroup/a/cpu.max", "lots of it\n"}}), 4, 0,
     "affinity"},
    {"v2 zero period", 4, "", V2("/a", {{"sys/fs/cgroup/a/cpu.max", "10000 0\n"}}), 4, 0,
     "affinity"},
    {"v2 quota and OMP", 8, "2", V2("/a", {{"sys/fs/cgroup/a/cpu.max", "300000 100000\n"}}), 2, 0,
     "OMP"},
    {"v1 without quota", 4, "", V1("/a", V1Quota("sys/fs/cgroup/cpu,cpuacct/a", "-1")), 4, 0,
     "affinity"},
    {"v1 two and a half", 4, "", V1("/a", V1Quota("sys/fs/cgroup/cpu,cpuacct/a", "250000")), 3, 0,
     "cgroup v1 quota of 2.50 CPUs"},
    {"v1 outer cgroup", 4, "", V1("/a/b", V1Quota("sys/fs/cgroup/cpu,cpuacct/a", "100000")), 1, 0,
     "v1"},
    {"v1 container: host path, quota at the mount", 4, "",
     V1("/docker/123", V1Quota("sys/fs/cgroup/cpu,cpuacct", "100000")), 1, 0, "v1"},
};

TEST_CASE("threads: the smallest of affinity, quota and OMP_NUM_THREADS") {
  for (const Case& c : kCases) {
    CAPTURE(c.name);
    const FakeRoot root;
    for (const auto& [file, text] : c.files) root.Write(file, text);
    const MachineView view{
        .affinity_cpus = c.affinity, .omp_num_threads = c.omp, .root = root.path()};
    const ThreadPlan plan = PlanThreads(view);
    CHECK(plan.threads == c.threads);
    CHECK(plan.warnings.size() == c.warnings);
    CHECK_MESSAGE(plan.reason.find(c.reason) != std::string::npos, plan.reason);
    CHECK(plan.reason.starts_with(std::to_string(c.threads) + ": "));
  }
}

TEST_CASE("v1 mount of a part of the hierarchy") {
  const FakeRoot root;
  root.Write("proc/self/mountinfo",
             "33 31 0:30 /docker/123 /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n");
  root.Write("proc/self/cgroup", "4:cpu:/docker/123/inner\n");
  root.Write("sys/fs/cgroup/cpu/inner/cpu.cfs_quota_us", "100000\n");
  root.Write("sys/fs/cgroup/cpu/inner/cpu.cfs_period_us", "100000\n");
  CHECK(PlanThreads({.affinity_cpus = 4, .omp_num_threads = "", .root = root.path()}).threads == 1);
}

TEST_CASE("a warning is one short line that names the value") {
  const std::string value(1000, 'x');
  const FakeRoot root;
  const ThreadPlan plan =
      PlanThreads({.affinity_cpus = 2, .omp_num_threads = value, .root = root.path()});
  REQUIRE(plan.warnings.size() == 1);
  CHECK(plan.warnings[0].size() < 120);
  CHECK(plan.warnings[0].find("OMP_NUM_THREADS='xxxx") == 0);
}

TEST_CASE("affinity of this process is followed") {
  cpu_set_t original;
  REQUIRE(sched_getaffinity(0, sizeof(original), &original) == 0);
  CHECK(MachineView::Current().affinity_cpus == static_cast<size_t>(CPU_COUNT(&original)));
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &original)) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    REQUIRE(sched_setaffinity(0, sizeof(one), &one) == 0);
    CHECK(MachineView::Current().affinity_cpus == 1);
    CHECK(PlanThreads().threads == 1);
  }
  sched_setaffinity(0, sizeof(original), &original);
}

TEST_CASE("caches of the first CPU") {
  const FakeRoot root;
  const std::string cache = "sys/devices/system/cpu/cpu0/cache/index";
  const Files files = {{"0/type", "Data\n"},        {"0/level", "1\n"}, {"0/size", "48K\n"},
                       {"1/type", "Instruction\n"}, {"1/level", "1\n"}, {"1/size", "32K\n"},
                       {"2/type", "Unified\n"},     {"2/level", "2\n"}, {"2/size", "2048K\n"},
                       {"3/type", "Unified\n"},     {"3/level", "3\n"}, {"3/size", "260M\n"}};
  for (const auto& [file, text] : files) root.Write(cache + file, text);
  const CacheSizes caches = DetectCaches(root.path());
  CHECK(caches.l1d == 48 * 1024);
  CHECK(caches.l2 == 2048 * 1024);
  CHECK(caches.l3 == size_t{260} << 20);
  const FakeRoot silent;
  CHECK(DetectCaches(silent.path()).l1d == 0);
}

TEST_CASE("ceilings are refused with both numbers") {
  CHECK(CheckCeiling("things", 0, SIZE_MAX).ok());
  CHECK(CheckCeiling("things", 100, 100).ok());
  const Status status = CheckCeiling("the model's weights", 50 << 20, (size_t{90} << 20) + 1);
  CHECK(status.code() == StatusCode::kResourceExhausted);
  CHECK(status.message() ==
        "memory ceiling of 50 MiB: the model's weights need 91 MiB; raise it to at least that");
}

TEST_CASE("resident memory") {
  // The system counts pages in batches a thread, and asking touches some: readings are this apart.
  constexpr size_t kSlack = size_t{1} << 20;
  const size_t now = ResidentBytes();
  CHECK(now > 0);
  CHECK(PeakResidentBytes() + kSlack >= now);
  CHECK(ResidentBytesWith(0) + kSlack >= now);
  CHECK(ResidentBytesWith(size_t{1} << 30) >= size_t{1} << 30);
}

}  // namespace
}  // namespace pozor
