// The directory of a zip archive whose entries are stored as they are, so that they can be used in
// place (APPNOTE.TXT of PKWARE, sections 4.3 and 4.5.3; ZIP64 included). Compressed entries are
// refused: torch.save writes none, and what is not unpacked cannot be a bomb.
#ifndef POZOR_MODELS_FORMATS_ZIP_H_
#define POZOR_MODELS_FORMATS_ZIP_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "pozor/status.h"

namespace pozor {

// Name of each entry and its bytes within the file.
using ZipDirectory = std::map<std::string, std::span<const uint8_t>, std::less<>>;

bool LooksLikeZip(std::span<const uint8_t> file);

// `name` stands in the messages.
Result<ZipDirectory> ReadZipDirectory(std::span<const uint8_t> file, const std::string& name);

}  // namespace pozor

#endif  // POZOR_MODELS_FORMATS_ZIP_H_
