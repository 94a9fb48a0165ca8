#include "tools/attention/serve.h"

#include <charconv>
#include <cstdio>

#include "tools/attention/encoding.h"
#include "tools/attention/page.h"
#include "tools/cli/report.h"
#include "tools/cli/signals.h"
#include "tools/io/output_file.h"
#include "tools/server/http_server.h"

namespace pozor::tools {
namespace {

// Everything at once would not fit into memory: a nameless file holds the matrices one after
// another, and each request reads its part.
class AttentionServer {
 public:
  AttentionServer(AttentionSource& source, WeightType type) : source_(source), type_(type) {}

  Status Prepare();
  HttpResponse Answer(const HttpRequest& request) const;

 private:
  HttpResponse Matrix(size_t layer, size_t head, const HttpRequest& request) const;
  HttpResponse Token(size_t token, bool to) const;
  HttpResponse Read(const std::function<Status(std::string*)>& read) const;
  size_t tokens() const { return source_.record().text.size(); }
  uint64_t RowBytes() const { return tokens() * SizeOf(type_); }

  AttentionSource& source_;
  const WeightType type_;
  std::unique_ptr<OutputFile> matrices_;  // [heads, tokens, tokens]
  std::string json_, page_;
};

const char kOctets[] = "application/octet-stream";

HttpResponse Refuse(int status, const std::string& why) {
  return {status, "text/plain; charset=utf-8", why + "\n"};
}

bool ParseNumber(std::string_view text, size_t* number) {
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), *number);
  return !text.empty() && parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
}

// Numbers and words between slashes: "/layer/3/head/5".
std::vector<std::string_view> Parts(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    path.remove_prefix(1);
    parts.push_back(path.substr(0, path.find('/')));
    path.remove_prefix(parts.back().size());
  }
  return parts;
}

Status AttentionServer::Prepare() {
  POZOR_TRY(matrices_, OutputFile::CreateSpool());
  std::string bytes;
  POZOR_RETURN_IF_ERROR(source_.Stream({}, [&](const AttentionRows& rows) {
    bytes.clear();
    for (size_t i = 0; i < rows.queries; ++i) {
      AppendEncoded(rows.Row(i), rows.keys, type_, &bytes);
    }
    return matrices_->Write(bytes);
  }));
  POZOR_RETURN_IF_ERROR(matrices_->Flush());
  AttentionSource* const sources[] = {&source_};
  json_ = PageJson(sources, type_, "served");
  page_ = ServedPage(json_);
  return Status();
}

HttpResponse AttentionServer::Read(const std::function<Status(std::string*)>& read) const {
  HttpResponse response{200, kOctets, {}};
  const Status status = read(&response.body);
  if (status.ok()) return response;
  PrintError(status.message());
  return Refuse(500, status.message());
}

HttpResponse AttentionServer::Matrix(size_t layer, size_t head, const HttpRequest& request) const {
  const HeadSet& set = source_.record().heads;
  const size_t index = set.LayerIndex(layer), slot = set.Slot(layer, head);
  const bool known = index < set.layers.size() && slot < set.Count() &&
                     set.Pairs()[slot] == std::pair(layer, head);
  if (!known) return Refuse(404, "no such layer and head here");
  size_t begin = 0, end = tokens();
  if (const auto rows = request.query.find("rows"); rows != request.query.end()) {
    const size_t dash = rows->second.find('-');
    const std::string_view text = rows->second;
    const bool valid = dash != std::string::npos && ParseNumber(text.substr(0, dash), &begin) &&
                       ParseNumber(text.substr(dash + 1), &end) && begin <= end && end <= tokens();
    if (!valid) return Refuse(400, "rows: write B-E within the text");
  }
  return Read([&](std::string* body) {
    body->resize((end - begin) * RowBytes());
    return matrices_->ReadAt((slot * tokens() + begin) * RowBytes(), body->size(), body->data());
  });
}

// A row, or a column, of every head.
HttpResponse AttentionServer::Token(size_t token, bool to) const {
  if (token >= tokens()) return Refuse(400, "the text has no such token");
  const size_t heads = source_.record().heads.Count(), width = SizeOf(type_);
  return Read([&](std::string* body) {
    body->resize(heads * RowBytes());
    for (size_t slot = 0; slot < heads; ++slot) {
      char* out = body->data() + slot * RowBytes();
      const uint64_t matrix = slot * tokens() * RowBytes();
      if (!to) {
        POZOR_RETURN_IF_ERROR(matrices_->ReadAt(matrix + token * RowBytes(), RowBytes(), out));
        continue;
      }
      for (size_t query = 0; query < tokens(); ++query) {
        POZOR_RETURN_IF_ERROR(matrices_->ReadAt(matrix + query * RowBytes() + token * width, width,
                                                out + query * width));
      }
    }
    return Status();
  });
}

HttpResponse AttentionServer::Answer(const HttpRequest& request) const {
  if (request.path == "/") return {200, "text/html; charset=utf-8", page_};
  if (request.path == "/data.json") return {200, "application/json", json_};
  const auto run = request.query.find("run");
  if (run != request.query.end() && run->second != "0") return Refuse(404, "there is one run here");
  const std::vector<std::string_view> parts = Parts(request.path);
  size_t a = 0, b = 0;
  if (parts.size() == 4 && parts[0] == "layer" && parts[2] == "head") {
    if (!ParseNumber(parts[1], &a) || !ParseNumber(parts[3], &b)) {
      return Refuse(400, "layer and head are numbers");
    }
    return Matrix(a, b, request);
  }
  if (parts.size() == 3 && parts[0] == "token" && (parts[2] == "from" || parts[2] == "to")) {
    if (!ParseNumber(parts[1], &a)) return Refuse(400, "a token is a number");
    return Token(a, parts[2] == "to");
  }
  return Refuse(404, "nothing is here; / is the page");
}

}  // namespace

Status RunAttentionServe(ServeRequest request) {
  const std::atomic<bool>* cancel = CancelOnSignals();
  request.attention.encode.cancel = cancel;
  request.attention.input_options.cancel = cancel;
  std::optional<AttentionModel> model;
  POZOR_TRY(const auto source, OpenOne(request.attention, "serve", true, &model));
  AttentionServer server(*source, request.exact ? WeightType::kF16 : WeightType::kSqrtU8);
  POZOR_RETURN_IF_ERROR(AsFailure(server.Prepare()));
  HttpServerOptions options;
  options.port = request.port;
  options.cancel = cancel;
  options.ready = [&](uint16_t port) {
    std::printf("http://127.0.0.1:%u/\n", static_cast<unsigned>(port));
    std::fflush(stdout);
    if (request.attention.quiet) return;
    std::fprintf(stderr, "pozor: %zu tokens, %zu heads; self-check: %s; Ctrl-C ends it\n",
                 source->record().text.size(), source->record().heads.Count(),
                 SelfCheckText(source->record().runs[0]).c_str());
  };
  return ServeHttp(options, [&](const HttpRequest& r) { return server.Answer(r); });
}

}  // namespace pozor::tools
