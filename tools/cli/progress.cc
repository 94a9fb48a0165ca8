#include "tools/cli/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace pozor::tools {
namespace {

constexpr double kSecondsBetweenUpdates = 0.1;
constexpr size_t kBarCells = 20;

}  // namespace

std::string Grouped(uint64_t number) {
  std::string digits = std::to_string(number);
  for (size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, " ");
  return digits;
}

std::string Clock(double seconds) {
  constexpr double kLongest = 99 * 3600.0;
  const auto whole = static_cast<unsigned>(std::lround(std::clamp(seconds, 0.0, kLongest)));
  char text[32];
  if (whole >= 3600) {
    std::snprintf(text, sizeof text, "%u:%02u:%02u", whole / 3600, whole / 60 % 60, whole % 60);
  } else {
    std::snprintf(text, sizeof text, "%u:%02u", whole / 60, whole % 60);
  }
  return text;
}

std::string Megabytes(size_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f MB", static_cast<double>(bytes) / 1e6);
  return text;
}

std::string ProgressLine(const Progress& progress, std::optional<double> share) {
  const double seconds = std::max(progress.seconds, 1e-3);
  std::string line;
  if (share.has_value()) {
    const auto cells = static_cast<size_t>(*share * kBarCells);
    char percent[16];
    std::snprintf(percent, sizeof percent, "] %3.0f %%  ", *share * 100);
    line += "[" + std::string(cells, '#') + std::string(kBarCells - cells, '.') + percent;
  }
  line += Grouped(progress.texts) + " texts  " +
          Grouped(static_cast<uint64_t>(static_cast<double>(progress.tokens) / seconds)) +
          " tokens/s";
  if (share.has_value() && *share > 0) {
    line += "  ETA " + Clock(progress.seconds * (1 - *share) / *share);
  }
  return line;
}

ProgressBar::ProgressBar(bool wanted) : enabled_(wanted && ::isatty(STDERR_FILENO) == 1) {}

void ProgressBar::Show(const Progress& progress, std::optional<double> share) {
  if (!enabled_ || progress.seconds < last_seconds_ + kSecondsBetweenUpdates) return;
  last_seconds_ = progress.seconds;
  std::fprintf(stderr, "\r\x1b[K%s", ProgressLine(progress, share).c_str());
  std::fflush(stderr);
  shown_ = true;
}

void ProgressBar::Clear() {
  if (!shown_) return;
  std::fprintf(stderr, "\r\x1b[K");
  std::fflush(stderr);
  shown_ = false;
}

}  // namespace pozor::tools
