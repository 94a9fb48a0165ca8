// What LeakSanitizer says in the middle of a test, where it is at work.
#ifndef POZOR_TESTS_SUPPORT_LEAKS_H_
#define POZOR_TESTS_SUPPORT_LEAKS_H_

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define POZOR_FINDS_LEAKS 1
#include <sanitizer/lsan_interface.h>
#endif
#endif

namespace pozor::test {

// Prints memory that nothing points to any more, if there is any. False in builds without the
// sanitizer.
inline bool LeaksAreFound() {
#ifdef POZOR_FINDS_LEAKS
  return __lsan_do_recoverable_leak_check() != 0;
#else
  return false;
#endif
}

}  // namespace pozor::test

#endif  // POZOR_TESTS_SUPPORT_LEAKS_H_
