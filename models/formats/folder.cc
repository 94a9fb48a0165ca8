#include "models/formats/folder.h"

#include <limits.h>
#include <stdlib.h>

#include <algorithm>
#include <utility>

#include "models/formats/file.h"

namespace pozor {
namespace {

constexpr size_t kMaxNameLength = 4096;

std::string RealPath(const std::string& path) {
  char buffer[PATH_MAX];
  return ::realpath(path.c_str(), buffer) == nullptr ? std::string() : std::string(buffer);
}

bool IsInside(const std::string& path, const std::string& folder) {
  if (folder.empty() || path.size() <= folder.size()) return false;
  return path.compare(0, folder.size(), folder) == 0 &&
         (folder.back() == '/' || path[folder.size()] == '/');
}

// models--org--name/snapshots/revision -> models--org--name/blobs
std::string CacheBlobs(const std::string& root) {
  const size_t revision = root.rfind('/');
  if (revision == std::string::npos || revision == 0) return {};
  const size_t snapshots = root.rfind('/', revision - 1);
  if (snapshots == std::string::npos) return {};
  if (root.substr(snapshots + 1, revision - snapshots - 1) != "snapshots") return {};
  return RealPath(root.substr(0, snapshots) + "/blobs");
}

}  // namespace

std::string BadRelativePath(std::string_view name) {
  if (name.empty()) return "is empty";
  if (name.size() > kMaxNameLength) return "is too long";
  if (name.find('\0') != std::string_view::npos) return "contains NUL";
  if (name.find('\\') != std::string_view::npos) return "contains a backslash";
  if (name.front() == '/') return "is absolute";
  size_t begin = 0;
  while (begin <= name.size()) {
    const size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    if (part == "..") return "leaves the folder";
    if (part.empty() || part == ".") return "is not a plain name";
    begin = end + 1;
  }
  return {};
}

Result<ModelFolder> ModelFolder::Open(const std::string& path) {
  if (!DirectoryExists(path)) return NotFound(path + ": no such folder; check the path");
  ModelFolder folder;
  folder.path_ = path;
  folder.root_ = RealPath(path);
  folder.blobs_ = CacheBlobs(folder.root_);
  return folder;
}

ModelFolder ModelFolder::Sub(const std::string& name) const {
  ModelFolder sub = *this;
  if (!name.empty()) sub.path_ = JoinPath(path_, name);
  return sub;
}

bool ModelFolder::Has(const std::string& name) const { return FileExists(JoinPath(path_, name)); }

Result<std::string> ModelFolder::Resolve(const std::string& name) const {
  const std::string bad = BadRelativePath(name);
  if (!bad.empty()) {
    return InvalidArgument(path_ + ": the file name \"" + name.substr(0, name.find('\0')) + "\" " +
                           bad + "; only files inside the model folder are read");
  }
  const std::string full = JoinPath(path_, name);
  const std::string real = RealPath(full);
  if (real.empty()) {
    return NotFound(path_ + ": " + name + " is missing; complete the model folder");
  }
  if (!IsInside(real, root_) && !IsInside(real, blobs_)) {
    return InvalidArgument(full + ": a symbolic link that leaves the model folder (to " + real +
                           "); put the file itself there");
  }
  if (!FileExists(real)) {
    return InvalidArgument(full + ": not a regular file; check the model folder");
  }
  return full;
}

Result<JsonDocument> ModelFolder::ReadJson(const std::string& name) const {
  POZOR_TRY(const std::string path, Resolve(name));
  return ReadJsonFile(path);
}

Result<JsonDocument> ModelFolder::ReadJsonObject(const std::string& name) const {
  POZOR_TRY(JsonDocument document, ReadJson(name));
  if (!document->is_object()) {
    return Corrupt(JoinPath(path_, name) + ": an object is needed, this is " +
                   document->Describe() + "; download the file again");
  }
  return document;
}

}  // namespace pozor
