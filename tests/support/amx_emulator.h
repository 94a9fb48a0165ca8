// Runs AMX kernels on any x86-64 machine: tile instructions raise SIGILL where there is no AMX, and
// a handler does what they would have done.
#ifndef POZOR_TESTS_SUPPORT_AMX_EMULATOR_H_
#define POZOR_TESTS_SUPPORT_AMX_EMULATOR_H_

#include "kernels/gemm.h"

namespace pozor::test {

// While one is alive, tile instructions work on all threads: by themselves if the CPU has them,
// else emulated. Make it inside a test case: doctest sets handlers of its own around each.
//
// Emulated are LDTILECFG, STTILECFG, TILERELEASE, TILEZERO, TILELOADD(T1), TILESTORED,
// TDPB[SU][SU]D and TDPBF16PS, with the checks of the manual: what would raise #UD on a CPU with
// AMX still does.
class AmxEmulator {
 public:
  AmxEmulator();
  ~AmxEmulator();
  AmxEmulator(const AmxEmulator&) = delete;
  AmxEmulator& operator=(const AmxEmulator&) = delete;

  // "native AMX", "emulated: no AMX", or "none: " and why.
  static const char* Description();
  // True while an emulator is alive and has what it needs.
  static bool Alive();
  // False on other architectures, and without AVX-512, which the kernels around the tiles need.
  static bool Available();
  // Instructions emulated so far, on all threads.
  static unsigned long Count();
};

// The AMX tier as the cap, by itself or emulated, while one is alive. Where there is neither
// (AmxEmulator::Available) the cap stays as it is.
class AmxTier {
 public:
  AmxTier();
  ~AmxTier();
  AmxTier(const AmxTier&) = delete;
  AmxTier& operator=(const AmxTier&) = delete;

 private:
  AmxEmulator emulator_;
};

// True if `kernel` can be run here and now, whatever the tier cap: an AMX kernel on a CPU without
// AMX only while an AmxEmulator is alive.
bool RunsHere(const GemmKernel& kernel);

}  // namespace pozor::test

#endif  // POZOR_TESTS_SUPPORT_AMX_EMULATOR_H_
