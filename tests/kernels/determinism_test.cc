// Kernels may use only what rounds the same on every machine: no libm, no approximate reciprocals,
// no reductions whose order depends on the width of a vector. That it works is shown by hashes of
// results, the same for every fused tier of x86 and Arm.
#include <doctest/doctest.h>

#include <cctype>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/activation.h"
#include "kernels/attention.h"
#include "kernels/attention_s8.h"
#include "kernels/gemm.h"
#include "kernels/norm.h"
#include "kernels/norm_quantize.h"
#include "kernels/pool.h"
#include "kernels/softmax.h"
#include "kernels/types.h"
#include "tests/support/buffer.h"
#include "tests/support/compare.h"
#include "tests/support/for_each_tier.h"
#include "tests/support/quantized.h"
#include "tests/support/random.h"
#include "tests/support/reference.h"

namespace pozor::test {
namespace {

constexpr std::string_view kForbidden[] = {
    // libm: not correctly rounded, and different from system to system
    "cmath", "math.h", "std::exp", "std::exp2", "std::expm1", "std::log", "std::log2", "std::log1p",
    "std::pow", "std::erf", "std::erfc", "std::tanh", "std::sin", "std::cos", "std::sqrt",
    "std::hypot", "expf", "exp2f", "expm1f", "logf", "powf", "erff", "tanhf", "sqrtf",
    "__builtin_exp", "__builtin_expf", "__builtin_erff", "__builtin_tanhf", "contrib/math",
    // estimates differ between vendors
    "ApproximateReciprocal", "ApproximateReciprocalSqrt", "_mm256_rcp_ps", "_mm256_rsqrt_ps",
    "_mm512_rcp14_ps", "_mm512_rsqrt14_ps", "vrecpeq_f32", "vrsqrteq_f32",
    // order of the sum depends on the target
    "ReduceSum", "SumOfLanes", "_mm512_reduce_add_ps", "vaddvq_f32",
    // compilers may reorder
    "fast-math", "std::reduce", "omp simd"};

bool IsWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Lines without their comments, so that a comment may name what it avoids.
std::string WithoutLineComments(std::string_view text) {
  std::string code;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) code += line.substr(0, line.find("//")) + "\n";
  return code;
}

bool UsesWord(std::string_view code, std::string_view word) {
  for (size_t at = code.find(word); at != code.npos; at = code.find(word, at + 1)) {
    const bool starts = at == 0 || !IsWord(code[at - 1]);
    const size_t end = at + word.size();
    if (starts && (end == code.size() || !IsWord(code[end]))) return true;
  }
  return false;
}

std::vector<std::string> ForbiddenWords(std::string_view text) {
  const std::string code = WithoutLineComments(text);
  std::vector<std::string> found;
  for (const std::string_view word : kForbidden) {
    if (UsesWord(code, word)) found.emplace_back(word);
  }
  return found;
}

TEST_CASE("the search finds words, and only whole ones outside comments") {
  CHECK(ForbiddenWords("y = std::exp(x);") == std::vector<std::string>{"std::exp"});
  CHECK(ForbiddenWords("hn::ReduceSum(d, v)") == std::vector<std::string>{"ReduceSum"});
  CHECK(ForbiddenWords("// not std::exp(x)\nMyReduceSum();").empty());
}

TEST_CASE("no kernel uses what differs between machines") {
  size_t files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(POZOR_SOURCE_DIR) / "kernels")) {
    const std::string name = entry.path().filename().string();
    const std::string extension = entry.path().extension().string();
    if (extension != ".cc" && extension != ".h" && extension != ".inc") continue;
    ++files;
    std::ifstream file(entry.path());
    std::stringstream text;
    text << file.rdbuf();
    CAPTURE(name);
    std::string found;
    for (const std::string& word : ForbiddenWords(text.str())) found += word + " ";
    CHECK(found == "");
  }
  CHECK(files > 20);
}

std::vector<float> Floats(const Buffer& buffer) {
  return {buffer.span().begin(), buffer.span().end()};
}

std::vector<float> ActivationResult(Activation activation) {
  std::vector<float> y = RandomFloats(1001, 1, -20.0f, 20.0f);
  Activate(activation, y.data(), y.data(), y.size());
  return y;
}

std::vector<float> NormResult(size_t cols) {
  constexpr size_t kRows = 3;
  const std::vector<float> x = NormalFloats(kRows * cols, 2), residual = NormalFloats(x.size(), 3);
  const std::vector<float> gamma = RandomFloats(cols, 4), beta = RandomFloats(cols, 5);
  std::vector<float> out(x.size());
  NormArgs args;
  args.x = x.data();
  args.residual = residual.data();
  args.x_stride = args.residual_stride = args.out_stride = cols;
  args.gamma = gamma.data();
  args.beta = beta.data();
  args.epsilon = 1e-12f;
  args.rows = kRows;
  args.cols = cols;
  args.out = out.data();
  LayerNorm(args);
  return out;
}

std::vector<float> SoftmaxResult(size_t cols) {
  std::vector<float> x = RandomFloats(cols, 6, -10.0f, 10.0f);
  Softmax(x.data(), 1, cols, cols);
  return x;
}

std::vector<float> AttentionResult(size_t tokens, size_t dim, size_t window) {
  const size_t stride = RoundUp(dim, kPanelColumns);
  Buffer q(tokens * stride), k(tokens * stride), v(tokens * stride), out(tokens * dim);
  Buffer scratch(AttentionScratchFloats(tokens, dim));
  Random random(7);
  for (size_t i = 0; i < tokens * stride; ++i) {
    if (i % stride >= dim) continue;
    q[i] = random.Normal(), k[i] = random.Normal(), v[i] = random.Normal();
  }
  AttentionArgs args;
  args.q = q.data();
  args.k = k.data();
  args.v = v.data();
  args.head_dim = dim;
  args.head_stride = stride;
  args.tokens = args.query_end = tokens;
  args.window = window;
  args.out = out.data();
  args.out_stride = dim;
  Attention(args, scratch.data());
  return Floats(out);
}

std::vector<float> AttentionS8Result(size_t tokens, size_t dim, size_t window) {
  const size_t stride = RoundUp(dim, kPanelColumns);
  Buffer q(tokens * stride), k(tokens * stride), v(tokens * stride), out(tokens * dim);
  Buffer scratch(AttentionS8ScratchFloats(tokens, dim));
  Random random(7);
  for (size_t i = 0; i < tokens * stride; ++i) {
    if (i % stride >= dim) continue;
    q[i] = random.Normal(), k[i] = random.Normal(), v[i] = random.Normal();
  }
  AttentionArgs args;
  args.q = q.data();
  args.k = k.data();
  args.v = v.data();
  args.head_dim = dim;
  args.head_stride = stride;
  args.tokens = args.query_end = tokens;
  args.window = window;
  args.out = out.data();
  args.out_stride = dim;
  AttentionS8(args, scratch.data());
  return Floats(out);
}

// A norm, then an int8 product with GELU.
std::vector<float> S8Result(size_t rows, size_t cols, size_t out_columns, size_t split) {
  std::vector<float> x = NormalFloats(rows * cols, 2), h(x.size());
  const std::vector<float> gamma = RandomFloats(cols, 4), beta = RandomFloats(cols, 5);
  const std::vector<float> w = NormalFloats(cols * out_columns, 6);
  const Buffer bias(RandomFloats(RoundUp(out_columns, kPanelColumns), 7), 0);
  QuantizedBuffer quantized(rows, cols, split == 0 ? 1 : 2);
  const WeightView view = {
      .data = w.data(), .k = cols, .n = out_columns, .k_stride = 1, .n_stride = cols};
  const PackedS8Buffer packed(view, split);
  NormQuantizeArgs norm;
  norm.norm = {.x = x.data(),
               .x_stride = cols,
               .gamma = gamma.data(),
               .beta = beta.data(),
               .epsilon = 1e-12f,
               .rows = rows,
               .cols = cols,
               .out = h.data(),
               .out_stride = cols};
  norm.smooth_gamma = beta.data();
  norm.smooth_beta = gamma.data();
  norm.out = quantized.view();
  if (split == 0) {
    LayerNormQuantize(norm);
  } else {
    QuantizeRows({.x = x.data(),
                  .x_stride = cols,
                  .rows = rows,
                  .cols = cols,
                  .split = split,
                  .out = quantized.view()});
  }
  std::vector<float> out(rows * out_columns);
  GemmArgs args;
  args.quantized = quantized.view();
  args.m = rows;
  args.b = &packed.matrix();
  args.panel_end = args.b->panel_count();
  args.epilogue.bias = bias.data();
  args.epilogue.activation = Activation::kGelu;
  args.epilogue.c = out.data();
  args.epilogue.c_stride = out_columns;
  Gemm(args);
  return out;
}

std::vector<float> PoolResult(Pooling pooling) {
  constexpr size_t kCols = 385, kTokens = 37;
  const std::vector<float> x = NormalFloats(kTokens * kCols, 8);
  std::vector<float> out(kCols);
  Pool(pooling, x.data(), kCols, 0, kTokens, kCols, out.data());
  L2Normalize(out.data(), kCols);
  out.push_back(Dot(x.data(), x.data() + kCols, kCols));
  return out;
}

struct Result {
  std::string name;
  uint64_t hash;
  std::function<std::vector<float>()> run;
};

std::vector<Result> Results() {
  using A = Activation;
  return {
      {"gelu", 0xADF9223BD06C53E9ull, [] { return ActivationResult(A::kGelu); }},
      {"gelu_tanh", 0x768CE0919CFBAFD9ull, [] { return ActivationResult(A::kGeluTanh); }},
      {"quick_gelu", 0xB774A092D8288204ull, [] { return ActivationResult(A::kQuickGelu); }},
      {"silu", 0x2A105F7BE2045377ull, [] { return ActivationResult(A::kSilu); }},
      {"tanh", 0x7DC06B06CB08CDE4ull, [] { return ActivationResult(A::kTanh); }},
      {"sigmoid", 0xF2441439E75D5858ull, [] { return ActivationResult(A::kSigmoid); }},
      {"mish", 0xCD1C7F95AA7D1DA8ull, [] { return ActivationResult(A::kMish); }},
      {"elu", 0x12D50854163D39DFull, [] { return ActivationResult(A::kElu); }},
      {"layer norm 384", 0x68C4F53E16F78A05ull, [] { return NormResult(384); }},
      {"layer norm 77", 0x39904E60879ACBDEull, [] { return NormResult(77); }},
      {"softmax 100", 0x815991D7212CB4BCull, [] { return SoftmaxResult(100); }},
      {"attention 20 x 32", 0xFB71DAEE518CCED3ull,
       [] { return AttentionResult(20, 32, kNoWindow); }},
      {"attention 300 x 64", 0x88C45977C6974D89ull,
       [] { return AttentionResult(300, 64, kNoWindow); }},
      {"attention 700 x 24, window 50", 0x6B7C61EAF5D289B7ull,
       [] { return AttentionResult(700, 24, 50); }},
      {"int8 attention 20 x 32", 0x1E7DC58B94F02255ull,
       [] { return AttentionS8Result(20, 32, kNoWindow); }},
      {"int8 attention 300 x 64", 0x84F60F10D51E96BCull,
       [] { return AttentionS8Result(300, 64, kNoWindow); }},
      {"int8 attention 1100 x 24, window 50", 0x7DF7D617951A7A45ull,
       [] { return AttentionS8Result(1100, 24, 50); }},
      {"int8 norm and product 9 x 100 x 50", 0x7E11D757209F00C1ull,
       [] { return S8Result(9, 100, 50, 0); }},
      {"int8 product 14 x 320 x 70 in two groups", 0xE52FF67E427BA63Full,
       [] { return S8Result(14, 320, 70, 64); }},
      {"mean pooling", 0xF4E87E1BFEF51797ull, [] { return PoolResult(Pooling::kMean); }},
      {"weighted mean pooling", 0x6649AAFF616053C3ull,
       [] { return PoolResult(Pooling::kWeightedMean); }},
  };
}

TEST_CASE("results have the same bits on every machine with fused multiply-add") {
  for (const Result& result : Results()) {
    CAPTURE(result.name);
    ForEachFusedTier([&](CpuTier) { CHECK(HashBits(result.run()) == result.hash); });
  }
}

}  // namespace
}  // namespace pozor::test
