// Times the loops of kernels/peak.h: what one core computes at most. Only reports divide by it;
// nothing chooses by it.
#ifndef POZOR_ENGINE_ROOFLINE_H_
#define POZOR_ENGINE_ROOFLINE_H_

#include "kernels/peak.h"

namespace pozor {

// Operations a second over one window of about `seconds` on the calling thread. Neighbours on the
// same core or chip can only lower it: take the best of several. Run loops of SupportedCpuTiers()
// only.
double MeasurePeakWindow(const PeakLoop& loop, double seconds);

}  // namespace pozor

#endif  // POZOR_ENGINE_ROOFLINE_H_
