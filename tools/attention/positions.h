// How a model knows the order of its tokens, for the page's panel.
#ifndef POZOR_TOOLS_ATTENTION_POSITIONS_H_
#define POZOR_TOOLS_ATTENTION_POSITIONS_H_

#include <string>

#include "engine/encoder.h"

namespace pozor::tools {

// "learned", "sinusoidal", "none", ...
std::string PositionKindName(const EncoderSpec& spec);

// JSON object: the kind and, of a model with a table, a sample of it with the cosines between its
// rows (README.md, "Positions").
std::string PositionPanel(const Encoder& encoder);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_ATTENTION_POSITIONS_H_
