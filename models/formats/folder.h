// A model folder: files by names that cannot leave it.
#ifndef POZOR_MODELS_FORMATS_FOLDER_H_
#define POZOR_MODELS_FORMATS_FOLDER_H_

#include <string>
#include <string_view>

#include "models/json.h"
#include "pozor/status.h"

namespace pozor {

// Empty if `name` is a relative path of plain components ("model.safetensors", "1_Pooling");
// otherwise what is wrong with it: "absolute", "leaves the folder", "contains NUL", ...
std::string BadRelativePath(std::string_view name);

// Files of one model. Symbolic links may lead to a file inside the folder, or, in a Hugging Face
// cache (models--org--name/snapshots/revision), to one of that repository's blobs.
class ModelFolder {
 public:
  static Result<ModelFolder> Open(const std::string& path);

  const std::string& path() const { return path_; }

  // The folder `name` inside, still bound to the rules of this one. "" is the folder itself.
  ModelFolder Sub(const std::string& name) const;

  bool Has(const std::string& name) const;

  // Full path of a regular file that may be read; NotFound, or InvalidArgument if it may not.
  Result<std::string> Resolve(const std::string& name) const;

  Result<JsonDocument> ReadJson(const std::string& name) const;

  // The same, and the value must be an object.
  Result<JsonDocument> ReadJsonObject(const std::string& name) const;

 private:
  std::string path_;   // as given, for messages
  std::string root_;   // real path of the model folder
  std::string blobs_;  // real path of the cache repository's blobs, or empty
};

}  // namespace pozor

#endif  // POZOR_MODELS_FORMATS_FOLDER_H_
