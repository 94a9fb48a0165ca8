#include "tools/attention/show.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "tools/attention/find_units.h"
#include "tools/cli/signals.h"

namespace pozor::tools {
namespace {

constexpr size_t kLabelColumns = 14;
constexpr size_t kNumberColumns = 5;  // " .123"

bool UseColours() {
  const char* off = std::getenv("NO_COLOR");
  return ::isatty(STDOUT_FILENO) == 1 && (off == nullptr || *off == '\0');
}

// The square root of the weight, as on the page: small weights stay visible.
std::string Shade(float weight, bool colours) {
  const double strength = std::sqrt(std::clamp(static_cast<double>(weight), 0.0, 1.0));
  if (colours) {
    const int level =
        255 - static_cast<int>(std::lround(strength * 23));  // the grey ramp, reversed
    return "\x1b[48;5;" + std::to_string(level) + "m  \x1b[0m";
  }
  constexpr const char* kShades[] = {"  ", "\u2591\u2591", "\u2592\u2592", "\u2593\u2593",
                                     "\u2588\u2588"};
  return kShades[static_cast<size_t>(std::min(4.0, std::floor(strength * 5)))];
}

std::string Number(float weight) {
  char text[16];
  std::snprintf(text, sizeof text, "%5.3f", static_cast<double>(weight));
  return text[0] == '0' ? " " + std::string(text + 1) : text;
}

class Printer {
 public:
  Printer(const TransformShape& shape, bool numbers)
      : shape_(shape), numbers_(numbers), colours_(UseColours()) {}

  // Numbers of the columns, one above the other; the rows of a matrix say what they stand for.
  void Header(const std::string& corner, const std::vector<Unit>& columns) const {
    if (numbers_) {
      std::string line = PadTo(corner, kLabelColumns);
      for (const Unit& unit : columns) {
        line += ' ' + PadTo(Printable(unit.text, kNumberColumns - 1), kNumberColumns - 1);
      }
      std::printf("%s\n", line.c_str());
      return;
    }
    std::string line = PadTo(corner, kLabelColumns);
    for (size_t i = 0; i < columns.size(); ++i) {
      const std::string number = std::to_string(i % 100);
      line += number.size() == 1 ? " " + number : number;
    }
    std::printf("%s\n", line.c_str());
  }

  void Row(const std::string& label, const float* weights, size_t count) const {
    std::string line = PadTo(Printable(label, kLabelColumns - 1), kLabelColumns);
    for (size_t i = 0; i < count; ++i) {
      line += numbers_ ? Number(weights[i]) : Shade(weights[i], colours_);
    }
    std::printf("%s\n", line.c_str());
  }

  void Legend() const {
    if (numbers_) return;
    std::string line;
    for (size_t i = 0; i < shape_.units.size(); ++i) {
      line += (i == 0 ? "" : "  ") + std::to_string(i) + " " + Printable(shape_.units[i].text, 20);
    }
    std::printf("%s\n", line.c_str());
  }

 private:
  const TransformShape& shape_;
  const bool numbers_, colours_;
};

std::string NameOf(const TransformShape& shape, const UnitRows& rows) {
  std::string name = shape.per_layer ? "layer " + std::to_string(rows.layer) : "rollout";
  if (shape.per_head) name += " head " + std::to_string(rows.head);
  return name;
}

Status ShowMatrices(AttentionSource& source, const ShowRequest& request,
                    const TransformShape& shape) {
  const Printer printer(shape, request.numbers);
  size_t row = 0;
  return StreamTransformed(source, request.transform, [&](const UnitRows& rows) {
    for (size_t i = 0; i < rows.rows; ++i, row = (row + 1) % shape.rows) {
      if (row == 0) printer.Header(NameOf(shape, rows), shape.units);
      const bool cls = request.transform.reduction == Reduction::kCls;
      const std::string label =
          cls ? "first token" : std::to_string(row) + " " + shape.units[row].text;
      printer.Row(label, rows.Row(i), rows.columns);
      if (row + 1 == shape.rows) std::printf("\n");
    }
    return Status();
  });
}

// Every head's row (or column) of one unit.
Status ShowWord(AttentionSource& source, const ShowRequest& request, const TransformShape& shape,
                size_t unit) {
  const Printer printer(shape, request.numbers);
  std::vector<float> line(shape.columns);
  size_t row = 0;
  std::printf("%s '%s'\n", request.to ? "Who looks at" : "Where it looks from",
              Printable(shape.units[unit].text, 60).c_str());
  printer.Header("layer head", shape.units);
  POZOR_RETURN_IF_ERROR(StreamTransformed(source, request.transform, [&](const UnitRows& rows) {
    for (size_t i = 0; i < rows.rows; ++i, row = (row + 1) % shape.rows) {
      if (request.to) line[row] = rows.Row(i)[unit];
      if (!request.to && row == unit) std::copy_n(rows.Row(i), rows.columns, line.begin());
      if (row + 1 < shape.rows) continue;
      char label[32];
      std::snprintf(label, sizeof label, "%5zu %4zu", rows.layer, rows.head);
      printer.Row(label, line.data(), line.size());
    }
    return Status();
  }));
  std::printf("\n");
  return Status();
}

}  // namespace

Status RunAttentionShow(ShowRequest request) {
  request.attention.encode.cancel = CancelOnSignals();
  const bool chosen = !request.attention.heads.heads.empty();
  if (request.token.empty() && !chosen && request.transform.reduction == Reduction::kNone) {
    request.transform.reduction = Reduction::kMeanHeads;
  }
  if (!request.token.empty() && (request.transform.reduction == Reduction::kRollout ||
                                 request.transform.reduction == Reduction::kCls)) {
    return InvalidArgument("--token: shows every head; leave out --reduce rollout or cls");
  }
  std::optional<AttentionModel> model;
  POZOR_TRY(const auto source, OpenOne(request.attention, "show", false, &model));
  POZOR_TRY(const TransformShape shape, ShapeOf(source->record(), request.transform));
  if (request.token.empty()) {
    POZOR_RETURN_IF_ERROR(ShowMatrices(*source, request, shape));
  } else {
    POZOR_TRY(const std::vector<size_t> found, FindUnits(shape.units, request.token, "--token"));
    for (const size_t unit : found) POZOR_RETURN_IF_ERROR(ShowWord(*source, request, shape, unit));
  }
  Printer(shape, request.numbers).Legend();
  return Status();
}

}  // namespace pozor::tools
