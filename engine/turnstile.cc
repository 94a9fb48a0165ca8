#include "engine/turnstile.h"

#include <utility>

namespace pozor {

bool Turnstile::Enter(Request& request, size_t limit) {
  std::unique_lock lock(mutex_);
  if (inside_ < limit && waiting_.empty()) {
    ++inside_;
    return true;
  }
  waiting_.push_back(&request);
  waiting_count_.store(waiting_.size(), std::memory_order_relaxed);
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

void Turnstile::Leave() {
  const std::lock_guard lock(mutex_);
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

void Turnstile::TakeWaiting(size_t tokens, std::vector<Request*>* requests) {
  const std::lock_guard lock(mutex_);
  while (!waiting_.empty()) {
    Request* next = waiting_.front();
    if (next->batch == nullptr || next->batch->tokens() > tokens) break;
    if (!requests->empty() && next->kind != requests->front()->kind) break;
    tokens -= next->batch->tokens();
    requests->push_back(next);
    waiting_.pop_front();
  }
  waiting_count_.store(waiting_.size(), std::memory_order_relaxed);
}

void Turnstile::Finish(Request& request, Status status) {
  const std::lock_guard lock(mutex_);
  request.status = std::move(status);
  request.state = Request::State::kDone;
  request.changed.notify_one();
}

}  // namespace pozor
