// The only door to Boost.Beast: a small HTTP server for this machine alone.
#ifndef POZOR_TOOLS_SERVER_HTTP_SERVER_H_
#define POZOR_TOOLS_SERVER_HTTP_SERVER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "pozor/status.h"

namespace pozor::tools {

struct HttpRequest {
  std::string method;                        // "GET"
  std::string path;                          // "/layer/3/head/5", percent-decoded
  std::map<std::string, std::string> query;  // of "?rows=0-9&run=1"
};

struct HttpResponse {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
};

struct HttpServerOptions {
  uint16_t port = 0;  // 0: any free one
  const std::atomic<bool>* cancel = nullptr;
  std::function<void(uint16_t port)> ready;  // it listens now
};

using HttpHandler = std::function<HttpResponse(const HttpRequest&)>;

// Listens on 127.0.0.1 until *cancel is set; requests are answered one after another. GET and HEAD
// only. A request for another host's name is refused, so that no web page can point its own name
// here (DNS rebinding).
Status ServeHttp(const HttpServerOptions& options, const HttpHandler& handler);

// "/a/b?x=1": path and query. False if it is malformed.
bool ParseTarget(const std::string& target, HttpRequest* request);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_SERVER_HTTP_SERVER_H_
