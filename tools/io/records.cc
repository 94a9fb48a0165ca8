#include "tools/io/records.h"

#include <algorithm>
#include <cctype>
#include <cstdio>

#include "tools/io/utf8.h"

namespace pozor::tools {
namespace {

std::string LowerEnding(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  const size_t dot = path.find_last_of('.');
  if (dot == std::string::npos || (slash != std::string::npos && dot < slash)) return "";
  std::string ending = path.substr(dot);
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return ending;
}

class LineReader : public RecordReader {
 public:
  explicit LineReader(ByteReader& bytes) : bytes_(bytes) {}

  Result<std::optional<std::string>> Next() override {
    std::string line;
    POZOR_TRY(const bool found, bytes_.ReadLine(&line));
    if (!found) return std::optional<std::string>();
    ++line_;
    if (line.ends_with('\r')) line.pop_back();
    POZOR_RETURN_IF_ERROR(CheckUtf8(line, LinePlace(bytes_, line_)));
    return std::optional<std::string>(std::move(line));
  }

 private:
  ByteReader& bytes_;
  uint64_t line_ = 0;
};

}  // namespace

InputFormat InputFormatOf(const std::string& path) {
  const std::string ending = LowerEnding(path);
  if (ending == ".jsonl" || ending == ".ndjson" || ending == ".json")
    return InputFormat::kJsonLines;
  if (ending == ".csv") return InputFormat::kCsv;
  if (ending == ".tsv" || ending == ".tab") return InputFormat::kTsv;
  return InputFormat::kText;
}

std::unique_ptr<RecordReader> MakeLineReader(ByteReader& bytes) {
  return std::make_unique<LineReader>(bytes);
}

std::unique_ptr<RecordReader> MakeRecordReader(ByteReader& bytes, const RecordOptions& options) {
  switch (options.format) {
    case InputFormat::kJsonLines:
      return MakeJsonLinesReader(bytes, options);
    case InputFormat::kCsv:
      return MakeDelimitedReader(bytes, options, ',');
    case InputFormat::kTsv:
      return MakeDelimitedReader(bytes, options, '\t');
    case InputFormat::kText:
      break;
  }
  return MakeLineReader(bytes);
}

std::string LinePlace(const ByteReader& bytes, uint64_t line) {
  return bytes.name() + ": line " + std::to_string(line);
}

Status CheckUtf8(std::string_view text, const std::string& place) {
  const size_t bad = FindInvalidUtf8(text);
  if (bad == text.size()) return Status();
  char hex[8];
  std::snprintf(hex, sizeof hex, "0x%02X", static_cast<unsigned char>(text[bad]));
  return Corrupt(place + ", byte " + std::to_string(bad + 1) + " (" + hex +
                 "): is not UTF-8; convert the file, or mend the line");
}

}  // namespace pozor::tools
