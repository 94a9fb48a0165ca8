#include "models/text/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <cstdint>
#include <iterator>

namespace pozor {
namespace {

// Steps after which an expression is given up on one text: catastrophic ones need far more.
constexpr uint32_t kMatchLimit = 10'000'000;

const pcre2_code* Code(const void* code) { return static_cast<const pcre2_code*>(code); }

// PCRE2's buffers of one thread.
struct MatchState {
  pcre2_match_context* context = pcre2_match_context_create(nullptr);
  pcre2_match_data* data = pcre2_match_data_create(1, nullptr);
  pcre2_jit_stack* stack = pcre2_jit_stack_create(32 << 10, 1 << 20, nullptr);
  MatchState() {
    pcre2_set_match_limit(context, kMatchLimit);
    pcre2_jit_stack_assign(context, nullptr, stack);
  }
  MatchState(const MatchState&) = delete;
  MatchState& operator=(const MatchState&) = delete;
  ~MatchState() {
    pcre2_match_data_free(data);
    pcre2_match_context_free(context);
    pcre2_jit_stack_free(stack);
  }
};

}  // namespace

Regex::~Regex() { pcre2_code_free(static_cast<pcre2_code*>(code_)); }

Result<std::shared_ptr<const Regex>> Regex::Compile(std::string_view source,
                                                    const std::string& where) {
  const std::string what =
      where + ".pattern: regular expression " + std::string(source.substr(0, 80)) + ": ";
  const auto translated = TranslateOniguruma(source);
  if (!translated.ok()) return Unsupported(what + translated.status().message());
  int code = 0;
  PCRE2_SIZE at = 0;
  constexpr uint32_t kOptions =
      PCRE2_UTF | PCRE2_UCP | PCRE2_NO_UTF_CHECK | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C;
  pcre2_code* compiled = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated->data()),
                                       translated->size(), kOptions, &code, &at, nullptr);
  if (compiled == nullptr) {
    PCRE2_UCHAR message[128] = {};
    pcre2_get_error_message(code, message, sizeof(message));
    return Unsupported(what + reinterpret_cast<const char*>(message) + "; correct the file");
  }
  // Without the just-in-time compiler the same code is interpreted.
  static_cast<void>(pcre2_jit_compile(compiled, PCRE2_JIT_COMPLETE));
  std::shared_ptr<Regex> regex(new Regex());
  regex->code_ = compiled;
  return std::shared_ptr<const Regex>(std::move(regex));
}

Regex::Found Regex::Search(std::string_view text, size_t from, size_t* begin, size_t* end) const {
  thread_local MatchState state;
  const int found = pcre2_match(Code(code_), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                                from, PCRE2_NO_UTF_CHECK, state.data, state.context);
  if (found < 0) return found == PCRE2_ERROR_NOMATCH ? Found::kNo : Found::kGaveUp;
  const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(state.data);
  *begin = ends[0];
  *end = ends[1];
  return Found::kYes;
}

}  // namespace pozor
