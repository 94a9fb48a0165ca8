#include "kernels/gemm.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <iterator>

#include "kernels/check.h"
#include "kernels/simd-inl.h"

namespace pozor {

#define POZOR_GEMM_KERNEL(name, tier, layout, mr, nr, kr, min_m, max_m, target, function) \
  namespace target {                                                                      \
  void function(const GemmArgs& args);                                                    \
  }
#include "kernels/gemm_kernels.inc"
#undef POZOR_GEMM_KERNEL

namespace {

#define POZOR_GEMM_KERNEL(name, tier, layout, mr, nr, kr, min_m, max_m, target, function) \
  {name, CpuTier::tier, PackedLayout::layout, mr, nr, kr, min_m, max_m, &target::function},
constexpr GemmKernel kKernels[] = {
#include "kernels/gemm_kernels.inc"
};
#undef POZOR_GEMM_KERNEL

// The row that POZOR_KERNEL or ForceGemmKernel names, or null.
std::atomic<const GemmKernel*> forced_kernel{nullptr};

bool AdmitsRows(const GemmKernel& kernel, size_t m) {
  return m >= kernel.min_m && (kernel.max_m == 0 || m <= kernel.max_m);
}

}  // namespace

std::span<const GemmKernel> AllGemmKernels() { return kKernels; }

bool IsGemmKernelSupported(const GemmKernel& kernel) {
  return TierAdmits(ActiveCpuTier(), kernel.tier) && IsCpuTierSupported(kernel.tier);
}

bool HasGemmKernel(PackedLayout layout) {
  return std::any_of(std::begin(kKernels), std::end(kKernels), [&](const GemmKernel& kernel) {
    return kernel.layout == layout && IsGemmKernelSupported(kernel);
  });
}

bool ForceGemmKernel(std::string_view name) {
  if (name.empty()) {
    forced_kernel.store(nullptr, std::memory_order_relaxed);
    return true;
  }
  for (const GemmKernel& kernel : kKernels) {
    if (kernel.name != name || !IsGemmKernelSupported(kernel)) continue;
    forced_kernel.store(&kernel, std::memory_order_relaxed);
    return true;
  }
  return false;
}

std::string ApplyGemmKernelFromEnvironment() {
  const char* value = std::getenv("POZOR_KERNEL");
  if (value == nullptr || *value == '\0' || ForceGemmKernel(value)) return "";
  std::string names;
  for (const GemmKernel& kernel : kKernels) {
    if (!IsGemmKernelSupported(kernel)) continue;
    names += names.empty() ? "" : " ";
    names += kernel.name;
  }
  return "POZOR_KERNEL=" + std::string(value) +
         ": no such kernel on the active CPU tier; use one of " + names;
}

const GemmKernel& FindGemmKernel(PackedLayout layout, size_t m) {
  // Programs that do not report the environment's mistakes obey it all the same.
  [[maybe_unused]] static const bool environment_read = ApplyGemmKernelFromEnvironment().empty();
  const GemmKernel* forced = forced_kernel.load(std::memory_order_relaxed);
  if (forced != nullptr && forced->layout == layout && IsGemmKernelSupported(*forced)) {
    return *forced;
  }
  const size_t rows = std::max<size_t>(m, 1);
  for (const GemmKernel& kernel : kKernels) {
    if (kernel.layout == layout && AdmitsRows(kernel, rows) && IsGemmKernelSupported(kernel)) {
      return kernel;
    }
  }
  // A cap that came after the weights had been packed does not reach their products.
  for (const GemmKernel& kernel : kKernels) {
    if (kernel.layout == layout && AdmitsRows(kernel, rows) && IsCpuTierSupported(kernel.tier)) {
      return kernel;
    }
  }
  POZOR_CHECK(false && "a packed layout without a kernel");
  return kKernels[0];
}

void Gemm(const GemmArgs& args) { FindGemmKernel(args.b->layout, args.m).run(args); }

}  // namespace pozor
