// Status and Result<T>: how Pozor reports everything that comes from outside.
//
// A message is one line, "<what>: <why>; <what to do>", without a trailing full stop.
#ifndef POZOR_STATUS_H_
#define POZOR_STATUS_H_

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

namespace pozor {

enum class StatusCode : uint8_t {
  kOk = 0,
  kInvalidArgument,    // an option or a call is wrong
  kNotFound,           // a file, model, tensor or name does not exist
  kUnsupported,        // well-formed, but Pozor cannot run it correctly
  kCorrupt,            // a file breaks its own format
  kIo,                 // the operating system refused to read or write
  kResourceExhausted,  // a memory ceiling or a limit would be passed
  kCancelled,          // the caller asked to stop
  kInternal,
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }

  // Same code, message "<where>: <message>".
  Status WithContext(const std::string& where) const {
    return ok() ? *this : Status(code_, where + ": " + message_);
  }

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

// A value, or the Status that says why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = T;

  Result(T value) : value_(std::move(value)) {}          // NOLINT: implicit on purpose
  Result(Status status) : status_(std::move(status)) {}  // NOLINT: implicit on purpose

  bool ok() const { return value_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Status& status() const { return status_; }

  // The value; a program in which failure is fatal may call these without asking first: an error
  // then ends it with the message on standard error.
  T& value() & { return Checked(), *value_; }
  const T& value() const& { return Checked(), *value_; }
  T value() && { return Checked(), std::move(*value_); }

  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  void Checked() const {
    if (ok()) return;
    std::fprintf(stderr, "pozor: %s\n", status_.message().c_str());
    std::abort();
  }

  std::optional<T> value_;
  Status status_;
};

inline Status InvalidArgument(std::string message) {
  return Status(StatusCode::kInvalidArgument, std::move(message));
}
inline Status NotFound(std::string message) {
  return Status(StatusCode::kNotFound, std::move(message));
}
inline Status Unsupported(std::string message) {
  return Status(StatusCode::kUnsupported, std::move(message));
}
inline Status Corrupt(std::string message) {
  return Status(StatusCode::kCorrupt, std::move(message));
}
inline Status IoError(std::string message) { return Status(StatusCode::kIo, std::move(message)); }
inline Status ResourceExhausted(std::string message) {
  return Status(StatusCode::kResourceExhausted, std::move(message));
}
inline Status Cancelled(std::string message) {
  return Status(StatusCode::kCancelled, std::move(message));
}

}  // namespace pozor

// Returns the error of an expression of type Status from the enclosing function.
#define POZOR_RETURN_IF_ERROR(expression)                                                     \
  do {                                                                                        \
    if (::pozor::Status pozor_status = (expression); !pozor_status.ok()) return pozor_status; \
  } while (false)

#define POZOR_CONCAT_INNER(a, b) a##b
#define POZOR_CONCAT(a, b) POZOR_CONCAT_INNER(a, b)

// POZOR_TRY(auto file, OpenFile(path)): declares `file`, or returns the error.
#define POZOR_TRY(declaration, expression) \
  POZOR_TRY_INNER(declaration, expression, POZOR_CONCAT(pozor_result_, __LINE__))
#define POZOR_TRY_INNER(declaration, expression, name) \
  auto name = (expression);                            \
  if (!name.ok()) return name.status();                \
  declaration = std::move(*name)

#endif  // POZOR_STATUS_H_
