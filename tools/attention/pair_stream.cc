#include "tools/attention/pair_stream.h"

#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>

namespace pozor::tools {
namespace {

// Hands one block at a time from the thread of `a` to the caller's.
class Handover {
 public:
  // On the thread of `a`: waits until the block has been used.
  Status Offer(const AttentionRows& rows) {
    std::unique_lock lock(mutex_);
    if (abandoned_) return Stopped();
    offered_ = &rows;
    changed_.notify_all();
    changed_.wait(lock, [&] { return offered_ == nullptr || abandoned_; });
    return offered_ == nullptr ? Status() : Stopped();
  }
  void Finish(Status status) {
    const std::lock_guard lock(mutex_);
    finished_ = true;
    status_ = std::move(status);
    changed_.notify_all();
  }

  // On the caller's thread.
  Status Use(const AttentionRows& b, const PairSink& sink) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return offered_ != nullptr || finished_; });
    if (offered_ == nullptr) return status_.ok() ? OutOfStep() : status_;
    const bool same = offered_->layer == b.layer && offered_->head == b.head &&
                      offered_->query_begin == b.query_begin && offered_->queries == b.queries &&
                      offered_->keys == b.keys;
    const Status status = same ? sink(*offered_, b) : OutOfStep();
    offered_ = nullptr;
    changed_.notify_all();
    return status;
  }
  void Abandon() {
    const std::lock_guard lock(mutex_);
    abandoned_ = true;
    changed_.notify_all();
  }

  const Status& status() const { return status_; }  // after the thread has been joined

 private:
  static Status Stopped() { return Cancelled("diff: the other run stopped; see its error"); }
  static Status OutOfStep() {
    return Status(StatusCode::kInternal, "diff: the runs are out of step; report this");
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  const AttentionRows* offered_ = nullptr;
  bool finished_ = false, abandoned_ = false;
  Status status_;
};

}  // namespace

Status StreamPair(AttentionSource& a, AttentionSource& b, const PairSink& sink) {
  Handover handover;
  std::thread thread;
  try {
    thread = std::thread([&] {
      handover.Finish(
          a.Stream({}, [&](const AttentionRows& rows) { return handover.Offer(rows); }));
    });
  } catch (const std::system_error&) {
    return ResourceExhausted("diff: the system grants no further thread; raise its limit");
  }
  const Status status =
      b.Stream({}, [&](const AttentionRows& rows) { return handover.Use(rows, sink); });
  handover.Abandon();  // what `a` may still offer, nobody takes
  thread.join();
  return status.ok() ? handover.status() : status;
}

}  // namespace pozor::tools
