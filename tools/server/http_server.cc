#include "tools/server/http_server.h"

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

namespace pozor::tools {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;
using Tcp = asio::ip::tcp;

constexpr auto kIdle = std::chrono::seconds(60);
constexpr auto kLookForCancel = std::chrono::milliseconds(100);
constexpr uint32_t kMostHeaderBytes = 16 << 10;

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::optional<std::string> PercentDecode(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const int high = HexDigit(text[i + 1]), low = HexDigit(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    decoded += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return decoded;
}

bool IsThisMachine(std::string_view host, uint16_t port) {
  const std::string suffix = ":" + std::to_string(port);
  return host == "127.0.0.1" + suffix || host == "localhost" + suffix;
}

// One connection: requests one after another until it closes or idles.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(Tcp::socket socket, uint16_t port, const HttpHandler& handler)
      : stream_(std::move(socket)), port_(port), handler_(handler) {}

  void Read() {
    parser_.emplace();
    parser_->header_limit(kMostHeaderBytes);
    parser_->body_limit(0);
    stream_.expires_after(kIdle);
    http::async_read(
        stream_, buffer_, *parser_,
        [self = shared_from_this()](error_code error, size_t) { self->OnRead(error); });
  }

 private:
  void OnRead(error_code error) {
    if (error == http::error::end_of_stream) {
      stream_.socket().shutdown(Tcp::socket::shutdown_send, error);
      return;
    }
    const bool malformed =
        error.category() == make_error_code(http::error::end_of_stream).category();
    if (error.failed() && malformed) {
      return Write({400, "text/plain; charset=utf-8", "not a request\n"}, false);
    }
    if (error.failed()) return;  // the peer has gone, or idled
    const auto& request = parser_->get();
    const bool keep = request.keep_alive();
    Write(Answer(request), keep);
  }

  HttpResponse Answer(const http::request<http::empty_body>& message) const {
    const std::string text = "text/plain; charset=utf-8";
    if (!IsThisMachine(std::string_view(message[http::field::host]), port_)) {
      return {403, text, "only 127.0.0.1 and localhost are served\n"};
    }
    HttpRequest request;
    request.method = std::string(message.method_string());
    if (request.method != "GET" && request.method != "HEAD") {
      return {405, text, "only GET is served\n"};
    }
    if (!ParseTarget(std::string(message.target()), &request)) {
      return {400, text, "the address is malformed\n"};
    }
    return handler_(request);
  }

  void Write(HttpResponse answer, bool keep) {
    const bool head = parser_->get().method() == http::verb::head;
    response_ = {static_cast<http::status>(answer.status), 11};
    response_.set(http::field::content_type, answer.type);
    response_.set(http::field::cache_control, "no-store");
    response_.set("X-Content-Type-Options", "nosniff");
    response_.set("Cross-Origin-Resource-Policy", "same-origin");
    if (answer.status == 405) response_.set(http::field::allow, "GET, HEAD");
    response_.keep_alive(keep);
    const size_t size = answer.body.size();
    if (!head) response_.body() = std::move(answer.body);
    response_.content_length(size);
    stream_.expires_after(kIdle);
    serializer_.emplace(response_);
    http::async_write(stream_, *serializer_,
                      [self = shared_from_this(), keep](error_code error, size_t) {
                        if (!error.failed() && keep) return self->Read();
                        self->stream_.socket().shutdown(Tcp::socket::shutdown_send, error);
                      });
  }

  beast::tcp_stream stream_;
  const uint16_t port_;
  const HttpHandler& handler_;
  beast::flat_buffer buffer_{kMostHeaderBytes + 4096};
  std::optional<http::request_parser<http::empty_body>> parser_;
  http::response<http::string_body> response_;
  std::optional<http::response_serializer<http::string_body>> serializer_;
};

class Server {
 public:
  Server(const HttpServerOptions& options, const HttpHandler& handler)
      : options_(options), handler_(handler), acceptor_(context_), timer_(context_) {}

  Status Run() {
    error_code error;
    const Tcp::endpoint address(asio::ip::address_v4::loopback(), options_.port);
    acceptor_.open(address.protocol(), error);
    if (!error.failed()) acceptor_.set_option(Tcp::acceptor::reuse_address(true), error);
    if (!error.failed()) acceptor_.bind(address, error);
    if (!error.failed()) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (!error.failed()) port_ = acceptor_.local_endpoint(error).port();
    if (error.failed()) {
      return IoError("127.0.0.1:" + std::to_string(options_.port) +
                     ": cannot be listened on: " + error.message() + "; choose another --port");
    }
    Accept();
    LookForCancel();
    if (options_.ready) options_.ready(port_);
    context_.run();
    return Status();
  }

 private:
  void Accept() {
    acceptor_.async_accept([this](error_code error, Tcp::socket socket) {
      if (!error.failed()) std::make_shared<Session>(std::move(socket), port_, handler_)->Read();
      if (error != asio::error::operation_aborted) Accept();
    });
  }

  // A signal handler may only set a flag.
  void LookForCancel() {
    if (options_.cancel == nullptr) return;
    timer_.expires_after(kLookForCancel);
    timer_.async_wait([this](error_code) {
      if (options_.cancel->load()) return context_.stop();
      LookForCancel();
    });
  }

  const HttpServerOptions& options_;
  const HttpHandler& handler_;
  asio::io_context context_{1};
  Tcp::acceptor acceptor_;
  asio::steady_timer timer_;
  uint16_t port_ = 0;
};

}  // namespace

bool ParseTarget(const std::string& target, HttpRequest* request) {
  if (!target.starts_with('/')) return false;
  const size_t question = target.find('?');
  const auto path = PercentDecode(std::string_view(target).substr(0, question));
  if (!path) return false;
  request->path = *path;
  if (question == std::string::npos) return true;
  std::string_view rest = std::string_view(target).substr(question + 1);
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    const size_t equals = part.find('=');
    const auto key = PercentDecode(part.substr(0, equals));
    const auto value =
        PercentDecode(equals == part.npos ? std::string_view() : part.substr(equals + 1));
    if (!key || !value) return false;
    request->query[*key] = *value;
  }
  return true;
}

Status ServeHttp(const HttpServerOptions& options, const HttpHandler& handler) try {
  return Server(options, handler).Run();
} catch (const std::exception& error) {
  return IoError(std::string("server: ") + error.what() + "; start it again");
}

}  // namespace pozor::tools
