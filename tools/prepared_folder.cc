#include "tools/prepared_folder.h"

#include <unistd.h>

#include <filesystem>
#include <set>

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

// What a prepared folder holds, as paths inside it: the same for the model it is made of and for
// what may be replaced.
struct Contents {
  std::set<fs::path> folders, copied;
  fs::path weights;
};

// A module that is all code has no folder.
Status ListFolder(const fs::path& from, const fs::path& inside, bool beside_transformer,
                  Contents* contents) {
  if (!inside.empty()) contents->folders.insert(inside);
  std::error_code error;
  if (!fs::exists(from / inside, error)) return {};
  for (const auto& entry : fs::directory_iterator(from / inside, error)) {
    if (entry.is_regular_file(error) && IsWanted(entry.path().filename(), beside_transformer)) {
      contents->copied.insert(inside / entry.path().filename());
    }
  }
  if (!error) return {};
  return IoError((from / inside).string() + ": " + error.message() + "; check the permissions");
}

Result<Contents> ListContents(const Model::Impl& model) {
  const std::string& transformer = model.pipeline.transformer_path;
  Contents contents;
  contents.weights = fs::path(transformer) / kPreparedName;
  std::set<std::string> listed;
  const auto list = [&](const std::string& path, bool beside_transformer) -> Status {
    if (!listed.insert(path).second) return {};
    return ListFolder(model.folder, path, beside_transformer, &contents);
  };
  POZOR_RETURN_IF_ERROR(list("", true));
  POZOR_RETURN_IF_ERROR(list(transformer, true));
  for (const ModuleEntry& module : model.pipeline.modules) {
    POZOR_RETURN_IF_ERROR(list(module.path, false));
  }
  return contents;
}

// What lies in a folder and would not be there again; empty: nothing.
Result<std::string> FindForeign(const fs::path& folder, const Contents& contents) {
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const fs::path inside = entry->path().lexically_relative(folder);
    const bool is_folder = entry->is_directory(error) && !entry->is_symlink(error);
    const bool ours = is_folder ? contents.folders.contains(inside)
                                : contents.copied.contains(inside) || inside == contents.weights;
    if (!ours) return inside.string();
  }
  if (!error) return std::string();
  return IoError(folder.string() + ": " + error.message() + "; check the permissions");
}

// The folder under another name until it is complete.
class FolderInTheMaking {
 public:
  explicit FolderInTheMaking(const fs::path& output)
      : output_(WithoutLink(output.has_filename() ? output : output.parent_path())),
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
  // The folder that a link leads to is replaced, not the link.
  static fs::path WithoutLink(const fs::path& path) {
    std::error_code error;
    const fs::path target = fs::canonical(path, error);
    return !error && fs::is_symlink(path, error) ? target : path;
  }

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

Status CheckPreparedOutput(const Model::Impl& model, const std::string& output) {
  std::error_code error;
  const fs::path to = output, normal = to.lexically_normal();
  const fs::path name = normal.has_filename() ? normal.filename() : normal.parent_path().filename();
  if (name.empty() || name == "." || name == "..") {
    return InvalidArgument("'" + output + "': is no name of a folder; name a new folder");
  }
  if (!fs::exists(to, error)) return {};
  if (!fs::is_directory(to, error)) {
    return InvalidArgument(output + ": is a file, prepared models are folders; name a new folder");
  }
  if (fs::is_empty(to, error)) return {};
  POZOR_TRY(const Contents contents, ListContents(model));
  if (!fs::exists(to / contents.weights, error)) {
    return InvalidArgument(output + ": is there already and no prepared model; name a new folder");
  }
  POZOR_TRY(const std::string foreign, FindForeign(to, contents));
  if (foreign.empty()) return {};
  return InvalidArgument(output + ": has " + foreign + ", which a prepared model has not and " +
                         "which would be lost; name a new folder");
}

Result<uint64_t> WritePreparedFolder(const Model::Impl& model, const std::string& output) {
  POZOR_RETURN_IF_ERROR(CheckPreparedOutput(model, output));
  POZOR_TRY(const Contents contents, ListContents(model));
  FolderInTheMaking folder(output);
  std::error_code error;
  fs::create_directories(folder.path(), error);
  for (const fs::path& inside : contents.folders) {
    if (!error) fs::create_directories(folder.path() / inside, error);
  }
  if (error) {
    return IoError(folder.path().string() + ": " + error.message() + "; check the permissions");
  }
  for (const fs::path& file : contents.copied) {
    POZOR_RETURN_IF_ERROR(CopyFile(fs::path(model.folder) / file, folder.path() / file));
  }
  POZOR_TRY(const uint64_t bytes, WriteWeights(model, folder.path() / contents.weights));
  POZOR_RETURN_IF_ERROR(folder.Finish());
  return bytes;
}

}  // namespace pozor::tools
