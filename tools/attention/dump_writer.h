// Attention of texts into files, streamed row by row.
//
//   npy          [layers, heads, rows, columns], and what describes it in NAME.npy.json
//   npz          attn, hidden, ids, tokens, ..., meta.json; for numpy.load
//   safetensors  attn.layer.00 [heads, rows, columns], ...; the description in __metadata__
//   jsonl        an object a text, the largest weights of each row
//   csv          a line a weight
#ifndef POZOR_TOOLS_ATTENTION_DUMP_WRITER_H_
#define POZOR_TOOLS_ATTENTION_DUMP_WRITER_H_

#include <memory>
#include <string>
#include <vector>

#include "tools/attention/encoding.h"
#include "tools/attention/transform.h"
#include "tools/io/output_file.h"

namespace pozor::tools {

enum class DumpFormat : uint8_t { kNpy, kNpz, kSafetensors, kJsonLines, kCsv };

// One file holds one text in these.
inline bool HoldsOneText(DumpFormat format) { return format <= DumpFormat::kSafetensors; }
std::string_view DumpEnding(DumpFormat format);  // ".npz"

struct DumpOptions {
  TransformOptions transform;
  WeightType type = WeightType::kF32;
  bool hidden = false;      // hidden states too; of npy: instead
  size_t top_k = 8;         // jsonl, csv: of each row; SIZE_MAX: all
  double min_weight = 0;    // jsonl, csv
  bool one_thread = false;  // write on the thread that computes
};

// One text on its way into a file. Members that are known before the first row.
struct DumpText {
  AttentionSource& source;
  TransformShape shape;
  uint64_t index;  // of the text, from 0
};

class DumpWriter {
 public:
  virtual ~DumpWriter() = default;
  virtual Status Write(DumpText& text) = 0;
  // After the last text; makes the file complete.
  virtual Status Finish() = 0;
};

Result<std::unique_ptr<DumpWriter>> MakeDumpWriter(DumpFormat format, const std::string& path,
                                                   const DumpOptions& options,
                                                   const std::atomic<bool>* cancel);

// For the writers themselves.

// Shape of all matrices as one array.
std::vector<uint64_t> ArrayShape(const DumpText& text, const DumpOptions& options);
// The record with what was done to the rows, as JSON. Self-checks are those of now.
std::string DumpDescription(const DumpText& text, const DumpOptions& options);
// Encodes the rows of a text and hands the bytes on.
Status StreamEncoded(DumpText& text, const DumpOptions& options,
                     const std::function<Status(std::string_view)>& write);
// Hidden states [layers + 1, tokens, hidden], f32 or f16.
Status StreamHiddenEncoded(DumpText& text, const DumpOptions& options,
                           const std::function<Status(std::string_view)>& write);
std::vector<uint64_t> HiddenShape(const DumpText& text);
std::string NpyType(WeightType type);  // "<f4"
WeightType HiddenType(const DumpOptions& options);

std::unique_ptr<DumpWriter> MakeNpyDump(std::unique_ptr<OutputFile> file,
                                        const DumpOptions& options, const std::string& path);
std::unique_ptr<DumpWriter> MakeNpzDump(std::unique_ptr<OutputFile> file,
                                        const DumpOptions& options);
std::unique_ptr<DumpWriter> MakeSafetensorsDump(std::unique_ptr<OutputFile> file,
                                                const DumpOptions& options);
std::unique_ptr<DumpWriter> MakeJsonLinesDump(std::unique_ptr<OutputFile> file,
                                              const DumpOptions& options);
std::unique_ptr<DumpWriter> MakeCsvDump(std::unique_ptr<OutputFile> file,
                                        const DumpOptions& options);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_ATTENTION_DUMP_WRITER_H_
