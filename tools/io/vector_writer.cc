#include "tools/io/vector_writer.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <utility>

#include "tools/io/npy.h"

namespace pozor::tools {
namespace {

static_assert(std::endian::native == std::endian::little, "files hold little-endian numbers");

std::string_view BytesOf(const float* data, size_t count) {
  return {reinterpret_cast<const char*>(data), count * sizeof(float)};
}

// Rows as they lie in memory: the body of npy and f32.
class RawWriter : public VectorWriter {
 public:
  RawWriter(std::unique_ptr<OutputFile> file, VectorWriterOptions options)
      : file_(std::move(file)), options_(std::move(options)) {}

  Status Write(uint64_t, size_t rows, size_t dimensions, const float* data) override {
    rows_ += rows;
    if (options_.type == OutputType::kF32) return file_->Write(BytesOf(data, rows * dimensions));
    std::string bytes;
    for (size_t row = 0; row < rows; ++row) {
      AppendQuantized(options_.type, {data + row * dimensions, dimensions}, options_.ranges,
                      &bytes);
    }
    return file_->Write(bytes);
  }

  Status Finish() override { return file_->Commit(); }

 protected:
  std::unique_ptr<OutputFile> file_;
  VectorWriterOptions options_;
  uint64_t rows_ = 0;
};

// The header names the number of rows, so it is written last: over its place in a regular file, or
// in front of a copy of the rows where the output cannot be gone back in.
class NpyWriter : public RawWriter {
 public:
  NpyWriter(std::unique_ptr<OutputFile> file, std::unique_ptr<OutputFile> straight,
            VectorWriterOptions options)
      : RawWriter(std::move(file), std::move(options)), straight_(std::move(straight)) {}

  Status Begin() { return straight_ ? Status() : file_->Write(Header()); }

  Status Finish() override {
    if (!straight_) {
      POZOR_RETURN_IF_ERROR(file_->WriteAt(0, Header()));
      return file_->Commit();
    }
    POZOR_RETURN_IF_ERROR(straight_->Write(Header()));
    POZOR_RETURN_IF_ERROR(file_->CopyTo(*straight_));
    return straight_->Commit();
  }

 private:
  std::string Header() const {
    const char* kType = options_.type == OutputType::kF32       ? "<f4"
                        : options_.type == OutputType::kUbinary ? "|u1"
                                                                : "|i1";
    const size_t columns = options_.type == OutputType::kF32
                               ? options_.dimensions
                               : OutputRowBytes(options_.type, options_.dimensions);
    return NpyHeader(kType, rows_, columns);
  }

  std::unique_ptr<OutputFile> straight_;  // or null: file_ is the output itself
};

class JsonLinesWriter : public VectorWriter {
 public:
  JsonLinesWriter(std::unique_ptr<OutputFile> file, VectorWriterOptions options)
      : file_(std::move(file)), options_(std::move(options)) {}

  Status Write(uint64_t first_row, size_t rows, size_t dimensions, const float* data) override {
    for (size_t row = 0; row < rows; ++row) {
      line_ = "{\"index\":" + std::to_string(first_row + row) + ",\"embedding\":[";
      const std::span<const float> numbers(data + row * dimensions, dimensions);
      POZOR_RETURN_IF_ERROR(AppendNumbers(first_row + row, numbers));
      line_.back() = ']';  // over the last comma
      line_ += "}\n";
      POZOR_RETURN_IF_ERROR(file_->Write(line_));
    }
    return file_->Flush();  // a reader at the other end of a pipe gets whole rows early
  }

  Status Finish() override { return file_->Commit(); }

 private:
  Status AppendNumbers(uint64_t row, std::span<const float> numbers) {
    char text[32];
    if (options_.type != OutputType::kF32) {
      std::string bytes;
      AppendQuantized(options_.type, numbers, options_.ranges, &bytes);
      for (const char c : bytes) {
        const int value = options_.type == OutputType::kUbinary ? static_cast<unsigned char>(c)
                                                                : static_cast<signed char>(c);
        line_ += std::to_string(value) + ",";
      }
      return Status();
    }
    for (const float number : numbers) {
      if (!std::isfinite(number)) {
        return Corrupt("vector " + std::to_string(row) +
                       ": holds a number that is not finite, which JSON cannot say; check the "
                       "model's weights");
      }
      const auto end = std::to_chars(text, text + sizeof text, number);
      line_.append(text, end.ptr);
      line_ += ',';
    }
    return Status();
  }

  std::unique_ptr<OutputFile> file_;
  VectorWriterOptions options_;
  std::string line_;
};

}  // namespace

std::optional<OutputFormat> OutputFormatOf(const std::string& path) {
  const auto ends = [&path](const char* ending) { return path.ends_with(ending); };
  if (ends(".npy")) return OutputFormat::kNpy;
  if (ends(".jsonl") || ends(".ndjson")) return OutputFormat::kJsonLines;
  if (ends(".f32") || ends(".bin")) return OutputFormat::kF32;
  return std::nullopt;
}

Result<std::unique_ptr<VectorWriter>> MakeVectorWriter(std::unique_ptr<OutputFile> file,
                                                       VectorWriterOptions options) {
  std::unique_ptr<VectorWriter> writer;
  switch (options.format) {
    case OutputFormat::kNpy: {
      std::unique_ptr<OutputFile> straight;
      if (!file->can_write_at()) {
        straight = std::move(file);
        POZOR_TRY(file, OutputFile::CreateSpool());
      }
      auto npy =
          std::make_unique<NpyWriter>(std::move(file), std::move(straight), std::move(options));
      POZOR_RETURN_IF_ERROR(npy->Begin());
      writer = std::move(npy);
      break;
    }
    case OutputFormat::kJsonLines:
      writer = std::make_unique<JsonLinesWriter>(std::move(file), std::move(options));
      break;
    case OutputFormat::kF32:
      writer = std::make_unique<RawWriter>(std::move(file), std::move(options));
      break;
  }
  return writer;
}

}  // namespace pozor::tools
