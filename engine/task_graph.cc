#include "engine/task_graph.h"

#include "engine/parallel.h"

namespace pozor {

uint32_t TaskGraph::Add(size_t lane, std::span<const uint32_t> after) {
  const auto node = static_cast<uint32_t>(nodes_.size());
  nodes_.push_back({.lane = lane, .is_join = false});
  Connect(node, after);
  return node;
}

uint32_t TaskGraph::Join(std::span<const uint32_t> after) {
  if (after.size() == 1) return after[0];
  const auto node = static_cast<uint32_t>(nodes_.size());
  nodes_.push_back({.lane = 0, .is_join = true});
  Connect(node, after);
  return node;
}

void TaskGraph::Connect(uint32_t node, std::span<const uint32_t> after) {
  for (const uint32_t before : after) edges_.push_back({before, node});
  nodes_[node].dependencies = static_cast<uint32_t>(after.size());
}

void TaskGraph::Start(size_t lanes) {
  for (const Edge& edge : edges_) ++nodes_[edge.before].successors;
  uint32_t first = 0;
  for (Node& node : nodes_) {
    node.first_successor = first;
    first += node.successors;
    node.successors = 0;
  }
  successors_.resize(edges_.size());
  for (const Edge& edge : edges_) {
    Node& before = nodes_[edge.before];
    successors_[before.first_successor + before.successors++] = edge.after;
  }
  missing_.resize(nodes_.size());
  ready_.resize(lanes);
  for (std::vector<uint32_t>& lane : ready_) lane.reserve(nodes_.size());  // no allocation later
  unfinished_ = static_cast<uint32_t>(nodes_.size());
  for (uint32_t i = 0; i < nodes_.size(); ++i) {
    missing_[i] = nodes_[i].dependencies;
    if (nodes_[i].dependencies == 0) ready_[nodes_[i].lane % lanes].push_back(i);
  }
}

bool TaskGraph::Pop(size_t worker, uint32_t* task) {
  const BriefLock lock(mutex_);
  for (size_t i = 0; i < ready_.size(); ++i) {
    std::vector<uint32_t>& lane = ready_[(worker + i) % ready_.size()];
    if (lane.empty()) continue;
    *task = lane.back();
    lane.pop_back();
    return true;
  }
  return false;
}

// Counts `done` off with those that wait for it, under the lock; true if a task became ready. A
// join that becomes ready is done on the spot.
bool TaskGraph::Release(uint32_t done) {
  bool ready = false;
  for (uint32_t s = 0; s < nodes_[done].successors; ++s) {
    const uint32_t next = successors_[nodes_[done].first_successor + s];
    if (--missing_[next] != 0) continue;
    if (nodes_[next].is_join) {
      ready = Release(next) || ready;
    } else {
      ready_[nodes_[next].lane % ready_.size()].push_back(next);
      ready = true;
    }
  }
  return --unfinished_ == 0 || ready;
}

void TaskGraph::Complete(uint32_t node) {
  {
    const BriefLock lock(mutex_);
    if (!Release(node)) return;
    changes_.fetch_add(1, std::memory_order_release);
  }
  changes_.notify_all();
}

void TaskGraph::Work(size_t worker, const std::function<void(uint32_t, size_t)>& run,
                     const std::function<bool()>& leave) {
  for (;;) {
    const uint32_t seen = changes_.load(std::memory_order_acquire);
    uint32_t task;
    if (Pop(worker, &task)) {
      run(task, worker);
      Complete(task);
    } else if (unfinished_.load(std::memory_order_acquire) == 0) {
      return;
    } else {
      WaitWhileEqual(changes_, seen);
    }
    if (leave()) return;
  }
}

}  // namespace pozor
