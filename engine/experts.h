// Which experts a row goes to.
#ifndef POZOR_ENGINE_EXPERTS_H_
#define POZOR_ENGINE_EXPERTS_H_

#include <cstdint>
#include <span>

namespace pozor {

// The experts.size() largest of `logits`, of equal ones the first; `experts` ascend, and shares[i]
// is softmax(logits)[experts[i]]: in double precision over all logits, rounded once.
void ChooseExperts(std::span<const float> logits, std::span<int32_t> experts, float* shares);

}  // namespace pozor

#endif  // POZOR_ENGINE_EXPERTS_H_
