// Properties of plans over many random inputs.
#include "engine/plan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "engine/flow_budget.h"
#include "kernels/types.h"
#include "tests/support/random.h"

namespace pozor {
namespace {

TokenBatch BatchOf(std::span<const size_t> lengths) {
  TokenBatch batch;
  for (const size_t length : lengths) {
    for (size_t t = 0; t < length; ++t) {
      batch.ids.push_back(static_cast<int32_t>(batch.ids.size()));
      batch.types.push_back(static_cast<int32_t>(batch.texts()));
    }
    batch.EndText();
  }
  return batch;
}

TEST_CASE("micro-batches are larger where reading weights costs more") {
  constexpr size_t kMiB = size_t{1} << 20;
  CHECK(DefaultBatchTokens(42 * kMiB, 32 * kMiB, false) == 128);
  CHECK(DefaultBatchTokens(64 * kMiB, 32 * kMiB, false) == 128);
  CHECK(DefaultBatchTokens(64 * kMiB + 1, 32 * kMiB, false) == 256);
  CHECK(DefaultBatchTokens(10 * kMiB, 32 * kMiB, true) == 256);
  CHECK(DefaultBatchTokens(10 * kMiB, 0, false) == 128);  // a cache of unknown size
  CHECK(DefaultBatchTokens(340 * kMiB, 0, false) == 256);
}

TEST_CASE("every text is in one micro-batch, none above the budget, shares are even") {
  test::Random random(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<size_t> lengths(random.Index(200));
    const size_t longest = 1 + random.Index(300);
    for (size_t& length : lengths) length = random.Index(longest);
    const size_t budget = 1 + random.Index(300);
    const size_t workers = 1 + random.Index(8);
    CAPTURE(round);
    const TokenBatch batch = BatchOf(lengths);
    const std::vector<MicroBatch> plan = PlanMicroBatches(batch.View(), budget, workers);

    std::vector<int> seen(lengths.size());
    size_t bad = 0, total = 0;
    for (const MicroBatch& micro_batch : plan) {
      size_t tokens = 0, most = 0;
      for (const uint32_t text : micro_batch.texts) {
        ++seen[text];
        tokens += lengths[text];
        most = std::max(most, lengths[text]);
      }
      bad += micro_batch.texts.empty() || tokens != micro_batch.tokens ||
             most != micro_batch.longest || tokens > std::max(budget, most);
      const bool several = std::count_if(micro_batch.texts.begin(), micro_batch.texts.end(),
                                         [&](uint32_t text) { return lengths[text] > 0; }) > 1;
      bad += several && tokens > budget;
      total += tokens;
    }
    CHECK(bad == 0);
    CHECK(std::all_of(seen.begin(), seen.end(), [](int times) { return times == 1; }));
    CHECK(total == batch.ids.size());

    // The plan looks at nothing else: again, and with other ids, it is the same.
    const std::vector<MicroBatch> again = PlanMicroBatches(batch.View(), budget, workers);
    REQUIRE(again.size() == plan.size());
    for (size_t i = 0; i < plan.size(); ++i) CHECK(again[i].texts == plan[i].texts);
  }
}

TEST_CASE("short texts fill the budget") {
  test::Random random(2);
  std::vector<size_t> lengths(5000);
  size_t total = 0;
  for (size_t& length : lengths) total += length = 5 + random.Index(30);
  const std::vector<MicroBatch> plan = PlanMicroBatches(BatchOf(lengths).View(), 128, 2);
  CHECK(plan.size() <= total / 128 * 11 / 10);
}

struct Share {
  const char* name;
  std::vector<size_t> lengths;
  size_t workers;
  size_t micro_batches;
  size_t largest;
};

TEST_CASE("small batches are cut into equal shares for the workers") {
  const Share shares[] = {
      {"nothing", {}, 2, 0, 0},
      {"texts without tokens", {0, 0, 0}, 2, 1, 0},
      {"one short text", {8}, 4, 1, 8},
      {"one long text", {500}, 2, 1, 500},
      {"too little to share", {8, 8, 8, 8}, 2, 1, 32},
      {"two equal halves", {16, 16, 16, 16, 16, 16, 16, 16}, 2, 2, 64},
      {"four workers", {40, 40, 40, 40}, 4, 4, 40},
      {"a full round rather than one and a half", {64, 64, 64, 64, 64, 64}, 2, 4, 128},
      {"long texts travel alone", {300, 200, 300, 10}, 2, 4, 300},
  };
  for (const Share& share : shares) {
    CAPTURE(share.name);
    const auto plan = PlanMicroBatches(BatchOf(share.lengths).View(), 128, share.workers);
    CHECK(plan.size() == share.micro_batches);
    size_t largest = 0;
    for (const MicroBatch& micro_batch : plan) largest = std::max(largest, micro_batch.tokens);
    CHECK(largest == share.largest);
  }
}

TEST_CASE("gathering copies the right tokens") {
  const std::vector<size_t> lengths = {3, 0, 2, 5};
  const TokenBatch batch = BatchOf(lengths);
  TokenBatch gathered;
  Gather(batch.View(), {.texts = {3, 1, 0}, .tokens = 8, .longest = 5}, &gathered);
  CHECK(gathered.ids == std::vector<int32_t>{5, 6, 7, 8, 9, 0, 1, 2});
  CHECK(gathered.types == std::vector<int32_t>{3, 3, 3, 3, 3, 0, 0, 0});
  CHECK(gathered.starts == std::vector<int32_t>{0, 5, 5, 8});
}

TEST_CASE("appending batches with and without types") {
  TokenBatch typed, untyped;
  typed.ids = {1, 2};
  typed.types = {1, 0};
  typed.EndText();
  untyped.ids = {3};
  untyped.EndText();
  untyped.EndText();

  TokenBatch all;
  all.Append(untyped.View());
  CHECK(all.types.empty());
  all.Append(typed.View());
  all.Append(untyped.View());
  CHECK(all.ids == std::vector<int32_t>{3, 1, 2, 3});
  CHECK(all.types == std::vector<int32_t>{0, 1, 0, 0});
  CHECK(all.starts == std::vector<int32_t>{0, 1, 1, 3, 4, 4});
}

constexpr size_t kMebibyte = size_t{1} << 20;

size_t Workspace(size_t tokens, size_t) { return tokens * 16 * 1024; }

TEST_CASE("without a ceiling the flow is as wished") {
  const FlowNeeds needs{.threads = 3, .batch_tokens = 128, .longest_text = 512};
  const FlowBudget budget = PlanFlow(needs, Workspace).value();
  CHECK(budget.workers == 3);
  CHECK(budget.batch_tokens == 128);
  CHECK(budget.flow_bytes >= 2 * budget.window_bytes);
}

TEST_CASE("under a ceiling everything shrinks until it fits, then it is refused") {
  FlowNeeds needs{.threads = 4,
                  .batch_tokens = 2048,
                  .longest_text = 512,
                  .ceiling = 0,
                  .resident = 100 * kMebibyte,
                  .bytes_per_text = 1536};
  FlowBudget last = PlanFlow(needs, Workspace).value();
  bool refused = false;
  for (needs.ceiling = 400 * kMebibyte; needs.ceiling > 90 * kMebibyte;
       needs.ceiling -= kMebibyte) {
    const Result<FlowBudget> budget = PlanFlow(needs, Workspace);
    if (!budget.ok()) {
      CHECK(budget.status().code() == StatusCode::kResourceExhausted);
      CHECK(last.workers == 1);
      refused = true;
      continue;
    }
    CHECK(!refused);
    CHECK(budget->workers <= last.workers);
    CHECK(budget->batch_tokens <= last.batch_tokens);
    CHECK(budget->window_bytes <= last.window_bytes);
    const size_t tokens = std::max(budget->batch_tokens, needs.longest_text);
    CHECK(needs.resident + budget->workers * Workspace(tokens, 0) + budget->flow_bytes * 48 <=
          needs.ceiling);
    last = *budget;
  }
  CHECK(refused);

  // The number in the message is one that is enough, and the least one.
  const std::string message = PlanFlow(needs, Workspace).status().message();
  const size_t at = message.find("need ") + 5;
  needs.ceiling = std::stoull(message.substr(at)) * kMebibyte;
  CHECK(PlanFlow(needs, Workspace).ok());
  needs.ceiling -= kMebibyte;
  CHECK(!PlanFlow(needs, Workspace).ok());
}

}  // namespace
}  // namespace pozor
