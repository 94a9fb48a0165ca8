// Which CPU a sleeping worker wakes up on.
//
// Linux wakes a thread on the waker's own CPU if it believes that the others are taken, and in a
// KVM guest it believes so of every CPU that has been idle for more than a moment, since the host
// has put it aside (vcpu_is_preempted). The worker then stands behind its caller until the caller's
// time slice ends, some 4 ms later: longer than a short text takes on one thread. So a caller that
// is about to wake workers first takes its own CPU out of their affinity masks, and each of them
// puts it back as soon as it runs.
#ifndef POZOR_ENGINE_WAKING_H_
#define POZOR_ENGINE_WAKING_H_

#include <cstddef>

namespace pozor {

// True in a virtual machine whose kernel may take idle CPUs for busy ones.
bool WakesBesideCaller();

// Called by a worker when it comes to work: from the first time on it is known to KeepWorkersOff,
// until its thread ends. Gives it back the CPU that was taken from it.
void ArriveAsWorker();

// Takes `cpu` out of the masks of at most `most` known workers. A worker that may run nowhere else
// keeps it, and what others have done to its mask since is respected.
void KeepWorkersOff(int cpu, size_t most);

}  // namespace pozor

#endif  // POZOR_ENGINE_WAKING_H_
