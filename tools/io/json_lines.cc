#include <vector>

#include "models/json.h"
#include "tools/io/records.h"

namespace pozor::tools {
namespace {

// Once a record is bad the rest of the file is looked through, so that one run names them all; up
// to these bounds.
constexpr size_t kMostBadRecords = 10;
constexpr uint64_t kMostBytesToSearch = uint64_t{64} << 20;

struct BadRecord {
  uint64_t line;
  std::string why;
};

// The value at `path`: the member of that name, else "a.b" as the member b of the member a.
const JsonValue* FindPath(const JsonValue& value, std::string_view path) {
  if (const JsonValue* member = value.Find(path)) return member;
  for (size_t dot = path.find('.'); dot != std::string_view::npos; dot = path.find('.', dot + 1)) {
    const JsonValue* outer = value.Find(path.substr(0, dot));
    if (outer == nullptr) continue;
    if (const JsonValue* inner = FindPath(*outer, path.substr(dot + 1))) return inner;
  }
  return nullptr;
}

std::string Join(const std::vector<BadRecord>& records) {
  std::string list;
  for (const BadRecord& record : records) {
    if (!list.empty()) list += ", ";
    list += std::to_string(record.line) + " (" + record.why + ")";
  }
  return list;
}

class JsonLinesReader : public RecordReader {
 public:
  JsonLinesReader(ByteReader& bytes, const RecordOptions& options)
      : bytes_(bytes), field_(options.text_field.empty() ? "text" : options.text_field) {}

  Result<std::optional<std::string>> Next() override {
    POZOR_TRY(const bool found, ReadRecord());
    if (!found) return std::optional<std::string>();
    std::string text, why;
    POZOR_RETURN_IF_ERROR(TextOf(&text, &why));
    if (!why.empty()) return ReportBadRecords(std::move(why));
    return std::optional<std::string>(std::move(text));
  }

 private:
  // The next line that is not blank.
  Result<bool> ReadRecord() {
    while (true) {
      POZOR_TRY(const bool found, bytes_.ReadLine(&record_));
      if (!found) return false;
      ++line_;
      if (record_.find_first_not_of(" \t\r") != std::string::npos) return true;
    }
  }

  // The text of the record, or in *why what is wrong with a well-formed record.
  Status TextOf(std::string* text, std::string* why) const {
    const std::string place = LinePlace(bytes_, line_);
    POZOR_RETURN_IF_ERROR(CheckUtf8(record_, place));
    const Result<JsonDocument> document = ParseJson(record_, place);
    if (!document.ok()) {
      const std::string& message = document.status().message();
      return Corrupt(message.substr(0, message.rfind("; ")) +
                     "; mend the line, or see --input-format");
    }
    const JsonValue& root = document->root();
    const JsonValue* value = root.is_object() ? FindPath(root, field_) : &root;
    if (value == nullptr) {
      *why = "no such member";
    } else if (value->is_string()) {
      *text = std::string(value->as_string());
    } else {
      *why = value->Describe() + ", not a string";
    }
    return Status();
  }

  Status ReportBadRecords(std::string why) {
    std::vector<BadRecord> bad = {{line_, std::move(why)}};
    const uint64_t end = bytes_.consumed() + kMostBytesToSearch;
    while (bad.size() < kMostBadRecords && bytes_.consumed() < end) {
      const Result<bool> found = ReadRecord();
      if (!found.ok() || !*found) break;
      std::string text, reason;
      const Status status = TextOf(&text, &reason);
      if (!status.ok()) reason = "not JSON";
      if (!reason.empty()) bad.push_back({line_, std::move(reason)});
    }
    return Corrupt(bytes_.name() + ": " + (bad.size() == 1 ? "line " : "lines ") + Join(bad) +
                   ": no text in the member \"" + field_ +
                   "\"; mend these records, or name another member with --text-field");
  }

  ByteReader& bytes_;
  std::string field_;
  std::string record_;
  uint64_t line_ = 0;
};

}  // namespace

std::unique_ptr<RecordReader> MakeJsonLinesReader(ByteReader& bytes, const RecordOptions& options) {
  return std::make_unique<JsonLinesReader>(bytes, options);
}

}  // namespace pozor::tools
