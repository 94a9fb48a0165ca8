// Writing on a thread of its own, so that computing goes on meanwhile.
#ifndef POZOR_TOOLS_IO_WRITE_BEHIND_H_
#define POZOR_TOOLS_IO_WRITE_BEHIND_H_

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "pozor/status.h"

namespace pozor::tools {

// Holds at most one block beside the one that its caller fills.
class WriteBehind {
 public:
  using WriteFunction = std::function<Status(std::string_view)>;

  explicit WriteBehind(WriteFunction write);
  ~WriteBehind();  // after what was handed over is written
  WriteBehind(const WriteBehind&) = delete;
  WriteBehind& operator=(const WriteBehind&) = delete;

  // Takes the bytes of `block` and leaves it empty, once the block before has been written. The
  // error of an earlier block; nothing is written after one.
  Status Push(std::string* block);

  // Until everything is written.
  Status Wait();

 private:
  void Work();

  const WriteFunction write_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string block_;  // being written
  bool full_ = false;  // block_ waits or is being written
  bool ending_ = false;
  Status status_;
  std::thread thread_;
};

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_IO_WRITE_BEHIND_H_
