// pozor quantize: the folder works as any model, with the bits of int8 at load; what is wrong is
// refused.
#include "models/quantize.h"

#include <doctest/doctest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "models/json.h"
#include "models/model_impl.h"
#include "tests/support/pozor_command.h"
#include "tests/support/word_model.h"
#include "tools/quantize_gate.h"
#include "tools/quantize_plan.h"

namespace pozor::tools {
namespace {

using testing::EndsInOneError;
using testing::Pozor;
using testing::ProcessOptions;
using testing::ProcessResult;
using testing::ReadFileOrEmpty;
using testing::TemporaryFolder;
using testing::TestData;

constexpr const char* kTexts =
    "A man plays a guitar.\nThe ferry leaves at nine.\n\nzebra over kitchen 1958\n";

struct Preparing {
  const char* model;
  std::string precision;
};

TEST_CASE("quantize, then encode, verify and info") {
  const Preparing cases[] = {{"bert", "int8"},         {"bert", "bf16"},   {"st-mean-norm", "int8"},
                             {"st-layernorm", "int8"}, {"st-cls", "bf16"}, {"st-cls", "int8"},
                             {"st-prompts", "int8"}};
  for (const auto& [name, precision] : cases) {
    CAPTURE(std::string(name));
    CAPTURE(precision);
    const bool int8 = precision == "int8";
    const TemporaryFolder folder;
    const std::string out = folder.File("prepared"), model = TestData(name);
    const std::string texts = folder.Write("texts.txt", kTexts);
    const ProcessResult made =
        Pozor({"quantize", model, "-o", out, "--force", "--precision", precision});
    CAPTURE(made.errors);
    REQUIRE(made.exit_code == 0);
    CHECK(made.output.find("SQNR") != std::string::npos);
    CHECK(made.output.find("cosine to f32: mean") != std::string::npos);
    CHECK((made.output.find("calibrated on") != std::string::npos) == int8);
    CHECK(folder.List() == std::vector<std::string>{"prepared", "texts.txt"});

    const std::string at_load = folder.File("a.npy"), mapped = folder.File("b.npy");
    CHECK(Pozor({"encode", model, texts, "--precision", precision, "-o", at_load}).exit_code == 0);
    CHECK(Pozor({"encode", out, texts, "-o", mapped}).exit_code == 0);
    CHECK(ReadFileOrEmpty(at_load) == ReadFileOrEmpty(mapped));
    CHECK(ReadFileOrEmpty(mapped).size() > 128);
    const std::string file = out + "/pozor.safetensors";
    CHECK(Pozor({"encode", file, texts, "-o", mapped}).exit_code == 0);
    CHECK(ReadFileOrEmpty(at_load) == ReadFileOrEmpty(mapped));

    for (const std::string asked : {"f32", int8 ? "bf16" : "int8"}) {
      const ProcessResult other = Pozor({"encode", out, texts, "--precision", asked});
      CHECK(other.exit_code == 1);
      std::string mismatch = "prepared for " + precision;
      mismatch += ", not those for " + asked;
      CHECK(other.errors.find(mismatch) != std::string::npos);
    }
    CHECK(Pozor({"verify", out}).exit_code == 0);
    const ProcessResult info = Pozor({"info", out});
    CHECK(info.output.find("precision     " + precision) != std::string::npos);
    CHECK(info.output.find("qkv " + precision + ", layers 0") != std::string::npos);
    CHECK((info.output.find("built-in text, 149 texts") != std::string::npos) == int8);
    CHECK(info.output.find("quality       cosine to f32") != std::string::npos);
    const JsonDocument json = ParseJson(Pozor({"info", out, "--json"}).output, "info").value();
    const JsonValue* products = json->Find("model")->Find("products");
    REQUIRE(products != nullptr);
    CHECK(products->size() % 5 == 0);
    CHECK_FALSE(products->items()[0].Find("kernel")->as_string().empty());

    // Again, over the folder; and damaged.
    CHECK(Pozor({"quantize", model, "-o", out, "--precision", precision, "--no-gate"}).exit_code ==
          0);
    std::string bytes = ReadFileOrEmpty(file);
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 4);
    folder.Write("prepared/pozor.safetensors", bytes);
    const ProcessResult damaged = Pozor({"verify", out});
    CHECK(damaged.exit_code == 1);
    CHECK(EndsInOneError(damaged));
    CHECK(damaged.errors.find("checksum") != std::string::npos);
  }
}

TEST_CASE("single products, mixed, own texts") {
  const TemporaryFolder folder;
  const std::string model = TestData("bert"), out = folder.File("out");
  const std::string texts = folder.Write("texts.txt", kTexts);
  // Those that are not int8; bf16 ones end in "b".
  const auto products = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = {"quantize", model, "-o", out, "--force", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProcessResult made = Pozor(arguments);
    CAPTURE(made.errors);
    REQUIRE(made.exit_code == 0);
    std::vector<std::string> names;
    const JsonDocument report = ParseJson(made.output, "report").value();
    for (const JsonValue& product : report->Find("products")->items()) {
      const std::string_view precision = product.Find("precision")->as_string();
      if (precision == "int8") continue;
      CHECK((precision == "f32" || precision == "bf16"));
      names.push_back(std::to_string(product.Find("layer")->as_int()) + "." +
                      std::string(product.Find("product")->as_string()) +
                      (precision == "bf16" ? "b" : ""));
    }
    CHECK(Pozor({"encode", out, texts, "-o", folder.File("v.npy")}).exit_code == 0);
    return names;
  };
  const std::vector<std::string> down = products({"--products", "down=bf16"});
  CHECK(down.front() == "0.downb");
  CHECK(products({"--precision", "mixed"}) == down);
  CHECK(products({"--products", "down=f32"}).size() == down.size());
  CHECK(products({"--precision", "mixed", "--products", "down=int8"}).empty());
  CHECK(products({"--precision", "bf16", "--products", "qkv=int8,attention=int8,up=int8"}).size() ==
        2 * down.size());
  CHECK(products({}).empty());
  CHECK(products({"--calibration", texts, "--gate-text", texts}).empty());
  CHECK(products({"--products", "0.qkv=f32"}) == std::vector<std::string>{"0.qkv", "0.attention"});
  CHECK(products({"--products", "0.attention=f32,1.up=f32"}) ==
        std::vector<std::string>{"0.attention", "1.up"});
}

TEST_CASE("the gate says what its texts are too few for, and gives no figures of it") {
  const TemporaryFolder folder;
  const std::string model = TestData("bert"), out = folder.File("out");
  std::string many;
  for (size_t i = 0; i < 50; ++i) many += "The ferry of pier " + std::to_string(i) + " leaves.\n";
  const auto gate = [&](const std::string& texts, bool json) {
    std::vector<std::string> arguments = {
        "quantize", model, "-o", out, "--force", "--gate-text", folder.Write("texts.txt", texts)};
    if (json) arguments.emplace_back("--json");
    const ProcessResult made = Pozor(arguments);
    CHECK(made.exit_code == 0);
    return made;
  };
  const char* figures[] = {"long texts", "rank correlation", "top-10 overlap"};
  const ProcessResult two = gate("A man plays a guitar.\nThe ferry leaves at nine.\n", false);
  CHECK(two.errors.find("texts.txt: 2 texts are too few to rank; give 50 or more") !=
        std::string::npos);
  CHECK(two.errors.find("no long text is compared") != std::string::npos);
  CHECK(two.output.find("cosine to f32: mean") != std::string::npos);
  for (const char* figure : figures) CHECK(two.output.find(figure) == std::string::npos);
  const ProcessResult enough = gate(many, false);
  CHECK(enough.errors.find("warning") == std::string::npos);
  for (const char* figure : figures) CHECK(enough.output.find(figure) != std::string::npos);

  const JsonDocument few = ParseJson(gate("A man plays.\n", true).output, "json").value();
  const JsonDocument all = ParseJson(gate(many, true).output, "json").value();
  for (const char* key :
       {"long_cosine_mean", "long_cosine_min", "rank_correlation", "top10_overlap"}) {
    CAPTURE(std::string(key));
    CHECK(few->Find("gate")->Find(key)->is_null());
    CHECK_FALSE(all->Find("gate")->Find(key)->is_null());
  }
}

TEST_CASE("with every product in f32 the gate passes and vectors are those of f32") {
  const TemporaryFolder folder;
  const std::string out = folder.File("out"), texts = folder.Write("texts.txt", kTexts);
  const ProcessResult made = Pozor({"quantize", TestData("bert"), "-o", out, "--products",
                                    "qkv=f32,attention=f32,output=f32,up=f32,down=f32"});
  CAPTURE(made.errors);
  CHECK(made.exit_code == 0);
  CHECK(made.output.find("passed") != std::string::npos);
  Pozor({"encode", out, texts, "-o", folder.File("a.npy")});
  Pozor({"encode", TestData("bert"), texts, "-o", folder.File("b.npy")});
  CHECK(ReadFileOrEmpty(folder.File("a.npy")) == ReadFileOrEmpty(folder.File("b.npy")));
}

TEST_CASE("Ctrl-C ends it in one line, and nothing stands under the name") {
  const TemporaryFolder folder;
  std::string texts;
  for (size_t i = 0; i < 200000; ++i)
    texts += "the ferry leaves at nine " + std::to_string(i) + "\n";
  const std::string gate = folder.Write("gate.txt", texts);  // far more than a second's work
  ProcessOptions options;
  options.signal = SIGINT;
  const auto start = std::chrono::steady_clock::now();
  options.signal_when = [start](size_t) {
    return std::chrono::steady_clock::now() - start > std::chrono::seconds(1);
  };
  const ProcessResult result =
      Pozor({"quantize", TestData("bert"), "-o", folder.File("out"), "--gate-text", gate}, options);
  CAPTURE(result.errors);
  CHECK(!result.timed_out);
  CHECK(result.exit_code == 130);
  CHECK(EndsInOneError(result));
  CHECK(folder.List() == std::vector<std::string>{"gate.txt"});
}

TEST_CASE("wrong uses and refusals are one line, and write nothing") {
  const TemporaryFolder folder;
  const std::string model = TestData("bert"), out = folder.File("out");
  std::filesystem::create_directory(folder.File("full"));
  folder.Write("full/notes.txt", "");
  const std::string notes = folder.Write("notes.txt", "mine");
  const std::string empty = folder.Write("empty.txt", "");
  struct Case {
    std::vector<std::string> arguments;
    int exit_code;
    const char* named;
  };
  const Case cases[] = {
      {{model}, 2, "--output"},
      {{model, "-o", out, "--precision", "int4"}, 2, "int4"},
      {{model, "-o", out, "--precision", "f32"}, 2, "f32"},
      {{model, "-o", out, "--products", "down"}, 2, "'down'"},
      {{model, "-o", out, "--products", "down=f16"}, 2, "names no precision"},
      {{model, "-o", out, "--products", "99.down=f32"}, 2, "names no layer"},
      {{model, "-o", out, "--products", "side=f32"}, 2, "names no product"},
      {{model, "-o", notes}, 2, "is a file"},
      {{model, "-o", folder.File("full")}, 2, "no prepared model"},
      {{"no-such-model", "-o", out}, 1, "no-such-model"},
      {{model, "-o", out, "--calibration", folder.File("none.txt")}, 1, "none.txt"},
      {{model, "-o", out, "--calibration", empty}, 2, "has no texts"},
      {{model, "-o", out, "--gate-text", empty}, 2, "has no texts"},
      {{model, "-o", notes + "/place"}, 1, "place"},
  };
  for (const Case& c : cases) {
    std::vector<std::string> arguments = {"quantize"};
    arguments.insert(arguments.end(), c.arguments.begin(), c.arguments.end());
    const ProcessResult result = Pozor(arguments);
    CAPTURE(result.errors);
    CHECK(result.exit_code == c.exit_code);
    CHECK(EndsInOneError(result));
    CHECK(result.errors.find(c.named) != std::string::npos);
  }
  CHECK(folder.List() == std::vector<std::string>{"empty.txt", "full", "notes.txt"});
  CHECK(ReadFileOrEmpty(folder.File("full/notes.txt")).empty());
  CHECK(ReadFileOrEmpty(notes) == "mine");
  CHECK(Pozor({"verify", model}).exit_code == 2);
}

EncoderSpec SpecOf(const std::string& name) {
  return (*LoadModelParts(TestData(name), {}, {.requires_tokenizer = false}))->encoder->spec();
}

TEST_CASE("--products names what the model has, and is refused where it has it not") {
  struct Case {
    const char *model, *products, *named;
    QuantizeTarget target = QuantizeTarget::kInt8;
  };
  const Case cases[] = {
      {"bert", "attention=bf16", "no weights"},
      {"bert", "0.attention=bf16", "no weights"},
      {"bert", "qkv=f32,attention=int8", "where qkv is not in int8"},
      {"bert", "attention=int8", "where qkv is not in int8", QuantizeTarget::kBf16},
      {"bert", "2.up=f32", "no layer of 0 to 1"},
      {"bert", "0.0.up=f32", ""},
      {"bert", "0.1.up=f32", "the layers have none"},
      {"bert", ".up=f32", "names no layer"},
      {"bert", "0.0.0.up=f32", "names no product"},
      {"architectures/llama", "attention=int8", "cannot be centred"},
      {"architectures/mobilebert", "qkv=int8", "more than one width"},
      {"architectures/mobilebert", "1.1.qkv=int8", "a part without attention"},
      {"architectures/mobilebert", "1.2.attention=f32", "a part without attention"},
      {"architectures/mobilebert", "0.9.up=f32", "no part of 0 to 2"},
      {"architectures/mobilebert", "2.up=f32", "no layer of 0 to 1"},
      {"architectures/mobilebert", "1.2.up=f32", ""},
  };
  for (const Case& c : cases) {
    CAPTURE(std::string(c.model));
    CAPTURE(std::string(c.products));
    const auto plan = MakePlan(c.target, c.products, SpecOf(c.model));
    const std::string named = c.named;
    CHECK(plan.ok() == named.empty());
    if (plan.ok()) continue;
    CHECK(plan.status().code() == StatusCode::kInvalidArgument);
    CHECK(plan.status().message().find(named) != std::string::npos);
  }
}

TEST_CASE("layers are the model's, and their parts may be named") {
  const EncoderSpec spec = SpecOf("architectures/mobilebert");
  REQUIRE(spec.layer_count() == 2);
  const auto in_f32 = [&](const std::string& products) {
    const PrecisionPlan plan = MakePlan(QuantizeTarget::kInt8, products, spec).value();
    std::string labels;
    for (size_t place = 0; place < plan.size(); ++place) {
      if (!plan[place].IsInt8(ProductKind::kUp)) labels += LayerLabel(spec, place) + " ";
    }
    return labels;
  };
  CHECK(in_f32("") == "");
  CHECK(in_f32("up=f32") == "0.0 0.1 0.2 1.0 1.1 1.2 ");
  CHECK(in_f32("1.up=f32") == "1.0 1.1 1.2 ");
  CHECK(in_f32("1.1.up=f32,0.0.up=f32") == "0.0 1.1 ");
  CHECK(CountProducts(spec) == 2 * (4 + 2 + 2));

  const TemporaryFolder folder;
  const std::string model = testing::MakeWordModel(folder, "mobilebert"), out = folder.File("out");
  const std::string info = Pozor({"info", model, "--precision", "int8"}).output;
  for (const char* line : {"qkv f32, layers 0-1, ", "up int8, layers 0-1, "}) {
    CAPTURE(info);
    CHECK(info.find(line) != std::string::npos);
  }
  const ProcessResult made =
      Pozor({"quantize", model, "-o", out, "--force", "--products", "1.1.up=f32"});
  CAPTURE(made.errors);
  CHECK(made.exit_code == 0);
  CHECK(made.output.find("  1.2 ") != std::string::npos);
  CHECK(Pozor({"info", out}).output.find("up f32, layers 1.1, ") != std::string::npos);
  CHECK(Pozor({"info", out}).output.find("up int8, layers 0, 1.0, 1.2, ") != std::string::npos);
}

// "0.up=f32 1.down=bf16": products in another format than `lowest`, attention's own left out.
std::string Promotions(const PrecisionPlan& plan, NumberFormat lowest) {
  std::string text;
  for (size_t layer = 0; layer < plan.size(); ++layer) {
    for (size_t kind = 0; kind < kProductKinds; ++kind) {
      const auto product = static_cast<ProductKind>(kind);
      const ProductChoice& choice = plan[layer][product];
      if (product == ProductKind::kAttention || choice.format == lowest) continue;
      text += (text.empty() ? "" : " ") + std::to_string(layer) + "." +
              std::string(ProductName(product)) + "=" +
              std::string(NumberFormatName(choice.format));
    }
  }
  return text;
}

// Whatever a second run would not write again stays.
TEST_CASE("a prepared folder is replaced only if nothing of somebody else lies in it") {
  namespace fs = std::filesystem;
  const TemporaryFolder folder;
  const std::string out = folder.File("out"), model = TestData("st-mean-norm");
  const auto prepare = [&](const std::string& to) {
    return Pozor({"quantize", model, "-o", to, "--no-gate"});
  };
  REQUIRE(prepare(out).exit_code == 0);
  CHECK(prepare(out).exit_code == 0);
  CHECK(prepare(out + "/").exit_code == 0);
  for (const char* name : {"vectors.npy", "pytorch_model.bin", "1_Pooling/notes.md", "results"}) {
    CAPTURE(name);
    const std::string foreign = out + "/" + name;
    if (std::string(name) == "results") {
      fs::create_directory(foreign);
    } else {
      folder.Write("out/" + std::string(name), "precious");
    }
    const ProcessResult refused = prepare(out);
    CHECK(refused.exit_code == 2);
    CHECK(refused.errors.find(name) != std::string::npos);
    CHECK(fs::exists(foreign));
    fs::remove_all(foreign);
  }
  // The model itself may lie inside.
  fs::copy(model, out + "/original", fs::copy_options::recursive);
  CHECK(Pozor({"quantize", out + "/original", "-o", out, "--no-gate"}).exit_code == 2);
  CHECK(fs::exists(out + "/original/config.json"));
  fs::remove_all(out + "/original");

  fs::create_directory_symlink(out, folder.File("link"));
  CHECK(prepare(folder.File("link")).exit_code == 0);
  CHECK(fs::is_symlink(folder.File("link")));
  CHECK(fs::exists(out + "/pozor.safetensors"));
  for (const char* name : {"", ".", "..", "/"}) CHECK(prepare(name).exit_code != 0);
}

TEST_CASE("a limit on the size of files is an error of the write") {
  const TemporaryFolder folder;
  const ProcessResult result =
      testing::RunProcess({"/bin/sh", "-c", "ulimit -f 16; exec \"$0\" \"$@\"",
                           std::string(POZOR_BINARY_DIR) + "/pozor", "quantize",
                           TestData("st-mean-norm"), "-o", folder.File("out"), "--no-gate"});
  CHECK(result.exit_code == 1);
  CHECK(EndsInOneError(result));
  CHECK(folder.List().empty());
}

TEST_CASE("the gate promotes the noisiest input's product, to bf16 where the plan has it") {
  EncoderSpec spec;
  spec.layers.resize(2);
  std::vector<LayerSqnr> sqnr(2);
  sqnr[0] = {41, 0, 39, 40, 38};  // by ProductKind; attention has none
  sqnr[1] = {36, 0, 42, 43, 37};
  struct Case {
    QuantizeTarget target;
    NumberFormat lowest;
    const char* once;
    const char* thrice;
  };
  const Case cases[] = {
      {QuantizeTarget::kInt8, NumberFormat::kInt8, "1.qkv=f32", "0.down=f32 1.qkv=f32 1.down=f32"},
      {QuantizeTarget::kBf16, NumberFormat::kBf16, "1.qkv=f32", "0.down=f32 1.qkv=f32 1.down=f32"},
      {QuantizeTarget::kMixed, NumberFormat::kInt8, "0.down=bf16 1.qkv=bf16 1.down=bf16",
       "0.output=bf16 0.up=bf16 0.down=bf16 1.qkv=bf16 1.down=bf16"}};
  for (const Case& c : cases) {
    PrecisionPlan plan = MakePlan(c.target, "", spec).value();
    CHECK(PromoteWorst(c.target, sqnr, &plan));
    CHECK(Promotions(plan, c.lowest) == c.once);
    CHECK(plan[1][ProductKind::kQkv].reason == "promoted by the gate: SQNR 36.0 dB");
    CHECK(plan[1][ProductKind::kAttention].format == NumberFormat::kF32);  // as Q, K and V
    CHECK(PromoteWorst(c.target, sqnr, &plan));
    CHECK(PromoteWorst(c.target, sqnr, &plan));
    CHECK(Promotions(plan, c.lowest) == c.thrice);
    size_t more = 0;
    while (PromoteWorst(c.target, sqnr, &plan)) ++more;
    CHECK(more == (c.target == QuantizeTarget::kMixed ? 3 + 8 : 5));  // then from bf16 to f32
    CHECK(Promotions(plan, NumberFormat::kF32).empty());
  }
}

TEST_CASE("the gate's numbers") {
  GateTexts texts;
  texts.texts = {"a", "b", "c", "d", "long"};
  texts.short_texts = 4;
  const std::vector<float> f32 = {1, 0, 0, 1, 1, 1, 1, 2, 3, 4};
  const GateResult same = Compare(f32, f32, texts);
  CHECK(same.Failures(kInt8Limits).empty());
  CHECK(same.mean == doctest::Approx(1));
  CHECK(same.rank == doctest::Approx(1));
  CHECK(same.top10 == 1);
  std::vector<float> other = f32;
  other[0] = 0.8f;
  other[1] = 0.6f;  // cosine 0.8
  const GateResult near = Compare(f32, other, texts);
  CHECK(near.mean == doctest::Approx(0.95));
  CHECK(near.least == doctest::Approx(0.8));
  CHECK(near.long_mean == doctest::Approx(1));
  CHECK(near.Failures(kInt8Limits).find("mean cosine 0.95000 is below 0.999") != std::string::npos);
  CHECK(near.Failures(kBf16Limits).find("mean cosine 0.95000 is below 0.9999") !=
        std::string::npos);
  // Texts that are all alike have no order that could be lost; one that was there can be.
  const std::vector<float> alike = {1, 2, 1, 2, 1, 2, 1, 2, 3, 4};
  CHECK(Compare(alike, alike, texts).Failures(kInt8Limits).empty());
  CHECK(Compare(alike, f32, texts).rank == 1);
  CHECK(Compare(f32, alike, texts).rank == 0);
  const std::vector<std::string_view> lines(
      40, std::string_view("forty bytes of a short sentence, so so."));
  const GateTexts made = MakeGateTexts(lines);
  CHECK(made.short_texts == 40);
  CHECK(made.texts.size() == 41);
  CHECK(made.texts.back().size() >= 1000);
}

}  // namespace
}  // namespace pozor::tools
