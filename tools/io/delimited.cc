// CSV and TSV by RFC 4180: a record ends at a line break outside quotes; "" inside quotes is one
// quote.
#include <charconv>
#include <vector>

#include "tools/io/records.h"

namespace pozor::tools {
namespace {

struct Record {
  std::vector<std::string> fields;
  uint64_t line = 0;  // where it begins
};

class DelimitedReader : public RecordReader {
 public:
  DelimitedReader(ByteReader& bytes, const RecordOptions& options, char delimiter)
      : bytes_(bytes), options_(options), delimiter_(delimiter) {}

  Result<std::optional<std::string>> Next() override {
    Record record;
    if (!column_.has_value()) {
      POZOR_TRY(const bool first, ReadRecord(&record));
      if (!first) return std::optional<std::string>();
      POZOR_RETURN_IF_ERROR(ChooseColumn(record));
      if (!options_.header) return TextOf(record);
    }
    do {
      POZOR_TRY(const bool found, ReadRecord(&record));
      if (!found) return std::optional<std::string>();
    } while (columns_ > 1 && record.fields.size() == 1 && record.fields[0].empty());
    return TextOf(record);
  }

 private:
  Result<std::optional<std::string>> TextOf(Record& record) {
    const std::string place = LinePlace(bytes_, record.line);
    if (*column_ >= record.fields.size()) {
      return Corrupt(place + ": has " + std::to_string(record.fields.size()) +
                     " columns, the text is in column " + std::to_string(*column_ + 1) +
                     "; mend the record (a field with a delimiter or line break needs quotes)");
    }
    std::string& text = record.fields[*column_];
    POZOR_RETURN_IF_ERROR(CheckUtf8(text, place));
    return std::optional<std::string>(std::move(text));
  }

  // Sets column_ from the first record and the options.
  Status ChooseColumn(const Record& first) {
    columns_ = first.fields.size();
    const std::string& field = options_.text_field;
    const std::string wanted = field.empty() ? "text" : field;
    for (size_t i = 0; options_.header && i < first.fields.size(); ++i) {
      if (first.fields[i] == wanted) return column_ = i, Status();
    }
    size_t number = 0;
    const auto parsed = std::from_chars(field.data(), field.data() + field.size(), number);
    const bool is_number =
        !field.empty() && parsed.ec == std::errc() && parsed.ptr == field.data() + field.size();
    if (is_number && number >= 1 && number <= first.fields.size()) {
      return column_ = number - 1, Status();
    }
    if (field.empty() && first.fields.size() == 1) return column_ = 0, Status();
    std::string names;
    for (const std::string& name : first.fields) names += (names.empty() ? "" : ", ") + name;
    return Corrupt(LinePlace(bytes_, first.line) + ": no column \"" + wanted + "\" among " + names +
                   "; name one, or its number, with --text-field");
  }

  // Reads one record; false at the end of the input.
  Result<bool> ReadRecord(Record* record) {
    record->fields.assign(1, "");
    record->line = ++line_;
    size_t size = 0;
    bool quoted = false, any = false;
    while (true) {
      POZOR_TRY(const std::string_view bytes, bytes_.Peek());
      if (bytes.empty()) {
        if (!quoted && ends_with_bare_return_) record->fields.back().pop_back();
        ends_with_bare_return_ = false;
        if (!quoted) return any;
        return Corrupt(LinePlace(bytes_, record->line) +
                       ": a quoted field is not closed before the end of the file; add the quote");
      }
      any = true;
      size_t used = 0;
      const bool ended = TakeBytes(bytes, &used, &quoted, record);
      bytes_.Consume(used);
      size += used;
      if (ended) return true;
      if (size > kMaxRecordBytes) {
        return ResourceExhausted(LinePlace(bytes_, record->line) +
                                 ": a record of more than 64 MiB; look for a quote left open");
      }
    }
  }

  // Consumes bytes up to the end of the record, or all of them; true at the end of the record. A
  // quote that closes and one that is doubled look alike until the next byte, so that quotes
  // toggle and a reopening one stands for itself.
  bool TakeBytes(std::string_view bytes, size_t* used, bool* quoted, Record* record) {
    for (const char c : bytes) {
      ++*used;
      std::string& field = record->fields.back();
      const bool reopens = after_quote_ && c == '"';
      const bool after_quote = after_quote_;
      after_quote_ = false;
      if (*quoted) {
        if (c == '\n') ++line_;
        if (c == '"') {
          *quoted = false;
          after_quote_ = true;
        } else {
          field += c;
        }
      } else if (c == '\n') {
        if (ends_with_bare_return_) field.pop_back();
        ends_with_bare_return_ = false;
        return true;
      } else if (c == delimiter_) {
        record->fields.emplace_back();
      } else if (reopens) {
        field += '"';
        *quoted = true;
      } else if (c == '"' && field.empty() && !after_quote) {
        *quoted = true;
      } else {
        field += c;
      }
      ends_with_bare_return_ = !*quoted && c == '\r';
    }
    return false;
  }

  ByteReader& bytes_;
  RecordOptions options_;
  char delimiter_;
  std::optional<size_t> column_;
  size_t columns_ = 0;  // of the first record; where there are several, a blank line is no row
  uint64_t line_ = 0;
  bool after_quote_ = false;            // the last byte closed a quoted field
  bool ends_with_bare_return_ = false;  // the last byte was a '\r' outside quotes
};

}  // namespace

std::unique_ptr<RecordReader> MakeDelimitedReader(ByteReader& bytes, const RecordOptions& options,
                                                  char delimiter) {
  return std::make_unique<DelimitedReader>(bytes, options, delimiter);
}

}  // namespace pozor::tools
