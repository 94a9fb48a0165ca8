// Files of vectors: bytes, and that nothing half-written gets a name.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "models/json.h"
#include "tests/support/process.h"
#include "tools/io/npy.h"
#include "tools/io/vector_writer.h"

namespace pozor::tools {
namespace {

using testing::ReadFileOrEmpty;
using testing::TemporaryFolder;

// Writes `rows` in two pieces; the error, if there is one.
Status WriteRows(const std::string& path, const VectorWriterOptions& options,
                 const std::vector<float>& rows) {
  POZOR_TRY(std::unique_ptr<OutputFile> file, OutputFile::Create(path));
  POZOR_TRY(auto writer, MakeVectorWriter(std::move(file), options));
  const size_t count = rows.size() / options.dimensions, half = count / 2;
  POZOR_RETURN_IF_ERROR(writer->Write(0, half, options.dimensions, rows.data()));
  POZOR_RETURN_IF_ERROR(writer->Write(half, count - half, options.dimensions,
                                      rows.data() + half * options.dimensions));
  return writer->Finish();
}

const std::vector<float> kRows = {1, -2.5f, 0.1f, 0, 1e-30f, 3, 16777216, -1, 0.25f};

TEST_CASE("npy: header of a fixed width with the final number of rows") {
  const TemporaryFolder folder;
  VectorWriterOptions options{OutputFormat::kNpy, 3, OutputType::kF32, {}};
  REQUIRE(WriteRows(folder.File("v.npy"), options, kRows).ok());
  const std::string bytes = ReadFileOrEmpty(folder.File("v.npy"));
  CHECK(bytes.size() == kNpyHeaderBytes + kRows.size() * 4);
  CHECK(bytes.substr(0, 10) == std::string("\x93NUMPY\x01\x00\x76\x00", 10));
  CHECK(bytes.find("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 3), }") == 10);
  CHECK(bytes[kNpyHeaderBytes - 1] == '\n');
  const NpyMatrix matrix = ReadNpy(folder.File("v.npy")).value();
  CHECK(matrix.rows == 3);
  CHECK(matrix.columns == 3);
  CHECK(matrix.data == kRows);
  CHECK(folder.List() == std::vector<std::string>{"v.npy"});
}

TEST_CASE("npy: no rows") {
  const TemporaryFolder folder;
  VectorWriterOptions options{OutputFormat::kNpy, 384, OutputType::kF32, {}};
  REQUIRE(WriteRows(folder.File("v.npy"), options, {}).ok());
  const NpyMatrix matrix = ReadNpy(folder.File("v.npy")).value();
  CHECK(matrix.rows == 0);
  CHECK(matrix.columns == 384);
}

TEST_CASE("f32: the numbers alone") {
  const TemporaryFolder folder;
  VectorWriterOptions options{OutputFormat::kF32, 3, OutputType::kF32, {}};
  REQUIRE(WriteRows(folder.File("v.f32"), options, kRows).ok());
  const std::string bytes = ReadFileOrEmpty(folder.File("v.f32"));
  REQUIRE(bytes.size() == kRows.size() * 4);
  CHECK(std::memcmp(bytes.data(), kRows.data(), bytes.size()) == 0);
}

TEST_CASE("jsonl: shortest decimals that read back to the same bits") {
  const TemporaryFolder folder;
  VectorWriterOptions options{OutputFormat::kJsonLines, 3, OutputType::kF32, {}};
  REQUIRE(WriteRows(folder.File("v.jsonl"), options, kRows).ok());
  CHECK(ReadFileOrEmpty(folder.File("v.jsonl")) ==
        "{\"index\":0,\"embedding\":[1,-2.5,0.1]}\n"
        "{\"index\":1,\"embedding\":[0,1e-30,3]}\n"
        "{\"index\":2,\"embedding\":[16777216,-1,0.25]}\n");
}

TEST_CASE("jsonl: a number that JSON cannot say is an error, and no file appears") {
  const TemporaryFolder folder;
  VectorWriterOptions options{OutputFormat::kJsonLines, 1, OutputType::kF32, {}};
  const Status status =
      WriteRows(folder.File("v.jsonl"), options, {1, std::numeric_limits<float>::infinity()});
  CHECK(status.message().find("vector 1: holds a number that is not finite") == 0);
  CHECK(folder.List().empty());
}

TEST_CASE("an output that was not finished leaves the old file and nothing else") {
  const TemporaryFolder folder;
  const std::string path = folder.Write("v.f32", "old");
  {
    auto file = OutputFile::Create(path).value();
    REQUIRE(file->Write("new and longer").ok());
    REQUIRE(file->Flush().ok());
    CHECK(folder.List().size() == 2);
  }
  CHECK(ReadFileOrEmpty(path) == "old");
  CHECK(folder.List() == std::vector<std::string>{"v.f32"});
}

TEST_CASE("a device is written straight, and a full one is an error") {
  VectorWriterOptions options{OutputFormat::kNpy, 3, OutputType::kF32, {}};
  CHECK(WriteRows("/dev/null", options, kRows).ok());
  for (const OutputFormat format :
       {OutputFormat::kNpy, OutputFormat::kJsonLines, OutputFormat::kF32}) {
    options.format = format;
    const Status status = WriteRows("/dev/full", options, kRows);
    CHECK(status.code() == StatusCode::kIo);
    CHECK(status.message().find("/dev/full: cannot be written") == 0);
  }
}

TEST_CASE("places that cannot be written are named") {
  const TemporaryFolder folder;
  VectorWriterOptions options{OutputFormat::kF32, 3, OutputType::kF32, {}};
  CHECK(WriteRows(folder.path(), options, kRows).message().find("is a folder") !=
        std::string::npos);
  CHECK(WriteRows(folder.File("no/v.f32"), options, kRows).message().find("cannot be made") !=
        std::string::npos);
}

TEST_CASE("bytes as quantize_embeddings of sentence-transformers makes them") {
  const std::vector<float> row = {-0.07713751f, 0.03217773f, -0.5f, 0.5f, 0.0f,
                                  0.12f,        -0.12f,      0.1f,  0.2f};
  Int8Ranges ranges{{-0.12f}, {0.12f}};
  REQUIRE(ExpandRanges(row.size(), "ranges.json", &ranges).ok());
  std::string bytes;
  AppendQuantized(OutputType::kInt8, row, ranges, &bytes);
  const int expected[] = {-83, 33, -128, 127, -1, 127, -128, 105, 127};
  REQUIRE(bytes.size() == row.size());
  for (size_t i = 0; i < row.size(); ++i) CHECK(static_cast<signed char>(bytes[i]) == expected[i]);

  bytes.clear();
  AppendQuantized(OutputType::kUbinary, row, {}, &bytes);
  CHECK(bytes == std::string("\x55\x80"));  // 0101 0101 1000 0000
  bytes.clear();
  AppendQuantized(OutputType::kBinary, row, {}, &bytes);
  CHECK(bytes == std::string("\xD5\x00", 2));
  CHECK(OutputRowBytes(OutputType::kUbinary, 9) == 2);
}

TEST_CASE("recorded int8 rows, but for values within 2e-5 of a step") {
  const std::string path = std::string(POZOR_TEST_DATA) + "/cases/P24/expected.json";
  const JsonDocument expected = ReadJsonFile(path).value();
  Int8Ranges ranges{{-0.12f}, {0.12f}};
  REQUIRE(ExpandRanges(384, "ranges.json", &ranges).ok());
  const double step = 0.24 / 255;
  for (size_t row = 0; row < expected->Find("float")->size(); ++row) {
    std::vector<float> numbers;
    for (const JsonValue& x : expected->Find("float")->items()[row].items()) {
      numbers.push_back(static_cast<float>(x.as_double()));
    }
    std::string bytes;
    AppendQuantized(OutputType::kInt8, numbers, ranges, &bytes);
    const auto want = expected->Find("int8_with_ranges")->items()[row].items();
    for (size_t i = 0; i < numbers.size(); ++i) {
      const double level = (numbers[i] + 0.12) / step;
      const bool near_step = std::fabs(level - std::round(level)) * step < 2e-5;
      const int64_t difference = std::abs(static_cast<signed char>(bytes[i]) - want[i].as_int());
      CHECK(difference <= (near_step ? 1 : 0));
    }
  }
}

TEST_CASE("ranges that do not fit are refused by name") {
  Int8Ranges three{{0, 0, 0}, {1, 1, 1}};
  CHECK(ExpandRanges(2, "r.json", &three).message().find("r.json: has 3 values") == 0);
  Int8Ranges empty{{0}, {0}};
  CHECK(ExpandRanges(2, "r.json", &empty).message().find("min is not below max") !=
        std::string::npos);
}

TEST_CASE("npy files that are no matrices are refused") {
  const TemporaryFolder folder;
  const std::string good = NpyHeader("<f4", 2, 2) + std::string(16, '\0');
  struct Case {
    const char* name;
    std::string bytes;
    const char* error;
  };
  const Case cases[] = {
      {"text", "hello, this is no matrix", "is not a .npy file"},
      {"empty", "", ""},
      {"header cut", good.substr(0, 60), "ends within its header"},
      {"body cut", good.substr(0, good.size() - 1), "is shorter than its shape says"},
      {"integers", NpyHeader("<i8", 2, 2) + std::string(32, '\0'), "holds '<i8'"},
      {"huge", NpyHeader("<f4", uint64_t{1} << 62, 16), "is shorter than its shape says"},
  };
  for (const Case& c : cases) {
    CAPTURE(std::string(c.name));
    const Result<NpyMatrix> matrix = ReadNpy(folder.Write("x.npy", c.bytes));
    CHECK(!matrix.ok());
    CHECK(matrix.status().message().find(c.error) != std::string::npos);
  }
}

// Pieces of odd sizes, some larger than any buffer.
Status WritePieces(const std::string& path, bool thread, std::string* written) {
  POZOR_TRY(const std::unique_ptr<OutputFile> file, OutputFile::Create(path));
  if (thread) file->UseThread();
  for (size_t i = 0; i < 60; ++i) {
    const std::string piece(i * i * i * 7 % 600'000, static_cast<char>('a' + i % 26));
    *written += piece;
    POZOR_RETURN_IF_ERROR(file->Write(piece));
    if (i == 30) POZOR_RETURN_IF_ERROR(file->Flush());
  }
  if (file->can_write_at()) {
    POZOR_RETURN_IF_ERROR(file->WriteAt(3, "HEAD"));
    written->replace(3, 4, "HEAD");
  }
  return file->Commit();
}

TEST_CASE("a thread that writes writes the same bytes, and its errors are heard") {
  const TemporaryFolder folder;
  for (const bool thread : {false, true}) {
    CAPTURE(thread);
    std::string written;
    REQUIRE(WritePieces(folder.File("a.bin"), thread, &written).ok());
    CHECK(ReadFileOrEmpty(folder.File("a.bin")) == written);
    CHECK(folder.List() == std::vector<std::string>{"a.bin"});
    const Status full = WritePieces("/dev/full", thread, &written);
    CHECK(full.message().find("/dev/full: cannot be written: No space left on device") == 0);
  }
  {
    const auto file = OutputFile::Create(folder.File("b.bin")).value();
    file->UseThread();
    CHECK(file->Write(std::string(1 << 20, 'x')).ok());
  }
  CHECK(folder.List() == std::vector<std::string>{"a.bin"});  // no Commit(), no file
}

}  // namespace
}  // namespace pozor::tools
