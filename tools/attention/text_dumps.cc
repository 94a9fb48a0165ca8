// JSON lines and CSV: the largest weights of each row, as text.
#include <algorithm>
#include <charconv>
#include <numeric>

#include "tools/attention/dump_writer.h"

namespace pozor::tools {
namespace {

// Columns of the weights to show, largest first; equal ones in the order of the text.
class RowFilter {
 public:
  explicit RowFilter(const DumpOptions& options) : options_(options) {}

  const std::vector<size_t>& Choose(const float* row, size_t columns) {
    chosen_.resize(columns);
    std::iota(chosen_.begin(), chosen_.end(), size_t{0});
    std::erase_if(chosen_, [&](size_t column) {
      return static_cast<double>(row[column]) < options_.min_weight;
    });
    if (options_.top_k == SIZE_MAX) return chosen_;
    const size_t kept = std::min(options_.top_k, chosen_.size());
    std::partial_sort(
        chosen_.begin(), chosen_.begin() + static_cast<std::ptrdiff_t>(kept), chosen_.end(),
        [&](size_t a, size_t b) { return row[a] != row[b] ? row[a] > row[b] : a < b; });
    chosen_.resize(kept);
    return chosen_;
  }

 private:
  const DumpOptions& options_;
  std::vector<size_t> chosen_;
};

// The shortest decimals that read back to the same bits.
void AppendNumber(float value, std::string* out) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value);
  out->append(text, end.ptr);
}

class JsonLinesDump final : public DumpWriter {
 public:
  JsonLinesDump(std::unique_ptr<OutputFile> file, const DumpOptions& options)
      : file_(std::move(file)), options_(options), filter_(options_) {}

  // {"weights": [{"layer": 0, "head": 0, "rows": [[[column, weight], ...], ...]}, ...], ...}
  Status Write(DumpText& text) override {
    POZOR_RETURN_IF_ERROR(file_->Write("{\"weights\": ["));
    size_t rows_so_far = 0;
    const size_t rows_each = text.shape.rows;
    std::string out;
    POZOR_RETURN_IF_ERROR(
        StreamTransformed(text.source, options_.transform, [&](const UnitRows& rows) {
          out.clear();
          for (size_t i = 0; i < rows.rows; ++i) {
            if (rows_so_far % rows_each == 0) {
              out += rows_so_far == 0 ? "" : "]}, ";
              BeginMatrix(text, rows, &out);
            } else {
              out += ", ";
            }
            ++rows_so_far;
            AppendRow(rows.Row(i), rows.columns, &out);
          }
          return file_->Write(out);
        }));
    POZOR_RETURN_IF_ERROR(file_->Write(rows_so_far == 0 ? "], " : "]}], "));
    return file_->Write(DumpDescription(text, options_).substr(1) + "\n");
  }

  Status Finish() override { return file_->Commit(); }

 private:
  static void BeginMatrix(const DumpText& text, const UnitRows& rows, std::string* out) {
    *out += "{";
    if (text.shape.per_layer) *out += "\"layer\": " + std::to_string(rows.layer) + ", ";
    if (text.shape.per_head) *out += "\"head\": " + std::to_string(rows.head) + ", ";
    *out += "\"rows\": [";
  }

  void AppendRow(const float* row, size_t columns, std::string* out) {
    *out += '[';
    bool first = true;
    for (const size_t column : filter_.Choose(row, columns)) {
      *out += first ? "[" : ", [";
      first = false;
      *out += std::to_string(column) + ", ";
      AppendNumber(row[column], out);
      *out += ']';
    }
    *out += ']';
  }

  std::unique_ptr<OutputFile> file_;
  const DumpOptions options_;
  RowFilter filter_;
};

// A field by RFC 4180.
std::string CsvField(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

class CsvDump final : public DumpWriter {
 public:
  CsvDump(std::unique_ptr<OutputFile> file, const DumpOptions& options)
      : file_(std::move(file)), options_(options), filter_(options_) {}

  Status Write(DumpText& text) override {
    if (!begun_) {
      POZOR_RETURN_IF_ERROR(file_->Write("text,layer,head,from,to,from_token,to_token,weight\r\n"));
    }
    begun_ = true;
    std::vector<std::string> names;
    names.reserve(text.shape.units.size());
    for (const Unit& unit : text.shape.units) names.push_back(CsvField(unit.text));
    std::string out;
    return StreamTransformed(text.source, options_.transform, [&](const UnitRows& rows) {
      out.clear();
      for (size_t i = 0; i < rows.rows; ++i) {
        const size_t from = rows.row_begin + i;
        std::string start = std::to_string(text.index) + ',';
        if (text.shape.per_layer) start += std::to_string(rows.layer);
        start += ',';
        if (text.shape.per_head) start += std::to_string(rows.head);
        start += ',' + std::to_string(from) + ',';
        for (const size_t to : filter_.Choose(rows.Row(i), rows.columns)) {
          out += start + std::to_string(to) + ',' + NameOfRow(text, names, from) + ',' + names[to] +
                 ',';
          AppendNumber(rows.Row(i)[to], &out);
          out += "\r\n";
        }
      }
      return file_->Write(out);
    });
  }

  Status Finish() override { return file_->Commit(); }

 private:
  // With --reduce cls the row is token 0 even where specials are dropped.
  std::string NameOfRow(const DumpText& text, const std::vector<std::string>& names,
                        size_t row) const {
    if (options_.transform.reduction != Reduction::kCls) return names[row];
    return CsvField(text.source.record().text.tokens.tokens[0]);
  }

  std::unique_ptr<OutputFile> file_;
  const DumpOptions options_;
  RowFilter filter_;
  bool begun_ = false;
};

}  // namespace

std::unique_ptr<DumpWriter> MakeJsonLinesDump(std::unique_ptr<OutputFile> file,
                                              const DumpOptions& options) {
  return std::make_unique<JsonLinesDump>(std::move(file), options);
}

std::unique_ptr<DumpWriter> MakeCsvDump(std::unique_ptr<OutputFile> file,
                                        const DumpOptions& options) {
  return std::make_unique<CsvDump>(std::move(file), options);
}

}  // namespace pozor::tools
