// The weight formats side by side: the golden's layouts, small numbers, files of a folder.
#include "tests/models/formats.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/formats/gguf.h"
#include "models/formats/onnx.h"
#include "models/formats/safetensors.h"
#include "models/formats/weights.h"
#include "models/json.h"
#include "pozor/pozor.hpp"
#include "tests/models/golden.h"
#include "tests/models/trace.h"
#include "tests/support/compare.h"
#include "tests/support/weight_writers.h"

namespace pozor {
namespace {

namespace fs = std::filesystem;
using test::AsBytes;
using test::DataPath;
using test::Find;
using test::OnnxWriter;
using test::RawList;
using test::ReadAll;
using Source = Result<std::shared_ptr<const TensorSource>>;

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
