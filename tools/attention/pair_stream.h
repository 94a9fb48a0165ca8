// Two sources in step: the same block of rows of both, without holding either whole.
#ifndef POZOR_TOOLS_ATTENTION_PAIR_STREAM_H_
#define POZOR_TOOLS_ATTENTION_PAIR_STREAM_H_

#include <functional>

#include "tools/attention/source.h"

namespace pozor::tools {

using PairSink = std::function<Status(const AttentionRows& a, const AttentionRows& b)>;

// Both must have the same tokens and heads (CheckComparable). `a` runs on a thread of its own.
Status StreamPair(AttentionSource& a, AttentionSource& b, const PairSink& sink);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_ATTENTION_PAIR_STREAM_H_
