// Texts out of a file, one record after another.
//
//   text   a row ends at '\n'; one '\r' before it is dropped; an empty line is a row
//   jsonl  a JSON value a line: an object with a text field, or a string; empty lines are skipped
//   csv    RFC 4180: quoted fields may hold commas, quotes and line breaks; first record: names
//   tsv    the same with tabs
//
// Everything must be UTF-8; a byte-order mark is dropped. Errors name file, line and byte.
#ifndef POZOR_TOOLS_IO_RECORDS_H_
#define POZOR_TOOLS_IO_RECORDS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "pozor/status.h"
#include "tools/io/byte_reader.h"

namespace pozor::tools {

enum class InputFormat : uint8_t { kText, kJsonLines, kCsv, kTsv };

// By the ending of the name; text if it says nothing.
InputFormat InputFormatOf(const std::string& path);

struct RecordOptions {
  InputFormat format = InputFormat::kText;
  // Member of a JSON object ("a.b" looks inside "a"), or name or number (from 1) of a column.
  // Empty: "text", or the only column.
  std::string text_field;
  bool header = true;  // csv, tsv: the first record names the columns
};

class RecordReader {
 public:
  virtual ~RecordReader() = default;
  // The next text, or nothing at the end.
  virtual Result<std::optional<std::string>> Next() = 0;
};

std::unique_ptr<RecordReader> MakeRecordReader(ByteReader& bytes, const RecordOptions& options);

// The three kinds behind it.
std::unique_ptr<RecordReader> MakeLineReader(ByteReader& bytes);
std::unique_ptr<RecordReader> MakeJsonLinesReader(ByteReader& bytes, const RecordOptions& options);
std::unique_ptr<RecordReader> MakeDelimitedReader(ByteReader& bytes, const RecordOptions& options,
                                                  char delimiter);

// "notes.txt: line 3"
std::string LinePlace(const ByteReader& bytes, uint64_t line);

// An error that names the first byte of `text` that is not UTF-8.
Status CheckUtf8(std::string_view text, const std::string& place);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_IO_RECORDS_H_
