// A line on the terminal that says how far the work has come.
#ifndef POZOR_TOOLS_CLI_PROGRESS_H_
#define POZOR_TOOLS_CLI_PROGRESS_H_

#include <optional>
#include <string>

#include "pozor/pozor.hpp"

namespace pozor::tools {

// "1234567" as "1 234 567".
std::string Grouped(uint64_t number);
// "0:32", "1:02:03".
std::string Clock(double seconds);
// "123.4 MB"
std::string Megabytes(size_t bytes);

// What the line says; `share` of the work is done, if that is known.
std::string ProgressLine(const Progress& progress, std::optional<double> share);

class ProgressBar {
 public:
  // Writes to standard error, and only if that is a terminal and `wanted`.
  explicit ProgressBar(bool wanted);
  ~ProgressBar() { Clear(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  bool enabled() const { return enabled_; }
  void Show(const Progress& progress, std::optional<double> share);
  void Clear();

 private:
  bool enabled_;
  bool shown_ = false;
  double last_seconds_ = -1;
};

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_CLI_PROGRESS_H_
