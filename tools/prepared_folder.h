// A model folder around prepared weights.
#ifndef POZOR_TOOLS_PREPARED_FOLDER_H_
#define POZOR_TOOLS_PREPARED_FOLDER_H_

#include <cstdint>
#include <string>

#include "models/model_impl.h"
#include "pozor/status.h"

namespace pozor::tools {

// An existing folder must be empty, or a prepared model with nothing in it but what preparing this
// model writes again: a file that would be lost is named.
Status CheckPreparedOutput(const Model::Impl& model, const std::string& output);

// Copies what the model's folder has beside its weights (configuration, tokenizer, the modules
// behind the encoder) to `output` and writes the prepared weights there. The folder
// appears under its name when it is complete. Returns the bytes of the weights.
Result<uint64_t> WritePreparedFolder(const Model::Impl& model, const std::string& output);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_PREPARED_FOLDER_H_
