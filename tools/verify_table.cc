#include "tools/verify_table.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "tools/bench/json_writer.h"
#include "tools/cli/command.h"

namespace pozor::tools {
namespace {

constexpr int kExitNotComputable = 3;

std::string ShapeText(const std::vector<size_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + "]";
}

std::string Short(double number) { return JsonNumber(number, 3); }

std::string ToleranceText(const Tolerance& tolerance) {
  if (tolerance.absolute == 0 && tolerance.relative == 0) return "exact";
  std::string text = Short(tolerance.absolute);
  if (tolerance.relative > 0) text += " + " + Short(tolerance.relative) + "|x|";
  return text;
}

const char* OutcomeText(Outcome outcome) {
  switch (outcome) {
    case Outcome::kOk:
      return "ok";
    case Outcome::kDifferent:
      return "DIFFERENT";
    case Outcome::kNotComputable:
      return "not computable";
  }
  return "";
}

}  // namespace

void VerifyTable::Compare(const std::string& name, const std::vector<size_t>& shape,
                          std::span<const float> got, std::span<const float> expected,
                          const Tolerance& tolerance) {
  if (got.size() != expected.size()) {
    AddDifferent(name, shape, "has " + std::to_string(got.size()) + " elements here");
    return;
  }
  VerifyRow row{name, shape, 0, tolerance, Outcome::kOk, ""};
  for (size_t i = 0; i < got.size(); ++i) {
    const double want = expected[i];
    const double difference = got[i] == expected[i] ? 0 : std::fabs(got[i] - want);
    const double most = tolerance.absolute + tolerance.relative * std::fabs(want);
    if (!(difference <= most)) row.outcome = Outcome::kDifferent;
    if (!(difference <= row.largest)) row.largest = difference;
    if (std::isnan(difference)) row.largest = std::numeric_limits<double>::infinity();
  }
  rows_.push_back(std::move(row));
}

void VerifyTable::AddDifferent(const std::string& name, const std::vector<size_t>& shape,
                               const std::string& note) {
  rows_.push_back(
      {name, shape, std::numeric_limits<double>::infinity(), {}, Outcome::kDifferent, note});
}

void VerifyTable::AddNotComputable(const std::string& name, const std::vector<size_t>& shape,
                                   const std::string& why) {
  rows_.push_back({name, shape, 0, {}, Outcome::kNotComputable, why});
}

size_t VerifyTable::Count(Outcome outcome) const {
  return static_cast<size_t>(std::count_if(
      rows_.begin(), rows_.end(), [=](const VerifyRow& row) { return row.outcome == outcome; }));
}

std::string VerifyTable::Text() const {
  size_t name_width = 6, shape_width = 5;
  for (const VerifyRow& row : rows_) {
    name_width = std::max(name_width, row.name.size());
    shape_width = std::max(shape_width, ShapeText(row.shape).size());
  }
  const auto pad = [](std::string text, size_t width) {
    if (text.size() < width) text.resize(width, ' ');
    return text + "  ";
  };
  std::string text = pad("tensor", name_width) + pad("shape", shape_width) + pad("difference", 10) +
                     pad("tolerance", 15) + "outcome\n";
  for (const VerifyRow& row : rows_) {
    const bool computed = row.outcome != Outcome::kNotComputable;
    text += pad(row.name, name_width) + pad(ShapeText(row.shape), shape_width) +
            pad(computed && std::isfinite(row.largest) ? Short(row.largest) : "-", 10) +
            pad(computed && row.note.empty() ? ToleranceText(row.tolerance) : "-", 15) +
            OutcomeText(row.outcome) + (row.note.empty() ? "" : ": " + row.note) + "\n";
  }
  for (const std::string& note : notes_) text += "note: " + note + "\n";
  text += std::to_string(Count(Outcome::kOk)) + " ok, " +
          std::to_string(Count(Outcome::kDifferent)) + " different, " +
          std::to_string(Count(Outcome::kNotComputable)) + " not computable\n";
  return text;
}

std::string VerifyTable::Json() const {
  JsonWriter json(1);
  json.BeginObject().Key("tensors").BeginArray();
  for (const VerifyRow& row : rows_) {
    json.BeginObject().Field("name", row.name).Key("shape").BeginArray();
    for (const size_t size : row.shape) json.Value(size);
    json.EndArray()
        .Field("difference", row.outcome == Outcome::kNotComputable
                                 ? std::numeric_limits<double>::quiet_NaN()
                                 : row.largest)
        .Field("absolute_tolerance", row.tolerance.absolute)
        .Field("relative_tolerance", row.tolerance.relative)
        .Field("outcome", OutcomeText(row.outcome))
        .Field("note", row.note)
        .EndObject();
  }
  json.EndArray().Key("notes").Array(notes_);
  json.Field("ok", Count(Outcome::kOk))
      .Field("different", Count(Outcome::kDifferent))
      .Field("not_computable", Count(Outcome::kNotComputable))
      .EndObject();
  return json.text() + "\n";
}

int VerifyTable::ExitCode() const {
  if (Count(Outcome::kDifferent) > 0) return kExitFailed;
  return Count(Outcome::kNotComputable) > 0 ? kExitNotComputable : kExitDone;
}

}  // namespace pozor::tools
