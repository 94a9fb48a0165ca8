#include "tools/io/text_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace pozor::tools {
namespace {

constexpr uint64_t kTextsBetweenMarks = 32;

}  // namespace

Result<std::unique_ptr<TextFiles>> TextFiles::Open(std::vector<std::string> paths,
                                                   const TextFilesOptions& options) {
  std::unique_ptr<TextFiles> files(new TextFiles(std::move(paths), options));
  POZOR_RETURN_IF_ERROR(files->CheckPaths());
  return files;
}

TextFiles::TextFiles(std::vector<std::string> paths, const TextFilesOptions& options)
    : paths_(std::move(paths)), options_(options) {}

// Finds a missing file now and not after hours of work, and adds up the sizes.
Status TextFiles::CheckPaths() {
  bool known = true;
  for (const std::string& path : paths_) {
    struct stat info = {};
    const int failed = path == "-" ? ::fstat(0, &info) : ::stat(path.c_str(), &info);
    if (failed != 0 && errno == ENOENT) return NotFound(path + ": no such file; check the name");
    if (failed != 0) return IoError(path + ": " + std::strerror(errno) + "; check the file");
    if (S_ISDIR(info.st_mode)) return IoError(path + ": is a folder; give the files in it");
    if (S_ISREG(info.st_mode)) {
      total_bytes_ += static_cast<uint64_t>(info.st_size);
    } else {
      known = false;
    }
  }
  if (!known) total_bytes_ = 0;
  return Status();
}

Status TextFiles::OpenNext() {
  const std::string& path = paths_[next_path_++];
  POZOR_TRY(bytes_, ByteReader::Open(path, options_.cancel));
  RecordOptions record_options;
  record_options.format = options_.format.value_or(InputFormatOf(path));
  record_options.text_field = options_.text_field;
  record_options.header = options_.header;
  records_ = MakeRecordReader(*bytes_, record_options);
  return Status();
}

Result<std::optional<std::string>> TextFiles::Next() {
  while (true) {
    if (records_ == nullptr) {
      if (next_path_ == paths_.size()) return std::optional<std::string>();
      POZOR_RETURN_IF_ERROR(OpenNext());
    }
    POZOR_TRY(std::optional<std::string> text, records_->Next());
    if (text.has_value()) {
      if (++texts_ % kTextsBetweenMarks == 0 && total_bytes_ > 0) {
        const std::lock_guard<std::mutex> lock(marks_mutex_);
        marks_.push_back({texts_, finished_bytes_ + bytes_->consumed()});
      }
      return text;
    }
    finished_bytes_ += bytes_->consumed();
    records_ = nullptr;
    bytes_ = nullptr;
  }
}

std::optional<double> TextFiles::ShareOf(uint64_t texts) {
  if (total_bytes_ == 0) return std::nullopt;
  const std::lock_guard<std::mutex> lock(marks_mutex_);
  while (!marks_.empty() && marks_.front().texts <= texts) {
    reached_ = marks_.front();
    marks_.pop_front();
  }
  return std::min(1.0, static_cast<double>(reached_.bytes) / static_cast<double>(total_bytes_));
}

}  // namespace pozor::tools
