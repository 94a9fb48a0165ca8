// Slow twins of the kernels, in double precision and with plain loops.
#ifndef POZOR_TESTS_SUPPORT_REFERENCE_H_
#define POZOR_TESTS_SUPPORT_REFERENCE_H_

#include <cstddef>
#include <vector>

#include "kernels/activation.h"
#include "kernels/gemm.h"
#include "kernels/pack.h"

namespace pozor::test {

// The activation's definition, by libm.
double ReferenceActivation(Activation activation, double x);

// What `epilogue` makes of an accumulator of packed column `column`.
double ExpectedElement(const GemmEpilogue& epilogue, double acc, double residual, size_t column);

// The nearest bf16, ties to even, by the exact midpoint between its two neighbours.
float NearestBf16(float x);

// Every enum value, for tables of cases.
std::vector<Activation> AllActivations();
const char* ActivationName(Activation activation);

// [m, n] = A [m, k] (row stride a_stride) times the weight.
std::vector<double> ReferenceProduct(const float* a, size_t a_stride, size_t m,
                                     const WeightView& weight);

// The same with one float accumulator an element, K ascending, one fused multiply-add a step: the
// bits that every fused tier must give.
std::vector<float> FusedProduct(const float* a, size_t a_stride, size_t m,
                                const WeightView& weight);

}  // namespace pozor::test

#endif  // POZOR_TESTS_SUPPORT_REFERENCE_H_
