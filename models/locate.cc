#include "models/locate.h"

#include <dirent.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include "models/formats/file.h"
#include "models/formats/folder.h"

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

// Sorted names of the entries of a folder.
std::vector<std::string> ListFolder(const std::string& path) {
  std::vector<std::string> names;
  DIR* folder = ::opendir(path.c_str());
  if (folder == nullptr) return names;
  while (const dirent* entry = ::readdir(folder)) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  ::closedir(folder);
  std::sort(names.begin(), names.end());
  return names;
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

Result<std::string> FolderOfFile(const std::string& path) {
  if (!path.ends_with(".safetensors")) {
    return Unsupported(path + ": a file of this kind is not supported; give the model's folder");
  }
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return std::string(".");
  return path.substr(0, std::max<size_t>(slash, 1));
}

}  // namespace

std::string PozorHome() {
  std::string home = Environment("POZOR_HOME");
  if (!home.empty()) return home;
  const std::string user = Environment("HOME");
  return user.empty() ? std::string() : JoinPath(user, ".cache/pozor");
}

Result<std::string> LocateModel(const std::string& name) {
  if (name.find('\0') != std::string::npos) {
    return InvalidArgument("model name: contains NUL; give a folder or a name");
  }
  if (DirectoryExists(name)) return name;
  if (FileExists(name)) return FolderOfFile(name);
  std::string looked = name.empty() ? "nothing was named" : name;
  if (IsName(name)) {
    const std::string home = PozorHome();
    const std::string own = JoinPath(home, "models");
    for (const std::string& path : OwnFolders(own, name)) {
      if (!home.empty() && DirectoryExists(path)) return path;
    }
    const std::string cache = HubCache();
    if (!cache.empty()) {
      POZOR_TRY(const std::string snapshot, FindInCache(cache, name));
      if (!snapshot.empty()) return snapshot;
    }
    looked = "looked for the folder " + name + ", in " + own + " and in " + cache;
  }
  return NotFound("model " + name.substr(0, kMaxName) + ": not found (" + looked +
                  "); give the path of a model folder, or fetch the model: tools/quickstart.sh " +
                  "gets all-MiniLM-L6-v2");
}

}  // namespace pozor
