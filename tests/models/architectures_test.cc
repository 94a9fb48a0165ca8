// Every architecture against the numbers that its reference library gave, and what all of them
// promise: one parameterised test over the golden folders.
#include <doctest/doctest.h>
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "engine/graph.h"
#include "models/architectures/architecture.h"
#include "models/model_impl.h"
#include "tests/models/golden.h"
#include "tests/models/golden_folders.h"
#include "tests/models/trace.h"
#include "tests/support/compare.h"
#include "tests/support/for_each_tier.h"

namespace pozor {
namespace {

namespace fs = std::filesystem;
using test::DescriptionOf;
using test::ForEachText;
using test::Golden;
using test::GoldenFolders;
using test::LoadParts;
using test::NumbersOf;

TEST_CASE("goldens of every architecture") {
  std::string table =
      "\n| folder | model_type | family | largest difference / tolerance |\n|---|---|---|---|\n";
  std::set<std::string> covered, attended;
  bool causal = false, windowed = false;
  for (const std::string& folder : GoldenFolders()) {
    const std::string name = fs::path(folder).filename().string();
    CAPTURE(name);
    const Golden golden(NumbersOf(folder));
    const auto model = LoadParts(folder);
    const size_t hidden = model->encoder->spec().hidden;
    double worst = 0;
    size_t compared = 0;
    ForEachText(golden, [&](const std::string& stem, const TokenBatch& batch) {
      CAPTURE(stem);
      const test::Trace trace = test::TraceText(*model, batch);
      const double excess =
          std::max(ExcessOf(golden, stem, trace, batch.ids.size() * hidden),
                   WindowedExcess(golden, stem, trace, batch, model->encoder->spec()));
      CHECK(excess <= 1.0);
      worst = std::max(worst, excess);
      ++compared;
      if (!test::HasAttention(golden, stem)) return;
      const EncoderSpec& spec = model->encoder->spec();
      attended.insert(spec.architecture);
      causal |= spec.causal;
      windowed |= std::any_of(spec.layers.begin(), spec.layers.end(), [&](const LayerSpec& layer) {
        return layer.window < batch.ids.size() / 2;
      });
    });
    CHECK(compared >= 1);
    const std::string type = model->encoder->spec().architecture;
    covered.insert(type);
    std::array<char, 200> line;
    std::snprintf(line.data(), line.size(), "| %s | %s | %s | %.2f |\n", name.c_str(), type.c_str(),
                  DescriptionOf(type).c_str(), worst);
    table += line.data();
  }
  MESSAGE(table);
  for (const Architecture* architecture : AllArchitectures()) {
    CAPTURE(architecture->model_type);
    CHECK(covered.contains(std::string(architecture->model_type)));
    CHECK(attended.contains(std::string(architecture->model_type)));
  }
  CHECK(causal);
  CHECK(windowed);
}

// Texts of a golden, each several times, cut to odd lengths.
TokenBatch MixedBatch(const Golden& golden) {
  TokenBatch mixed;
  ForEachText(golden, [&](const std::string&, const TokenBatch& text) {
    const size_t length = text.ids.size();
    for (const size_t count : {length, std::max<size_t>(1, length / 3), length - length / 4}) {
      for (size_t t = 0; t < count; ++t) {
        mixed.ids.push_back(text.ids[t]);
        mixed.types.push_back(text.types.empty() ? 0 : text.types[t]);
        if (!text.globals.empty() || !mixed.globals.empty()) {
          mixed.globals.resize(mixed.ids.size());
          mixed.globals.back() = text.globals.empty() ? 0 : text.globals[t];
        }
      }
      mixed.EndText();
    }
  });
  return mixed;
}

using TextRows = std::vector<std::vector<float>>;

TextRows EncodeRows(const Encoder& encoder, const RaggedBatch& batch, const GraphOptions& options) {
  TextRows rows(batch.texts());
  const Status status = EncodeTokens(
      encoder, batch, options, [&](size_t text, MatView<const float> hidden) -> Status {
        for (size_t r = 0; r < hidden.rows; ++r) {
          rows[text].insert(rows[text].end(), hidden.Row(r), hidden.Row(r) + hidden.cols);
        }
        return {};
      });
  if (!status.ok()) FAIL(status.message());
  return rows;
}

size_t CountDifferent(const TextRows& a, const TextRows& b) {
  size_t different = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) different += !test::SameBits(a[i], b[i]);
  return different;
}

TextRows EncodeAlone(const Encoder& encoder, const TokenBatch& batch, EncodeMode mode) {
  TextRows rows;
  for (size_t text = 0; text < batch.texts(); ++text) {
    const auto begin = static_cast<size_t>(batch.starts[text]);
    const size_t length = batch.View().length(text);
    const int32_t starts[] = {0, static_cast<int32_t>(length)};
    const RaggedBatch one = {std::span(batch.ids).subspan(begin, length),
                             std::span(batch.types).subspan(begin, length), starts,
                             batch.globals.empty()
                                 ? std::span<const uint8_t>()
                                 : std::span(batch.globals).subspan(begin, length)};
    GraphOptions options;
    options.threads = mode == EncodeMode::kLatency ? 3 : 1;
    options.mode = mode;
    rows.push_back(EncodeRows(encoder, one, options).front());
  }
  return rows;
}

// Alone, batched, by any number of threads in any mode: equal bits on each tier, and on all fused
// ones as well if `tiers_agree`.
void CheckSameBits(const Encoder& encoder, const TokenBatch& batch, bool tiers_agree) {
  TextRows expected;
  test::ForEachTier([&](CpuTier) {
    const TextRows alone = EncodeAlone(encoder, batch, EncodeMode::kThroughput);
    if (ActiveTierIsFused() && tiers_agree) {
      if (expected.empty()) expected = alone;
      CHECK(CountDifferent(alone, expected) == 0);
    }
    CHECK(CountDifferent(EncodeAlone(encoder, batch, EncodeMode::kLatency), alone) == 0);
    for (const size_t threads : {1, 2, 5}) {
      for (const EncodeMode mode : {EncodeMode::kThroughput, EncodeMode::kLatency}) {
        GraphOptions options;
        options.threads = threads;
        options.mode = mode;
        options.batch_tokens = threads * 40;
        CHECK(CountDifferent(EncodeRows(encoder, batch.View(), options), alone) == 0);
      }
    }
  });
}

TEST_CASE("every architecture: same bits in any batch, mode, number of threads and fused tier") {
  for (const std::string& folder : GoldenFolders()) {
    CAPTURE(folder);
    const TokenBatch batch = MixedBatch(Golden(NumbersOf(folder)));
    for (const Precision precision : {Precision::kF32, Precision::kInt8, Precision::kBF16}) {
      CAPTURE(static_cast<int>(precision));
      CheckSameBits(*LoadParts(folder, precision)->encoder, batch, precision != Precision::kBF16);
    }
  }
}

TEST_CASE("every architecture: no padding, work and memory follow the tokens") {
  for (const std::string& folder : GoldenFolders()) {
    CAPTURE(folder);
    const auto model = LoadParts(folder);
    const Encoder& encoder = *model->encoder;
    // One long text among short ones costs what its tokens cost, not the longest times all.
    const size_t alone = encoder.WorkspaceBytes(18, 18), beside = encoder.WorkspaceBytes(24, 18);
    CHECK(beside <= alone + alone / 2);
  }
}

// A copy of a folder with another text for its configuration.
struct FolderWithConfig {
  FolderWithConfig(const std::string& folder, const std::string& config) {
    std::string pattern = (fs::temp_directory_path() / "pozor-XXXXXX").string();
    path = ::mkdtemp(pattern.data());
    fs::copy(folder, path, fs::copy_options::recursive);
    std::ofstream(path + "/config.json") << config;
  }
  ~FolderWithConfig() { fs::remove_all(path); }
  FolderWithConfig(const FolderWithConfig&) = delete;
  FolderWithConfig& operator=(const FolderWithConfig&) = delete;

  std::string path;
};

std::string ReadText(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// Puts an activation that is not there into a configuration; how many keys name one.
int SpoilActivation(std::string* config) {
  int spoilt = 0;
  for (const char* key : {"\"hidden_act\"", "\"activation\"", "\"activation_function\"",
                          "\"hidden_activation\"", "\"feed_forward_proj\""}) {
    const size_t at = config->find(key);
    if (at == std::string::npos) continue;
    const size_t colon = config->find(':', at);
    config->replace(colon, config->find_first_of(",}", colon) - colon, ": \"of_the_future\"");
    ++spoilt;
  }
  return spoilt;
}

TEST_CASE("every architecture: an unknown value of a key that matters is refused by name") {
  for (const std::string& folder : GoldenFolders()) {
    CAPTURE(folder);
    std::string config = ReadText(folder + "/config.json");
    REQUIRE(SpoilActivation(&config) > 0);
    const FolderWithConfig copy(folder, config);
    const auto model = LoadModelParts(copy.path, {}, {.requires_tokenizer = false});
    REQUIRE_FALSE(model.ok());
    CHECK(model.status().code() == StatusCode::kUnsupported);
    CHECK(model.status().message().find("of_the_future") != std::string::npos);
  }
}

TEST_CASE("the keys of transformers 4 and of 5 mean the same model") {
  size_t compared = 0;
  for (const std::string& folder : GoldenFolders()) {
    if (!fs::exists(folder + "/config.v4.json")) continue;
    CAPTURE(folder);
    const FolderWithConfig old(folder, ReadText(folder + "/config.v4.json"));
    const TokenBatch batch = MixedBatch(Golden(NumbersOf(folder)));
    const auto a = LoadParts(folder), b = LoadParts(old.path);
    CHECK(CountDifferent(EncodeRows(*a->encoder, batch.View(), {}),
                         EncodeRows(*b->encoder, batch.View(), {})) == 0);
    for (const auto& [key, effect] : b->info.config) {
      CAPTURE(key);
      CHECK(effect.find("unknown") == std::string::npos);
    }
    ++compared;
  }
  CHECK(compared >= 5);
}

struct Replacement {
  const char* folder;
  const char* from;
  const char* to;
  const char* part_of_message;
};

// Values of keys that only some architectures have.
const Replacement kRefused[] = {
    {"llama", R"("rope_type": "default")", R"("rope_type": "llama3")", "llama3"},
    {"llama", R"("rope_type": "default")", R"("type": "yarn")", "yarn"},
    {"llama", R"("num_key_value_heads": 2)", R"("num_key_value_heads": 3)", "cannot share 3"},
    {"llama", R"("num_key_value_heads": 2)", R"("num_key_value_heads": 0)", "num_key_value_heads"},
    {"llama", R"("rope_theta": 10000.0)", R"("partial_rotary_factor": 0.3)", "rotation of 3"},
    {"llama", R"("rope_theta": 10000.0)", R"("partial_rotary_factor": 2)", "rotation of 20"},
    {"llama", R"("attention_bias": false)", R"("auto_map": {"AutoModel": "a.B"})", "auto_map"},
    {"mistral", R"("sliding_window": 5)", R"("sliding_window": 5, "is_causal": false)", "causal"},
    {"qwen3", R"("use_sliding_window": false)", R"("use_sliding_window": 1)", "use_sliding_window"},
    {"qwen3", R"("full_attention",)", R"("sliding_attention",)", "sliding_attention"},
    {"qwen3", R"("full_attention",)", R"("chunked_attention",)", "chunked_attention"},
    {"qwen3", R"("full_attention",)", "", "layer_types"},
    {"gemma3", R"("attn_logit_softcapping": null)", R"("attn_logit_softcapping": 50.0)", "cap"},
    {"gemma3", R"("sliding_window": 8)", R"("sliding_window": 0)", "sliding_window"},
    {"t5-encoder", R"("feed_forward_proj": "relu")", R"("feed_forward_proj": "gated-x")",
     "gated-x"},
    {"t5-encoder", R"("relative_attention_num_buckets": 16)",
     R"("relative_attention_num_buckets": 15)", "15 buckets"},
    {"t5-encoder", R"("relative_attention_max_distance": 24)",
     R"("relative_attention_max_distance": 4)", "distance 4"},
    {"jina-bert-code", R"("feed_forward_type": "geglu")", R"("feed_forward_type": "original")",
     "feed_forward_type original"},
    {"nomic-bert-moe", R"("num_experts": 5)", R"("num_experts": 0)", "num_experts"},
    {"nomic-bert-moe", R"("num_experts": 5)", R"("num_experts": 257)", "num_experts"},
    {"nomic-bert-moe", R"("num_experts": 5)", R"("num_experts": 4)", "mlp.router"},
    {"nomic-bert-moe", R"("moe_top_k": 2)", R"("moe_top_k": 6)", "moe_top_k 6"},
    {"nomic-bert-moe", R"("moe_top_k": 2)", R"("moe_top_k": 0)", "moe_top_k"},
    {"nomic-bert-moe", R"("moe_every_n_layers": 2)", R"("moe_every_n_layers": 0)",
     "moe_every_n_layers"},
    {"nomic-bert-moe", R"("moe_every_n_layers": 2)", R"("moe_every_n_layers": 3)", "layers.3"},
    {"nomic-bert-moe", R"("activation_function": "gelu")", R"("activation_function": "swiglu")",
     "activation_function"},
    {"nomic-bert-moe", R"("moe_normalize_expert_weights": false)",
     R"("moe_normalize_expert_weights": true)", "moe_normalize_expert_weights"},
    {"nomic-bert-moe", R"("num_shared_experts": 0)", R"("num_shared_experts": 1)",
     "num_shared_experts"},
    {"nomic-bert-moe", R"("expert_choice_router": false)", R"("expert_choice_router": true)",
     "expert_choice_router"},
    {"nomic-bert-moe", R"("rotary_emb_fraction": 1.0,)", "", "without rotary_emb_fraction"},
    {"nomic-bert-moe", R"("max_trained_positions": 2048)",
     R"("rotary_scaling_factor": 2, "max_trained_positions": 0)", "max_trained_positions is 0"},
    {"nomic-bert-moe", R"("rotary_emb_scale_base": null)",
     R"("rope_parameters": {"rope_theta": 1000.0})",
     "rotary_emb_base 10000.000000 and rope_parameters.rope_theta 1000.000000"},
    {"jina-embeddings-v3", R"("rope_parameters")", R"("rotary_emb_base": 10000, "rope_parameters")",
     "rotary_emb_base 10000.000000 and rope_parameters.rope_theta 20000.000000"},
    {"squeezebert", R"("q_groups": 4)", R"("q_groups": 5)", "5 groups"},
    {"squeezebert", R"("q_groups": 4)", R"("q_groups": 2)", "attention.query.weight"},
    {"squeezebert", R"("embedding_size": 48)", R"("embedding_size": 24)", "embedding_size"},
    {"deberta", R"("c2p",)", R"("p2p",)", "pos_att_type has \"p2p\""},
    {"deberta", R"("c2p",)", R"("p2c",)", "pos_att_type has \"p2c\" twice"},
    {"deberta", R"("relative_attention": true)", R"("relative_attention": false)",
     "relative_attention is false"},
    {"deberta", R"("relative_attention": true)",
     R"("relative_attention": true, "talking_head": true)", "talking_head"},
    {"deberta", R"("max_relative_positions": 16)", R"("max_relative_positions": 0)",
     "max_relative_positions is 0"},
    {"deberta", R"("max_relative_positions": 16)", R"("max_relative_positions": 17)",
     "rel_embeddings"},
    {"deberta", R"("max_relative_positions": 16)", R"("max_relative_positions": 1000000)",
     "1000000 rows on either side"},
    {"deberta", R"("relative_attention": true)", R"("relative_attention": true, "z_steps": 2)",
     "z_steps"},
    {"deberta-v3", R"("p2c",)", R"("c2p|p2p",)", "c2p|p2p"},
    {"deberta-v3", R"("position_buckets": 8)", R"("position_buckets": 0)", "position_buckets is 0"},
    {"deberta-v3", R"("position_buckets": 8)", R"("position_buckets": 1)", "1 rows on either side"},
    {"deberta-v3", R"("position_buckets": 8)", R"("position_buckets": "8")", "position_buckets"},
    {"deberta-v3", R"("position_buckets": 8)", R"("position_buckets": 16)", "rel_embeddings"},
    {"deberta-v3", R"("max_relative_positions": -1)", R"("max_relative_positions": 5)",
     "8 rows on either side up to distance 5"},
    {"deberta-v3", R"("norm_rel_ebd": "layer_norm")", R"("norm_rel_ebd": "rms_norm")", "rms_norm"},
    {"deberta-v3", R"("norm_rel_ebd": "layer_norm")", R"("norm_rel_ebd": "none")",
     "encoder.LayerNorm"},
    {"deberta-v3", R"("share_att_key": true)", R"("share_att_key": false)", "pos_key_proj"},
    {"deberta-v2-plain", R"("share_att_key": false)", R"("share_att_key": true)", "pos_key_proj"},
    {"deberta-v2-plain", R"("position_biased_input": true)",
     R"("position_biased_input": true, "conv_kernel_size": 3)", "encoder.conv"},
    {"deberta-v2-conv", R"("conv_kernel_size": 3)", R"("conv_kernel_size": 2)", "over 2 tokens"},
    {"deberta-v2-conv", R"("conv_kernel_size": 3)", R"("conv_kernel_size": 5)",
     "encoder.conv.conv.weight"},
    {"deberta-v2-conv", R"("conv_kernel_size": 3)", R"("conv_kernel_size": 3, "conv_groups": 2)",
     "conv_groups"},
    {"deberta-v2-conv", R"("conv_act": "gelu")", R"("conv_act": "snake")", "snake"},
    {"deberta-v2-c2p", R"("embedding_size": 28)", R"("embedding_size": 36)", "word_embeddings"},
    {"mobilebert", R"("no_norm")", R"("layer_norm")", "normalization_type"},
    {"mobilebert", R"("key_query_shared_bottleneck": true)",
     R"("key_query_shared_bottleneck": false)", "key_query_shared_bottleneck"},
    {"mobilebert", R"("true_hidden_size": 24)", R"("true_hidden_size": 32)", "true_hidden_size"},
    {"mobilebert", R"("num_attention_heads": 3)", R"("num_attention_heads": 7)", "7 heads"},
};

// The architecture's folder with `from` in its config replaced by `to`.
Result<std::unique_ptr<Model::Impl>> LoadChanged(const std::string& name, const std::string& from,
                                                 const std::string& to) {
  const std::string folder = test::DataPath("architectures/") + name;
  std::string config = ReadText(folder + "/config.json");
  const size_t at = config.find(from);
  REQUIRE(at != std::string::npos);
  config.replace(at, from.size(), to);
  const FolderWithConfig copy(folder, config);
  return LoadModelParts(copy.path, {}, {.requires_tokenizer = false});
}

TEST_CASE("values that the engine has nothing for are refused by name") {
  for (const Replacement& refused : kRefused) {
    CAPTURE(std::string(refused.folder));
    CAPTURE(std::string(refused.to));
    const auto model = LoadChanged(refused.folder, refused.from, refused.to);
    REQUIRE_FALSE(model.ok());
    CHECK(model.status().message().find(refused.part_of_message) != std::string::npos);
  }
}

// Of the classes of the layout that the folder has.
TEST_CASE("a key that is left out has the value that its own code gives it") {
  struct Case {
    const char *folder, *left_out;
    std::function<double(const EncoderSpec&)> read;
    double expected;
  };
  const auto epsilon = [](const EncoderSpec& spec) { return double{spec.norm_epsilon}; };
  const auto theta = [](const EncoderSpec& spec) { return spec.rotaries[0].theta; };
  const auto limit = [](const EncoderSpec& spec) { return static_cast<double>(spec.token_limit); };
  const auto bias = [](const EncoderSpec& spec) {
    return spec.layers[0].query.bias.present() && spec.layers[0].ffn_up.bias.present() ? 1.0 : 0.0;
  };
  const Case cases[] = {
      {"nomic-bert-moe", R"("layer_norm_epsilon": 1e-05,)", epsilon, 1e-5f},
      {"nomic-bert-hub", R"("layer_norm_epsilon": 1e-12,)", epsilon, 1e-5f},
      {"nomic-bert-native", R"("layer_norm_eps": 1e-12,)", epsilon, 1e-12f},
      {"jina-embeddings-v3-tasks", R"("layer_norm_eps": 1e-05,)", epsilon, 1e-5f},
      {"nomic-bert-moe", R"("rotary_emb_base": 10000.0,)", theta, 1000},
      {"nomic-bert-native", R"("rope_theta": 1000.0,)", theta, 1000},
      {"jina-embeddings-v3-tasks", R"("rotary_emb_base": 20000.0,)", theta, 20000},
      {"nomic-bert-moe", R"("qkv_proj_bias": true,)", bias, 1},
      {"nomic-bert-moe", R"("mlp_fc1_bias": true,)", bias, 1},
      {"nomic-bert-moe", R"("max_trained_positions": 2048,)", limit, 64},
  };
  for (const Case& c : cases) {
    CAPTURE(std::string(c.folder));
    CAPTURE(std::string(c.left_out));
    const auto model = LoadChanged(c.folder, c.left_out, "");
    REQUIRE_MESSAGE(model.ok(), model.status().message());
    CHECK(c.read((*model)->encoder->spec()) == c.expected);
  }
}

TEST_CASE("with a scaling of NomicBERT's rotation texts end where angles would change") {
  for (const char* factor : {"1.0", "2"}) {
    const auto model = LoadChanged(
        "nomic-bert-moe", R"("max_trained_positions": 2048)",
        std::string(R"("max_trained_positions": 20, "rotary_scaling_factor": )") + factor);
    REQUIRE_MESSAGE(model.ok(), model.status().message());
    CHECK((*model)->encoder->max_tokens() == 20);
  }
}

TEST_CASE("every architecture explains what each key of its config did") {
  for (const std::string& folder : GoldenFolders()) {
    CAPTURE(folder);
    const auto model = LoadParts(folder);
    CHECK(model->info.config.size() >= 10);
    for (const auto& [key, effect] : model->info.config) {
      CAPTURE(key);
      CHECK_FALSE(effect.empty());
      CHECK(effect.find("unknown") == std::string::npos);
    }
  }
}

}  // namespace
}  // namespace pozor
