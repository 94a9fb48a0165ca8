#include "engine/turnstile.h"

#include <algorithm>
#include <utility>

namespace pozor {

bool Turnstile::Enter(Request& request, size_t limit) {
  std::unique_lock lock(mutex_);
  tokens_ += request.tokens;
  if (inside_ < limit && waiting_.empty()) {
    ++inside_;
    return true;
  }
  waiting_.push_back(&request);
  waiting_count_.store(waiting_.size(), std::memory_order_relaxed);
  if (awaited_ != 0 && waiting_.size() >= awaited_) arrived_.notify_one();
  request.changed.wait(lock, [&] { return request.state != Request::State::kWaiting; });
  return request.state == Request::State::kInside;
}

bool Turnstile::TryEnter(size_t limit) {
  const std::lock_guard lock(mutex_);
  if (inside_ >= limit || !waiting_.empty()) return false;
  ++inside_;
  return true;
}

bool Turnstile::HasRoom(size_t limit) {
  const std::lock_guard lock(mutex_);
  return inside_ < limit && waiting_.empty();
}

void Turnstile::Leave(const Request* request) {
  const std::lock_guard lock(mutex_);
  if (request != nullptr) tokens_ -= request->tokens;
  if (waiting_.empty()) {
    --inside_;
    return;
  }
  Request* next = waiting_.front();
  waiting_.pop_front();
  waiting_count_.store(waiting_.size(), std::memory_order_relaxed);
  next->state = Request::State::kInside;
  next->changed.notify_one();  // under the lock: the waiter cannot be gone yet
}

void Turnstile::AwaitWaiting(size_t count, std::chrono::microseconds at_most) {
  std::unique_lock lock(mutex_);
  if (awaited_ != 0 || waiting_.size() >= count) return;
  awaited_ = count;
  arrived_.wait_for(lock, at_most, [&] { return waiting_.size() >= count; });
  awaited_ = 0;
}

void Turnstile::TakeWaiting(size_t limit, size_t budget, std::vector<Request*>* requests) {
  const std::lock_guard lock(mutex_);
  const size_t share = std::min(budget, DivCeil(tokens_, limit));
  size_t carried = 0;
  for (const Request* request : *requests) carried += request->tokens;
  while (!waiting_.empty() && carried < share) {
    Request* next = waiting_.front();
    const bool fits = carried + next->tokens <= budget;
    if (!next->shareable || !fits || next->options != requests->front()->options) break;
    requests->push_back(next);
    waiting_.pop_front();
    carried += next->tokens;
  }
  waiting_count_.store(waiting_.size(), std::memory_order_relaxed);
}

void Turnstile::Finish(Request& request, Status status) {
  const std::lock_guard lock(mutex_);
  tokens_ -= request.tokens;
  request.status = std::move(status);
  request.state = Request::State::kDone;
  request.changed.notify_one();
}

}  // namespace pozor
