// The weight formats: the golden's layouts, what the writers of the tests can say, hostile files.
#include <doctest/doctest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "models/formats/file.h"
#include "models/formats/folder.h"
#include "models/formats/gguf.h"
#include "models/formats/onnx.h"
#include "models/formats/safetensors.h"
#include "models/formats/torch_file.h"
#include "models/formats/weights.h"
#include "pozor/pozor.hpp"
#include "tests/models/golden.h"
#include "tests/models/trace.h"
#include "tests/support/compare.h"
#include "tests/support/cpu_time.h"
#include "tests/support/weight_writers.h"

namespace pozor {
namespace {

namespace fs = std::filesystem;
using test::DataPath;
using test::OnnxWriter;
using test::RawList;
using Source = Result<std::shared_ptr<const TensorSource>>;

std::span<const uint8_t> AsBytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

const TensorInfo* Find(const TensorSource& source, std::string_view name) {
  for (const TensorInfo& tensor : source.tensors()) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

std::vector<float> ReadAll(const TensorSource& source, std::string_view name) {
  const TensorInfo* tensor = Find(source, name);
  if (tensor == nullptr) FAIL("no tensor " << std::string(name));
  std::vector<float> values(tensor->elements());
  const Status status = source.Read(*tensor, 0, values.size(), values.data());
  if (!status.ok()) FAIL(status.message());
  return values;
}

// The same by pieces of odd sizes from odd places.
std::vector<float> ReadInPieces(const TensorSource& source, std::string_view name) {
  const TensorInfo& tensor = *Find(source, name);
  std::vector<float> values(tensor.elements());
  size_t piece = 1;
  for (size_t at = 0; at < values.size(); piece = piece * 2 + 1) {
    const size_t count = std::min(piece, values.size() - at);
    REQUIRE(source.Read(tensor, at, count, values.data() + at).ok());
    at += count;
  }
  return values;
}

TEST_CASE("every layout of the formats golden gives its numbers") {
  const JsonDocument golden = ReadJsonFile(DataPath("formats/golden.json")).value();
  const auto tensors = OpenSafetensors(DataPath("formats/golden.safetensors")).value();
  size_t variants = 0;
  for (const JsonMember& variant : golden->Find("variants")->members()) {
    const std::string name(variant.key);
    const std::string folder = DataPath("formats/" + name);
    if (!DirectoryExists(folder)) continue;
    CAPTURE(name);
    ++variants;
    const auto loaded = LoadModelParts(folder, {}, {});
    if (!loaded.ok()) FAIL(loaded.status().message());
    const Model::Impl& model = **loaded;
    const JsonValue* same = variant.value.Find("same_as");
    const std::string numbers = same == nullptr ? name : std::string(same->as_string());
    const double abs = variant.value.Find("tolerance")->Find("abs")->as_double();
    const double rel = variant.value.Find("tolerance")->Find("rel")->as_double();
    size_t texts = 0;
    for (const JsonValue& text : golden->Find("texts")->items()) {
      const std::vector<int32_t> ids = test::ToInts(*text.Find("ids"));
      TokenizeOptions options;
      options.max_length = static_cast<size_t>(golden->Find("max_length")->as_int());
      CHECK(model.tokenizer->Encode(text.Find("text")->as_string(), nullptr, options)->ids == ids);
      const std::string tensor =
          numbers + ".text." + std::to_string(text.Find("index")->as_int()) + ".last";
      if (Find(*tensors, tensor) == nullptr) continue;
      const std::vector<float> expected = ReadAll(*tensors, tensor);
      const test::Trace trace = test::TraceText(model, test::TokensOf(text));
      const std::span<const float> got = std::span(trace.hidden).last(expected.size());
      double worst = 0;
      for (size_t i = 0; i < got.size(); ++i) {
        const double allowed = abs + rel * std::abs(static_cast<double>(expected[i]));
        worst = std::max(worst, std::abs(static_cast<double>(got[i]) - expected[i]) / allowed);
      }
      CHECK(worst <= 1.0);
      ++texts;
    }
    CHECK(texts >= 2);
  }
  CHECK(variants == 24);
}

TEST_CASE("ggml blocks become the reference's numbers, bit by bit, in pieces of any size") {
  const auto source = OpenGguf(DataPath("formats/blocks.gguf")).value();
  const auto expected = OpenSafetensors(DataPath("formats/blocks.safetensors")).value();
  REQUIRE(expected->tensors().size() == 14);
  for (const TensorInfo& tensor : expected->tensors()) {
    CAPTURE(tensor.name);
    const std::vector<float> numbers = ReadAll(*expected, tensor.name);
    CHECK(test::SameBits(ReadAll(*source, tensor.name), numbers));
    CHECK(test::SameBits(ReadInPieces(*source, tensor.name), numbers));
  }
}

struct Hostile {
  const char* file;
  const char* first;   // parts of the message
  const char* second;  // or ""
};

// Refused by name, in a line, soon.
template <class Open>
void CheckRefused(const std::string& folder, std::span<const Hostile> files, Open open) {
  for (const Hostile& hostile : files) {
    const std::string name = hostile.file;
    CAPTURE(name);
    const test::CpuStopwatch watch;
    const Status status = open(DataPath("malformed/" + folder + "/" + name)).status();
    CHECK(watch.Seconds() < test::kFewCpuSeconds);
    CHECK_FALSE(status.ok());
    const std::string& message = status.message();
    CAPTURE(message);
    CHECK(message.find(hostile.first) != std::string::npos);
    CHECK(message.find(hostile.second) != std::string::npos);
    CHECK(message.find("; ") != std::string::npos);
    CHECK(message.find('\n') == std::string::npos);
  }
}

constexpr const char* kWord = "embeddings.word_embeddings.weight";

TEST_CASE("hostile pickles are refused by the name of their fault, and nothing runs") {
  constexpr Hostile kFiles[] = {
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
      {"storage-too-small.bin", kWord, "reaches outside"},
      {"offset-outside.bin", kWord, "storage offset 3"},
      {"offset-negative.bin", kWord, "negative offset"},
      {"stride-huge.bin", kWord, "strides that overflow"},
      {"size-negative.bin", kWord, "negative size"},
      {"size-stride-differ.bin", kWord, "different lengths"},
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
  CheckRefused("pickles", kFiles, OpenTorchFile);
  CHECK_FALSE(FileExists("executed.txt"));
  const auto good = OpenTorchFile(DataPath("malformed/pickles/good.bin")).value();
  CHECK(ReadAll(*good, kWord) == std::vector<float>{0, 1, 2, 3});
}

TEST_CASE("hostile GGUF files are refused by the name of their fault") {
  constexpr Hostile kFiles[] = {
      {"magic.gguf", "magic", ""},
      {"version-1.gguf", "version 1", ""},
      {"version-big-endian.gguf", "big-endian", ""},
      {"truncated.gguf", "the end of the file", ""},
      {"kv-count-huge.gguf", "number of keys", ""},
      {"tensor-count-huge.gguf", "number of tensors", ""},
      {"string-huge.gguf", "string length", ""},
      {"array-huge.gguf", "tokenizer.ggml.tokens", "array length"},
      {"array-nested.gguf", "nests arrays", ""},
      {"value-type.gguf", "value type 99", ""},
      {"alignment-zero.gguf", "general.alignment", ""},
      {"alignment-odd.gguf", "general.alignment", ""},
      {"duplicate-key.gguf", "general.architecture", "duplicate"},
      {"duplicate-tensor.gguf", "tensor a", "duplicate"},
      {"dims-5.gguf", "tensor a", "5 dimensions"},
      {"dims-overflow.gguf", "tensor a", "overflows"},
      {"offset-outside.gguf", "tensor a", "outside the file"},
      {"offset-unaligned.gguf", "tensor a", "not aligned"},
      {"overlap.gguf", "tensor b", "overlap"},
      {"type-unknown.gguf", "tensor a", "type 250"},
      {"q8-row.gguf", "tensor a", "a row of 33 is not a multiple of 32"},
      {"name-long.gguf", "longer than 64 bytes", ""},
      {"no-architecture.gguf", "general.architecture", ""},
      {"architecture-unknown.gguf", "architecture bertosaurus", ""},
  };
  CheckRefused("gguf", kFiles, OpenGguf);
  const auto good = OpenGguf(DataPath("malformed/gguf/good.gguf")).value();
  CHECK(ReadAll(*good, kWord) == std::vector<float>(8, 0.0f));
  CHECK(Find(*good, kWord)->shape == std::vector<size_t>{2, 4});
}

TEST_CASE("hostile ONNX files are refused by the name of their fault") {
  constexpr Hostile kFiles[] = {
      {"empty.onnx", "empty model", ""},
      {"garbage.onnx", "protobuf", ""},
      {"truncated.onnx", "protobuf", ""},
      {"deep.onnx", "", ""},
      {"external-parent.onnx", "location \"../good-folder/model.safetensors\"",
       "leaves the folder"},
      {"external-absolute.onnx", "location \"/etc/passwd\"", "is absolute"},
      {"external-missing.onnx", "weights.data", "missing"},
      {"external-offset.onnx", kWord, "outside the file"},
      {"external-length.onnx", kWord, "16 needed"},
      {"external-negative.onnx", kWord, "negative"},
      {"dims-overflow.onnx", kWord, "overflow"},
  };
  const ModelFolder folder = ModelFolder::Open(DataPath("malformed/onnx")).value();
  CheckRefused("onnx", kFiles, [&](const std::string& path) {
    return OpenOnnx(folder, fs::path(path).filename().string());
  });
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

TEST_CASE("ONNX: what a tensor is, by bias, by path, by name, through Transpose and Identity") {
  const std::string in_out = RawList<float>({1, 4, 2, 5, 3, 6});  // [3, 2]
  const std::string out_in = RawList<float>({1, 2, 3, 4, 5, 6});  // [2, 3]
  const std::string two = RawList<float>({7, 8});
  OnnxWriter w;
  w.Tensor("onnx::MatMul_1", {3, 2}, 1, in_out);
  w.Tensor("a.dense.bias", {2}, 1, two);
  w.Add({"MatMul", "/a/dense/MatMul", {"x", "onnx::MatMul_1"}, {"y"}});
  w.Add({"Add", "/a/dense/Add", {"a.dense.bias", "y"}, {"z"}});
  w.Tensor("val_2", {3, 2}, 1, in_out);  // no bias: the path tells
  w.Add({"MatMul", "/b/layers.0/mlp/Wi/MatMul_1", {"x", "val_2"}, {"y2"}});
  w.Tensor("c.weight", {2, 3}, 1, out_in);  // named: as it is
  w.Add({.op = "Transpose", .name = "t", .inputs = {"c.weight"}, .outputs = {"ct"}, .swaps = true});
  w.Add({"MatMul", "node_MatMul", {"x", "ct"}, {"y3"}});
  w.Tensor("val_4", {2, 3}, 1, out_in);
  w.Tensor("d.bias", {2}, 1, two);
  w.Add({.op = "Gemm",
         .name = "g",
         .inputs = {"x", "val_4", "d.bias"},
         .outputs = {"y4"},
         .transposes_b = true});
  w.Add({"Identity", "i", {"a.dense.bias"}, {"e.norm.bias"}});
  const std::string file = w.Finish();
  const auto source = ReadOnnxBytes(AsBytes(file), "roles").value();
  CHECK(source->tensors().size() == 7);
  const std::vector<float> expected = {1, 2, 3, 4, 5, 6};
  for (const char* name : {"a.dense.weight", "b.layers.0.mlp.Wi.weight", "c.weight", "d.weight"}) {
    CAPTURE(name);
    CHECK(Find(*source, name)->shape == std::vector<size_t>{2, 3});
    CHECK(ReadAll(*source, name) == expected);
    CHECK(ReadInPieces(*source, name) == expected);
  }
  CHECK(ReadAll(*source, "e.norm.bias") == std::vector<float>{7, 8});
}

TEST_CASE("ONNX: int8 weights with one scale, or one a column, are what the file says") {
  OnnxWriter w;
  w.Tensor("onnx::MatMul_1_quantized", {3, 2}, 3, RawList<int8_t>({1, -4, 2, 5, -128, 127}));
  w.Tensor("onnx::MatMul_1_scale", {2}, 1, RawList<float>({0.5f, 0.1f}));
  w.Tensor("onnx::MatMul_1_zero_point", {2}, 3, RawList<int8_t>({0, 2}));
  w.Tensor("e.weight_quantized", {2, 2}, 2, RawList<uint8_t>({0, 128, 255, 129}));
  w.Tensor("e.weight_scale", {}, 1, RawList<float>({0.25f}));
  w.Tensor("e.weight_zero_point", {}, 2, RawList<uint8_t>({128}));
  w.Add({"MatMulInteger",
         "/a/dense/MatMul_quant",
         {"x", "onnx::MatMul_1_quantized", "xz", "onnx::MatMul_1_zero_point"},
         {"y"}});
  const std::string file = w.Finish();
  const auto source = ReadOnnxBytes(AsBytes(file), "int8").value();
  CHECK(source->tensors().size() == 2);
  CHECK(Find(*source, "a.dense.weight")->shape == std::vector<size_t>{2, 3});
  const std::vector<float> expected = {0.5f, 1.0f, -64.0f, -6 * 0.1f, 3 * 0.1f, 125 * 0.1f};
  CHECK(ReadAll(*source, "a.dense.weight") == expected);
  CHECK(ReadInPieces(*source, "a.dense.weight") == expected);
  CHECK(ReadAll(*source, "e.weight") == std::vector<float>{-32, 0, 31.75f, 0.25f});
}

// A tensor as ONNX Runtime's quantiser writes it, with its scales and zero points.
void AddQuantized(OnnxWriter* w, const std::string& name, const std::vector<size_t>& dims,
                  const std::vector<int8_t>& values, const std::vector<size_t>& scale_dims,
                  const std::vector<float>& scales, const std::vector<int8_t>& zeros) {
  w->Tensor(name + "_quantized", dims, 3, RawList(values));
  w->Tensor(name + "_scale", scale_dims, 1, RawList(scales));
  w->Tensor(name + "_zero_point", {zeros.size()}, 3, RawList(zeros));
}

OnnxWriter::Node IntegerProduct(const std::string& weight) {
  return {"MatMulInteger", "/m/" + weight, {"x", weight, "xz", "wz"}, {"y of " + weight}};
}

OnnxWriter::Node Dequantize(const std::string& name, int64_t axis) {
  return {.op = "DequantizeLinear",
          .name = "d",
          .inputs = {name + "_quantized", name + "_scale", name + "_zero_point"},
          .outputs = {name + "_dequantized"},
          .axis = axis};
}

TEST_CASE("ONNX: named int8 weights have a scale for each step of the dimension that readers say") {
  const std::vector<int8_t> in_out = {1, 4, 2, 5};  // [2, 2]
  const std::vector<int8_t> out_in = {1, 2, 4, 5};
  const std::vector<float> scales = {0.5f, 10};
  const std::vector<int8_t> zeros = {1, 2};
  const auto add = [&](OnnxWriter* w, const std::string& name, const std::vector<int8_t>& values) {
    AddQuantized(w, name, {2, 2}, values, {2}, scales, zeros);
  };
  OnnxWriter w;
  add(&w, "transposed.weight_Transposed", in_out);  // a Gemm's, which the quantiser transposes
  w.Add(IntegerProduct("transposed.weight_Transposed_quantized"));
  add(&w, "in_out.weight", in_out);  // a parameter that is [in, out] in the model
  w.Add(IntegerProduct("in_out.weight_quantized"));
  add(&w, "through.weight", out_in);
  w.Add({.op = "Transpose",
         .name = "t",
         .inputs = {"through.weight_quantized"},
         .outputs = {"tw"},
         .swaps = true});
  w.Add(IntegerProduct("tw"));
  const std::pair<const char*, int64_t> kAxes[] = {
      {"axis0.weight", 0}, {"axis1.weight", 1}, {"from_end1.weight", -1}, {"from_end2.weight", -2}};
  for (const auto& [name, axis] : kAxes) {
    add(&w, name, axis % 2 == 0 ? out_in : in_out);
    w.Add(Dequantize(name, axis));
  }
  AddQuantized(&w, "one.weight_Transposed", {2, 2}, in_out, {}, {0.5f}, {1});
  w.Add(IntegerProduct("one.weight_Transposed_quantized"));
  w.Tensor("plain.weight_Transposed", {2, 2}, 1, RawList<float>({1, 4, 2, 5}));
  w.Add({"MatMul", "m", {"x", "plain.weight_Transposed"}, {"py"}});
  const std::string file = w.Finish();
  const auto source = ReadOnnxBytes(AsBytes(file), "int8").value();
  const std::vector<float> as_out_in = {0, 0.5f, 20, 30}, as_in_out = {0, 20, 0.5f, 30};
  const std::pair<const char*, std::vector<float>> kExpected[] = {
      {"transposed.weight", as_out_in}, {"in_out.weight", as_in_out},
      {"through.weight", as_out_in},    {"axis0.weight", as_out_in},
      {"axis1.weight", as_in_out},      {"from_end1.weight", as_in_out},
      {"from_end2.weight", as_out_in},  {"one.weight", {0, 0.5f, 1.5f, 2}},
      {"plain.weight", {1, 2, 4, 5}}};
  CHECK(source->tensors().size() == std::size(kExpected));
  for (const auto& [name, expected] : kExpected) {
    CAPTURE(name);
    CHECK(ReadAll(*source, name) == expected);
    CHECK(ReadInPieces(*source, name) == expected);
  }
}

TEST_CASE("ONNX: scales that the readers of a named weight do not explain are refused by name") {
  struct Case {
    const char* what;
    std::vector<size_t> scale_dims;
    std::vector<OnnxWriter::Node> readers;
    size_t zeros = 2;
  };
  const OnnxWriter::Node product = IntegerProduct("a.weight_quantized");
  const Case kCases[] = {
      {"nobody reads it", {2}, {}},
      {"as many as another dimension", {2}, {Dequantize("a.weight", 1)}},
      {"as many as the rows, for a product", {2}, {product}},
      {"readers disagree", {2}, {Dequantize("a.weight", 0), product}},
      {"readers disagree, then agree",
       {2},
       {product, Dequantize("a.weight", 0), Dequantize("a.weight", 0)}},
      {"no such dimension", {2}, {Dequantize("a.weight", 2)}},
      {"no such dimension from the end", {2}, {Dequantize("a.weight", -3)}},
      {"the least number", {2}, {Dequantize("a.weight", INT64_MIN)}},
      {"scales of blocks", {2, 1}, {Dequantize("a.weight", 0)}},
      {"fewer zero points", {2}, {Dequantize("a.weight", 0)}, 1},
  };
  for (const Case& c : kCases) {
    CAPTURE(c.what);
    OnnxWriter w;
    AddQuantized(&w, "a.weight", {2, 3}, {1, 2, 3, 4, 5, 6}, c.scale_dims, {1, 2},
                 std::vector<int8_t>(c.zeros, 0));
    for (const OnnxWriter::Node& reader : c.readers) w.Add(reader);
    const std::string file = w.Finish();
    const auto source = ReadOnnxBytes(AsBytes(file), "model");
    REQUIRE_FALSE(source.ok());
    CHECK(source.status().code() == StatusCode::kUnsupported);
    CHECK(source.status().message().find("'a.weight_quantized'") != std::string::npos);
  }
}

TEST_CASE("ONNX: optimised graphs and weights without a role are refused by name") {
  const std::string six = RawList<float>({1, 2, 3, 4, 5, 6});
  const auto refusal = [&](const OnnxWriter::Node& node) {
    OnnxWriter w;
    w.Tensor("val_1", {3, 2}, 1, six);
    w.Add(node);
    const std::string file = w.Finish();
    const auto source = ReadOnnxBytes(AsBytes(file), "model");
    REQUIRE_FALSE(source.ok());
    CHECK(source.status().code() == StatusCode::kUnsupported);
    return source.status().message();
  };
  CHECK(refusal({"SkipLayerNormalization", "n", {"x"}, {"y"}, "com.microsoft"})
            .find("com.microsoft.SkipLayerNormalization") != std::string::npos);
  CHECK(refusal({"MatMul", "node_1", {"x", "val_1"}, {"y"}}).find("'val_1'") != std::string::npos);
}

TEST_CASE("subnormals and halves survive in every format") {
  const std::vector<float> tiny = {1e-45f, -1e-45f, 1.17e-38f, 0.0f};
  const std::string raw = RawList(tiny);
  const std::string halves = RawList<uint16_t>({0x0001, 0x8001, 0x03FF, 0x7BFF});
  const std::vector<float> from_half = {0x1p-24f, -0x1p-24f, 1023 * 0x1p-24f, 65504.0f};
  const auto check = [&](const Source& source) {
    if (!source.ok()) FAIL(source.status().message());
    CHECK(test::SameBits(ReadAll(**source, "a.weight"), tiny));
    CHECK(test::SameBits(ReadAll(**source, "h.weight"), from_half));
  };
  OnnxWriter onnx;
  onnx.Tensor("a.weight", {4}, 1, raw);
  onnx.Tensor("h.weight", {4}, 10, halves);
  const std::string onnx_file = onnx.Finish();
  check(ReadOnnxBytes(AsBytes(onnx_file), "onnx"));
  test::GgufWriter gguf;
  gguf.Text("general.architecture", "bert");
  gguf.Tensor("a.weight", {4}, 0, raw);
  gguf.Tensor("h.weight", {4}, 1, halves);
  const std::string gguf_file = gguf.Finish();
  check(Source(ReadGgufBytes(AsBytes(gguf_file), "gguf").value()));
}

TEST_CASE("the tokenizers of GGUF files, and those that are refused by name") {
  const auto tokens = [](const char* model) {
    test::GgufWriter gguf;
    gguf.Text("general.architecture", "bert");
    gguf.Text("tokenizer.ggml.model", model);
    gguf.Texts("tokenizer.ggml.tokens", {"<s>", "<unk>", "</s>", "\u2581a", "\u2581man", "n"});
    gguf.Ints("tokenizer.ggml.token_type", {3, 2, 3, 1, 1, 1});
    gguf.Uint("tokenizer.ggml.bos_token_id", 0);
    gguf.Uint("tokenizer.ggml.unknown_token_id", 1);
    gguf.Uint("tokenizer.ggml.eos_token_id", 2);
    gguf.Bool("tokenizer.ggml.add_bos_token", true);
    gguf.Bool("tokenizer.ggml.add_eos_token", true);
    return gguf;
  };
  const auto load = [](const test::GgufWriter& writer) {
    const std::string file = writer.Finish();
    const auto gguf = ReadGgufBytes(AsBytes(file), "file").value();
    return Tokenizer::FromGguf(gguf->metadata(), "file");
  };
  test::GgufWriter unigram = tokens("t5");
  unigram.Floats("tokenizer.ggml.scores", {0, 0, 0, -1, -2, -3});
  const std::string_view pair = "man";
  CHECK(load(unigram).value()->Encode("a man", nullptr, {})->ids ==
        std::vector<int32_t>{0, 3, 4, 2});
  CHECK(load(unigram).value()->Encode("a", &pair, {})->ids ==
        std::vector<int32_t>{0, 3, 2, 2, 4, 2});
  CHECK(load(tokens("bert")).value()->Encode("A Mann", nullptr, {})->ids ==
        std::vector<int32_t>{0, 3, 4, 5, 2});
  test::GgufWriter infinite = tokens("t5");
  infinite.Floats("tokenizer.ggml.scores", {0, 0, 0, -1, HUGE_VALF, -3});
  CHECK(load(infinite).status().message().find("entry 4") != std::string::npos);
  CHECK(load(tokens("t5")).status().message().find("tokenizer.ggml.scores") != std::string::npos);
  CHECK(load(tokens("rwkv")).status().message().find("GGUF tokenizer rwkv") != std::string::npos);
  test::GgufWriter bpe = tokens("gpt2");
  bpe.Text("tokenizer.ggml.pre", "smollm");
  CHECK(load(bpe).status().message().find("pre-tokenizer smollm") != std::string::npos);
}

TEST_CASE("what a GGUF file says of the model") {
  test::GgufWriter writer;
  writer.Text("general.architecture", "nomic-bert");
  for (const char* key : {"embedding_length", "feed_forward_length", "block_count",
                          "attention.head_count", "context_length"}) {
    writer.Uint(std::string("nomic-bert.") + key, 8);
  }
  writer.Float("nomic-bert.attention.layer_norm_epsilon", 1e-12f);
  writer.Float("nomic-bert.rope.freq_base", 1000);
  writer.Uint("nomic-bert.pooling_type", 2);
  writer.Tensor("blk.7.attn_qkv.weight", {1, 1}, 0, std::string(4, '\0'));
  writer.Tensor("token_embd.weight", {3, 1}, 0, std::string(12, '\0'));
  const std::string file = writer.Finish();
  const auto gguf = ReadGgufBytes(AsBytes(file), "file").value();
  CHECK(gguf->PoolingMode() == "cls");
  CHECK(Find(*gguf, "encoder.layers.7.attn.Wqkv.weight") != nullptr);
  const JsonDocument config = ParseJson(gguf->ConfigJson().value(), "config").value();
  CHECK(config->Find("model_type")->as_string() == "nomic_bert");
  CHECK(config->Find("vocab_size")->as_int() == 3);
  CHECK(static_cast<float>(config->Find("layer_norm_eps")->as_double()) == 1e-12f);
  CHECK(config->Find("rope_parameters")->Find("rope_theta")->as_double() == 1000);
}

// A folder of its own, removed at the end.
class Scratch {
 public:
  Scratch() : path_((fs::temp_directory_path() / "pozor-formats-XXXXXX").string()) {
    REQUIRE(::mkdtemp(path_.data()) != nullptr);
  }
  ~Scratch() { fs::remove_all(path_); }
  fs::path operator/(const std::string& name) const { return fs::path(path_) / name; }

 private:
  std::string path_;
};

TEST_CASE("a model is given by its file, and the file that was named is the one that is used") {
  const Scratch scratch;
  const fs::path root = scratch / "model";
  fs::create_directories(root / "onnx");
  const auto copy = [](const std::string& from, const fs::path& to) {
    fs::copy_file(DataPath("formats/" + from), to);
  };
  copy("onnx/config.json", root / "config.json");
  copy("onnx/tokenizer.json", root / "tokenizer.json");
  copy("onnx/model.onnx", root / "onnx/model.onnx");
  copy("gguf-q4_0/model.gguf", root / "small.gguf");
  const std::string text = "A man is playing a guitar.";
  const auto vector = [&](const std::string& path) {
    return test::LoadOrFail(path).Encode({text}).value();
  };
  const std::string small = (root / "small.gguf").string();
  const Vectors plain = vector(root.string()), named = vector((root / "onnx/model.onnx").string());
  const Vectors quantised = vector(small), alone = vector(DataPath("formats/gguf-q4_0"));
  CHECK(test::SameBits(plain[0], named[0]));
  CHECK(test::SameBits(quantised[0], alone[0]));
  CHECK_FALSE(test::SameBits(plain[0], quantised[0]));

  fs::remove_all(root / "onnx");
  CHECK(test::SameBits(vector(root.string())[0], quantised[0]));
  fs::copy_file(root / "small.gguf", root / "twin.gguf");
  const auto two = Model::Load(root.string());
  REQUIRE_FALSE(two.ok());
  CHECK(two.status().message().find("small.gguf and twin.gguf") != std::string::npos);
  CHECK(test::SameBits(vector(small)[0], quantised[0]));
}

TEST_CASE("links of a Hugging Face cache lead to blobs; external data may not leave") {
  const Scratch scratch;
  const fs::path snapshot = scratch / "models--org--name/snapshots/abc";
  const fs::path blobs = scratch / "models--org--name/blobs";
  fs::create_directories(snapshot);
  fs::create_directories(blobs);
  for (const auto& entry : fs::directory_iterator(DataPath("formats/onnx-external"))) {
    const fs::path name = entry.path().filename();
    fs::copy_file(entry.path(), blobs / name);
    fs::create_symlink(fs::path("../../blobs") / name, snapshot / name);
  }
  test::LoadOrFail(snapshot.string());
  fs::remove(snapshot / "model.onnx_data");
  fs::create_symlink(DataPath("formats/onnx-external/model.onnx_data"),
                     snapshot / "model.onnx_data");
  const auto model = Model::Load(snapshot.string());
  REQUIRE_FALSE(model.ok());
  CHECK(model.status().message().find("leaves the model folder") != std::string::npos);
}

}  // namespace
}  // namespace pozor
