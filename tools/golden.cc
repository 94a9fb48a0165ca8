#include "tools/golden.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>

#include "models/formats/file.h"
#include "models/formats/safetensors.h"

namespace pozor::tools {
namespace {

// Compares names, runs of digits as numbers.
bool NaturalLess(const std::string& a, const std::string& b) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (!is_digit(a[i]) || !is_digit(b[j])) {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i, ++j;
      continue;
    }
    uint64_t x = 0, y = 0;
    const auto end_a = std::from_chars(a.data() + i, a.data() + a.size(), x);
    const auto end_b = std::from_chars(b.data() + j, b.data() + b.size(), y);
    if (x != y) return x < y;
    i = static_cast<size_t>(end_a.ptr - a.data());
    j = static_cast<size_t>(end_b.ptr - b.data());
  }
  return a.size() - i < b.size() - j;
}

std::vector<int32_t> Integers(const JsonValue* value) {
  std::vector<int32_t> integers;
  if (value == nullptr) return integers;
  for (const JsonValue& item : value->items()) {
    integers.push_back(static_cast<int32_t>(item.as_int()));
  }
  return integers;
}

std::string String(const JsonValue& object, std::string_view key) {
  const JsonValue* value = object.Find(key);
  return value == nullptr ? "" : std::string(value->as_string());
}

double Number(const JsonValue& object, std::string_view key, double otherwise) {
  const JsonValue* value = object.Find(key);
  return value != nullptr && value->is_number() ? value->as_double() : otherwise;
}

size_t Size(const JsonValue& object, std::string_view key) {
  return static_cast<size_t>(std::max(0.0, Number(object, key, 0)));
}

GoldenText ReadText(const JsonValue& value) {
  GoldenText text;
  if (value.is_string()) {
    text.text = std::string(value.as_string());
    return text;
  }
  text.text = String(value, "text");
  if (value.Find("pair") != nullptr) text.pair = String(value, "pair");
  text.has_ids = value.Find("ids") != nullptr;
  text.ids = Integers(value.Find("ids"));
  text.type_ids = Integers(value.Find("type_ids"));
  for (const JsonMember& member : value.members()) {
    if (!member.key.starts_with("global_")) continue;
    text.globals[std::string(member.key)] = Integers(&member.value);
  }
  return text;
}

std::map<size_t, GoldenText> ReadList(const JsonValue* list) {
  std::map<size_t, GoldenText> texts;
  if (list == nullptr) return texts;
  size_t next = 0;
  for (const JsonValue& value : list->items()) {
    const size_t index = value.Find("index") != nullptr ? Size(value, "index") : next;
    texts[index] = ReadText(value);
    next = index + 1;
  }
  return texts;
}

std::string LastComponent(const std::string& path) {
  std::filesystem::path clean = std::filesystem::path(path).lexically_normal();
  if (!clean.has_filename()) clean = clean.parent_path();
  return clean.filename().string();
}

}  // namespace

Result<Golden> Golden::Open(const std::string& folder, const std::string& model_path) {
  Golden golden;
  golden.path_ = folder;
  POZOR_TRY(JsonDocument document, ReadJsonFile(JoinPath(folder, "golden.json")));
  // The weights of another folder in another layout: that folder has the texts and numbers.
  const std::string same = String(document.root(), "same_as");
  if (!same.empty()) {
    golden.path_ = JoinPath(folder, "../" + same);
    POZOR_TRY(document, ReadJsonFile(JoinPath(golden.path_, "golden.json")));
  }
  const JsonValue& root = document.root();
  golden.ReadTolerance(root);
  if (const JsonValue* variants = root.Find("variants")) {
    std::string name = LastComponent(model_path);
    const JsonValue* variant = variants->Find(name);
    if (variant == nullptr) {
      return NotFound(golden.path_ + ": has no variant " + name +
                      "; give a model whose folder has the name of a variant");
    }
    golden.ReadTolerance(*variant);
    const std::string other = String(*variant, "same_as");
    golden.prefix_ = (other.empty() ? name : other) + ".";
  }
  golden.max_length_ = Size(root, "max_length");
  golden.sentence_vectors_ = String(root, "library") == "sentence-transformers";
  POZOR_TRY(golden.source_, OpenSafetensors(JoinPath(golden.path_, "golden.safetensors")));
  POZOR_RETURN_IF_ERROR(golden.ReadTexts(root));
  return golden;
}

void Golden::ReadTolerance(const JsonValue& root) {
  const JsonValue* value = root.Find("tolerance");
  if (value == nullptr) return;
  tolerance_ = {Number(*value, "abs", 0), Number(*value, "rel", 0)};
  hidden_tolerance_ = {Number(*value, "hidden_abs", tolerance_.absolute), tolerance_.relative};
  attention_tolerance_ = {Number(*value, "attn_abs", tolerance_.absolute), tolerance_.relative};
}

Status Golden::ReadTexts(const JsonValue& root) {
  texts_ = ReadList(root.Find("texts"));
  pairs_ = ReadList(root.Find("pairs"));
  if (const JsonValue* ids = root.Find("token_ids")) {
    for (size_t i = 0; i < ids->items().size(); ++i) {
      if (!ids->items()[i].is_array() || !texts_.contains(i)) continue;
      texts_[i].has_ids = true;
      texts_[i].ids = Integers(&ids->items()[i]);
    }
  }
  return ReadFlatIds();
}

// Ids of all texts one after another in the tensor token_ids, cut at token_starts.
Status Golden::ReadFlatIds() {
  const auto ids = ReadIntegers("token_ids");
  const auto starts = ReadIntegers("token_starts");
  if (!ids.ok() || !starts.ok()) return Status();
  for (size_t i = 0; i + 1 < starts->size(); ++i) {
    const int32_t begin = (*starts)[i], end = (*starts)[i + 1];
    if (begin < 0 || end < begin || static_cast<size_t>(end) > ids->size()) {
      return Corrupt(path_ + ": token_starts leaves token_ids; make the folder again");
    }
    if (!texts_.contains(i)) continue;
    texts_[i].has_ids = true;
    texts_[i].ids.assign(ids->begin() + begin, ids->begin() + end);
  }
  return Status();
}

std::vector<TensorInfo> Golden::tensors() const {
  std::vector<TensorInfo> tensors;
  for (const TensorInfo& tensor : source_->tensors()) {
    if (tensor.name.starts_with(prefix_)) tensors.push_back(tensor);
  }
  std::sort(tensors.begin(), tensors.end(),
            [](const TensorInfo& a, const TensorInfo& b) { return NaturalLess(a.name, b.name); });
  return tensors;
}

std::string Golden::ShortName(const TensorInfo& tensor) const {
  return tensor.name.substr(prefix_.size());
}

Result<std::vector<float>> Golden::ReadFloats(const TensorInfo& tensor) const {
  std::vector<float> values(tensor.elements());
  POZOR_RETURN_IF_ERROR(source_->Read(tensor, 0, values.size(), values.data()));
  return values;
}

Result<std::vector<int32_t>> Golden::ReadIntegers(const std::string& short_name) const {
  for (const TensorInfo& tensor : source_->tensors()) {
    if (tensor.name == prefix_ + short_name) return ReadInt32(*source_, tensor);
  }
  return NotFound(path_ + ": has no tensor " + short_name + "; make the folder again");
}

Tolerance Golden::ToleranceOf(const std::string& short_name) const {
  if (short_name.find("attn") != std::string::npos) return attention_tolerance_;
  if (short_name.ends_with(".hidden")) return hidden_tolerance_;
  return tolerance_;
}

}  // namespace pozor::tools
