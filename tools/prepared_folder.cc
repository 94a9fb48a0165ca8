#include "tools/prepared_folder.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <vector>

#include "models/formats/file.h"
#include "models/prepared.h"
#include "tools/io/output_file.h"

namespace pozor::tools {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLargestSmallFile = size_t{1} << 30;

bool IsWeightName(const fs::path& name) {
  const std::string text = name.string();
  for (const char* ending : {".safetensors", ".bin", ".onnx", ".gguf", ".h5", ".msgpack", ".ot",
                             ".index.json", ".pt", ".npz"}) {
    if (text.ends_with(ending)) return true;
  }
  return false;
}

// Beside the transformer's own weights every file of these kinds is small and may be needed.
bool IsWanted(const fs::path& name, bool beside_transformer) {
  if (name.string().starts_with(".")) return false;
  if (!beside_transformer) return true;
  if (IsWeightName(name)) return false;
  const std::string ending = name.extension().string();
  return ending == ".json" || ending == ".txt" || ending == ".model" || ending == ".jinja";
}

Status CopyFile(const fs::path& from, const fs::path& to) {
  POZOR_TRY(const std::string bytes, ReadWholeFile(from.string(), kLargestSmallFile));
  POZOR_TRY(const std::unique_ptr<OutputFile> file, OutputFile::Create(to.string()));
  POZOR_RETURN_IF_ERROR(file->Write(bytes));
  return file->Commit();
}

// A module that is all code has no folder.
Status CopyFolder(const fs::path& from, const fs::path& to, bool beside_transformer) {
  std::error_code error;
  fs::create_directories(to, error);
  if (error) return IoError(to.string() + ": " + error.message() + "; check the permissions");
  if (!fs::exists(from, error)) return {};
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(from, error)) {
    if (entry.is_regular_file(error) && IsWanted(entry.path().filename(), beside_transformer)) {
      files.push_back(entry.path());
    }
  }
  if (error) return IoError(from.string() + ": " + error.message() + "; check the permissions");
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) POZOR_RETURN_IF_ERROR(CopyFile(file, to / file.filename()));
  return {};
}

// The folder under another name until it is complete.
class FolderInTheMaking {
 public:
  explicit FolderInTheMaking(const fs::path& output)
      : output_(output.has_filename() ? output : output.parent_path()),
        making_(output_.string() + ".making-" + std::to_string(::getpid())) {}
  ~FolderInTheMaking() {
    std::error_code error;
    fs::remove_all(making_, error);
  }
  FolderInTheMaking(const FolderInTheMaking&) = delete;
  FolderInTheMaking& operator=(const FolderInTheMaking&) = delete;

  const fs::path& path() const { return making_; }

  // In place of the folder that has the name, if there is one.
  Status Finish() {
    std::error_code error;
    const fs::path old = output_.string() + ".old-" + std::to_string(::getpid());
    if (fs::exists(output_, error)) fs::rename(output_, old, error);
    if (!error) fs::rename(making_, output_, error);
    if (error)
      return IoError(output_.string() + ": " + error.message() + "; check the permissions");
    fs::remove_all(old, error);
    return {};
  }

 private:
  fs::path output_, making_;
};

Result<uint64_t> WriteWeights(const Model::Impl& model, const fs::path& path) {
  PreparedFacts facts = model.facts;
  facts.precision = model.encoder->precision();
  POZOR_TRY(const std::unique_ptr<OutputFile> file, OutputFile::Create(path.string()));
  uint64_t bytes = 0;
  POZOR_RETURN_IF_ERROR(WritePrepared(*model.encoder, facts, [&](std::string_view part) {
    bytes += part.size();
    return file->Write(part);
  }));
  POZOR_RETURN_IF_ERROR(file->Commit());
  return bytes;
}

}  // namespace

// Nothing that is not ours is written over.
Status CheckPreparedOutput(const Pipeline& pipeline, const std::string& output) {
  std::error_code error;
  const fs::path to = output;
  if (!fs::exists(to, error)) return {};
  if (!fs::is_directory(to, error)) {
    return InvalidArgument(output + ": is a file, prepared models are folders; name a new folder");
  }
  const bool prepared = fs::exists(to / pipeline.transformer_path / kPreparedName, error);
  const bool original = fs::exists(to / pipeline.transformer_path / "model.safetensors", error);
  if (fs::is_empty(to, error) || (prepared && !original)) return {};
  return InvalidArgument(output + ": is there already and no prepared model; name a new folder");
}

Result<uint64_t> WritePreparedFolder(const Model::Impl& model, const std::string& output) {
  const fs::path from = model.folder, transformer = model.pipeline.transformer_path;
  POZOR_RETURN_IF_ERROR(CheckPreparedOutput(model.pipeline, output));
  FolderInTheMaking folder(output);
  const fs::path to = folder.path();
  POZOR_RETURN_IF_ERROR(CopyFolder(from, to, true));
  std::set<std::string> copied = {""};
  const auto copy = [&](const std::string& path, bool beside_transformer) -> Status {
    if (!copied.insert(path).second) return {};
    return CopyFolder(from / path, to / path, beside_transformer);
  };
  POZOR_RETURN_IF_ERROR(copy(model.pipeline.transformer_path, true));
  for (const ModuleEntry& module : model.pipeline.modules) {
    POZOR_RETURN_IF_ERROR(copy(module.path, false));
  }
  POZOR_TRY(const uint64_t bytes, WriteWeights(model, to / transformer / kPreparedName));
  POZOR_RETURN_IF_ERROR(folder.Finish());
  return bytes;
}

}  // namespace pozor::tools
