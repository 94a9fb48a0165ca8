// The words or tokens that a user names.
#ifndef POZOR_TOOLS_ATTENTION_FIND_UNITS_H_
#define POZOR_TOOLS_ATTENTION_FIND_UNITS_H_

#include <string>
#include <vector>

#include "tools/attention/transform.h"

namespace pozor::tools {

// All units with this text; without regard to the case of ASCII letters if none has it exactly;
// "@3" is unit 3. InvalidArgument lists what there is.
Result<std::vector<size_t>> FindUnits(const std::vector<Unit>& units, const std::string& name,
                                      const std::string& option);

// The text on one line for a terminal: control characters, line breaks and what changes the
// direction of writing become "?". At most `width` columns, about; longer ones end in "~".
std::string Printable(const std::string& text, size_t width);

// Padded with blanks to `width` columns.
std::string PadTo(const std::string& text, size_t width);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_ATTENTION_FIND_UNITS_H_
