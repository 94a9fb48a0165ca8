// ONNX files as a source of weights: plain exports in f32, f16, bf16 or f64, with or without
// external data, and those that ONNX Runtime has quantised dynamically.
#ifndef POZOR_MODELS_FORMATS_ONNX_H_
#define POZOR_MODELS_FORMATS_ONNX_H_

#include <memory>
#include <span>
#include <string>

#include "engine/weights.h"
#include "models/formats/folder.h"
#include "pozor/status.h"

namespace pozor {

// `file` names a file of the folder ("onnx/model.onnx"); external data lies beside it. The graph
// only tells which tensor is which weight: what is computed with them, config.json says.
Result<std::shared_ptr<const TensorSource>> OpenOnnx(const ModelFolder& folder,
                                                     const std::string& file);

// The same of bytes in memory, which must outlive the source; external data is refused.
Result<std::shared_ptr<const TensorSource>> ReadOnnxBytes(std::span<const uint8_t> bytes,
                                                          const std::string& name);

}  // namespace pozor

#endif  // POZOR_MODELS_FORMATS_ONNX_H_
