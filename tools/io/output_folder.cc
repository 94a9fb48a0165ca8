#include "tools/io/output_folder.h"

#include <cstdio>
#include <filesystem>

namespace pozor::tools {

bool IsOutputFolder(const std::string& path) {
  std::error_code error;
  return path.ends_with('/') || std::filesystem::is_directory(path, error);
}

Status MakeFolder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (std::filesystem::is_directory(path)) return Status();
  return IoError(path + ": cannot be made a folder: " + error.message() + "; name another");
}

std::string NumberedFile(const std::string& folder, uint64_t number, std::string_view ending) {
  char name[32];
  std::snprintf(name, sizeof name, "%06llu", static_cast<unsigned long long>(number));
  return (std::filesystem::path(folder) / name).string() + std::string(ending);
}

}  // namespace pozor::tools
