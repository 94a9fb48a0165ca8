// One file a text, in a folder.
#ifndef POZOR_TOOLS_IO_OUTPUT_FOLDER_H_
#define POZOR_TOOLS_IO_OUTPUT_FOLDER_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "pozor/status.h"

namespace pozor::tools {

// Named with a slash at the end, or there already.
bool IsOutputFolder(const std::string& path);
Status MakeFolder(const std::string& path);

// "folder/000012.npz"
std::string NumberedFile(const std::string& folder, uint64_t number, std::string_view ending);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_IO_OUTPUT_FOLDER_H_
