#include "pozor/status.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>

namespace pozor {
namespace {

Result<int> Half(int n) {
  if (n % 2 != 0) return InvalidArgument("number " + std::to_string(n) + ": odd; give an even one");
  return n / 2;
}

Result<int> Quarter(int n) {
  POZOR_TRY(const int half, Half(n));
  POZOR_TRY(const int quarter, Half(half));
  return quarter;
}

Status CheckQuarter(int n) {
  POZOR_RETURN_IF_ERROR(Quarter(n).status());
  return {};
}

TEST_CASE("errors travel up with code and message") {
  CHECK(Quarter(8).value() == 2);
  CHECK(CheckQuarter(8).ok());
  const Result<int> failed = Quarter(6);
  REQUIRE(!failed);
  CHECK(failed.status().code() == StatusCode::kInvalidArgument);
  CHECK(failed.status().message() == "number 3: odd; give an even one");
  CHECK(CheckQuarter(7).message() == "number 7: odd; give an even one");
}

TEST_CASE("context goes before the message and keeps the code") {
  const Status status = NotFound("file: absent; check the path").WithContext("model");
  CHECK(status.code() == StatusCode::kNotFound);
  CHECK(status.message() == "model: file: absent; check the path");
  CHECK(Status().WithContext("model").ok());
  CHECK(Status().WithContext("model").message().empty());
}

TEST_CASE("results move what cannot be copied") {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(5);
  REQUIRE(result.ok());
  const std::unique_ptr<int> moved = std::move(result).value();
  CHECK(*moved == 5);
}

TEST_CASE("every code has its maker") {
  CHECK(Unsupported("x").code() == StatusCode::kUnsupported);
  CHECK(Corrupt("x").code() == StatusCode::kCorrupt);
  CHECK(IoError("x").code() == StatusCode::kIo);
  CHECK(ResourceExhausted("x").code() == StatusCode::kResourceExhausted);
  CHECK(Cancelled("x").code() == StatusCode::kCancelled);
}

}  // namespace
}  // namespace pozor
