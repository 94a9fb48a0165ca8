#include "models/locate.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include "models/formats/file.h"
#include "models/formats/folder.h"
#include "models/formats/weights.h"

namespace pozor {
namespace {

constexpr size_t kMaxName = 200;

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

std::string UserCache() {
  std::string cache = Environment("XDG_CACHE_HOME");
  if (!cache.empty()) return cache;
  const std::string home = Environment("HOME");
  return home.empty() ? std::string() : JoinPath(home, ".cache");
}

std::string HubCache() {
  for (const char* variable : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"}) {
    std::string value = Environment(variable);
    if (!value.empty()) return value;
  }
  const std::string home = Environment("HF_HOME");
  if (!home.empty()) return JoinPath(home, "hub");
  const std::string cache = UserCache();
  return cache.empty() ? std::string() : JoinPath(cache, "huggingface/hub");
}

// The snapshot that refs/main names, or the only one there is; empty if there is none.
std::string Snapshot(const std::string& repository) {
  const std::string snapshots = JoinPath(repository, "snapshots");
  const auto main = ReadWholeFile(JoinPath(repository, "refs/main"), 256);
  if (main.ok()) {
    std::string revision = *main;
    while (!revision.empty() && revision.back() <= ' ') revision.pop_back();
    const bool plain = revision.find('/') == std::string::npos && BadRelativePath(revision).empty();
    const std::string path = JoinPath(snapshots, revision);
    if (plain && DirectoryExists(path)) return path;
  }
  const std::vector<std::string> revisions = ListFolder(snapshots);
  return revisions.size() == 1 ? JoinPath(snapshots, revisions[0]) : std::string();
}

constexpr std::string_view kDefaultOrganisation = "sentence-transformers";

// Folders under Pozor's own home: the name as it is, and without the default organisation.
std::vector<std::string> OwnFolders(const std::string& models, const std::string& name) {
  std::vector<std::string> paths = {JoinPath(models, name)};
  const size_t slash = name.find('/');
  if (slash != std::string::npos && name.substr(0, slash) == kDefaultOrganisation) {
    paths.push_back(JoinPath(models, name.substr(slash + 1)));
  }
  return paths;
}

// Snapshot of the repository org/name; empty if the cache does not have it.
std::string SnapshotOf(const std::string& cache, std::string_view org, const std::string& name) {
  return Snapshot(JoinPath(cache, "models--" + std::string(org) + "--" + name));
}

// Organisations of which the cache has a model of that name.
std::vector<std::string> OrganisationsWith(const std::string& cache, const std::string& name) {
  const std::string head = "models--", tail = "--" + name;
  std::vector<std::string> organisations;
  for (const std::string& entry : ListFolder(cache)) {
    if (!entry.starts_with(head) || !entry.ends_with(tail)) continue;
    if (entry.size() <= head.size() + tail.size()) continue;
    std::string org = entry.substr(head.size(), entry.size() - head.size() - tail.size());
    if (!SnapshotOf(cache, org, name).empty()) organisations.push_back(std::move(org));
  }
  return organisations;
}

// The snapshot that the name means, empty if there is none. A name without an organisation is the
// default one's, or else that of the only organisation that has it.
Result<std::string> FindInCache(const std::string& cache, const std::string& name) {
  const size_t slash = name.find('/');
  if (slash != std::string::npos) {
    return SnapshotOf(cache, name.substr(0, slash), name.substr(slash + 1));
  }
  std::string own = SnapshotOf(cache, kDefaultOrganisation, name);
  if (!own.empty()) return own;
  const std::vector<std::string> organisations = OrganisationsWith(cache, name);
  if (organisations.empty()) return std::string();
  if (organisations.size() == 1) return SnapshotOf(cache, organisations[0], name);
  return InvalidArgument("model " + name + ": " + organisations[0] + " and " + organisations[1] +
                         " both have one; give the full name");
}

bool IsName(const std::string& name) {
  return !name.empty() && name.size() <= kMaxName && BadRelativePath(name).empty() &&
         std::count(name.begin(), name.end(), '/') <= 1;
}

// A shard stands for its model.
bool IsShard(const std::string& file) { return file.find("-of-0") != std::string::npos; }

// The model that a weight file belongs to: its folder, or the one above if it lies in onnx/.
Result<ModelPlace> PlaceOfFile(const std::string& path) {
  if (FormatOf(path) == WeightFormat::kNone) {
    return Unsupported(path + ": a file of this kind is not supported; give the model's folder");
  }
  const size_t slash = path.rfind('/');
  ModelPlace place;
  place.folder = slash == std::string::npos ? "." : path.substr(0, std::max<size_t>(slash, 1));
  place.weights = path.substr(slash + 1);
  if (IsShard(place.weights)) place.weights.clear();
  const size_t parent = place.folder.rfind('/');
  const bool in_onnx = place.folder.substr(parent + 1) == "onnx";
  if (in_onnx && !FileExists(JoinPath(place.folder, "config.json"))) {
    place.weights = "onnx/" + place.weights;
    place.folder =
        parent == std::string::npos ? "." : place.folder.substr(0, std::max<size_t>(parent, 1));
  }
  return place;
}

}  // namespace

std::string PozorHome() {
  std::string home = Environment("POZOR_HOME");
  if (!home.empty()) return home;
  const std::string user = Environment("HOME");
  return user.empty() ? std::string() : JoinPath(user, ".cache/pozor");
}

Result<std::string> LocateModel(const std::string& name) {
  POZOR_TRY(ModelPlace place, LocateModelPlace(name));
  return std::move(place.folder);
}

Result<ModelPlace> LocateModelPlace(const std::string& name) {
  if (name.find('\0') != std::string::npos) {
    return InvalidArgument("model name: contains NUL; give a folder or a name");
  }
  if (DirectoryExists(name)) return ModelPlace{name, ""};
  if (FileExists(name)) return PlaceOfFile(name);
  std::string looked = name.empty() ? "nothing was named" : name;
  if (IsName(name)) {
    const std::string home = PozorHome();
    const std::string own = JoinPath(home, "models");
    for (const std::string& path : OwnFolders(own, name)) {
      if (!home.empty() && DirectoryExists(path)) return ModelPlace{path, ""};
    }
    const std::string cache = HubCache();
    if (!cache.empty()) {
      POZOR_TRY(const std::string snapshot, FindInCache(cache, name));
      if (!snapshot.empty()) return ModelPlace{snapshot, ""};
    }
    looked = "looked for the folder " + name + ", in " + own + " and in " + cache;
  }
  return NotFound("model " + name.substr(0, kMaxName) + ": not found (" + looked +
                  "); give the path of a model folder, or fetch the model: tools/quickstart.sh " +
                  "gets all-MiniLM-L6-v2");
}

}  // namespace pozor
