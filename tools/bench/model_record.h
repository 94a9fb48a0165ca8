// What a model is and costs, for the records of a benchmark.
#ifndef POZOR_TOOLS_BENCH_MODEL_RECORD_H_
#define POZOR_TOOLS_BENCH_MODEL_RECORD_H_

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "engine/spec.h"
#include "kernels/pack.h"
#include "pozor/pozor.hpp"
#include "tools/bench/json_writer.h"

namespace pozor::tools {

// Multiplies and adds of the layers' matrix products for a token, counted apart.
double FlopsPerToken(const EncoderSpec& spec);

// True floating-point work of texts of these lengths: products of the layers, and QK^T and PV over
// the keys that a query sees (a windowed layer: only those). No padding, no norms, no softmax.
double EncoderFlops(const EncoderSpec& spec, std::span<const size_t> lengths);

// GEMM kernels chosen for batches of 1, 8, 32 and 128 tokens: "m=8: <name>".
std::vector<std::string> ChosenKernels(PackedLayout layout);

// 64-bit hash of the weight files of a model, 16 hexadecimal digits; empty if they cannot be read.
std::string HashWeights(const std::string& path);

// Fields "model", "layers", ... of an object that is open.
void WriteModelInfo(const Model& model, JsonWriter* json);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_BENCH_MODEL_RECORD_H_
