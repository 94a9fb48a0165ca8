// int8 of every golden model: near f32, the same however it is run; int8 and bf16 from a prepared
// file: the same bits as at load.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "engine/memory.h"
#include "engine/tensors.h"
#include "kernels/gemm.h"
#include "models/model_impl.h"
#include "models/prepared.h"
#include "models/quantize.h"
#include "pozor/pozor.hpp"
#include "tests/models/golden.h"
#include "tests/support/compare.h"
#include "tests/support/for_each_tier.h"
#include "tests/support/process.h"
#include "tests/support/random.h"

namespace pozor {
namespace {

using test::DataPath;
using test::Random;
using testing::TemporaryFolder;

// Folders with weights, a tokenizer and texts.
std::vector<std::string> GoldenFolders() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(DataPath(""))) {
    const std::filesystem::path& folder = entry.path();
    if (!std::filesystem::exists(folder / "golden.json")) continue;
    if (!std::filesystem::exists(folder / "config.json")) continue;
    names.push_back(folder.filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

LoadOptions As(Precision precision) {
  LoadOptions options;
  options.precision = precision;
  return options;
}

LoadOptions Int8() { return As(Precision::kInt8); }

constexpr Precision kPrepared[] = {Precision::kInt8, Precision::kBF16};

std::vector<std::string> TextsOf(const std::string& name) {
  const JsonDocument golden = ReadJsonFile(DataPath(name + "/golden.json")).value();
  if (golden->Find("texts") == nullptr) return {};
  std::vector<std::string> texts = test::GoldenTexts(*golden);
  std::string all;  // a long one: short texts miss errors of attention
  for (const std::string& text : texts) all += text + " ";
  while (all.size() < 1500) all += all;
  texts.push_back(all);
  return texts;
}

double MeanCosine(const Vectors& a, const Vectors& b) {
  double sum = 0;
  for (size_t i = 0; i < a.rows(); ++i) {
    double ab = 0, aa = 0, bb = 0;
    for (size_t c = 0; c < a.dimensions(); ++c) {
      ab += double{a[i][c]} * double{b[i][c]};
      aa += double{a[i][c]} * double{a[i][c]};
      bb += double{b[i][c]} * double{b[i][c]};
    }
    sum += aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : 1.0;
  }
  return sum / static_cast<double>(a.rows());
}

bool SameVectors(const Vectors& a, const Vectors& b) {
  return a.rows() == b.rows() && test::SameBits({a.data(), a.rows() * a.dimensions()},
                                                {b.data(), b.rows() * b.dimensions()});
}

TEST_CASE("every golden model in int8: near f32, and the same bits on every fused tier") {
  size_t models = 0;
  for (const std::string& name : GoldenFolders()) {
    CAPTURE(name);
    const auto f32 = Model::Load(DataPath(name));
    const std::vector<std::string> texts = TextsOf(name);
    if (!f32.ok() || texts.empty()) continue;
    const Model int8 = Model::Load(DataPath(name), Int8()).value();
    // Also where attention stays f32, since keys with norms of their own cannot be centred.
    CHECK(PrecisionName(*int8.impl().encoder) == "int8");
    const std::span<const std::string> all(texts);
    const Vectors expected = f32->Encode(all).value(), got = int8.Encode(all).value();
    CHECK_FALSE(SameVectors(got, expected));
    CHECK(MeanCosine(got, expected) > 0.99);
    test::ForEachFusedTier([&](CpuTier) { CHECK(SameVectors(int8.Encode(all).value(), got)); });
    for (size_t i = 0; i < texts.size(); ++i) {
      CHECK(test::SameBits(int8.Encode({std::string_view(texts[i])}).value()[0], got[i]));
    }
    ++models;
  }
  CHECK(models >= 15);
}

TEST_CASE("every architecture in int8: hidden rows near f32's, and a name for every array") {
  size_t models = 0;
  for (const auto& entry : std::filesystem::directory_iterator(DataPath("architectures"))) {
    const std::string folder = entry.path().string();
    if (!std::filesystem::exists(folder + "/config.json")) continue;
    CAPTURE(folder);
    const PartOptions parts = {.requires_tokenizer = false};
    const auto f32 = LoadModelParts(folder, {}, parts);
    const auto int8 = LoadModelParts(folder, Int8(), parts);
    REQUIRE_MESSAGE(f32.ok(), f32.status().message());
    CHECK_MESSAGE(int8.ok(), int8.status().message());
    if (!int8.ok()) continue;
    const EncoderSpec& spec = (*f32)->encoder->spec();
    for (const ProductLine& product : DescribeProducts(*(*int8)->encoder)) {
      CHECK(product.at.layer < spec.layer_count());
      CHECK(product.at.part < spec.PartsOf(product.at.layer));
    }
    Random random(4);
    TokenBatch batch;
    for (const size_t length : {9, 30, 2}) {
      for (size_t t = 0; t < std::min(length, (*f32)->encoder->max_tokens()); ++t) {
        batch.ids.push_back(static_cast<int32_t>(random.Index(spec.embeddings.vocab_size)));
      }
      batch.EndText();
    }
    Workspace a, b;
    const MatView<const float> expected = (*f32)->encoder->Forward(batch.View(), a);
    const MatView<const float> got = (*int8)->encoder->Forward(batch.View(), b);
    Vectors left(expected.rows, expected.cols), right(expected.rows, expected.cols);
    for (size_t r = 0; r < expected.rows; ++r) {
      std::copy_n(expected.Row(r), expected.cols, left.data() + r * expected.cols);
      std::copy_n(got.Row(r), got.cols, right.data() + r * got.cols);
    }
    CHECK_FALSE(SameVectors(left, right));
    CHECK(MeanCosine(left, right) > 0.99);
    CHECK(ListTensors(*(*int8)->encoder).ok());
    ++models;
  }
  CHECK(models >= 10);
}

TEST_CASE("loaded on any fused tier, int8 has the same bits") {
  std::vector<float> first;
  test::ForEachFusedTier([&](CpuTier) {
    const Model model = Model::Load(DataPath("st-mean-norm"), Int8()).value();
    const Vectors vectors = model.Encode({"A man plays a guitar.", "ferry"}).value();
    const std::vector<float> now(vectors.data(), vectors.data() + 2 * vectors.dimensions());
    if (first.empty()) first = now;
    CHECK(test::SameBits(now, first));
  });
}

// A prepared folder of a golden model, made by hand.
class Prepared {
 public:
  explicit Prepared(const std::string& name, Precision precision = Precision::kInt8,
                    const PartOptions& parts = {}) {
    namespace fs = std::filesystem;
    fs::copy(DataPath(name), folder_.path(), fs::copy_options::recursive);
    fs::remove(fs::path(folder_.path()) / "model.safetensors");
    const auto model = LoadModelParts(DataPath(name), As(precision), parts).value();
    PreparedFacts facts = model->facts;
    facts.precision = model->encoder->precision();
    const Status written = WritePrepared(*model->encoder, facts, [&](std::string_view part) {
      bytes_ += part;
      return Status();
    });
    REQUIRE_MESSAGE(written.ok(), written.message());
    Write(bytes_);
  }

  void Write(const std::string& bytes) const { folder_.Write(kPreparedName, bytes); }
  std::string path() const { return folder_.path(); }
  const std::string& bytes() const { return bytes_; }
  TemporaryFolder& folder() { return folder_; }

 private:
  TemporaryFolder folder_;
  std::string bytes_;
};

bool WarnsOfBf16(const Model& model) {
  const std::vector<std::string>& warnings = model.Info().warnings;
  return std::any_of(warnings.begin(), warnings.end(), [](const std::string& warning) {
    return warning.find("bf16") != warning.npos;
  });
}

TEST_CASE("a prepared file has the bits of its precision at load, on every tier") {
  size_t models = 0;
  for (const std::string& name : GoldenFolders()) {
    CAPTURE(name);
    const std::vector<std::string> texts = TextsOf(name);
    if (!Model::Load(DataPath(name)).ok() || texts.empty()) continue;
    const std::span<const std::string> all(texts);
    for (const Precision precision : kPrepared) {
      const Model at_load = Model::Load(DataPath(name), As(precision)).value();
      Prepared prepared(name, precision);
      for (const LoadOptions& options : {LoadOptions(), As(precision)}) {
        const auto model = Model::Load(prepared.path(), options);
        REQUIRE_MESSAGE(model.ok(), model.status().message());
        CHECK(PrecisionName(*model->impl().encoder) == PrecisionName(*at_load.impl().encoder));
        CHECK(model->impl().options.precision == precision);
        CHECK(model->Info().parameters == at_load.Info().parameters);
        CHECK(WarnsOfBf16(*model) == WarnsOfBf16(at_load));
        test::ForEachTier([&](CpuTier) {
          CHECK(SameVectors(model->Encode(all).value(), at_load.Encode(all).value()));
        });
      }
    }
    ++models;
  }
  CHECK(models >= 15);
}

void CheckPreparedArchitecture(const std::string& name, Precision precision) {
  const PartOptions parts = {.requires_tokenizer = false};
  const Prepared prepared(name, precision, parts);
  const auto expected = LoadModelParts(DataPath(name), As(precision), parts).value();
  const auto loaded = LoadModelParts(prepared.path(), {}, parts);
  REQUIRE_MESSAGE(loaded.ok(), loaded.status().message());
  TokenBatch batch;
  Random random(5);
  const size_t rows = expected->encoder->spec().embeddings.vocab_size;
  for (size_t t = 0; t < std::min<size_t>(20, expected->encoder->max_tokens()); ++t) {
    batch.ids.push_back(static_cast<int32_t>(random.Index(rows)));
  }
  batch.EndText();
  Workspace a, b;
  const MatView<const float> left = expected->encoder->Forward(batch.View(), a);
  const MatView<const float> right = (*loaded)->encoder->Forward(batch.View(), b);
  REQUIRE(left.rows == right.rows);
  for (size_t r = 0; r < left.rows; ++r) {
    CHECK(test::SameBits({left.Row(r), left.cols}, {right.Row(r), right.cols}));
  }
}

TEST_CASE("every architecture's prepared file has the bits of its precision at load") {
  for (const auto& entry : std::filesystem::directory_iterator(DataPath("architectures"))) {
    if (!entry.is_directory()) continue;
    const std::string name = "architectures/" + entry.path().filename().string();
    CAPTURE(name);
    for (const Precision precision : kPrepared) CheckPreparedArchitecture(name, precision);
  }
}

// Loads, and encodes every word; the first error.
Status Use(const std::string& path) {
  const auto model = Model::Load(path);
  if (!model.ok()) return model.status();
  TokenBatch batch;
  const auto words = static_cast<int32_t>(model->impl().encoder->spec().embeddings.vocab_size);
  for (int32_t id = 0; id < words; ++id) {
    batch.ids.push_back(id);
    batch.EndText();
  }
  return model->impl().encoder->CheckBatch(batch.View());
}

void CheckFlippedBytes(Precision precision) {
  Prepared prepared("st-mean-norm", precision);
  REQUIRE(Use(prepared.path()).ok());
  const std::string& good = prepared.bytes();
  // Steps of a prime reach every tensor; the header byte by byte in larger steps.
  for (size_t at = 0; at < good.size(); at += at < 4096 ? 13 : 1009) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    prepared.Write(bad);
    CAPTURE(at);
    const Status status = Use(prepared.path());
    // Only padding, which nobody uses, may be other than it was; the whole check finds it as well.
    const auto file = PreparedFile::Open(prepared.path() + "/" + kPreparedName);
    const bool found = !file.ok() || !(*file)->Verify().ok();
    CHECK(found);
    if (status.ok()) continue;
    CHECK(status.message().find("; ") != std::string::npos);
  }
  const bool int8 = precision == Precision::kInt8;
  for (const char* name :
       {"layers.0.qkv.weight", int8 ? "layers.0.down.scale" : "layers.0.up.bias", "embeddings.word",
        "embeddings.position", int8 ? "layers.0.up.input_scale" : "layers.0.down.weight"}) {
    CAPTURE(std::string(name));
    const auto header =
        ParseSafetensorsHeader({reinterpret_cast<const uint8_t*>(good.data()), good.size()}, "")
            .value();
    const auto has_name = [&](const TensorInfo& tensor) { return tensor.name == name; };
    CHECK(std::any_of(header.tensors.begin(), header.tensors.end(), has_name));
    for (size_t i = 0; i < header.tensors.size(); ++i) {
      if (header.tensors[i].name != name) continue;
      std::string bad = good;
      char& byte = bad[header.data_begin + header.offsets[i] + 5];
      byte = static_cast<char>(byte ^ 1);
      prepared.Write(bad);
      const Status status = Use(prepared.path());
      CHECK_FALSE(status.ok());
      CHECK(status.code() == StatusCode::kCorrupt);
      CHECK(status.message().find(name) != std::string::npos);
    }
  }
}

TEST_CASE("a byte that flips anywhere in a prepared file is found") {
  for (const Precision precision : kPrepared) CheckFlippedBytes(precision);
}

void CheckRefusals(Precision precision) {
  Prepared prepared("st-mean-norm", precision);
  const std::string good = prepared.bytes();
  for (const size_t size : {size_t{0}, size_t{7}, size_t{100}, good.size() / 2, good.size() - 1}) {
    prepared.Write(good.substr(0, size));
    CAPTURE(size);
    CHECK_FALSE(Use(prepared.path()).ok());
  }
  std::string other = good;
  const std::string key = "\"pozor.version\":\"1\"";
  const size_t at = other.find(key);
  REQUIRE(at != std::string::npos);
  other[at + key.size() - 2] = '7';
  prepared.Write(other);
  Status status = Use(prepared.path());
  CHECK(status.code() == StatusCode::kUnsupported);
  CHECK(status.message().find("version 7") != std::string::npos);
  prepared.Write(good);
  REQUIRE(Use(prepared.path()).ok());

  struct Change {
    const char* from;
    const char* to;
    const char* named;
  };
  std::string config;
  {
    std::ifstream file(prepared.path() + "/config.json");
    config.assign(std::istreambuf_iterator<char>(file), {});
  }
  const Change changes[] = {
      {"\"gelu\"", "\"relu\"", "hidden_act"},
      {"\"layer_norm_eps\": 1e-12", "\"layer_norm_eps\": 1e-5", "layer_norm_eps"}};
  for (const Change& change : changes) {
    std::string changed = config;
    const size_t place = changed.find(change.from);
    CAPTURE(std::string(change.from));
    REQUIRE(place != std::string::npos);
    changed.replace(place, std::string(change.from).size(), change.to);
    prepared.folder().Write("config.json", changed);
    status = Use(prepared.path());
    CHECK(status.code() == StatusCode::kInvalidArgument);
    CHECK(status.message().find(change.named) != std::string::npos);
  }
  prepared.folder().Write("config.json", config);
  CHECK(Use(prepared.path()).ok());
}

TEST_CASE("cut short, of another version, for another config: refused by name") {
  for (const Precision precision : kPrepared) CheckRefusals(precision);
}

// Plans of a file that somebody made up: its checksums are right.
TEST_CASE("a prepared file with precisions that its model cannot have is refused") {
  struct Case {
    const char* name;
    ProductKind kind;
    NumberFormat format;
    Precision prepared;
    bool can;
  };
  const Case cases[] = {
      {"bert", ProductKind::kAttention, NumberFormat::kF32, Precision::kInt8, true},
      {"bert", ProductKind::kAttention, NumberFormat::kInt8, Precision::kBF16, false},
      {"bert", ProductKind::kAttention, NumberFormat::kInt8, Precision::kF32, false},
      {"architectures/llama", ProductKind::kAttention, NumberFormat::kInt8, Precision::kInt8,
       false},
      {"architectures/deberta-v3", ProductKind::kAttention, NumberFormat::kInt8, Precision::kInt8,
       false},
      {"architectures/mobilebert", ProductKind::kQkv, NumberFormat::kInt8, Precision::kInt8, false},
  };
  const PartOptions parts = {.requires_tokenizer = false};
  for (const Case& c : cases) {
    CAPTURE(std::string(c.name));
    Prepared prepared(c.name, c.prepared, parts);
    const auto model = LoadModelParts(DataPath(c.name), As(c.prepared), parts).value();
    PreparedFacts facts = model->facts;
    facts.precision = model->encoder->precision();
    if (facts.precision.empty()) facts.precision.resize(model->encoder->spec().layers.size());
    facts.precision.front()[c.kind].format = c.format;
    std::string bytes;
    REQUIRE(WritePrepared(*model->encoder, facts, [&](std::string_view part) {
              bytes += part;
              return Status();
            }).ok());
    prepared.Write(bytes);
    const auto loaded = LoadModelParts(prepared.path(), {}, parts);
    CHECK(loaded.ok() == c.can);
    if (c.can) continue;
    CHECK(loaded.status().code() == StatusCode::kCorrupt);
    CHECK(loaded.status().message().find("cannot have") != std::string::npos);
  }
}

TEST_CASE("prepared weights beside the original ones: what is asked for decides") {
  for (const Precision prepared_for : kPrepared) {
    Prepared prepared("st-mean-norm", prepared_for);
    const auto name = [&](const LoadOptions& options) {
      const auto model = Model::Load(prepared.path(), options);
      return model.ok() ? PrecisionName(*model->impl().encoder) : model.status().message();
    };
    const auto is_mapped = [&](Precision precision) {
      return Model::Load(prepared.path(), As(precision)).value().impl().encoder->weight_bytes() ==
             0;
    };
    const Precision other = prepared_for == Precision::kInt8 ? Precision::kBF16 : Precision::kInt8;
    for (const Precision precision : {other, Precision::kF32}) {
      CHECK(name(As(precision)).find("leave the precision out") != std::string::npos);
    }
    std::filesystem::copy(DataPath("st-mean-norm/model.safetensors"), prepared.path());
    CHECK(name({}) == "f32");
    CHECK(name(As(Precision::kF32)) == "f32");
    CHECK(name(As(Precision::kInt8)) == "int8");
    CHECK(name(As(Precision::kBF16)) == "bf16");
    CHECK(is_mapped(prepared_for));
    CHECK_FALSE(is_mapped(other));
  }
}

// Of the vectors of TextsOf("bert") by --precision int8, on every fused tier; and by bf16 where its
// weights are widened.
constexpr uint64_t kInt8Hash = 16005426053639002067u, kWidenedBf16Hash = 10537977408120085853u;

TEST_CASE("the bits of int8 and of widened bf16 on every tier with fused multiply-add") {
  const std::vector<std::string> texts = TextsOf("bert");
  const auto hash = [&](const Model& model) {
    const Vectors vectors = model.Encode(std::span<const std::string>(texts)).value();
    return test::HashBits({vectors.data(), texts.size() * vectors.dimensions()});
  };
  const Model int8 = Model::Load(DataPath("bert"), Int8()).value();
  const Model bf16 = Model::Load(DataPath("bert"), As(Precision::kBF16)).value();
  test::ForEachFusedTier([&](CpuTier) {
    CHECK(hash(int8) == kInt8Hash);
    const std::string_view kernel = FindGemmKernel(PackedLayout::kBf16x16x2, 128).name;
    if (kernel.find("-f32bf16") != kernel.npos) CHECK(hash(bf16) == kWidenedBf16Hash);
  });
}

TEST_CASE("int8 respects the memory ceiling") {
  LoadOptions options = Int8();
  options.max_memory = size_t{1} << 20;
  const auto model = Model::Load(DataPath("bert"), options);
  REQUIRE_FALSE(model.ok());
  CHECK(model.status().code() == StatusCode::kResourceExhausted);
}

TEST_CASE("the calibration text is there, a text a line, of many languages") {
  const std::vector<std::string_view> texts = CalibrationTexts();
  CHECK(texts.size() == 149);
  CHECK(kCalibrationText.find("git commit") != std::string_view::npos);
  size_t other = 0;
  for (const std::string_view text : texts) {
    other += std::any_of(text.begin(), text.end(), [](char c) { return (c & 0x80) != 0; }) ? 1 : 0;
  }
  CHECK(other >= 15);
}

}  // namespace
}  // namespace pozor
