// Hostile and broken model folders: refused by name, quickly, or loaded where they are sound.
#include <doctest/doctest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "models/formats/file.h"
#include "models/formats/folder.h"
#include "models/formats/safetensors_header.h"
#include "models/formats/weights.h"
#include "pozor/pozor.hpp"
#include "tests/models/golden.h"
#include "tests/support/cpu_time.h"

namespace pozor {
namespace {

namespace fs = std::filesystem;
using test::DataPath;

struct BrokenFolder {
  const char* name;
  const char* first;   // parts of the message
  const char* second;  // or ""
};

constexpr BrokenFolder kBroken[] = {
    {"missing-tensor", "encoder.layer.0.attention.self.query.weight", "missing"},
    {"wrong-shape", "encoder.layer.0.attention.self.query.weight", "[4, 5], expected [4, 4]"},
    {"transposed-shape", "encoder.layer.0.intermediate.dense.weight", "[4, 6], expected [6, 4]"},
    {"vocabulary-too-small", "embeddings.word_embeddings.weight", "[6, 4], expected [8, 4]"},
    {"nan-weight", "encoder.layer.0.attention.self.query.weight", "not finite"},
    {"infinite-weight", "embeddings.LayerNorm.weight", "not finite"},
    {"integer-weight", "I32", "floating point is needed"},
    {"no-weights", "model.safetensors", "missing"},
    {"no-config", "config.json", "missing"},
    {"no-tokenizer", "tokenizer", ""},
    {"config-heads-zero", "num_attention_heads", "0"},
    {"config-heads-do-not-divide", "num_attention_heads 3", "hidden_size 4"},
    {"config-hidden-negative", "hidden_size", "-4"},
    {"config-hidden-huge", "hidden_size", ""},
    {"config-hidden-string", "hidden_size", "a whole number"},
    {"config-hidden-float", "hidden_size", "a whole number"},
    {"config-layers-huge", "num_hidden_layers", ""},
    {"config-eps-negative", "layer_norm_eps", "positive"},
    {"config-unknown-activation", "hidden_act gelu_of_the_future", "gelu_new"},
    {"config-unknown-model-type", "model_type bertosaurus", "bert"},
    {"config-relative-positions", "distance_embedding.weight", "missing"},
    {"config-cross-attention", "add_cross_attention", ""},
    {"config-quantization-config", "quantization_config gptq", ""},
    {"config-not-json", "config.json", "not valid JSON"},
    {"config-non-utf8", "config.json", "not valid UTF-8"},
    {"config-deep", "config.json", ""},
    {"config-array", "config.json", "an object is needed"},
    {"config-empty", "config.json", ""},
    {"config-duplicate-key", "embeddings.word_embeddings.weight", "[8, 4], expected [8, 8]"},
    {"shard-parent", "../good-folder/model.safetensors", "leaves the folder"},
    {"shard-absolute", "/etc/passwd", "is absolute"},
    {"shard-backslash", "backslash", ""},
    {"shard-nul", "contains NUL", ""},
    {"shard-empty-name", "is empty", ""},
    {"shard-missing-file", "model-00001-of-00002.safetensors", "missing"},
    {"shard-dot", "the file name \".\"", ""},
    {"shard-index-no-map", "weight_map", ""},
    {"modules-outside", "../../good-folder", "leaves the folder"},
    {"modules-unknown", "evil_package.Runs", ""},
    {"modules-object", "modules.json", "an array of modules is needed"},
};

TEST_CASE("every broken folder is refused by the name of its fault") {
  for (const BrokenFolder& broken : kBroken) {
    const std::string name = broken.name;
    CAPTURE(name);
    const test::CpuStopwatch watch;
    const auto model = Model::Load(DataPath("malformed/folders/" + name));
    REQUIRE_FALSE(model.ok());
    const std::string& message = model.status().message();
    CAPTURE(message);
    CHECK(message.find(broken.first) != std::string::npos);
    CHECK(message.find(broken.second) != std::string::npos);
    CHECK(message.find("; ") != std::string::npos);
    CHECK(message.find('\n') == std::string::npos);
    CHECK(watch.Seconds() < test::kFewCpuSeconds);
  }
}

TEST_CASE("sound folders load") {
  const Model good = test::LoadOrFail(DataPath("malformed/good-folder"));
  CHECK(good.Info().hidden == 4);
  CHECK(good.Info().layers == 1);
  CHECK(good.Info().max_length == 10);
  // The padding id is not used; the index promises a tensor more than there is.
  test::LoadOrFail(DataPath("malformed/folders/config-pad-token-outside"));
  const Model lies = test::LoadOrFail(DataPath("malformed/folders/shard-lies"));
  bool warned = false;
  for (const std::string& warning : lies.Info().warnings) {
    warned |= warning.find("encoder.layer.0.output.dense.extra") != std::string::npos;
  }
  CHECK(warned);
}

// A folder of its own, removed at the end.
class Scratch {
 public:
  Scratch() : path_((fs::temp_directory_path() / "pozor-folder-XXXXXX").string()) {
    REQUIRE(::mkdtemp(path_.data()) != nullptr);
  }
  ~Scratch() { fs::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST_CASE("symbolic links may not leave the model, but for a cache's blobs") {
  const Scratch scratch;
  const fs::path root = scratch.path();
  const fs::path good = DataPath("malformed/good-folder");
  const fs::path snapshot = root / "models--org--name/snapshots/abc";
  const fs::path blobs = root / "models--org--name/blobs";
  fs::create_directories(snapshot);
  fs::create_directories(blobs);
  for (const auto& entry : fs::directory_iterator(good)) {
    const fs::path name = entry.path().filename();
    fs::copy_file(entry.path(), blobs / name);
    fs::create_symlink(fs::path("../../blobs") / name, snapshot / name);
  }
  test::LoadOrFail(snapshot.string());

  fs::remove(snapshot / "model.safetensors");
  fs::create_symlink(good / "model.safetensors", snapshot / "model.safetensors");
  const auto model = Model::Load(snapshot.string());
  REQUIRE_FALSE(model.ok());
  CHECK(model.status().message().find("leaves the model folder") != std::string::npos);

  fs::create_directories(root / "plain");
  fs::copy(good, root / "plain");
  fs::rename(root / "plain/config.json", root / "plain/real.json");
  fs::create_symlink("real.json", root / "plain/config.json");
  test::LoadOrFail((root / "plain").string());
}

TEST_CASE("a word vector that is not finite is found when its word occurs") {
  const Scratch scratch;
  const fs::path root = fs::path(scratch.path()) / "model";
  fs::copy(DataPath("cases/P20/plain"), root, fs::copy_options::recursive);
  const fs::path weights = root / "model.safetensors";
  std::string bytes = ReadWholeFile(weights.string(), 1 << 20).value();
  const auto header = ParseSafetensorsHeader(
      {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, "weights");
  REQUIRE(header.ok());
  const Model sound = test::LoadOrFail(root.string());
  const std::vector<int32_t> ids = sound.Tokenize("bread").value().ids;
  for (const TensorInfo& tensor : header->tensors) {
    if (tensor.name != "embeddings.word_embeddings.weight") continue;
    const size_t row = header->data_begin + header->offsets[tensor.source_index] +
                       static_cast<size_t>(ids[1]) * tensor.shape[1] * sizeof(float);
    const float infinity = HUGE_VALF;
    std::memcpy(&bytes[row], &infinity, sizeof infinity);
  }
  fs::remove(weights);
  std::ofstream(weights, std::ios::binary) << bytes;
  const Model model = test::LoadOrFail(root.string());
  CHECK(model.Encode({"boat"}).ok());
  const auto vectors = model.Encode({"boat", "bread"});
  REQUIRE_FALSE(vectors.ok());
  CHECK(
      vectors.status().message().starts_with("text 2: its vector has numbers that are not finite"));
}

TEST_CASE("the Transformer in a folder of its own, as old models have it") {
  const Scratch scratch;
  const fs::path root = fs::path(scratch.path()) / "model";
  fs::create_directories(root / "0_Transformer");
  for (const auto& entry : fs::directory_iterator(DataPath("st-mean-norm"))) {
    const std::string file = entry.path().filename().string();
    const bool top = file == "1_Pooling" || file.starts_with("config_") || file == "modules.json";
    fs::copy(entry.path(), root / (top ? "" : "0_Transformer") / file, fs::copy_options::recursive);
  }
  const std::string type = "sentence_transformers.models.";
  std::ofstream(root / "modules.json")
      << R"([{"idx":0,"path":"0_Transformer","type":")" << type << R"(Transformer"},)"
      << R"({"idx":1,"path":"1_Pooling","type":")" << type << R"(Pooling"},)"
      << R"({"idx":2,"path":"2_Normalize","type":")" << type << R"(Normalize"}])";
  const Model moved = test::LoadOrFail(root.string());
  const Model model = test::LoadOrFail(DataPath("st-mean-norm"));
  CHECK(moved.Info().max_length == 12);
  const auto got = moved.Encode({"A man is playing a guitar."}).value();
  const auto expected = model.Encode({"A man is playing a guitar."}).value();
  CHECK(std::equal(got.data(), got.data() + 36, expected.data()));
}

TEST_CASE("names that are no plain relative path") {
  struct Case {
    std::string name;
    const char* fault;
  };
  const Case cases[] = {{"", "is empty"},
                        {"/etc/passwd", "is absolute"},
                        {"..", "leaves the folder"},
                        {"a/../b", "leaves the folder"},
                        {"a//b", "is not a plain name"},
                        {"./a", "is not a plain name"},
                        {"a\\b", "contains a backslash"},
                        {std::string("a\0b", 3), "contains NUL"},
                        {std::string(5000, 'a'), "is too long"},
                        {"1_Pooling/config.json", ""},
                        {"..a", ""}};
  for (const Case& c : cases) CHECK(BadRelativePath(c.name) == c.fault);
}

TEST_CASE("weights in another format, and unknown modules, are refused by name") {
  const Scratch scratch;
  const fs::path root = fs::path(scratch.path()) / "model";
  fs::copy(DataPath("cases/P13/model"), root, fs::copy_options::recursive);
  test::LoadOrFail(root.string());
  const auto refusal = [&] {
    const auto model = Model::Load(root.string());
    REQUIRE_FALSE(model.ok());
    CHECK(model.status().code() == StatusCode::kUnsupported);
    return model.status().message();
  };
  const auto write = [&](const char* name, const std::string& text) {
    std::ofstream(root / name) << text;
  };
  write("2_Dense/config.json",
        R"({"in_features":32,"out_features":16,"activation_function":"torch.nn.Mish9"})");
  CHECK(refusal().find("activation_function \"torch.nn.Mish9\"") != std::string::npos);
  write("2_Dense/config.json", R"({"in_features":32,"out_features":16,"use_residual":true})");
  CHECK(refusal().find("use_residual") != std::string::npos);
  write("2_Dense/config.json",
        R"({"in_features":32,"out_features":16,"module_input_name":"token_embeddings"})");
  CHECK(refusal().find("module_input_name \"token_embeddings\"") != std::string::npos);
  write("2_Dense/config.json", R"({"in_features":32,"out_features":16})");
  fs::rename(root / "2_Dense/model.safetensors", root / "2_Dense/flax_model.msgpack");
  CHECK(refusal().find("2_Dense: the weights are in flax_model.msgpack") != std::string::npos);
  write("1_Pooling/config.json", R"({"pooling_mode":"median"})");
  CHECK(refusal().find("pooling_mode \"median\"") != std::string::npos);
  write("1_Pooling/config.json", R"({"pooling_mode_first_tokens":true})");
  CHECK(refusal().find("pooling_mode_first_tokens") != std::string::npos);
  write("modules.json", R"([{"type":"sentence_transformers.models.StaticEmbedding","path":""}])");
  CHECK(refusal().find("sentence_transformers.models.StaticEmbedding") != std::string::npos);
  write("modules.json", R"([{"type":"sentence_transformers.models.Transformer","path":""}])");
  CHECK(refusal().find("no Pooling") != std::string::npos);
}

}  // namespace
}  // namespace pozor
