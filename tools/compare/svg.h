// Charts as inline SVG. Colours come from the page's style sheet: .s0 .s1 ... are the series, .axis
// .grid .label the rest, so that a chart follows light and dark.
#ifndef POZOR_TOOLS_COMPARE_SVG_H_
#define POZOR_TOOLS_COMPARE_SVG_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace pozor::tools {

inline constexpr size_t kSeriesColours = 8;

// & < > " as entities.
std::string Escape(std::string_view text);

struct Bar {
  size_t series = 0;
  std::string name;  // of the series, for the tooltip
  double value = 0;
  double low = 0, high = 0;  // error bar; equal: none
};
struct BarGroup {
  std::string label;
  std::vector<Bar> bars;
};
// Horizontal bars from zero, groups below each other, the value written behind each bar, and, if
// asked for, its name.
std::string BarChart(const std::vector<BarGroup>& groups, const std::string& unit, bool name_bars);

struct Point {
  double x = 0, y = 0;
  double low = 0, high = 0;  // error bar of y; equal: none
  std::string name;          // tooltip
};
struct Line {
  size_t series = 0;
  std::string name;  // written at the line's end, if there is room
  std::vector<Point> points;
  bool dashed = false;
  bool dots = true;     // mark the points
  bool strokes = true;  // join them
};
struct Axis {
  std::string label;
  bool logarithmic = false;
  double low = 0, high = 0;   // equal: from the points
  std::vector<double> ticks;  // empty: round numbers
};
struct LineChart {
  Axis x, y;
  std::vector<Line> lines;
  double width = 520, height = 320;
  bool name_lines = false;
};
std::string Draw(const LineChart& chart);

struct HeatMap {
  std::string row_title, column_title;
  std::vector<std::string> rows, columns;
  std::vector<std::vector<double>> values;  // [row][column]; NaN: no cell
};
std::string Draw(const HeatMap& map);

// Round numbers from about `low` to `high`: steps of 1, 2 or 5 times a power of ten.
std::vector<double> RoundTicks(double low, double high, size_t about);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_COMPARE_SVG_H_
