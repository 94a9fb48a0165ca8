// pozor attention dump and view: numbers, formats, choices, hostile texts, memory.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "models/formats/safetensors.h"
#include "models/json.h"
#include "models/locate.h"
#include "tests/models/golden.h"
#include "tests/support/long_model.h"
#include "tests/support/pozor_command.h"
#include "tests/support/process.h"
#include "tools/attention/encoding.h"
#include "tools/bench/json_writer.h"
#include "tools/io/npy.h"
#include "tools/io/zip.h"

namespace pozor::tools {
namespace {

using testing::EndsInOneError;
using testing::Pozor;
using testing::PozorReading;
using testing::ProcessResult;
using testing::ReadFileOrEmpty;
using testing::TemporaryFolder;
using testing::TestData;

const std::string kModel = TestData("bert");
constexpr char kText[] = "A girl is styling her hair.";

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void RequireDone(const ProcessResult& result) {
  CAPTURE(result.errors);
  REQUIRE(result.exit_code == 0);
}

// An archive's arrays.
class Npz {
 public:
  explicit Npz(const std::string& path)
      : bytes_(ReadFileOrEmpty(path)), entries_(ReadStoredZip(bytes_, path).value()) {}

  std::string_view Entry(const std::string& name) const {
    for (const ZipEntry& entry : entries_) {
      if (entry.name == name) return entry.data;
    }
    FAIL("no entry " << name);
    return {};
  }
  NpyArray Array(const std::string& name) const {
    return ParseNpy(Entry(name + ".npy"), name).value();
  }
  std::vector<float> Floats(const std::string& name) const {
    const NpyArray array = Array(name);
    REQUIRE(array.descr == "<f4");
    std::vector<float> values(array.data.size() / 4);
    std::memcpy(values.data(), array.data.data(), array.data.size());
    return values;
  }
  JsonDocument Meta() const { return ParseJson(Entry("meta.json"), "meta").value(); }

 private:
  std::string bytes_;
  std::vector<ZipEntry> entries_;
};

std::vector<float> WholeAttention(const std::string& model, const std::string& text) {
  const TemporaryFolder folder;
  RequireDone(Pozor({"attention", "dump", model, text, "-o", folder.File("a.npz"), "--quiet"}));
  return Npz(folder.File("a.npz")).Floats("attn");
}

TEST_CASE("dump: two texts of unlike lengths, each as if it were alone") {
  const auto installed = LocateModel("all-MiniLM-L6-v2");
  if (!installed.ok()) {
    MESSAGE("left out: " << installed.status().message());
    return;
  }
  const JsonDocument cases = ReadJsonFile(TestData("cases/P29/expected.json")).value();
  const TemporaryFolder folder;
  std::string input;
  for (const JsonValue& item : cases->items()) {
    input += std::string(item.Find("text")->as_string()) + "\n";
  }
  RequireDone(Pozor({"attention", "--model", *installed, "--input", folder.Write("two.txt", input),
                     "--format", "npz", "--out", folder.File("d/")}));
  size_t index = 0;
  for (const JsonValue& item : cases->items()) {
    CAPTURE(index);
    const Npz npz(folder.File("d/00000" + std::to_string(index++) + ".npz"));
    const size_t tokens = item.Find("tokens")->size();
    CHECK(npz.Array("attn").shape == std::vector<uint64_t>{6, 12, tokens, tokens});
    const std::vector<float> weights = npz.Floats("attn");
    for (size_t i = 0; i < tokens; ++i) {
      const std::vector<float> row = test::ToFloats(item.Find("layer0_head0")->items()[i]);
      for (size_t j = 0; j < tokens; ++j)
        CHECK(std::abs(weights[i * tokens + j] - row[j]) <= 1e-5f);
    }
    const std::vector<float> last = test::ToFloats(*item.Find("layer5_head11_row0"));
    for (size_t j = 0; j < tokens; ++j) {
      CHECK(std::abs(weights[71 * tokens * tokens + j] - last[j]) <= 1e-5f);
    }
    for (size_t row = 0; row < weights.size() / tokens; ++row) {
      double sum = 0;
      for (size_t j = 0; j < tokens; ++j) sum += static_cast<double>(weights[row * tokens + j]);
      CHECK(std::abs(sum - 1) <= 1e-5);
    }
    const JsonDocument meta = npz.Meta();
    for (size_t t = 0; t < tokens; ++t) {
      CHECK(meta->Find("tokens")->items()[t].as_string() ==
            item.Find("tokens")->items()[t].as_string());
    }
    CHECK(weights == WholeAttention(*installed, std::string(item.Find("text")->as_string())));
  }
}

TEST_CASE("dump: every format holds the same weights, and what describes them") {
  const TemporaryFolder folder;
  const std::vector<float> weights = WholeAttention(kModel, kText);
  REQUIRE(weights.size() == 2 * 3 * 19 * 19);
  const auto dump = [&](const std::string& name, std::vector<std::string> options) {
    std::vector<std::string> words = {"attention", "dump", kModel, kText, "-o", folder.File(name)};
    words.insert(words.end(), options.begin(), options.end());
    const ProcessResult result = Pozor(words);
    RequireDone(result);
    CHECK(Contains(result.errors, "self-check: max |1 - row sum|"));
    return ReadFileOrEmpty(folder.File(name));
  };
  const std::string npy = dump("a.npy", {});
  const NpyArray array = ParseNpy(npy, "a.npy").value();
  CHECK(array.shape == std::vector<uint64_t>{2, 3, 19, 19});
  REQUIRE(array.data.size() == weights.size() * 4);
  CHECK(std::memcmp(array.data.data(), weights.data(), array.data.size()) == 0);
  const JsonDocument beside = ReadJsonFile(folder.File("a.npy.json")).value();
  CHECK(beside->Find("runs")
            ->items()[0]
            .Find("self_check")
            ->Find("max_vector_difference")
            ->as_double() == 0);
  CHECK(
      beside->Find("runs")->items()[0].Find("self_check")->Find("max_row_sum_error")->as_double() <
      1e-6);
  CHECK(beside->Find("runs")->items()[0].Find("weights_hash")->size() == 16);

  dump("a.safetensors", {"--hidden"});
  const auto source = OpenSafetensors(folder.File("a.safetensors")).value();
  std::vector<float> layers, hidden;
  for (const TensorInfo& tensor : source->tensors()) {
    std::vector<float>& to = tensor.name == "hidden" ? hidden : layers;
    if (tensor.name != "hidden" && !tensor.name.starts_with("attn.layer.")) continue;
    std::vector<float> values(tensor.elements());
    REQUIRE(source->Read(tensor, 0, values.size(), values.data()).ok());
    to.insert(to.end(), values.begin(), values.end());
  }
  CHECK(layers == weights);
  dump("h.npz", {"--hidden"});
  CHECK(Npz(folder.File("h.npz")).Floats("hidden") == hidden);
  CHECK(ParseNpy(dump("h.npy", {"--hidden"}), "h").value().shape ==
        Npz(folder.File("h.npz")).Array("hidden").shape);

  std::vector<float> of_csv;
  const std::vector<std::string> lines = testing::Lines(dump("a.csv", {}));
  CHECK(lines[0] == "text,layer,head,from,to,from_token,to_token,weight\r");
  CHECK(lines[1].starts_with("0,0,0,0,0,[CLS],[CLS],"));
  for (size_t i = 1; i < lines.size(); ++i) {
    of_csv.push_back(std::stof(lines[i].substr(lines[i].rfind(',') + 1)));
  }
  CHECK(of_csv == weights);

  const JsonDocument json = ParseJson(dump("a.jsonl", {"--top-k", "2"}), "jsonl").value();
  const JsonValue& rows = *json->Find("weights")->items()[5].Find("rows");
  REQUIRE(rows.size() == 19);
  for (size_t i = 0; i < 19; ++i) {
    const auto row = weights.begin() + static_cast<std::ptrdiff_t>((5 * 19 + i) * 19);
    const JsonValue& best = rows.items()[i].items()[0];
    CHECK(rows.items()[i].size() == 2);
    CHECK(best.items()[0].as_int() == std::max_element(row, row + 19) - row);
    CHECK(static_cast<float>(best.items()[1].as_double()) == *std::max_element(row, row + 19));
  }
}

TEST_CASE("dump: halves and bytes are the nearest ones") {
  const TemporaryFolder folder;
  const std::vector<float> weights = WholeAttention(kModel, kText);
  for (const auto& [name, type] :
       {std::pair("f16", WeightType::kF16), std::pair("u8", WeightType::kSqrtU8)}) {
    CAPTURE(name);
    RequireDone(
        Pozor({"attention", "dump", kModel, kText, "-o", folder.File("a.npy"), "--dtype", name}));
    const std::string bytes = ReadFileOrEmpty(folder.File("a.npy"));
    const NpyArray array = ParseNpy(bytes, "a.npy").value();
    CHECK(array.descr == (type == WeightType::kF16 ? "<f2" : "|u1"));
    std::vector<float> got(weights.size());
    // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): bytes, and how many is said
    Decode(array.data.data(), got.size(), type, got.data());
    for (size_t i = 0; i < got.size(); ++i) {
      const double root = std::sqrt(static_cast<double>(weights[i]));
      const double error =
          type == WeightType::kF16
              ? std::abs(got[i] - weights[i]) - weights[i] / 2048
              : std::abs(std::sqrt(static_cast<double>(got[i])) - root) - 0.5 / 255;
      CHECK(error <= 1e-7);
    }
  }
  for (uint32_t half = 0; half < 0x10000; ++half) {
    const float value = FromHalf(static_cast<uint16_t>(half));
    if (std::isnan(value)) continue;
    CHECK(ToHalf(value) == half);
  }
  for (const auto& [value, half] :
       {std::pair(65519.0f, 0x7BFF), std::pair(65520.0f, 0x7C00), std::pair(1.00048828125f, 0x3C00),
        std::pair(1.00146484375f, 0x3C02), std::pair(2.98023224e-8f, 0x0000),
        std::pair(2.99e-8f, 0x0001), std::pair(6.1035156e-5f, 0x0400), std::pair(-0.0f, 0x8000)}) {
    CHECK(ToHalf(value) == half);
  }
}

// What the options mean, computed from whole matrices in the plainest way.
struct Plain {
  size_t layers, heads, tokens;
  std::vector<float> all;
  std::vector<std::vector<size_t>> units;  // tokens of each

  double At(size_t l, size_t h, size_t i, size_t j) const {
    return static_cast<double>(all[((l * heads + h) * tokens + i) * tokens + j]);
  }
  std::vector<std::vector<double>> MeanOfHeads(size_t l) const {
    std::vector<std::vector<double>> mean(tokens, std::vector<double>(tokens));
    for (size_t i = 0; i < tokens; ++i) {
      for (size_t j = 0; j < tokens; ++j) {
        for (size_t h = 0; h < heads; ++h)
          mean[i][j] += At(l, h, i, j) / static_cast<double>(heads);
      }
    }
    return mean;
  }
};

std::vector<float> Dumped(std::vector<std::string> options,
                          std::vector<uint64_t>* shape = nullptr) {
  const TemporaryFolder folder;
  options.insert(options.begin(),
                 {"attention", "dump", kModel, kText, "-o", folder.File("a.npz"), "--quiet"});
  RequireDone(Pozor(options));
  const Npz npz(folder.File("a.npz"));
  if (shape != nullptr) *shape = npz.Array("attn").shape;
  return npz.Floats("attn");
}

double WorstDifference(const std::vector<float>& got, const std::vector<double>& expected) {
  if (got.size() != expected.size()) return 1e9;
  double worst = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(got[i]) - expected[i]));
  }
  return worst;
}

TEST_CASE("dump: words, specials and reductions against the plainest computation") {
  const Plain plain = {2,
                       3,
                       19,
                       WholeAttention(kModel, kText),
                       {{1}, {2, 3, 4, 5}, {6}, {7, 8, 9, 10, 11}, {12, 13}, {14, 15, 16, 17}}};
  std::vector<std::vector<size_t>> with_specials = plain.units;
  with_specials.insert(with_specials.begin(), {0});
  with_specials.push_back({18});
  for (const bool no_special : {false, true}) {
    for (const char* rows : {"mean", "first", "max"}) {
      for (const bool renormalise : {false, true}) {
        CAPTURE(std::string(rows));
        CAPTURE(no_special);
        CAPTURE(renormalise);
        const auto& units = no_special ? plain.units : with_specials;
        std::vector<double> expected;
        for (size_t matrix = 0; matrix < 6; ++matrix) {
          for (const auto& from : units) {
            std::vector<double> row;
            for (const auto& to : units) {
              std::vector<double> sums;
              for (const size_t i : from) {
                double sum = 0;
                for (const size_t j : to) sum += plain.At(matrix / 3, matrix % 3, i, j);
                sums.push_back(sum);
              }
              double mean = 0;
              for (const double sum : sums) mean += sum / static_cast<double>(sums.size());
              const std::string kind = rows;
              row.push_back(kind == "mean"    ? mean
                            : kind == "first" ? sums[0]
                                              : *std::max_element(sums.begin(), sums.end()));
            }
            double total = 0;
            for (const double weight : row) total += weight;
            for (double& weight : row) expected.push_back(renormalise ? weight / total : weight);
          }
        }
        std::vector<std::string> options = {"--words", rows};
        if (no_special) options.push_back("--no-special");
        if (renormalise) options.push_back("--renormalise");
        CHECK(WorstDifference(Dumped(options), expected) <= 1e-6);
      }
    }
  }

  std::vector<double> mean, largest, first_rows;
  for (size_t l = 0; l < 2; ++l) {
    for (const auto& row : plain.MeanOfHeads(l)) mean.insert(mean.end(), row.begin(), row.end());
    for (size_t i = 0; i < 19 * 19; ++i) {
      largest.push_back(
          std::max({plain.At(l, 0, 0, i), plain.At(l, 1, 0, i), plain.At(l, 2, 0, i)}));
    }
    for (size_t h = 0; h < 3; ++h) {
      for (size_t j = 0; j < 19; ++j) first_rows.push_back(plain.At(l, h, 0, j));
    }
  }
  std::vector<uint64_t> shape;
  using Shape = std::vector<uint64_t>;
  CHECK(WorstDifference(Dumped({"--reduce", "mean-heads"}, &shape), mean) <= 1e-6);
  CHECK(shape == Shape{2, 19, 19});
  CHECK(WorstDifference(Dumped({"--reduce", "max-heads"}, &shape), largest) <= 1e-6);
  CHECK(WorstDifference(Dumped({"--reduce", "cls"}, &shape), first_rows) <= 1e-6);
  CHECK(shape == Shape{2, 3, 19});

  std::vector<double> rollout(19 * 19);
  const auto a0 = plain.MeanOfHeads(0), a1 = plain.MeanOfHeads(1);
  const auto step = [](const auto& a, size_t i, size_t j) {
    return (a[i][j] + (i == j ? 1.0 : 0.0)) / 2;
  };
  for (size_t i = 0; i < 19; ++i) {
    for (size_t j = 0; j < 19; ++j) {
      for (size_t k = 0; k < 19; ++k) rollout[i * 19 + j] += step(a1, i, k) * step(a0, k, j);
    }
  }
  CHECK(WorstDifference(Dumped({"--reduce", "rollout"}, &shape), rollout) <= 1e-6);
  CHECK(shape == Shape{19, 19});

  std::vector<double> chosen;
  for (size_t i = 4; i <= 6; ++i) {
    for (size_t j = 0; j < 19; ++j) chosen.push_back(plain.At(1, 2, i, j));
  }
  CHECK(WorstDifference(Dumped({"--heads", "1:2", "--rows", "4-6"}, &shape), chosen) <= 1e-7);
  CHECK(shape == Shape{1, 1, 3, 19});
  Dumped({"--heads", "0:1,1:0,1:2"}, &shape);
  CHECK(shape == Shape{3, 19, 19});
}

TEST_CASE("dump: pairs, and texts of a file") {
  const TemporaryFolder folder;
  RequireDone(Pozor(
      {"attention", "dump", kModel, "--pair", "a girl", "her hair", "-o", folder.File("p.npz")}));
  const JsonDocument meta = Npz(folder.File("p.npz")).Meta();
  CHECK(meta->Find("texts")->items()[1].as_string() == "her hair");
  std::vector<int64_t> segments, sequence;
  for (const JsonValue& item : meta->Find("segments")->items()) segments.push_back(item.as_int());
  for (const JsonValue& item : meta->Find("sequence")->items()) sequence.push_back(item.as_int());
  CHECK(segments.front() == 0);
  CHECK(segments.back() == 1);
  CHECK(sequence.front() == -1);
  CHECK(sequence[1] == 0);
  CHECK(sequence[sequence.size() - 2] == 1);

  const ProcessResult lines =
      PozorReading({"attention", "dump", kModel, "-f", "-", "--top-k", "1"}, "a\nb c\n");
  RequireDone(lines);
  CHECK(testing::Lines(lines.output).size() == 2);
  for (const std::string& line : testing::Lines(lines.output)) CHECK(ParseJson(line, "line").ok());
}

TEST_CASE("dump and view: what is wrong is said in one line, and no file is left") {
  const TemporaryFolder folder;
  folder.Write("two.txt", "a\nb\n");
  struct Case {
    std::vector<std::string> options;
    const char* error;
    int exit_code = 2;
  };
  const Case cases[] = {
      {{"dump", kModel}, "no text given"},
      {{"dump", kModel, "a", "--pair", "b", "c"}, "several texts given"},
      {{"dump", kModel, "a", "-o", folder.File("x.dat")}, "names no format"},
      {{"dump", kModel, "a", "--layers", "2"}, "2 is beyond the model, which has layers 0 to 1"},
      {{"dump", kModel, "a", "--heads", "0:3"}, "3 is beyond the model, which has heads 0 to 2"},
      {{"dump", kModel, "a", "--heads", "0:1,2"}, "mixes heads"},
      {{"dump", kModel, "a", "--layers", "1", "--heads", "0:1"}, "none of '0:1'"},
      {{"dump", kModel, "a", "--layers", "3-1"}, "is no list of numbers"},
      {{"dump", kModel, "a", "--rows", "1-2", "--no-special"}, "--rows: counts tokens"},
      {{"dump", kModel, "a", "--rows", "9"}, "begin at 9"},
      {{"dump", kModel, "a", "--hidden"}, "--hidden: jsonl and csv"},
      {{"dump", kModel, "a", "--dtype", "f16"}, "--dtype: jsonl and csv"},
      {{"dump", kModel, "a", "--top-k", "3", "-o", folder.File("x.npy")},
       "arrays hold every weight"},
      {{"dump", kModel, "-f", folder.File("two.txt"), "-o", folder.File("x.npz")},
       "one file holds one text"},
      {{"dump", kModel, "\xFF", "-o", folder.File("x.npz")}, "UTF-8", 1},
      {{"dump", kModel, "a", "-o", folder.File("no/x.npz")}, "no/x.npz", 1},
      {{"view", folder.File("two.txt.npz"), "-o", folder.File("x.html")}, "two.txt.npz", 1},
      {{"view", folder.File("two.npz"), "text", "-o", folder.File("x.html")}, "leave the text out"},
      {{"view", kModel, "-f", folder.File("two.txt"), "-o", folder.File("x.html")},
       "takes one text"},
      {{"vew", kModel, "a"}, "did you mean 'view'?"},
  };
  for (const Case& c : cases) {
    CAPTURE(std::string(c.error));
    std::vector<std::string> words = {"attention"};
    words.insert(words.end(), c.options.begin(), c.options.end());
    const ProcessResult result = Pozor(words);
    CAPTURE(result.errors);
    CHECK(result.exit_code == c.exit_code);
    CHECK(EndsInOneError(result));
    CHECK(Contains(result.errors, c.error));
    CHECK(folder.List() == std::vector<std::string>{"two.txt"});
  }
}

// The JSON of a page's data element.
std::string DataOf(const std::string& page) {
  const std::string open = "<script type=\"application/json\" id=\"pozor-data\">";
  const size_t begin = page.find(open);
  REQUIRE(begin != std::string::npos);
  const size_t end = page.find("</script>", begin);
  return page.substr(begin + open.size(), end - begin - open.size());
}

TEST_CASE("view: hostile texts neither end the element nor reorder it") {
  const std::string right_to_left =
      // NOLINTNEXTLINE(misc-misleading-bidirectional): that it reorders nothing is the point
      "\xD7\xA9\xD7\x9C\xD7\x95\xD7\x9D \xE2\x80\xAE"
      "txet\xE2\x80\xA9 \xE2\x81\xA6";
  const std::string texts[] = {ReadFileOrEmpty(TestData("cases/P31/text.txt")),
                               "</script><script>window.x=1</script>",
                               "<!-- <script> --> ]]> ${x} `\\u003c/script>\\",
                               right_to_left,
                               "a\x01\x7F b",
                               std::string("\xF0\x9F\x98\x80 ") + "\xEF\xBF\xBE",
                               "",
                               "x"};
  for (const std::string& text : texts) {
    CAPTURE(text);
    const TemporaryFolder folder;
    RequireDone(Pozor({"attention", "view", kModel, "-f",
                       folder.Write("t.jsonl", "{\"text\": " + JsonQuote(text) + "}\n"), "-o",
                       folder.File("a.html")}));
    const std::string page = ReadFileOrEmpty(folder.File("a.html"));
    const std::string data = DataOf(page);
    for (const char c : data) CHECK((c >= 0x20 && c < 0x7F && c != '<' && c != '>' && c != '&'));
    const JsonDocument json = ParseJson(data, "page").value();
    CHECK(json->Find("texts")->items()[0].as_string() == text);
    CHECK(json->Find("tokens")->size() >= 2);
    CHECK(Contains(page, "id=\"pozor-run-0-layer-0\">"));
    CHECK(Contains(page, "id=\"pozor-run-0-layer-1\">"));
    CHECK(!Contains(page, "window.x=1</script>"));
  }
}

TEST_CASE("a text without any token") {
  const TemporaryFolder folder;
  testing::WriteLongModel(folder.File("model"), 40);
  std::string tokenizer = testing::ReadWhole(folder.File("model/tokenizer.json"));
  const size_t begin = tokenizer.find("\"post_processor\":"), end = tokenizer.find("\"decoder\":");
  REQUIRE(end < tokenizer.size());
  tokenizer.replace(begin, end - begin, "\"post_processor\":null,");
  folder.Write("model/tokenizer.json", tokenizer);
  const std::string model = folder.File("model"), empty = folder.Write("e.jsonl", "\"\"\n");
  for (const char* name : {"a.npy", "a.npz", "a.safetensors", "a.jsonl", "a.csv"}) {
    CAPTURE(std::string(name));
    for (const char* reduction : {"", "mean-heads", "rollout", "cls"}) {
      std::vector<std::string> words = {"attention", "dump",           model, "-f", empty,
                                        "-o",        folder.File(name)};
      if (*reduction != '\0') words.insert(words.end(), {"--reduce", reduction});
      RequireDone(Pozor(words));
    }
  }
  RequireDone(Pozor({"attention", "dump", model, "-f", empty, "-o", folder.File("a.npz")}));
  CHECK(Npz(folder.File("a.npz")).Array("attn").shape == std::vector<uint64_t>{2, 3, 0, 0});
  RequireDone(Pozor({"attention", "view", folder.File("a.npz"), "-o", folder.File("a.html")}));
  RequireDone(Pozor({"attention", "view", model, "-f", empty, "-o", folder.File("a.html")}));
  CHECK(Contains(ReadFileOrEmpty(folder.File("a.html")), "id=\"pozor-run-0-layer-1\">"));
  RequireDone(Pozor({"attention", "show", model, "-f", empty}));
  RequireDone(Pozor({"attention", "stats", model, "-f", empty}));
  RequireDone(Pozor({"attention", "diff", model, model, "-f", empty}));
  const ProcessResult query = Pozor({"attention", "query", model, "-f", empty, "--from", "a"});
  CHECK(query.exit_code == 2);
  CHECK(EndsInOneError(query));
}

TEST_CASE("view: a page of a dump is the page of its model") {
  const TemporaryFolder folder;
  const auto blocks = [](const std::string& page) {
    return page.substr(page.find("id=\"pozor-run-0-layer-0\""));
  };
  RequireDone(Pozor({"attention", "view", kModel, kText, "-o", folder.File("m.html")}));
  const std::string page = ReadFileOrEmpty(folder.File("m.html"));
  for (const char* name : {"a.npz", "a.npy", "a.safetensors"}) {
    CAPTURE(name);
    RequireDone(Pozor({"attention", "dump", kModel, kText, "-o", folder.File(name)}));
    RequireDone(Pozor({"attention", "view", folder.File(name), "-o", folder.File("d.html")}));
    CHECK(blocks(ReadFileOrEmpty(folder.File("d.html"))) == blocks(page));
  }
  RequireDone(
      Pozor({"attention", "dump", kModel, kText, "-o", folder.File("r.npz"), "--words", "mean"}));
  const ProcessResult refused =
      Pozor({"attention", "view", folder.File("r.npz"), "-o", folder.File("r.html")});
  CHECK(refused.exit_code == 1);
  CHECK(Contains(refused.errors, "dump it without --words"));
  const std::string whole = ReadFileOrEmpty(folder.File("a.npz"));
  for (size_t cut = 0; cut < whole.size(); cut += 97) {  // no part of a dump is a dump
    const ProcessResult part =
        Pozor({"attention", "view", folder.Write("c.npz", whole.substr(0, cut)), "-o",
               folder.File("c.html")});
    CHECK(part.exit_code == 1);
    CHECK(EndsInOneError(part));
  }
}

TEST_CASE("dump: an 8192-token text in bounded memory") {
  const TemporaryFolder folder;
  testing::WriteLongModel(folder.File("model"), 8192);
  std::string text;
  while (text.size() < 9000) text += "a b c ";
  const std::string input = folder.Write("t.txt", text + text + "\n");
  const auto peak = [&](std::vector<std::string> options) {
    options.insert(options.begin(), {"attention", "dump", folder.File("model"), "-f", input, "-o",
                                     folder.File("a.npy")});
    const ProcessResult result = Pozor(options);
    RequireDone(result);
    CHECK(Contains(result.errors, "8 192 tokens"));
    return std::stod(result.errors.substr(result.errors.rfind("memory ") + 7));
  };
  // A matrix of the text has 256 MB.
  for (const char* reduction : {"cls", "mean-heads", "max-heads"}) {
    CAPTURE(std::string(reduction));
    CHECK(peak({"--layers", "0", "--heads", "0", "--reduce", reduction, "--dtype", "u8"}) < 100);
  }
  const ProcessResult refused =
      Pozor({"attention", "dump", folder.File("model"), "-f", input, "-o", folder.File("r.npy"),
             "--reduce", "rollout", "--max-memory", "300M"});
  CHECK(refused.exit_code == 1);
  CHECK(Contains(refused.errors, "two matrices of 8192 tokens need 512 MB"));
  const ProcessResult page =
      Pozor({"attention", "view", folder.File("model"), "-f", input, "-o", folder.File("a.html")});
  CHECK(page.exit_code == 1);
  CHECK(EndsInOneError(page));
  CHECK(Contains(page.errors, "8192 tokens in 6 heads are 384 MB of weights, too many"));
  CHECK(!std::filesystem::exists(folder.File("a.html")));
}

}  // namespace
}  // namespace pozor::tools
