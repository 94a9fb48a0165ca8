#include "tools/io/write_behind.h"

#include <utility>

namespace pozor::tools {

WriteBehind::WriteBehind(WriteFunction write)
    : write_(std::move(write)), thread_([this] { Work(); }) {}

WriteBehind::~WriteBehind() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

Status WriteBehind::Push(std::string* block) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !full_; });
  if (!status_.ok()) return status_;
  block_.swap(*block);
  block->clear();
  full_ = true;
  lock.unlock();
  changed_.notify_all();
  return Status();
}

Status WriteBehind::Wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !full_; });
  return status_;
}

void WriteBehind::Work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return full_ || ending_; });
    if (!full_) return;
    lock.unlock();
    Status status = status_.ok() ? write_(block_) : Status();
    lock.lock();
    if (!status.ok()) status_ = std::move(status);
    full_ = false;
    changed_.notify_all();
  }
}

}  // namespace pozor::tools
