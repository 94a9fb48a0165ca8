#include "models/config.h"

#include <doctest/doctest.h>

#include <string>

#include "models/architectures/architecture.h"
#include "pozor/pozor.hpp"
#include "tests/models/golden.h"

namespace pozor {
namespace {

Config Parse(const std::string& text) {
  return Config(ParseJson(text, "config.json").value(), "config.json");
}

TEST_CASE("the first error sticks and names key and value") {
  Config config = Parse(R"({"a":0,"b":"x","c":1.5,"d":-1,"e":true,"f":7})");
  CHECK(config.Size("f", 10, "f") == 7);
  CHECK(config.status().ok());
  config.Size("a", 10, "a");
  config.Size("b", 10, "b");
  REQUIRE_FALSE(config.status().ok());
  CHECK(config.status().message() ==
        "config.json: a is 0, a whole number from 1 to 10 is needed; check the configuration");
  struct Case {
    const char* text;
    const char* message;
  };
  for (const Case& c : {Case{R"({})", "k is missing"},
                        {R"({"k":11})", "k is 11"},
                        {R"({"k":"7"})", "k is \"7\""},
                        {R"({"k":7.0})", "k is 7"},
                        {R"({"k":null})", "k is missing"},
                        {R"({"k":[1]})", "k is an array"}}) {
    Config bad = Parse(c.text);
    bad.Size("k", 10, "k");
    CAPTURE(c.text);
    REQUIRE_FALSE(bad.status().ok());
    CHECK(bad.status().message().find(c.message) != std::string::npos);
  }
}

TEST_CASE("values, defaults and effects") {
  Config config = Parse(
      R"({"hidden_act":"swish","layer_norm_eps":1e-5,"is_decoder":true,"odd":3,"use_cache":true,"nothing":null})");
  CHECK(config.ActivationOr("hidden_act", "gelu", "activation") == Activation::kSilu);
  CHECK(config.ActivationOr("absent", "gelu", "activation") == Activation::kGelu);
  CHECK(config.PositiveOr("layer_norm_eps", 1e-12, "epsilon") == 1e-5f);
  CHECK(config.FlagOr("is_decoder", false, "causal"));
  CHECK(config.SizeOr("absent", 5, 10, "") == 5);
  std::vector<std::string> warnings;
  config.Finish(&warnings);
  REQUIRE(config.status().ok());
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0] == "config.json: odd = 3 is unknown to Pozor and was ignored");
  const auto effects = config.Effects();
  REQUIRE(effects.size() == 6);
  CHECK(effects[0].first == "hidden_act = swish");
  CHECK(effects[0].second == "activation");
}

TEST_CASE("a number that is none in f32 is refused") {
  for (const char* number : {"1e39", "1e-46", "0", "-1", "\"1\""}) {
    CAPTURE(number);
    Config config = Parse(R"({"layer_norm_eps":)" + std::string(number) + "}");
    config.PositiveOr("layer_norm_eps", 1e-12, "epsilon");
    CHECK_FALSE(config.status().ok());
  }
}

TEST_CASE("members of objects are read by their paths, and those that nobody read are named") {
  Config config = Parse(R"({"rope":{"theta":500,"kind":{"a":true,"b":[1]},"future":2,"none":null},)"
                        R"("types":["x","y"],"rope.theta":9,"other":{"a":1}})");
  CHECK(config.Has("rope.kind.a"));
  CHECK_FALSE(config.Has("rope.none"));
  CHECK_FALSE(config.Has("rope.theta.deeper"));
  CHECK_FALSE(config.Has("rope."));
  CHECK(config.PositiveOr("rope.theta", 1, "base") == 500.0f);
  CHECK(config.FlagOr("rope.kind.a", false, "a flag"));
  CHECK(config.SizeOr("types.a", 4, 10, "of a list") == 4);
  CHECK(config.Texts("types", "kinds") == std::vector<std::string>{"x", "y"});
  CHECK(config.Texts("absent", "kinds").empty());
  std::vector<std::string> warnings;
  config.Finish(&warnings);
  REQUIRE(config.status().ok());
  REQUIRE(warnings.size() == 3);
  CHECK(warnings[0] == "config.json: rope.kind.b = an array is unknown to Pozor and was ignored");
  CHECK(warnings[1] == "config.json: rope.future = 2 is unknown to Pozor and was ignored");
  CHECK(warnings[2] == "config.json: other = an object is unknown to Pozor and was ignored");
  const auto effects = config.Effects();
  REQUIRE(effects.size() >= 4);
  CHECK(effects[0] == std::pair<std::string, std::string>("rope.theta = 500", "base"));
}

TEST_CASE("a list with anything but texts is refused") {
  for (const char* text :
       {R"({"k":"x"})", R"({"k":["x",1]})", R"({"k":[null]})", R"({"k":{"x":"y"}})"}) {
    Config config = Parse(text);
    config.Texts("k", "kinds");
    CAPTURE(text);
    CHECK(config.status().message().find("a list of texts is needed") != std::string::npos);
  }
}

TEST_CASE("negative sizes that mean none, and lists in one text") {
  Config config =
      Parse(R"({"a":-1,"b":5,"c":null,"list":["X "," y"],"text":"P2C | c2p","one":"x"})");
  CHECK(config.SizeOrNone("a", 10, "a") == 0);
  CHECK(config.SizeOrNone("b", 10, "b") == 5);
  CHECK(config.SizeOrNone("c", 10, "c") == 0);
  CHECK(config.SizeOrNone("absent", 10, "absent") == 0);
  CHECK(config.Parts("list", "list") == std::vector<std::string>{"x", "y"});
  CHECK(config.Parts("text", "text") == std::vector<std::string>{"p2c", "c2p"});
  CHECK(config.Parts("one", "one") == std::vector<std::string>{"x"});
  CHECK(config.Parts("absent", "absent").empty());
  REQUIRE(config.status().ok());
  for (const char* text : {R"({"k":0})", R"({"k":11})", R"({"k":"5"})", R"({"k":1.5})"}) {
    CAPTURE(text);
    Config bad = Parse(text);
    CHECK(bad.SizeOrNone("k", 10, "k") == 0);
    REQUIRE_FALSE(bad.status().ok());
    CHECK(bad.status().message().find("or -1 for none, is needed") != std::string::npos);
  }
  for (const char* text : {R"({"k":0})", R"({"k":[1]})", R"({"k":{"a":1}})"}) {
    CAPTURE(text);
    Config bad = Parse(text);
    CHECK(bad.Parts("k", "k").empty());
    CHECK_FALSE(bad.status().ok());
  }
  for (const char* text : {R"({"k":""})", R"({"k":"||"})", R"({"k":"  "})"}) {
    CAPTURE(text);
    Config odd = Parse(text);
    for (const std::string& part : odd.Parts("k", "k")) CHECK(part.empty());
    CHECK(odd.status().ok());
  }
}

TEST_CASE("every activation of transformers has a function or is refused by name") {
  const char* known[] = {"gelu",
                         "gelu_python",
                         "gelu_new",
                         "gelu_fast",
                         "gelu_accurate",
                         "quick_gelu",
                         "relu",
                         "relu2",
                         "relu6",
                         "leaky_relu",
                         "silu",
                         "swish",
                         "tanh",
                         "sigmoid",
                         "mish",
                         "linear",
                         "gelu_pytorch_tanh",
                         "gelu_python_tanh"};
  Activation activation;
  for (const char* name : known) CHECK(ParseActivation(name, &activation));
  for (const char* name : {"gelu_10", "laplace", "prelu", "xielu", "GELU", ""}) {
    CHECK_FALSE(ParseActivation(name, &activation));
  }
}

TEST_CASE("values that change the mathematics are refused") {
  struct Case {
    const char* text;
    const char* message;
  };
  const Case cases[] = {
      {R"("position_embedding_type":"relative_value")",
       "position_embedding_type is \"relative_value\""},
      {R"("position_embedding_type":"alibi")", "position_embedding_type is \"alibi\""},
      {R"("add_cross_attention":true)", "add_cross_attention"},
      {R"("is_encoder_decoder":true)", "is_encoder_decoder"},
      {R"("pruned_heads":{"0":[1]})", "pruned_heads"},
      {R"("quantization_config":{"quant_method":"awq"})", "quantization_config awq"},
      {R"("hidden_act":"laplace")", "hidden_act laplace"},
      {R"("feed_forward_type":"geglu")", "feed_forward_type"},
      {R"("auto_map":{"AutoModel":"jinaai/jina-bert-implementation--modeling_bert.JinaBertModel"})",
       "auto_map"},
  };
  const Architecture* bert = FindArchitecture("bert", "config.json").value();
  const auto source =
      OpenSafetensors(test::DataPath("malformed/good-folder/model.safetensors")).value();
  const WeightReader weights(source);
  const std::string sizes =
      R"("hidden_size":4,"num_attention_heads":2,"intermediate_size":6,"vocab_size":8,)"
      R"("max_position_embeddings":10,"num_hidden_layers":1)";
  for (const Case& c : cases) {
    Config config = Parse("{" + sizes + "," + c.text + "}");
    std::vector<std::string> warnings;
    bert->make_spec(config, weights);
    config.Finish(&warnings);
    CAPTURE(c.text);
    REQUIRE_FALSE(config.status().ok());
    CHECK(config.status().code() == StatusCode::kUnsupported);
    CHECK(config.status().message().find(c.message) != std::string::npos);
  }
  Config config =
      Parse("{" + sizes + R"(,"position_embedding_type":"absolute","pruned_heads":{}})");
  const EncoderSpec spec = bert->make_spec(config, weights);
  CHECK(config.status().ok());
  CHECK(spec.head_dim == 2);
  CHECK(spec.embeddings.type_count == 2);
  CHECK_FALSE(spec.causal);
}

TEST_CASE("the architecture by type, and by class where there is no type") {
  const auto find = [](const char* text) {
    return FindModelType(ParseJson(text, "c").value().root(), "config.json");
  };
  CHECK(find(R"({"model_type":"bert","architectures":["X"]})").value() == "bert");
  CHECK(find(R"({"architectures":["BertForMaskedLM"]})").value() == "BertForMaskedLM");
  CHECK_FALSE(find(R"({"architectures":[]})").ok());
  CHECK_FALSE(find(R"({"model_type":7})").ok());
  for (const char* name : {"bert", "BertModel", "BertForMaskedLM", "BertLMHeadModel"}) {
    CHECK(FindArchitecture(name, "config.json").value()->model_type == "bert");
  }
  for (const char* name : {"Bert", "BertGenerationEncoder", "roberta2", ""}) {
    const auto found = FindArchitecture(name, "config.json");
    REQUIRE_FALSE(found.ok());
    CHECK(found.status().message().find("use a model of one of these types: bert") !=
          std::string::npos);
  }
}

}  // namespace
}  // namespace pozor
