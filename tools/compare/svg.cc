#include "tools/compare/svg.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tools/bench/text.h"

namespace pozor::tools {
namespace {

std::string N(double value) { return Fixed(value, 1); }

std::string Class(size_t series) { return "s" + std::to_string(series % kSeriesColours); }

std::string Tag(std::string_view name, std::string_view attributes, std::string_view inside = "") {
  if (inside.empty()) return Cat({"<", name, " ", attributes, "/>"});
  return Cat({"<", name, " ", attributes, ">", inside, "</", name, ">"});
}

std::string Title(std::string_view text) {
  return text.empty() ? "" : Cat({"<title>", Escape(text), "</title>"});
}

std::string Label(double x, double y, std::string_view anchor, std::string_view text,
                  std::string_view style = "label") {
  return Tag(
      "text",
      Cat({"class=\"", style, "\" x=\"", N(x), "\" y=\"", N(y), "\" text-anchor=\"", anchor, "\""}),
      Escape(text));
}

std::string Stroke(double x1, double y1, double x2, double y2, std::string_view style) {
  return Tag("line", Cat({"class=\"", style, "\" x1=\"", N(x1), "\" y1=\"", N(y1), "\" x2=\"",
                          N(x2), "\" y2=\"", N(y2), "\""}));
}

std::string Frame(double width, double height, const std::string& inside) {
  return Cat({"<svg viewBox=\"0 0 ", N(width), " ", N(height), "\" width=\"", N(width),
              "\" height=\"", N(height), "\" role=\"img\">", inside, "</svg>\n"});
}

// A number for a tick: no digits that say nothing.
std::string TickText(double value) {
  if (value != 0 && std::abs(value) < 1) return Cat({Short(value)});
  if (std::abs(value) >= 1e6) return Short(value / 1e6) + "M";
  if (std::abs(value) >= 1e4) return Fixed(value / 1e3, 0) + "k";
  return Fixed(value, value == std::floor(value) ? 0 : 1);
}

// Maps an axis to pixels.
class Scale {
 public:
  Scale(const Axis& axis, double low, double high, double from, double to)
      : logarithmic_(axis.logarithmic), low_(low), high_(high), from_(from), to_(to) {}
  double operator()(double value) const {
    if (!logarithmic_) return from_ + (value - low_) / (high_ - low_) * (to_ - from_);
    constexpr double kLeast = std::numeric_limits<double>::denorm_min();
    const double above = std::log(std::max({value, low_ * 1e-3, kLeast})) - std::log(low_);
    return from_ + above / (std::log(high_) - std::log(low_)) * (to_ - from_);
  }
  bool Contains(double value) const {
    const double slack = 1e-9 * std::abs(high_);
    return value >= low_ - slack && value <= high_ + slack;
  }
  double low() const { return low_; }
  double high() const { return high_; }

 private:
  bool logarithmic_;
  double low_, high_, from_, to_;
};

// Infinity has no place on an axis, zero none on a logarithmic one.
bool HasPlace(double value, const Axis& axis) {
  return std::isfinite(value) && (!axis.logarithmic || value > 0);
}

// `low` is above zero.
std::vector<double> LogTicks(double low, double high) {
  std::vector<double> ticks;
  for (double decade = std::pow(10, std::floor(std::log10(low))); decade <= high; decade *= 10) {
    const std::vector<double> steps =
        high / low > 300 ? std::vector<double>{1} : std::vector<double>{1, 2, 5};
    for (const double step : steps) {
      if (decade * step >= low * 0.999 && decade * step <= high * 1.001) {
        ticks.push_back(decade * step);
      }
    }
  }
  return ticks;
}

// The range of an axis: what was asked for, if it can be drawn, else that of the points with some
// room.
void FitAxis(const std::vector<Line>& lines, bool is_x, Axis* axis) {
  if (axis->low < axis->high && HasPlace(axis->low, *axis) && HasPlace(axis->high, *axis)) return;
  double low = HUGE_VAL, high = -HUGE_VAL;
  for (const Line& line : lines) {
    for (const Point& point : line.points) {
      const bool has_bar = !is_x && point.low != point.high;
      const double least = is_x ? point.x : has_bar ? point.low : point.y;
      const double most = has_bar ? point.high : is_x ? point.x : point.y;
      if (HasPlace(least, *axis)) low = std::min(low, least);
      if (HasPlace(most, *axis)) high = std::max(high, most);
    }
  }
  if (!(std::isfinite(low) && std::isfinite(high))) low = 0, high = 1;
  if (axis->logarithmic) {
    axis->low = std::max(low, 1e-12) / 1.1;
    axis->high = std::max(high, axis->low * 1.2) * 1.1;
  } else {
    axis->low = is_x ? low : std::min(0.0, low);
    axis->high = high > axis->low ? high + 0.06 * (high - axis->low) : axis->low + 1;
  }
  axis->high = std::min(axis->high, std::numeric_limits<double>::max());
}

std::string DrawLine(const Line& line, const Scale& x, const Scale& y) {
  std::string path, dots;
  for (const Point& point : line.points) {
    if (!x.Contains(point.x) || !y.Contains(point.y)) continue;
    path += Cat({path.empty() ? "M" : "L", N(x(point.x)), " ", N(y(point.y))});
    if (line.dots) {
      if (point.low != point.high && std::isfinite(point.low) && std::isfinite(point.high)) {
        dots += Stroke(x(point.x), y(point.low), x(point.x), y(point.high), "error");
      }
      dots += Tag("circle",
                  Cat({"class=\"fill ", Class(line.series), "\" cx=\"", N(x(point.x)), "\" cy=\"",
                       N(y(point.y)), "\" r=\"4\""}),
                  Title(point.name));
    }
  }
  std::string out;
  if (line.strokes && !path.empty()) {
    out += Tag("path",
               Cat({"class=\"line ", Class(line.series), line.dashed ? " dashed" : "", "\" d=\"",
                    path, "\""}),
               Title(line.name));
  }
  return out + dots;
}

}  // namespace

std::string Escape(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '&')
      escaped += "&amp;";
    else if (c == '<')
      escaped += "&lt;";
    else if (c == '>')
      escaped += "&gt;";
    else if (c == '"')
      escaped += "&quot;";
    else
      escaped += c;
  }
  return escaped;
}

std::vector<double> RoundTicks(double low, double high, size_t about) {
  if (!(high > low) || about == 0 || !std::isfinite(high - low)) return {low};
  const double rough = (high - low) / static_cast<double>(about);
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = power;
  for (const double factor : {2.0, 5.0, 10.0}) {
    if (step < rough * 0.999) step = power * factor;
  }
  std::vector<double> ticks;
  const double first = std::ceil(low / step - 1e-9) * step;
  // Where neighbours of `low` are more than a step away, adding one changes nothing.
  for (size_t i = 0; i <= 2 * about; ++i) {
    const double tick = first + static_cast<double>(i) * step;
    if (!(tick <= high + step * 1e-9)) break;
    ticks.push_back(std::abs(tick) < step * 1e-9 ? 0 : tick);
  }
  return ticks;
}

std::string BarChart(const std::vector<BarGroup>& groups, const std::string& unit, bool name_bars) {
  constexpr double kLeft = 130, kBar = 15, kGap = 12, kWidth = 1000, kTop = 8;
  double most = 0, right = 110;
  for (const BarGroup& group : groups) {
    for (const Bar& bar : group.bars) {
      for (const double end : {bar.value, bar.high}) {
        if (std::isfinite(end)) most = std::max(most, end);
      }
      const double letters = static_cast<double>(bar.name.size());
      if (name_bars) right = std::clamp(70 + 6.5 * letters, right, kWidth / 2);
    }
  }
  if (most <= 0) return "";
  Axis axis;
  const Scale x(axis, 0, most, kLeft, kWidth - right);
  double y = kTop;
  std::string bars;
  for (const BarGroup& group : groups) {
    const double height = kBar * static_cast<double>(group.bars.size());
    bars += Label(kLeft - 10, y + height / 2 + 4, "end", group.label, "label strong");
    for (const Bar& bar : group.bars) {
      const double drawn = std::isfinite(bar.value) ? std::max(0.0, bar.value) : 0;
      bars +=
          Tag("rect",
              Cat({"class=\"fill ", Class(bar.series), "\" x=\"", N(kLeft), "\" y=\"", N(y + 1),
                   "\" width=\"", N(x(drawn) - kLeft), "\" height=\"", N(kBar - 2), "\" rx=\"2\""}),
              Title(Cat({bar.name, ": ", Short(bar.value), " ", unit})));
      double end = x(drawn);
      if (bar.low != bar.high && std::isfinite(bar.low) && std::isfinite(bar.high)) {
        const double middle = y + kBar / 2;
        bars += Stroke(x(bar.low), middle, x(bar.high), middle, "error");
        bars += Stroke(x(bar.low), middle - 3, x(bar.low), middle + 3, "error");
        bars += Stroke(x(bar.high), middle - 3, x(bar.high), middle + 3, "error");
        end = std::max(end, x(bar.high));
      }
      const std::string value = Short(bar.value);
      bars += Label(end + 6, y + kBar / 2 + 4, "start",
                    name_bars ? Cat({value, " · ", bar.name}) : value);
      y += kBar;
    }
    y += kGap;
  }
  std::string grid;
  for (const double tick : RoundTicks(0, most, 5)) {
    grid += Stroke(x(tick), kTop, x(tick), y - kGap + 4, tick == 0 ? "axis" : "grid");
    grid += Label(x(tick), y + 8, "middle", TickText(tick));
  }
  grid += Label(kWidth - right + 12, y + 8, "start", unit);
  return Frame(kWidth, y + 16, grid + bars);
}

std::string Draw(const LineChart& chart) {
  constexpr double kLeft = 58, kTop = 12, kBottom = 44;
  const double right = chart.name_lines ? 150 : 16;
  Axis horizontal = chart.x, vertical = chart.y;
  FitAxis(chart.lines, true, &horizontal);
  FitAxis(chart.lines, false, &vertical);
  const double bottom = chart.height - kBottom, end = chart.width - right;
  const Scale x(horizontal, horizontal.low, horizontal.high, kLeft, end);
  const Scale y(vertical, vertical.low, vertical.high, bottom, kTop);
  const auto ticks = [](const Axis& axis, size_t about) {
    if (!axis.ticks.empty()) return axis.ticks;
    const bool decades = axis.logarithmic && axis.high > 4 * axis.low;
    return decades ? LogTicks(axis.low, axis.high) : RoundTicks(axis.low, axis.high, about);
  };
  std::string out;
  for (const double tick : ticks(horizontal, 6)) {
    if (!x.Contains(tick)) continue;
    out += Stroke(x(tick), kTop, x(tick), bottom, "grid");
    out += Label(x(tick), bottom + 16, "middle", TickText(tick));
  }
  for (const double tick : ticks(vertical, 5)) {
    if (!y.Contains(tick)) continue;
    out += Stroke(kLeft, y(tick), end, y(tick), "grid");
    out += Label(kLeft - 6, y(tick) + 4, "end", TickText(tick));
  }
  out += Stroke(kLeft, bottom, end, bottom, "axis") + Stroke(kLeft, kTop, kLeft, bottom, "axis");
  out += Label((kLeft + end) / 2, chart.height - 8, "middle", horizontal.label);
  out += Tag("text",
             Cat({"class=\"label\" text-anchor=\"middle\" transform=\"translate(13 ",
                  N((kTop + bottom) / 2), ") rotate(-90)\""}),
             Escape(vertical.label));
  double last_label = -100;
  for (const Line& line : chart.lines) {
    out += DrawLine(line, x, y);
    if (!chart.name_lines || line.points.empty() || line.name.empty()) continue;
    const Point& last = line.points.back();
    if (!std::isfinite(x(last.x)) || !std::isfinite(y(last.y))) continue;
    double at = y(last.y) + 4;
    if (std::abs(at - last_label) < 13) at = last_label + 13;
    last_label = at;
    out += Label(x(last.x) + 6, at, "start", line.name);
  }
  return Frame(chart.width, chart.height, out);
}

std::string Draw(const HeatMap& map) {
  constexpr double kLeft = 110, kTop = 44, kCellWidth = 92, kCellHeight = 30;
  double low = HUGE_VAL, high = -HUGE_VAL;
  for (const std::vector<double>& row : map.values) {
    for (const double value : row) {
      if (std::isfinite(value)) low = std::min(low, value), high = std::max(high, value);
    }
  }
  std::string out = Label(kLeft - 10, kTop - 8, "end", map.row_title);
  out += Label(kLeft, 14, "start", map.column_title);
  for (size_t c = 0; c < map.columns.size(); ++c) {
    out += Label(kLeft + (static_cast<double>(c) + 0.5) * kCellWidth, kTop - 8, "middle",
                 map.columns[c]);
  }
  for (size_t r = 0; r < map.rows.size(); ++r) {
    const double y = kTop + static_cast<double>(r) * kCellHeight;
    out += Label(kLeft - 10, y + kCellHeight / 2 + 4, "end", map.rows[r], "label strong");
    for (size_t c = 0; c < map.values[r].size(); ++c) {
      const double value = map.values[r][c], x = kLeft + static_cast<double>(c) * kCellWidth;
      if (!std::isfinite(value)) continue;
      const double share = high > low ? (value - low) / (high - low) : 1;
      out += Tag("rect", Cat({"class=\"heat\" x=\"", N(x + 1), "\" y=\"", N(y + 1), "\" width=\"",
                              N(kCellWidth - 2), "\" height=\"", N(kCellHeight - 2),
                              "\" rx=\"3\" fill-opacity=\"", Fixed(0.12 + 0.8 * share, 2), "\""}));
      out += Label(x + kCellWidth / 2, y + kCellHeight / 2 + 4, "middle", Short(value),
                   share > 0.9 ? "label on-heat" : "label strong");
    }
  }
  return Frame(kLeft + kCellWidth * static_cast<double>(map.columns.size()) + 8,
               kTop + kCellHeight * static_cast<double>(map.rows.size()) + 6, out);
}

}  // namespace pozor::tools
