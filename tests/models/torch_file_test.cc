// Torch files: what the writer of the tests can say, hostile pickles, bombs.
#include "models/formats/torch_file.h"

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "models/formats/file.h"
#include "models/formats/weights.h"
#include "tests/models/formats.h"
#include "tests/models/golden.h"
#include "tests/support/cpu_time.h"
#include "tests/support/weight_writers.h"

namespace pozor {
namespace {

using test::AsBytes;
using test::DataPath;
using test::RawList;
using test::ReadAll;
using test::ReadInPieces;

TEST_CASE("hostile pickles are refused by the name of their fault, and nothing runs") {
  constexpr test::Hostile kFiles[] = {
      {"not-a-zip.bin", "unknown file format", ""},
      {"os-system.bin", "forbidden global posix.system", ""},
      {"eval.bin", "forbidden global __builtin__.eval", ""},
      {"stack-global.bin", "forbidden global builtins.exec", ""},
      {"inst-opcode.bin", "INST 0x69", ""},
      {"obj-opcode.bin", "os.system", ""},
      {"ext-opcode.bin", "EXT1 0x82", ""},
      {"unknown-opcode.bin", "opcode 0xff", ""},
      {"stack-underflow.bin", "empty stack", ""},
      {"no-stop.bin", "data.pkl", "the end of the data"},
      {"string-beyond-end.bin", "longer than the data", ""},
      {"memo-bomb.bin", "not a dictionary of tensors", ""},
      {"deep-tuples.bin", "not a dictionary of tensors", ""},
      {"self-reference.bin", "entry 'a'", "not a tensor"},
      {"storage-too-small.bin", test::kWord, "reaches outside"},
      {"offset-outside.bin", test::kWord, "storage offset 3"},
      {"offset-negative.bin", test::kWord, "negative offset"},
      {"stride-huge.bin", test::kWord, "strides that overflow"},
      {"size-negative.bin", test::kWord, "negative size"},
      {"size-stride-differ.bin", test::kWord, "different lengths"},
      {"numel-lies.bin", "1000 elements", "16 bytes"},
      {"storage-missing.bin", "data/7", "missing"},
      {"storage-key-path.bin", "data/../../data.pkl", "missing"},
      {"negated-view.bin", "negated view", ""},
      {"unknown-storage.bin", "storage type torch.QInt8Storage", ""},
      {"unknown-rebuild.bin", "torch._utils._rebuild_sparse_tensor", ""},
      {"deflated.bin", "compressed", "only stored entries"},
      {"truncated.bin", "zip directory", ""},
      {"directory-outside.bin", "zip directory", "outside the file"},
      {"no-data-pkl.bin", "data.pkl", ""},
  };
  test::CheckRefused("pickles", kFiles, OpenTorchFile);
  CHECK_FALSE(FileExists("executed.txt"));
  const auto good = OpenTorchFile(DataPath("malformed/pickles/good.bin")).value();
  CHECK(ReadAll(*good, test::kWord) == std::vector<float>{0, 1, 2, 3});
}

// One 2 x 3 tensor of each type, stored transposed and from an offset.
TEST_CASE("torch: types, strides, offsets, shared storages and ZIP64") {
  const std::vector<float> values = {9, 9, 1, 4, 2, 5, 3, 6};
  const std::string storage = RawList(values);
  const std::vector<test::TorchTensor> tensors = {
      {.name = "t", .shape = {2, 3}, .strides = {1, 2}, .offset = 2},
      {.name = "row", .shape = {3}, .strides = {2}, .offset = 3},
      {.name = "whole", .shape = {2, 2, 2}},
      {.name = "scalar", .shape = {}, .offset = 7},
      {.name = "none", .shape = {0, 4}}};
  const std::string file = test::WriteTorch(tensors, {storage});
  const auto source = ReadTorchBytes(AsBytes(file), "t").value();
  CHECK(ReadAll(*source, "t") == std::vector<float>{1, 2, 3, 4, 5, 6});
  CHECK(ReadInPieces(*source, "t") == std::vector<float>{1, 2, 3, 4, 5, 6});
  CHECK(ReadAll(*source, "row") == std::vector<float>{4, 5, 6});
  CHECK(ReadAll(*source, "whole") == values);
  CHECK(ReadAll(*source, "scalar") == std::vector<float>{6});
  CHECK(ReadAll(*source, "none").empty());

  const std::string doubles = RawList<double>({1.5, 1e-300, -2, 1e-45});
  const std::string file64 = test::WriteTorch(
      {{.name = "d", .storage_type = "DoubleStorage", .shape = {4}}}, {doubles}, 8);
  const auto source64 = ReadTorchBytes(AsBytes(file64), "d").value();
  CHECK(ReadAll(*source64, "d") == std::vector<float>{1.5f, 0, -2, 1e-45f});

  test::ZipWriter zip;
  zip.Add("a/data.pkl", "\x80\x02}.");
  const std::string file_zip64 = zip.Finish(true);
  CHECK(ReadTorchBytes(AsBytes(file_zip64), "zip64").value()->tensors().empty());
}

TEST_CASE("torch: views that broadcast or overlap themselves are read as torch reads them") {
  const std::vector<test::TorchTensor> tensors = {
      {.name = "rows", .shape = {4, 3}, .strides = {0, 1}},
      {.name = "columns", .shape = {3, 4}, .strides = {1, 0}},
      {.name = "middle", .shape = {2, 2, 2}, .strides = {2, 0, 1}},
      {.name = "scalar", .shape = {2, 3}, .strides = {0, 0}, .offset = 3},
      {.name = "windows", .shape = {3, 2}, .strides = {1, 1}},
      {.name = "single row", .shape = {1, 4}, .strides = {0, 1}}};
  const std::string file = test::WriteTorch(tensors, {RawList<float>({1, 2, 3, 4})});
  const auto source = ReadTorchBytes(AsBytes(file), "views").value();
  const std::pair<const char*, std::vector<float>> kExpected[] = {
      {"rows", {1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3}},
      {"columns", {1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3}},
      {"middle", {1, 2, 1, 2, 3, 4, 3, 4}},
      {"scalar", {4, 4, 4, 4, 4, 4}},
      {"windows", {1, 2, 2, 3, 3, 4}},
      {"single row", {1, 2, 3, 4}}};
  for (const auto& [name, expected] : kExpected) {
    CAPTURE(name);
    CHECK(ReadAll(*source, name) == expected);
    CHECK(ReadInPieces(*source, name) == expected);
  }
}

TEST_CASE("torch: views that reach outside their storage are refused, broadcast or not") {
  const std::vector<test::TorchTensor> tensors = {
      {.name = "rows", .shape = {2, 5}, .strides = {0, 1}},
      {.name = "from an offset", .shape = {9, 4}, .strides = {0, 1}, .offset = 1},
      {.name = "scalar", .shape = {2}, .strides = {0}, .offset = 4},
      {.name = "windows", .shape = {4, 2}, .strides = {1, 1}},
      {.name = "far", .shape = {2, 3}, .strides = {0, size_t{1} << 62}}};
  for (const test::TorchTensor& tensor : tensors) {
    CAPTURE(tensor.name);
    const std::string file = test::WriteTorch({tensor}, {RawList<float>({1, 2, 3, 4})});
    const auto source = ReadTorchBytes(AsBytes(file), "views");
    REQUIRE_FALSE(source.ok());
    CHECK(source.status().message().find("reaches outside") != std::string::npos);
  }
}

// A file of some bytes that stands for a tensor of any size.
TEST_CASE("torch: a broadcast view that is many times the file is refused") {
  for (const size_t rows : {size_t{1} << 24, size_t{1} << 45}) {
    const std::string file = test::WriteTorch(
        {{.name = "w", .shape = {rows, 4}, .strides = {0, 1}}}, {RawList<float>({1, 2, 3, 4})});
    const auto source = ReadTorchBytes(AsBytes(file), "views");
    REQUIRE_FALSE(source.ok());
    CHECK(source.status().message().find("many times the file") != std::string::npos);
  }
}

TEST_CASE("torch: many views of the same bytes are refused") {
  const std::string storage(size_t{1} << 20, '\0');
  std::vector<test::TorchTensor> tensors;
  for (int i = 0; i < 100; ++i) {
    tensors.push_back({.name = std::to_string(i), .shape = {storage.size() / 4}});
  }
  const std::string file = test::WriteTorch(tensors, {storage});
  const auto source = ReadTorchBytes(AsBytes(file), "views");
  REQUIRE_FALSE(source.ok());
  CHECK(source.status().message().find("many times the file") != std::string::npos);
}

// What a pickle of calls could make grow: memory stays small and the time short.
TEST_CASE("torch: bombs of values end in an error") {
  const std::string dict = "ccollections\nOrderedDict\n";
  std::string doubling = "\x80\x02]q\x01";
  for (int i = 0; i < 200'000; ++i) doubling += "(h\x01h\x01t";
  std::string copies = "\x80\x02(";
  for (int i = 0; i < 100'000; ++i) copies += "K\x01K\x01\x86";
  copies +=
      "lq\x01"
      "0";
  for (int i = 0; i < 1'000; ++i) copies += dict + "h\x01\x85R0";
  std::string marks = "\x80\x02" + std::string(2'000'000, '(');
  std::string ints = "\x80\x02(";
  for (int i = 0; i < 1'000'000; ++i) ints += "K\x01";
  for (const std::string& pickle : {doubling, copies, marks, ints}) {
    test::ZipWriter zip;
    zip.Add("archive/data.pkl", pickle);
    const test::CpuStopwatch watch;
    const std::string file = zip.Finish();
    CHECK_FALSE(ReadTorchBytes(AsBytes(file), "bomb").ok());
    CHECK(watch.Seconds() < test::kFewCpuSeconds);
  }
}

}  // namespace
}  // namespace pozor
