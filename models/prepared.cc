#include "models/prepared.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <span>

#include "models/formats/checksum.h"
#include "models/formats/elements.h"

namespace pozor {
namespace {

constexpr std::string_view kVersion = "1";
constexpr std::string_view kWord = "embeddings.word";
constexpr std::string_view kWordSums = "embeddings.word.checksums";
constexpr size_t kRowsPerSum = 64;
constexpr std::string_view kAgain = "; prepare the model again with 'pozor quantize'";

// --- Lines of fields, which metadata is made of ---

// What would break a line becomes a space.
std::string Field(std::string_view text) {
  std::string field(text);
  for (char& c : field) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  return field;
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

std::optional<size_t> ParseSize(std::string_view text) {
  size_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string PrecisionText(const PrecisionPlan& plan) {
  std::string text;
  for (size_t layer = 0; layer < plan.size(); ++layer) {
    for (size_t kind = 0; kind < kProductKinds; ++kind) {
      const ProductChoice& choice = plan[layer].products[kind];
      text += std::to_string(layer) + '\t' +
              std::string(ProductName(static_cast<ProductKind>(kind))) + '\t' +
              std::string(NumberFormatName(choice.format)) + '\t' + Field(choice.reason) + '\n';
    }
  }
  return text;
}

// False if the text is nothing that PrecisionText wrote.
bool ParsePrecision(std::string_view text, PrecisionPlan* plan) {
  for (const std::string_view line : Split(text, '\n')) {
    const std::vector<std::string_view> fields = Split(line, '\t');
    if (fields.size() < 3) return false;
    const std::optional<size_t> layer = ParseSize(fields[0]);
    if (!layer || *layer > plan->size() || *layer > (size_t{1} << 16)) return false;
    if (*layer == plan->size()) plan->emplace_back();
    ProductChoice* choice = nullptr;
    for (size_t kind = 0; kind < kProductKinds; ++kind) {
      if (fields[1] == ProductName(static_cast<ProductKind>(kind))) {
        choice = &(*plan)[*layer].products[kind];
      }
    }
    if (choice == nullptr) return false;
    const auto is = [&](NumberFormat format) { return fields[2] == NumberFormatName(format); };
    constexpr NumberFormat kFormats[] = {NumberFormat::kF32, NumberFormat::kBf16,
                                         NumberFormat::kInt8};
    const auto* format = std::find_if(std::begin(kFormats), std::end(kFormats), is);
    if (format == std::end(kFormats)) return false;
    choice->format = *format;
    const bool attention = fields[1] == ProductName(ProductKind::kAttention);
    if (attention && *format == NumberFormat::kBf16) return false;
    if (fields.size() > 3) choice->reason = std::string(fields[3]);
  }
  return true;
}

std::string OriginalText(const std::vector<TensorInfo>& tensors) {
  std::string text;
  for (const TensorInfo& tensor : tensors) {
    text += Field(tensor.name);
    for (const size_t d : tensor.shape) text += '\t' + std::to_string(d);
    text += '\n';
  }
  return text;
}

bool ParseOriginal(std::string_view text, std::vector<TensorInfo>* tensors) {
  for (const std::string_view line : Split(text, '\n')) {
    const std::vector<std::string_view> fields = Split(line, '\t');
    if (fields.empty()) return false;
    TensorInfo tensor;
    tensor.name = std::string(fields[0]);
    tensor.source_index = tensors->size();
    for (const std::string_view field : std::span(fields).subspan(1)) {
      const std::optional<size_t> size = ParseSize(field);
      if (!size) return false;
      tensor.shape.push_back(*size);
    }
    tensors->push_back(std::move(tensor));
  }
  return true;
}

std::string PairsText(const std::vector<std::pair<std::string, std::string>>& pairs) {
  std::string text;
  for (const auto& [key, value] : pairs) text += Field(key) + '\t' + Field(value) + '\n';
  return text;
}

std::vector<std::pair<std::string, std::string>> ParsePairs(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const std::string_view line : Split(text, '\n')) {
    const size_t tab = std::min(line.find('\t'), line.size());
    pairs.emplace_back(line.substr(0, tab), line.substr(std::min(tab + 1, line.size())));
  }
  return pairs;
}

std::string ShapeText(std::span<const size_t> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

// Of everything that the header says, but for this sum itself.
constexpr std::string_view kHeaderSum = "pozor.header_checksum";

std::string HeaderSum(const std::vector<std::pair<std::string, std::string>>& metadata,
                      std::span<const TensorInfo> tensors, std::span<const size_t> offsets) {
  std::string text;
  const std::map<std::string, std::string> sorted(metadata.begin(), metadata.end());
  for (const auto& [key, value] : sorted) {
    if (key != kHeaderSum) text += Field(key) + '\n' + value + '\n';
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    text += tensors[i].name + ' ' + DTypeName(tensors[i].dtype) + ' ' +
            ShapeText(tensors[i].shape) + ' ' + std::to_string(offsets[i]) + '\n';
  }
  return ChecksumText(Checksum(text.data(), text.size()));
}

// --- Rows of the word table ---

size_t SumBlocks(size_t rows) { return (rows + kRowsPerSum - 1) / kRowsPerSum; }

uint64_t BlockSum(const uint8_t* table, size_t rows, size_t row_bytes, size_t block) {
  const size_t first = block * kRowsPerSum;
  const size_t count = std::min(kRowsPerSum, rows - first);
  return Checksum(table + first * row_bytes, count * row_bytes);
}

class WordRows final : public RowCheck {
 public:
  WordRows(const uint8_t* table, size_t rows, size_t row_bytes, const int64_t* sums,
           std::string path)
      : table_(table),
        rows_(rows),
        row_bytes_(row_bytes),
        sums_(sums),
        path_(std::move(path)),
        checked_(SumBlocks(rows)) {}

  Status CheckRows(std::span<const int32_t> ids) const override {
    for (const int32_t id : ids) {
      const size_t block = static_cast<size_t>(id) / kRowsPerSum;
      if (checked_[block].load(std::memory_order_relaxed)) continue;
      if (BlockSum(table_, rows_, row_bytes_, block) != static_cast<uint64_t>(sums_[block])) {
        return Corrupt(path_ + ": tensor '" + std::string(kWord) + "': rows " +
                       std::to_string(block * kRowsPerSum) +
                       " and following do not have their checksum" + std::string(kAgain));
      }
      checked_[block].store(true, std::memory_order_relaxed);
    }
    return {};
  }

 private:
  const uint8_t* table_;
  size_t rows_, row_bytes_;
  const int64_t* sums_;
  std::string path_;
  mutable std::vector<std::atomic<bool>> checked_;
};

// --- A source without values ---

class OriginalTensors final : public TensorSource {
 public:
  explicit OriginalTensors(std::shared_ptr<const PreparedFile> file) : file_(std::move(file)) {}

  std::span<const TensorInfo> tensors() const override { return file_->facts().original; }
  Status Read(const TensorInfo& tensor, size_t, size_t, float*) const override {
    return Unsupported(file_->path() + ": prepared weights no longer have the tensor '" +
                       tensor.name + "' by itself; use the original model");
  }
  const float* Map(const TensorInfo&) const override { return nullptr; }
  void Release(const TensorInfo&) const override {}
  const std::string& description() const override { return file_->path(); }

 private:
  std::shared_ptr<const PreparedFile> file_;
};

// --- Writing ---

std::string JsonText(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (c == '\n') {
      quoted += "\\n";
    } else if (c == '\t') {
      quoted += "\\t";
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

// Tensors in the order of the file, with what stands between them for alignment.
struct FileLayout {
  std::vector<EncoderTensor> tensors;
  std::vector<TensorInfo> infos;
  std::vector<size_t> offsets;
  size_t bytes = 0;

  void Add(EncoderTensor tensor) {
    infos.push_back({tensor.name, tensor.dtype, tensor.shape, infos.size()});
    offsets.push_back(bytes);
    bytes += tensor.bytes();
    tensors.push_back(std::move(tensor));
    const size_t padding = RoundUp(bytes, kAlignment) - bytes;
    static constexpr uint8_t kZeros[kAlignment] = {};
    if (padding > 0)
      Add({"padding." + std::to_string(tensors.size()), DType::kU8, {padding}, kZeros});
  }
};

std::vector<std::pair<std::string, std::string>> MakeMetadata(const PreparedFacts& facts,
                                                              const FileLayout& layout) {
  std::string sums;
  for (const EncoderTensor& tensor : layout.tensors) {
    sums += tensor.name + '\t' + ChecksumText(Checksum(tensor.data, tensor.bytes())) + '\n';
  }
  std::string ignored;
  for (const std::string& name : facts.ignored) ignored += Field(name) + '\n';
  std::vector<std::pair<std::string, std::string>> metadata = {
      {"pozor.version", std::string(kVersion)},
      {"pozor.architecture", facts.architecture},
      {"pozor.precision", PrecisionText(facts.precision)},
      {"pozor.config", PairsText(facts.config)},
      {"pozor.original", OriginalText(facts.original)},
      {"pozor.ignored", ignored},
      {"pozor.parameters", std::to_string(facts.parameters)},
      {"pozor.calibration", Field(facts.calibration)},
      {"pozor.quality", Field(facts.quality)},
      {"pozor.checksums", sums},
  };
  if (!facts.task.empty()) metadata.emplace_back("pozor.task", Field(facts.task));
  metadata.emplace_back(kHeaderSum, HeaderSum(metadata, layout.infos, layout.offsets));
  return metadata;
}

// u64 length and JSON, together a multiple of the alignment.
std::string MakeHeader(const PreparedFacts& facts, const FileLayout& layout) {
  std::string json = "{\"__metadata__\":{";
  bool first = true;
  for (const auto& [key, value] : MakeMetadata(facts, layout)) {
    json += (first ? "" : ",") + JsonText(key) + ":" + JsonText(value);
    first = false;
  }
  json += "}";
  for (size_t i = 0; i < layout.infos.size(); ++i) {
    const TensorInfo& info = layout.infos[i];
    json += "," + JsonText(info.name) + ":{\"dtype\":\"" + DTypeName(info.dtype) +
            "\",\"shape\":" + ShapeText(info.shape) + ",\"data_offsets\":[" +
            std::to_string(layout.offsets[i]) + "," +
            std::to_string(layout.offsets[i] + layout.tensors[i].bytes()) + "]}";
  }
  json += "}";
  json.resize(RoundUp(json.size() + 8, kAlignment) - 8, ' ');
  std::string length(8, '\0');
  for (size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(json.size() >> (8 * i) & 0xFF);
  return length + json;
}

// Absent, null and false mean the same.
std::string_view Effective(const std::vector<std::pair<std::string, std::string>>& config,
                           std::string_view key) {
  for (const auto& [name, value] : config) {
    if (name == key) return value == "null" || value == "false" ? std::string_view() : value;
  }
  return {};
}

}  // namespace

Status WritePrepared(const Encoder& encoder, const PreparedFacts& facts,
                     const std::function<Status(std::string_view bytes)>& write) {
  POZOR_TRY(std::vector<EncoderTensor> tensors, ListTensors(encoder));
  // The word table, of which few rows are read, stands last.
  const auto is_word = [](const EncoderTensor& tensor) { return tensor.name == kWord; };
  std::stable_partition(tensors.begin(), tensors.end(), std::not_fn(is_word));
  const EncoderTensor word = tensors.back();
  tensors.pop_back();
  const size_t rows = word.shape[0], row_bytes = word.shape[1] * sizeof(float);
  std::vector<int64_t> sums(SumBlocks(rows));
  for (size_t block = 0; block < sums.size(); ++block) {
    sums[block] = static_cast<int64_t>(
        BlockSum(static_cast<const uint8_t*>(word.data), rows, row_bytes, block));
  }
  FileLayout layout;
  for (EncoderTensor& tensor : tensors) layout.Add(std::move(tensor));
  layout.Add({std::string(kWordSums), DType::kI64, {sums.size()}, sums.data()});
  layout.Add(word);
  POZOR_RETURN_IF_ERROR(write(MakeHeader(facts, layout)));
  for (const EncoderTensor& tensor : layout.tensors) {
    POZOR_RETURN_IF_ERROR(write({static_cast<const char*>(tensor.data), tensor.bytes()}));
  }
  return {};
}

std::shared_ptr<const TensorSource> OriginalNames(std::shared_ptr<const PreparedFile> file) {
  return std::make_shared<OriginalTensors>(std::move(file));
}

Result<std::shared_ptr<const PreparedFile>> PreparedFile::Open(const std::string& path) {
  POZOR_TRY(MappedFile file, MappedFile::Open(path));
  auto prepared = std::shared_ptr<PreparedFile>(new PreparedFile(std::move(file)));
  POZOR_TRY(prepared->header_,
            ParseSafetensorsHeader({prepared->file_.data(), prepared->file_.size()}, path));
  POZOR_RETURN_IF_ERROR(prepared->CheckHeader());
  POZOR_RETURN_IF_ERROR(prepared->ReadFacts());
  return std::shared_ptr<const PreparedFile>(std::move(prepared));
}

std::string PreparedFile::Metadata(std::string_view key) const {
  for (const auto& [name, value] : header_.metadata) {
    if (name == key) return value;
  }
  return {};
}

Status PreparedFile::CheckHeader() const {
  const std::string version = Metadata("pozor.version");
  if (version.empty()) {
    return Corrupt(path() + ": pozor.version is not in its metadata; it is no file of 'pozor " +
                   "quantize', rename or remove it");
  }
  if (version != kVersion) {
    return Unsupported(path() + ": has version " + Field(version).substr(0, 20) +
                       " of the prepared format, this Pozor reads version " +
                       std::string(kVersion) + std::string(kAgain));
  }
  if (Metadata(kHeaderSum) == HeaderSum(header_.metadata, header_.tensors, header_.offsets)) {
    return {};
  }
  return Corrupt(path() + ": the header does not have its checksum" + std::string(kAgain));
}

// The header is what was written: its checksum is right. What is checked here keeps a file that
// somebody made up from doing harm.
Status PreparedFile::ReadFacts() {
  facts_.architecture = Metadata("pozor.architecture");
  facts_.task = Metadata("pozor.task");
  facts_.config = ParsePairs(Metadata("pozor.config"));
  facts_.calibration = Metadata("pozor.calibration");
  facts_.quality = Metadata("pozor.quality");
  facts_.parameters = ParseSize(Metadata("pozor.parameters")).value_or(0);
  const std::string ignored = Metadata("pozor.ignored");
  for (const std::string_view name : Split(ignored, '\n')) facts_.ignored.emplace_back(name);
  bool good = ParsePrecision(Metadata("pozor.precision"), &facts_.precision) &&
              ParseOriginal(Metadata("pozor.original"), &facts_.original);
  for (const auto& [name, sum] : ParsePairs(Metadata("pozor.checksums"))) {
    const std::optional<uint64_t> value = ParseChecksum(sum);
    good = good && value.has_value();
    checksums_.emplace_back(name, value.value_or(0));
  }
  std::sort(checksums_.begin(), checksums_.end());
  if (good) return {};
  return Corrupt(path() + ": the metadata is not as this version writes it" + std::string(kAgain));
}

Status PreparedFile::CheckTask(const std::string& task) const {
  if (task == facts_.task) return {};
  const std::string then = facts_.task.empty() ? "no task" : "task " + facts_.task;
  return InvalidArgument(path() + ": was prepared for " + then + ", asked for is " +
                         (task.empty() ? "none" : task) + "; ask for " + then +
                         ", or prepare the model again");
}

Status PreparedFile::CheckConfig(
    const std::vector<std::pair<std::string, std::string>>& config) const {
  std::set<std::string> keys;
  for (const auto& [key, value] : config) keys.insert(key);
  for (const auto& [key, value] : facts_.config) keys.insert(key);
  for (const std::string& key : keys) {
    const std::string_view now = Effective(config, key), then = Effective(facts_.config, key);
    if (now == then) continue;
    const auto text = [](std::string_view value) {
      return value.empty() ? "absent" : std::string(value);
    };
    return InvalidArgument(path() + ": was prepared for a config.json whose " + key + " is " +
                           text(then) + ", here it is " + text(now) +
                           "; use the config.json that belongs to it, or prepare the model again");
  }
  return {};
}

const TensorInfo* PreparedFile::Find(std::string_view name) const {
  for (const TensorInfo& tensor : header_.tensors) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

const uint8_t* PreparedFile::Bytes(const TensorInfo& tensor) const {
  return file_.data() + header_.data_begin + header_.offsets[tensor.source_index];
}

Status PreparedFile::CheckTensor(const TensorInfo& tensor) const {
  const auto found = std::lower_bound(checksums_.begin(), checksums_.end(),
                                      std::pair<std::string, uint64_t>(tensor.name, 0));
  const size_t bytes = tensor.elements() * SizeOf(tensor.dtype);
  const bool known = found != checksums_.end() && found->first == tensor.name;
  if (known && Checksum(Bytes(tensor), bytes) == found->second) return {};
  return Corrupt(path() + ": tensor '" + tensor.name +
                 (known ? "' does not have its checksum" : "' has no checksum") +
                 std::string(kAgain));
}

// Its place and shape; the word table is looked at later.
Status PreparedFile::Bind(EncoderTensor& tensor) const {
  const TensorInfo* stored = Find(tensor.name);
  if (stored == nullptr) {
    return Corrupt(path() + ": tensor '" + tensor.name + "' is missing" + std::string(kAgain));
  }
  if (stored->dtype != tensor.dtype || stored->shape != tensor.shape) {
    return Corrupt(path() + ": tensor '" + tensor.name + "' is " + DTypeName(stored->dtype) + " " +
                   ShapeText(stored->shape) + ", the model needs " + DTypeName(tensor.dtype) + " " +
                   ShapeText(tensor.shape) + std::string(kAgain));
  }
  const uint8_t* bytes = Bytes(*stored);
  if (reinterpret_cast<uintptr_t>(bytes) % kAlignment != 0) {
    return Corrupt(path() + ": tensor '" + tensor.name + "' is not aligned" + std::string(kAgain));
  }
  if (tensor.name != kWord) POZOR_RETURN_IF_ERROR(CheckTensor(*stored));
  tensor.data = bytes;
  return {};
}

Result<std::unique_ptr<Encoder>> PreparedFile::MakeEncoder(EncoderSpec spec) const {
  if (facts_.precision.size() != spec.layers.size()) {
    return Corrupt(path() + ": was prepared for " + std::to_string(facts_.precision.size()) +
                   " layers, the model has " + std::to_string(spec.layers.size()) +
                   std::string(kAgain));
  }
  if (!CanHavePlan(spec, facts_.precision)) {
    return Corrupt(path() + ": has products in precisions that this model cannot have" +
                   std::string(kAgain));
  }
  const size_t rows = spec.embeddings.vocab_size;
  const size_t row_bytes = spec.embeddings.size * sizeof(float);
  if (const TensorInfo* word = Find(kWord)) {
    file_.WillNeed(0, header_.data_begin + header_.offsets[word->source_index]);
  }
  EncoderTensor sums = {std::string(kWordSums), DType::kI64, {SumBlocks(rows)}, nullptr};
  EncoderTensor word = {std::string(kWord), DType::kF32, {rows, spec.embeddings.size}, nullptr};
  POZOR_RETURN_IF_ERROR(Bind(sums));
  POZOR_RETURN_IF_ERROR(Bind(word));
  TensorHolder holder;
  holder.keep = shared_from_this();
  holder.mapped_bytes = file_.size();
  holder.row_check =
      std::make_shared<WordRows>(static_cast<const uint8_t*>(word.data), rows, row_bytes,
                                 static_cast<const int64_t*>(sums.data), path());
  holder.release = [this](const void* data, size_t bytes) {
    file_.Release(static_cast<size_t>(static_cast<const uint8_t*>(data) - file_.data()), bytes);
  };
  return EncoderFromTensors(
      std::move(spec), facts_.precision, [this](EncoderTensor& tensor) { return Bind(tensor); },
      std::move(holder));
}

Status PreparedFile::Verify() const {
  for (const TensorInfo& tensor : header_.tensors) {
    POZOR_RETURN_IF_ERROR(CheckTensor(tensor));
    file_.Release(static_cast<size_t>(Bytes(tensor) - file_.data()),
                  tensor.elements() * SizeOf(tensor.dtype));
  }
  return {};
}

}  // namespace pozor
