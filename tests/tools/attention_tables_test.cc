// pozor attention show, query, stats, diff and serve, against whole matrices.
#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstring>
#include <string>
#include <vector>

#include "models/json.h"
#include "tests/support/long_model.h"
#include "tests/support/pozor_command.h"
#include "tests/support/process.h"
#include "tests/support/word_model.h"
#include "tools/attention/encoding.h"
#include "tools/attention/find_units.h"
#include "tools/io/npy.h"
#include "tools/io/zip.h"
#include "tools/server/http_server.h"

namespace pozor::tools {
namespace {

using testing::EndsInOneError;
using testing::Lines;
using testing::Pozor;
using testing::ProcessOptions;
using testing::ProcessResult;
using testing::ReadFileOrEmpty;
using testing::TemporaryFolder;
using testing::TestData;

const std::string kModel = TestData("bert");
constexpr char kText[] = "A girl is styling";  // [CLS] a g ##i ##r ##l is s ##t ##y ##l ##ing [SEP]

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

ProcessResult Attention(std::vector<std::string> words) {
  words.insert(words.begin(), "attention");
  return Pozor(words);
}

std::string Output(const std::vector<std::string>& words) {
  const ProcessResult result = Attention(words);
  CAPTURE(result.errors);
  REQUIRE(result.exit_code == 0);
  return result.output;
}

// [layers, heads, units, units] of a dump.
struct Dump {
  std::vector<float> weights;
  size_t layers = 0, heads = 0, units = 0;

  double At(size_t l, size_t h, size_t i, size_t j) const {
    return static_cast<double>(weights[((l * heads + h) * units + i) * units + j]);
  }
};

Dump DumpOf(const std::string& model, const std::string& text, std::vector<std::string> options) {
  const TemporaryFolder folder;
  options.insert(options.begin(), {"dump", model, text, "-o", folder.File("a.npy"), "--quiet"});
  Output(options);
  const std::string bytes = ReadFileOrEmpty(folder.File("a.npy"));
  const NpyArray array = ParseNpy(bytes, "a.npy").value();
  Dump dump;
  dump.layers = array.shape[0];
  dump.heads = array.shape[1];
  dump.units = array.shape[2];
  dump.weights.resize(array.data.size() / 4);
  std::memcpy(dump.weights.data(), array.data.data(), array.data.size());
  return dump;
}

TEST_CASE("query: where a word looks, who looks at it, and the weight between two") {
  const Dump words = DumpOf(kModel, kText, {"--words", "mean"});  // [CLS] A girl is styling [SEP]
  REQUIRE(words.units == 6);
  const JsonDocument from =
      ParseJson(Output({"query", kModel, kText, "--from", "GIRL", "--top", "2", "--json"}), "json")
          .value();
  REQUIRE(from->Find("heads")->size() == 6);
  for (size_t slot = 0; slot < 6; ++slot) {
    const JsonValue& head = from->Find("heads")->items()[slot];
    const JsonValue& looks = *head.Find("looks");
    REQUIRE(looks.size() == 2);
    const size_t l = slot / 3, h = slot % 3;
    CHECK(head.Find("layer")->as_int() == static_cast<int64_t>(l));
    size_t best = 0;
    for (size_t j = 1; j < 6; ++j) best = words.At(l, h, 2, j) > words.At(l, h, 2, best) ? j : best;
    CHECK(looks.items()[0].Find("from_text")->as_string() == "girl");
    CHECK(looks.items()[0].Find("to")->as_int() == static_cast<int64_t>(best));
    CHECK(looks.items()[0].Find("weight")->as_double() == doctest::Approx(words.At(l, h, 2, best)));
  }
  const std::vector<std::string> csv =
      Lines(Output({"query", kModel, kText, "--to", "girl", "--top", "99", "--csv"}));
  CHECK(csv.size() == 1 + 6 * 6);
  for (size_t i = 1; i < csv.size(); ++i) CHECK(Contains(csv[i], ",girl,"));

  const JsonDocument pair =
      ParseJson(Output({"query", kModel, kText, "--from", "@1", "--to", "girl", "--json"}), "json")
          .value();
  double before = 2;
  for (const JsonValue& head : pair->Find("heads")->items()) {
    const double weight = head.Find("looks")->items()[0].Find("weight")->as_double();
    const auto l = static_cast<size_t>(head.Find("layer")->as_int());
    const auto h = static_cast<size_t>(head.Find("head")->as_int());
    CHECK(weight == doctest::Approx(words.At(l, h, 1, 2)));
    CHECK(weight <= before);
    before = weight;
  }
  CHECK(
      Contains(Output({"query", kModel, kText, "--from", "##ing", "--pieces"}), "where it looks"));

  const ProcessResult unknown = Attention({"query", kModel, kText, "--from", "boat"});
  CHECK(unknown.exit_code == 2);
  CHECK(Contains(unknown.errors,
                 "'boat' is not in the text, which has [CLS] A girl is styling [SEP]"));
  CHECK(EndsInOneError(unknown));
  CHECK(Attention({"query", kModel, kText}).exit_code == 2);
}

TEST_CASE("show: matrices, and a word in every head, without colours in a pipe") {
  const Dump words = DumpOf(kModel, kText, {"--words", "mean"});
  const std::string shades = Output({"show", kModel, kText});
  CHECK(!Contains(shades, "\x1b"));
  CHECK(Contains(shades, "layer 0\n") == false);  // the header has the numbers of the columns
  CHECK(Contains(shades, "layer 1"));
  CHECK(Contains(shades, "2 girl"));
  const std::vector<std::string> lines =
      Lines(Output({"show", kModel, kText, "--token", "girl", "--numbers"}));
  REQUIRE(lines.size() == 2 + 6 + 1);
  for (size_t slot = 0; slot < 6; ++slot) {
    char last[16];
    std::snprintf(last, sizeof last, "%.3f", words.At(slot / 3, slot % 3, 2, 5));
    CHECK(lines[2 + slot].ends_with(std::string(last).substr(1)));
  }
  CHECK(Contains(Output({"show", kModel, kText, "--heads", "1:2"}), "layer 1 head 2"));
  CHECK(Contains(Output({"show", kModel, kText, "--reduce", "rollout"}), "rollout"));
  // NOLINTNEXTLINE(misc-misleading-bidirectional): that it does not come through is the point
  CHECK(Printable("a\nb\xE2\x80\xAE\x1b[2J", 99) == "a?b??[2J");
  CHECK(Printable("abcdef", 4) == "abc~");
}

TEST_CASE("stats: means over the rows of all texts") {
  const std::string texts[] = {kText, "her hair"};
  std::vector<double> sums(6 * 8);
  double rows = 0;
  for (const std::string& text : texts) {
    const Dump dump = DumpOf(kModel, text, {});
    rows += static_cast<double>(dump.units);
    const size_t last = dump.units - 1;
    for (size_t slot = 0; slot < 6; ++slot) {
      for (size_t i = 0; i <= last; ++i) {
        double* sum = &sums[slot * 8];
        double largest = 0;
        for (size_t j = 0; j <= last; ++j) {
          const double w = dump.At(slot / 3, slot % 3, i, j);
          sum[0] -= w > 0 ? w * std::log(w) : 0;
          sum[1] += w * std::abs(static_cast<double>(i) - static_cast<double>(j));
          largest = std::max(largest, w);
        }
        sum[2] += dump.At(slot / 3, slot % 3, i, 0);
        sum[3] += dump.At(slot / 3, slot % 3, i, last);
        sum[4] += dump.At(slot / 3, slot % 3, i, i);
        sum[5] += i > 0 ? dump.At(slot / 3, slot % 3, i, i - 1) : 0;
        sum[6] += i < last ? dump.At(slot / 3, slot % 3, i, i + 1) : 0;
        sum[7] += largest;
      }
    }
  }
  const TemporaryFolder folder;
  const std::string file = folder.Write("t.txt", texts[0] + "\n" + texts[1] + "\n");
  const JsonDocument json =
      ParseJson(Output({"stats", kModel, "-f", file, "--json"}), "json").value();
  CHECK(json->Find("texts")->as_int() == 2);
  constexpr const char* kNames[] = {"entropy", "distance", "first", "special",
                                    "self",    "previous", "next",  "largest"};
  for (size_t slot = 0; slot < 6; ++slot) {
    for (size_t m = 0; m < 8; ++m) {
      CAPTURE(std::string(kNames[m]));
      const double got = json->Find("heads")->items()[slot].Find(kNames[m])->as_double();
      CHECK(got == doctest::Approx(sums[slot * 8 + m] / rows).epsilon(1e-6));
    }
  }
  CHECK(Lines(Output({"stats", kModel, "-f", file, "--csv"})).size() == 7);
  CHECK(Lines(Output({"stats", kModel, "-f", file, "--map", "entropy"})).size() == 3);
  const ProcessResult bad =
      Attention({"stats", kModel, "-f", folder.Write("bad.txt", "a\n\xFF\n")});
  CHECK(bad.exit_code == 1);
  CHECK(EndsInOneError(bad));
}

TEST_CASE("diff: nothing against itself; dumps of two kinds; what cannot be compared") {
  const TemporaryFolder folder;
  const JsonDocument same =
      ParseJson(Output({"diff", kModel, kModel, kText, "--json", "--fail-above", "0"}), "json")
          .value();
  REQUIRE(same->Find("heads")->size() == 6);
  for (const JsonValue& head : same->Find("heads")->items()) {
    CHECK(head.Find("js")->as_double() == 0);
    CHECK(head.Find("max")->as_double() == 0);
    CHECK(head.Find("overlap")->as_double() == 1);
  }

  Output({"dump", kModel, kText, "-o", folder.File("a.npz")});
  Output({"dump", kModel, kText, "-o", folder.File("b.safetensors"), "--dtype", "u8"});
  const Dump exact = DumpOf(kModel, kText, {});
  double worst = 0;
  for (const float weight : exact.weights) {
    worst =
        std::max(worst, std::abs(static_cast<double>(FromSqrtByte(ToSqrtByte(weight)) - weight)));
  }
  const std::string a = folder.File("a.npz"), b = folder.File("b.safetensors");
  const JsonDocument coarse =
      ParseJson(Output({"diff", a, b, "--json", "--by", "max", "-o", folder.File("d.html")}),
                "json")
          .value();
  const double largest = coarse->Find("heads")->items()[0].Find("max")->as_double();
  CHECK(largest == doctest::Approx(worst).epsilon(1e-6));
  CHECK(coarse->Find("heads")->items()[0].Find("js")->as_double() > 0);
  const ProcessResult written = Attention({"diff", a, b, "-o", folder.File("d.html")});
  CHECK(Contains(written.errors, "d.html: A, B and B - A, 13 tokens, 6 heads"));
  CHECK(Attention({"diff", a, b, "-o", folder.File("d.html"), "--quiet"}).errors.empty());
  const std::string page = ReadFileOrEmpty(folder.File("d.html"));
  for (const char* element :
       {"id=\"pozor-run-0-layer-1\"", "id=\"pozor-run-1-layer-0\"", "\"label\": \"B\""}) {
    CHECK(Contains(page, element));
  }
  const ProcessResult above = Attention({"diff", a, b, "--by", "max", "--fail-above", "1e-5"});
  CHECK(above.exit_code == 1);
  CHECK(Contains(above.errors, "is above --fail-above"));
  CHECK(EndsInOneError(above));
  CHECK(Attention({"diff", a, b, "--by", "max", "--fail-above", "0.1"}).exit_code == 0);
  CHECK(Output({"diff", kModel, a, kText, "--csv"})
            .starts_with("layer,head,js,mean,max,overlap\r\n"));

  struct Case {
    std::vector<std::string> words;
    int exit_code;
    const char* error;
  };
  const Case cases[] = {
      {{kModel, TestData("bert-relu"), kText}, 1, "the two runs have different"},
      {{a, kModel, "something else"}, 1, "the two runs have different tokens"},
      {{kModel}, 2, "nothing to compare with"},
      {{kModel, "--precision", "f32,f64", kText}, 2, "'f64' is none of f32|bf16|int8"},
      {{a, b, "text"}, 2, "leave the text out"},
      {{kModel, kModel, "--precision", "f32,bf16"}, 2, "is a model's folder and stands for the"},
      {{kModel, kModel, kText, kText, "--precision", "f32,bf16"}, 2, "one word too many"},
  };
  for (const Case& c : cases) {
    CAPTURE(std::string(c.error));
    std::vector<std::string> words = {"diff"};
    words.insert(words.end(), c.words.begin(), c.words.end());
    const ProcessResult result = Attention(words);
    CAPTURE(result.errors);
    CHECK(result.exit_code == c.exit_code);
    CHECK(Contains(result.errors, c.error));
    CHECK(EndsInOneError(result));
  }
}

TEST_CASE("diff: two precisions of one model") {
  for (const char* precision : {"int8", "bf16"}) {
    CAPTURE(std::string(precision));
    const ProcessResult result =
        Attention({"diff", kModel, kText, "--precision", std::string(precision) + ",f32"});
    CAPTURE(result.errors);
    if (result.exit_code == 0) {
      CHECK(Contains(result.output, std::string("(") + precision + ")"));
    } else {
      CHECK(result.exit_code == 1);  // a version without it says so by name
      CHECK(Contains(result.errors, std::string("precision ") + precision));
      CHECK(EndsInOneError(result));
    }
  }
}

TEST_CASE("diff: prepared weights on either side, with and without a precision") {
  const TemporaryFolder folder;
  for (const std::string precision : {"int8", "bf16"}) {
    CAPTURE(precision);
    const std::string prepared = folder.File(precision);
    REQUIRE(Pozor({"quantize", kModel, "-o", prepared, "--no-gate", "--precision", precision})
                .exit_code == 0);
    const std::string texts = folder.Write("texts.txt", std::string(kText) + "\n");
    const std::string other = "(" + precision + ")";
    const auto sides = [&](std::vector<std::string> words) {
      words.insert(words.begin(), "diff");
      const std::string table = Output(words);
      return table.substr(0, table.find('\n'));
    };
    for (const std::string& line :
         {sides({kModel, prepared, kText}), sides({kModel, prepared, "-f", texts}),
          sides({kModel, prepared, kText, "--precision", "f32," + precision}),
          sides({kModel, prepared, "-f", texts, "--precision", "f32," + precision})}) {
      CAPTURE(line);
      CHECK(line.find("(f32)") < line.find(other));
      CHECK(Contains(line, other));
    }
    const std::string reversed = sides({prepared, kModel, kText});
    CHECK(reversed.find(other) < reversed.find("(f32)"));
    const ProcessResult refused =
        Attention({"diff", kModel, prepared, kText, "--precision", precision + ",f32"});
    CHECK(refused.exit_code == 1);
    CHECK(Contains(refused.errors, "prepared for " + precision + ", not those for f32"));
    CHECK(EndsInOneError(refused));
  }
}

TEST_CASE("diff: two tasks of one model, one task of both") {
  const TemporaryFolder folder;
  const std::string model = testing::MakeWordModel(folder, "jina-embeddings-v3-tasks");
  const auto moved = [&](const std::string& task, std::vector<std::string> words) {
    words.insert(words.begin(), {"diff", model});
    words.insert(words.end(), {"--task", task, "--by", "max", "--fail-above", "1e-6"});
    const ProcessResult result = Attention(words);
    CAPTURE(result.errors);
    CHECK(result.exit_code <= 1);
    CHECK(!result.output.empty());
    return result.exit_code == 1;
  };
  CHECK(moved("separation,classification", {kText}));
  CHECK(moved("separation,", {kText}));
  CHECK_FALSE(moved("separation,separation", {kText}));
  CHECK_FALSE(moved("separation", {model, kText}));
  CHECK(moved("separation,classification", {model, kText}));
  const ProcessResult refused = Attention({"diff", model, kText, "--task", "separation,summary"});
  CHECK(refused.exit_code == 1);
  CHECK(Contains(refused.errors, "summary"));
  CHECK(EndsInOneError(refused));
  const ProcessResult bench = Pozor({"bench", model, "--task", "summary", "--suite", "quick"});
  CHECK(bench.exit_code == 1);
  CHECK(Contains(bench.errors, "summary"));
}

// A port that was free a moment ago.
uint16_t FreePort() {
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  REQUIRE(::bind(listener, reinterpret_cast<sockaddr*>(&address), size) == 0);
  REQUIRE(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  ::close(listener);
  return ntohs(address.sin_port);
}

std::string Exchange(uint16_t port, const std::string& request) {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  std::string answer;
  if (::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
      ::send(socket, request.data(), request.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(request.size())) {
    char block[4096];
    for (ssize_t count; (count = ::recv(socket, block, sizeof block, 0)) > 0;) {
      answer.append(block, static_cast<size_t>(count));
    }
  }
  ::close(socket);
  return answer;
}

std::string Get(uint16_t port, const std::string& target, const std::string& method = "GET") {
  return Exchange(port, method + " " + target + " HTTP/1.1\r\nHost: 127.0.0.1:" +
                            std::to_string(port) + "\r\nConnection: close\r\n\r\n");
}

std::string Body(const std::string& answer) { return answer.substr(answer.find("\r\n\r\n") + 4); }

bool HasStatus(const std::string& answer, int status) {
  return answer.starts_with("HTTP/1.1 " + std::to_string(status) + " ");
}

TEST_CASE("serve: the page, matrices, rows and columns; refuses the rest; ends on Ctrl-C") {
  const Dump dump = DumpOf(kModel, kText, {});
  const size_t n = dump.units;
  std::string coded;
  AppendEncoded(dump.weights.data(), dump.weights.size(), WeightType::kSqrtU8, &coded);
  const uint16_t port = FreePort();
  ProcessOptions options;
  options.signal = SIGINT;
  bool asked = false;
  options.signal_when = [&](size_t) {
    const std::string page = Get(port, "/");
    if (page.empty()) return false;  // it does not listen yet
    asked = true;
    CHECK(HasStatus(page, 200));
    CHECK(Contains(page, "\"source\": \"served\""));
    CHECK(!Contains(page, "pozor-run-0-layer-0\">"));
    CHECK(ParseJson(Body(Get(port, "/data.json")), "json").ok());
    CHECK(Body(Get(port, "/layer/1/head/2")) == coded.substr(5 * n * n));
    CHECK(Body(Get(port, "/layer/0/head/1?rows=2-4&run=0")) == coded.substr(n * n + 2 * n, 2 * n));
    std::string row, column;
    for (size_t slot = 0; slot < 6; ++slot) {
      row += coded.substr(slot * n * n + 3 * n, n);
      for (size_t i = 0; i < n; ++i) column += coded[slot * n * n + i * n + 3];
    }
    CHECK(Body(Get(port, "/token/3/from")) == row);
    CHECK(Body(Get(port, "/token/3/to")) == column);
    struct Case {
      const char* target;
      int status;
    };
    for (const Case& c :
         {Case{"/layer/2/head/0", 404}, Case{"/layer/0/head/3", 404}, Case{"/nothing", 404},
          Case{"/layer/x/head/0", 400}, Case{"/layer/0/head/0?rows=9-3", 400},
          Case{"/layer/0/head/0?rows=0-999", 400}, Case{"/token/99/from", 400},
          Case{"/token/0/sideways", 404}, Case{"/layer/0/head/0?run=1", 404}, Case{"/%zz", 400},
          Case{"/../../etc/passwd", 404}}) {
      CAPTURE(std::string(c.target));
      CHECK(HasStatus(Get(port, c.target), c.status));
    }
    CHECK(HasStatus(Get(port, "/", "POST"), 405));
    CHECK(Body(Get(port, "/", "HEAD")).empty());
    CHECK(HasStatus(
        Exchange(port, "GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n"), 403));
    CHECK(HasStatus(Exchange(port, "nonsense\r\n\r\n"), 400));
    return true;
  };
  const ProcessResult result =
      Pozor({"attention", "serve", kModel, kText, "--port", std::to_string(port)}, options);
  CAPTURE(result.errors);
  CHECK(asked);
  CHECK(result.exit_code == 0);
  CHECK(result.output == "http://127.0.0.1:" + std::to_string(port) + "/\n");
}

TEST_CASE("serve: addresses taken apart") {
  HttpRequest request;
  REQUIRE(ParseTarget("/a%20b/c?x=1&y=%26&z", &request));
  CHECK(request.path == "/a b/c");
  CHECK(request.query["x"] == "1");
  CHECK(request.query["y"] == "&");
  CHECK(request.query.contains("z"));
  for (const char* bad : {"", "a", "/%", "/%2", "/%G0", "/?a=%"})
    CHECK(!ParseTarget(bad, &request));
}

}  // namespace
}  // namespace pozor::tools
