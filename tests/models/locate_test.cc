#include "models/locate.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace pozor {
namespace {

namespace fs = std::filesystem;

// A home of its own: the variables that say where models lie point into a fresh folder.
class Home {
 public:
  Home() : path_((fs::temp_directory_path() / "pozor-home-XXXXXX").string()) {
    REQUIRE(::mkdtemp(path_.data()) != nullptr);
    for (const char* name : kVariables) {
      const char* value = ::getenv(name);
      saved_.emplace_back(name, value == nullptr ? "" : value);
      ::unsetenv(name);
    }
    ::setenv("HOME", path_.c_str(), 1);
  }
  ~Home() {
    for (const auto& [name, value] : saved_) {
      if (value.empty()) {
        ::unsetenv(name.c_str());
      } else {
        ::setenv(name.c_str(), value.c_str(), 1);
      }
    }
    fs::remove_all(path_);
  }
  std::string Make(const std::string& folder) const {
    fs::create_directories(path_ + "/" + folder);
    return path_ + "/" + folder;
  }
  void Write(const std::string& file, const std::string& text) const {
    fs::create_directories(fs::path(path_ + "/" + file).parent_path());
    std::ofstream(path_ + "/" + file) << text;
  }
  const std::string& path() const { return path_; }

 private:
  static constexpr const char* kVariables[] = {
      "HOME", "POZOR_HOME", "HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "XDG_CACHE_HOME"};
  std::string path_;
  std::vector<std::pair<std::string, std::string>> saved_;
};

TEST_CASE("a folder, and a weight file in it") {
  const Home home;
  const std::string folder = home.Make("model");
  home.Write("model/model.safetensors", "x");
  home.Write("model/model.gguf", "x");
  CHECK(LocateModel(folder).value() == folder);
  CHECK(LocateModel(folder + "/model.safetensors").value() == folder);
  home.Make("model/onnx");
  home.Write("model/onnx/model.onnx", "x");
  home.Write("model/config.json", "{}");
  struct Case {
    const char* name;
    const char* weights;  // the file that is meant
  };
  for (const Case& c :
       {Case{"", ""}, Case{"/model.safetensors", "model.safetensors"},
        Case{"/model.gguf", "model.gguf"}, Case{"/onnx/model.onnx", "onnx/model.onnx"}}) {
    home.Write(std::string("model") + (*c.name != 0 ? c.name : "/x.txt"), "x");
    const ModelPlace place = LocateModelPlace(folder + c.name).value();
    CHECK(place.folder == folder);
    CHECK(place.weights == c.weights);
  }
  home.Write("model/part-00001-of-00002.safetensors", "x");
  CHECK(LocateModelPlace(folder + "/part-00001-of-00002.safetensors").value().weights.empty());
  const auto other = LocateModel(folder + "/x.txt");
  REQUIRE_FALSE(other.ok());
  CHECK(other.status().code() == StatusCode::kUnsupported);
}

TEST_CASE("names in Pozor's own folder") {
  const Home home;
  const std::string folder = home.Make(".cache/pozor/models/tiny");
  CHECK(LocateModel("tiny").value() == folder);
  CHECK(LocateModel("sentence-transformers/tiny").value() == folder);
  CHECK_FALSE(LocateModel("somebody-else/tiny").ok());
  const std::string other = home.Make("elsewhere/models/org/tiny");
  ::setenv("POZOR_HOME", (home.path() + "/elsewhere").c_str(), 1);
  CHECK(LocateModel("org/tiny").value() == other);
  CHECK_FALSE(LocateModel("tiny").ok());
}

TEST_CASE("names in the Hugging Face cache") {
  const Home home;
  const std::string hub = ".cache/huggingface/hub/";
  const std::string one = home.Make(hub + "models--sentence-transformers--tiny/snapshots/abc");
  home.Make(hub + "models--sentence-transformers--tiny/snapshots/old");
  home.Write(hub + "models--sentence-transformers--tiny/refs/main", "abc\n");
  CHECK(LocateModel("tiny").value() == one);
  CHECK(LocateModel("sentence-transformers/tiny").value() == one);
  const std::string two = home.Make(hub + "models--org--small/snapshots/def");
  CHECK(LocateModel("small").value() == two);
  CHECK(LocateModel("org/small").value() == two);
  CHECK_FALSE(LocateModel("other/small").ok());
  home.Make(hub + "models--other--small/snapshots/ghi");
  const auto either = LocateModel("small");
  REQUIRE_FALSE(either.ok());
  CHECK(either.status().message().find("org and other both have one") != std::string::npos);

  const std::string moved = home.Make("hf/hub/models--org--big/snapshots/1");
  ::setenv("HF_HOME", (home.path() + "/hf").c_str(), 1);
  CHECK(LocateModel("org/big").value() == moved);
  const std::string direct = home.Make("cache/models--org--big/snapshots/2");
  ::setenv("HF_HUB_CACHE", (home.path() + "/cache").c_str(), 1);
  CHECK(LocateModel("org/big").value() == direct);
}

TEST_CASE("a revision cannot lead out of the cache") {
  const Home home;
  const std::string hub = ".cache/huggingface/hub/";
  home.Make(hub + "models--org--evil/snapshots/a");
  home.Make(hub + "models--org--evil/snapshots/b");
  home.Make(hub + "models--org--evil/other");
  home.Write(hub + "models--org--evil/refs/main", "../other");
  CHECK_FALSE(LocateModel("org/evil").ok());
}

TEST_CASE("what is not there: where it was looked for, and what to do") {
  const Home home;
  for (const char* name : {"nothing-here", "org/nothing", "/no/such/folder", "../x", "a/b/c", ""}) {
    CAPTURE(name);
    const auto path = LocateModel(name);
    REQUIRE_FALSE(path.ok());
    CHECK(path.status().code() == StatusCode::kNotFound);
    CHECK(path.status().message().find("tools/quickstart.sh") != std::string::npos);
  }
  const std::string message = LocateModel("nothing-here").status().message();
  CHECK(message.find(home.path() + "/.cache/pozor/models") != std::string::npos);
  CHECK(message.find(home.path() + "/.cache/huggingface/hub") != std::string::npos);
  CHECK_FALSE(LocateModel(std::string("a\0b", 3)).ok());
}

}  // namespace
}  // namespace pozor
