// Kernels may use only what rounds the same on every machine: no libm, no approximate reciprocals,
// no reductions whose order depends on the width of a vector.
#include <doctest/doctest.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

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

}  // namespace
}  // namespace pozor::test
