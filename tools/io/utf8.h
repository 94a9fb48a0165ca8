// UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing above U+10FFFF.
#ifndef POZOR_TOOLS_IO_UTF8_H_
#define POZOR_TOOLS_IO_UTF8_H_

#include <cstddef>
#include <string_view>

namespace pozor::tools {

// Index of the first byte of the first ill-formed sequence; text.size() if there is none.
size_t FindInvalidUtf8(std::string_view text);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_IO_UTF8_H_
