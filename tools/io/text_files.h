// Several files as one stream of texts, and how far it has come.
#ifndef POZOR_TOOLS_IO_TEXT_FILES_H_
#define POZOR_TOOLS_IO_TEXT_FILES_H_

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "pozor/pozor.hpp"
#include "tools/io/byte_reader.h"
#include "tools/io/records.h"

namespace pozor::tools {

struct TextFilesOptions {
  std::optional<InputFormat> format;  // of every file; else by the ending of each
  std::string text_field;
  bool header = true;
  const std::atomic<bool>* cancel = nullptr;
};

class TextFiles : public TextSource {
 public:
  // Every file must be there from the start. "-" is standard input.
  static Result<std::unique_ptr<TextFiles>> Open(std::vector<std::string> paths,
                                                 const TextFilesOptions& options);

  Result<std::optional<std::string>> Next() override;

  uint64_t texts() const { return texts_; }

  // Share of the input's bytes that belongs to the first `texts` texts, 0 .. 1; nothing if the size
  // of the input is unknown. Must be called with growing numbers; any thread.
  std::optional<double> ShareOf(uint64_t texts);

 private:
  TextFiles(std::vector<std::string> paths, const TextFilesOptions& options);
  Status CheckPaths();
  Status OpenNext();

  struct Mark {
    uint64_t texts, bytes;  // `bytes` hold `texts` texts
  };

  std::vector<std::string> paths_;
  TextFilesOptions options_;
  size_t next_path_ = 0;
  std::unique_ptr<ByteReader> bytes_;
  std::unique_ptr<RecordReader> records_;
  uint64_t texts_ = 0;
  uint64_t finished_bytes_ = 0;  // of the files before this one
  uint64_t total_bytes_ = 0;     // 0: unknown
  std::mutex marks_mutex_;
  std::deque<Mark> marks_;  // beyond what ShareOf was asked for
  Mark reached_ = {0, 0};
};

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_IO_TEXT_FILES_H_
