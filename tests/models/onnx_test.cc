// ONNX files: what a tensor is, int8 weights with their scales, hostile files.
#include "models/formats/onnx.h"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "models/formats/folder.h"
#include "models/formats/weights.h"
#include "tests/models/formats.h"
#include "tests/models/golden.h"
#include "tests/support/weight_writers.h"

namespace pozor {
namespace {

using test::AsBytes;
using test::DataPath;
using test::Find;
using test::OnnxWriter;
using test::RawList;
using test::ReadAll;
using test::ReadInPieces;

TEST_CASE("hostile ONNX files are refused by the name of their fault") {
  constexpr test::Hostile kFiles[] = {
      {"empty.onnx", "empty model", ""},
      {"garbage.onnx", "protobuf", ""},
      {"truncated.onnx", "protobuf", ""},
      {"deep.onnx", "", ""},
      {"external-parent.onnx", "location \"../good-folder/model.safetensors\"",
       "leaves the folder"},
      {"external-absolute.onnx", "location \"/etc/passwd\"", "is absolute"},
      {"external-missing.onnx", "weights.data", "missing"},
      {"external-offset.onnx", test::kWord, "outside the file"},
      {"external-length.onnx", test::kWord, "16 needed"},
      {"external-negative.onnx", test::kWord, "negative"},
      {"dims-overflow.onnx", test::kWord, "overflow"},
  };
  const ModelFolder folder = ModelFolder::Open(DataPath("malformed/onnx")).value();
  test::CheckRefused("onnx", kFiles, [&](const std::string& path) {
    return OpenOnnx(folder, std::filesystem::path(path).filename().string());
  });
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

}  // namespace
}  // namespace pozor
