// Assertions for mistakes of Pozor's own. Whatever comes from outside is reported by Status
// instead.
#ifndef POZOR_KERNELS_CHECK_H_
#define POZOR_KERNELS_CHECK_H_

#include <cstdio>
#include <cstdlib>

namespace pozor {

[[noreturn]] inline void CheckFailed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "pozor: internal error: %s:%d: %s\n", file, line, condition);
  std::abort();
}

}  // namespace pozor

#define POZOR_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::pozor::CheckFailed(__FILE__, __LINE__, #condition))

#ifdef NDEBUG
#define POZOR_DCHECK(condition) static_cast<void>(0)
#else
#define POZOR_DCHECK(condition) POZOR_CHECK(condition)
#endif

#endif  // POZOR_KERNELS_CHECK_H_
