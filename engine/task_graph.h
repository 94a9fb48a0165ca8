// A static graph of small tasks that any number of threads, one included, works off without a
// barrier: a task is ready once those it depends on are done, and whoever is free takes it.
#ifndef POZOR_ENGINE_TASK_GRAPH_H_
#define POZOR_ENGINE_TASK_GRAPH_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

namespace pozor {

class TaskGraph {
 public:
  // Adds a task that may start once `after` are done; returns its number. `lane`: worker number
  // that prefers the task, because it had the same weights before.
  uint32_t Add(size_t lane, std::span<const uint32_t> after);

  // A point that is passed when all `after` are done; costs no task.
  uint32_t Join(std::span<const uint32_t> after);

  // Ends building.
  void Start(size_t lanes);

  // Runs tasks until all are done, or until `leave()` says so after a task and others go on: the
  // caller who owns the graph never leaves early. May be called by many threads at once.
  void Work(size_t worker, const std::function<void(uint32_t task, size_t worker)>& run,
            const std::function<bool()>& leave);

 private:
  struct Node {
    size_t lane;
    bool is_join;
    uint32_t dependencies = 0;
    uint32_t first_successor = 0;
    uint32_t successors = 0;
  };
  struct Edge {
    uint32_t before, after;
  };

  void Connect(uint32_t node, std::span<const uint32_t> after);
  bool Pop(size_t worker, uint32_t* task);
  void Complete(uint32_t node);
  bool Release(uint32_t done);

  std::vector<Node> nodes_;
  std::vector<Edge> edges_;
  std::vector<uint32_t> successors_;

  std::mutex mutex_;                          // guards what follows, but for the atomics
  std::vector<uint32_t> missing_;             // [nodes] dependencies not yet done
  std::vector<std::vector<uint32_t>> ready_;  // [lanes]
  std::atomic<uint32_t> unfinished_{0};
  std::atomic<uint32_t> changes_{0};  // grows when a task becomes ready and when all are done
};

}  // namespace pozor

#endif  // POZOR_ENGINE_TASK_GRAPH_H_
