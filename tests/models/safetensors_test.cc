#include "models/formats/safetensors.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "models/formats/float_formats.h"
#include "tests/models/golden.h"
#include "tests/support/cpu_time.h"

namespace pozor {
namespace {

using test::DataPath;

std::string TemporaryFile(const std::string& header, const std::string& data) {
  static int count = 0;
  const std::string path =
      (std::filesystem::temp_directory_path() /
       ("pozor-st-" + std::to_string(::getpid()) + "-" + std::to_string(count++)))
          .string();
  std::ofstream file(path, std::ios::binary);
  const uint64_t length = header.size();
  file.write(reinterpret_cast<const char*>(&length), sizeof length);
  file << header << data;
  return path;
}

template <class T>
std::string Bytes(std::initializer_list<T> values) {
  return std::string(reinterpret_cast<const char*>(values.begin()), values.size() * sizeof(T));
}

TEST_CASE("every malformed file is refused by the name of its fault") {
  struct Case {
    const char* file;
    const char* message;
  };
  const Case cases[] = {
      {"empty", "0 bytes"},
      {"seven-bytes", "7 bytes"},
      {"truncated-header", "header length 65 does not fit (the file has 30 bytes"},
      {"header-length-huge", "header length 9223372036854775807"},
      {"header-length-max", "header length 18446744073709551615"},
      {"header-length-100mb", "header length 100000001"},
      {"header-length-zero", "header is empty"},
      {"header-not-json", "not valid JSON"},
      {"header-is-array", "must be an object"},
      {"header-non-utf8", "not valid UTF-8"},
      {"header-deep", "too deep"},
      {"header-trailing-garbage", "trailing characters"},
      {"duplicate-name", "a stands in the header twice"},
      {"overlapping", "b has data_offsets [8, 16], an overlap"},
      {"hole", "b has data_offsets [8, 16], a hole"},
      {"first-not-zero", "a has data_offsets [4, 16], a hole after the start"},
      {"trailing-bytes", "4 bytes after the last tensor"},
      {"beyond-the-end", "a has data_offsets [0, 32], beyond the 16 bytes"},
      {"reversed-offsets", "a has data_offsets [16, 0], the end before the begin"},
      {"negative-offset", "negative"},
      {"huge-offset", "not an integer of 63 bits"},
      {"float-offset", "not an integer"},
      {"three-offsets", "data_offsets of two values"},
      {"wrong-size", "a needs 8 bytes by its shape and dtype, its data_offsets span 16"},
      {"shape-overflow", "a has a shape whose product overflows"},
      {"shape-overflow-zero", "a has a shape whose product overflows"},
      {"negative-shape", "a has -2 in its shape"},
      {"unknown-dtype", "a has the unknown dtype F33"},
      {"missing-dtype", "a has no dtype"},
      {"many-dimensions", "a has 10001 dimensions"},
      {"metadata-not-strings", "__metadata__"},
  };
  for (const Case& c : cases) {
    const std::string name = c.file;
    CAPTURE(name);
    const test::CpuStopwatch watch;
    const auto source = OpenSafetensors(DataPath("malformed/safetensors/" + name + ".safetensors"));
    REQUIRE_FALSE(source.ok());
    CHECK(source.status().code() == StatusCode::kCorrupt);
    CAPTURE(source.status().message());
    CHECK(source.status().message().find(c.message) != std::string::npos);
    CHECK(watch.Seconds() < test::kFewCpuSeconds);
  }
  const auto good = OpenSafetensors(DataPath("malformed/safetensors/good.safetensors"));
  REQUIRE(good.ok());
  REQUIRE((*good)->tensors().size() == 1);
  CHECK((*good)->tensors()[0].name == "a");
  CHECK((*good)->tensors()[0].shape == std::vector<size_t>{2, 2});
}

TEST_CASE("what stands in place of the weights is told apart") {
  struct Case {
    const char* folder;
    std::vector<const char*> parts;
  };
  const Case cases[] = {
      {"model", {"Git LFS", "99960", "git lfs pull"}},
      {"html_page", {"not safetensors but text", "<!DOCTYPE html>"}},
      {"huge_header", {"4611686018427387904", "the file has 10 bytes"}},
  };
  for (const Case& c : cases) {
    const auto model = Model::Load(DataPath("cases/P19/" + std::string(c.folder)));
    REQUIRE_FALSE(model.ok());
    CAPTURE(model.status().message());
    for (const char* part : c.parts) {
      CHECK(model.status().message().find(part) != std::string::npos);
    }
  }
  const auto folder = OpenSafetensors(DataPath("bert"));
  CHECK_FALSE(folder.ok());
  const auto pipe = OpenSafetensors("/dev/null");
  CHECK_FALSE(pipe.ok());
}

TEST_CASE("floating-point types are widened, integers are refused") {
  const std::string header = R"({"f16":{"dtype":"F16","shape":[5],"data_offsets":[0,10]},)"
                             R"("bf16":{"dtype":"BF16","shape":[3],"data_offsets":[10,16]},)"
                             R"("f64":{"dtype":"F64","shape":[2],"data_offsets":[16,32]},)"
                             R"("f32":{"dtype":"F32","shape":[],"data_offsets":[32,36]},)"
                             R"("none":{"dtype":"F32","shape":[0,3],"data_offsets":[36,36]},)"
                             R"("i64":{"dtype":"I64","shape":[1,2],"data_offsets":[36,52]}})";
  const std::string data = Bytes<uint16_t>({0x3C00, 0xC000, 0x0001, 0x7BFF, 0x8000}) +
                           Bytes<uint16_t>({0x3F80, 0xC049, 0x0001}) +
                           Bytes<double>({1.0 / 3.0, 1e-300}) + Bytes<float>({-7.25f}) +
                           Bytes<int64_t>({3, -4});
  const std::string path = TemporaryFile(header, data);
  const auto source = OpenSafetensors(path).value();
  std::filesystem::remove(path);
  const auto read = [&](const char* name, std::vector<float>* out) {
    for (const TensorInfo& tensor : source->tensors()) {
      if (tensor.name != name) continue;
      out->resize(tensor.elements());
      return source->Read(tensor, 0, out->size(), out->data());
    }
    return NotFound(name);
  };
  std::vector<float> values;
  REQUIRE(read("f16", &values).ok());
  CHECK(values == std::vector<float>{1.0f, -2.0f, 0x1p-24f, 65504.0f, -0.0f});
  CHECK(std::signbit(values[4]));
  REQUIRE(read("bf16", &values).ok());
  CHECK(values == std::vector<float>{1.0f, -3.140625f, std::bit_cast<float>(0x00010000u)});
  REQUIRE(read("f64", &values).ok());
  CHECK(values == std::vector<float>{1.0f / 3.0f, 0.0f});
  REQUIRE(read("f32", &values).ok());
  CHECK(values == std::vector<float>{-7.25f});
  REQUIRE(read("none", &values).ok());
  const Status integers = read("i64", &values);
  REQUIRE_FALSE(integers.ok());
  CHECK(integers.message().find("i64 has dtype I64") != std::string::npos);
  for (const TensorInfo& tensor : source->tensors()) {
    if (tensor.name == "i64")
      CHECK(ReadInt32(*source, tensor).value() == std::vector<int32_t>{3, -4});
  }
}

TEST_CASE("every half-precision number widens exactly") {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const int exponent = static_cast<int>(bits >> 10 & 31);
    const double fraction = bits & 1023;
    double expected =
        exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
    if (exponent == 31) expected = fraction == 0 ? HUGE_VAL : NAN;
    const float got = F16ToFloat(static_cast<uint16_t>(bits));
    if (std::isnan(expected)) {
      if (!std::isnan(got)) FAIL("NaN expected at " << bits);
    } else if (static_cast<double>(got) != (bits & 0x8000 ? -expected : expected)) {
      FAIL("wrong value at " << bits);
    }
  }
}

TEST_CASE("tensors in place are those read") {
  const auto source = OpenSafetensors(DataPath("bert/model.safetensors")).value();
  size_t mapped = 0;
  for (const TensorInfo& tensor : source->tensors()) {
    std::vector<float> values(tensor.elements());
    REQUIRE(source->Read(tensor, 0, values.size(), values.data()).ok());
    const float* place = source->Map(tensor);
    if (place == nullptr) continue;
    ++mapped;
    CHECK(std::memcmp(place, values.data(), values.size() * sizeof(float)) == 0);
    source->Release(tensor);
    CHECK(std::memcmp(place, values.data(), values.size() * sizeof(float)) == 0);
  }
  CHECK(mapped == source->tensors().size());
}

}  // namespace
}  // namespace pozor
