// Parts of the HTML report: tables, the style sheet, and the series that charts share.
#ifndef POZOR_TOOLS_COMPARE_HTML_PARTS_H_
#define POZOR_TOOLS_COMPARE_HTML_PARTS_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tools/compare/load.h"

namespace pozor::tools {

std::string_view StyleSheet();

// More files than these are told by numbers: their names would leave no room for anything else.
inline constexpr size_t kFewFiles = 4;
// "#3" for the third file.
std::string FileNumber(size_t index);
// "#1–#4, #7" for indices in rising order.
std::string FileNumbers(const std::vector<size_t>& indices);
// What stands for one of the results: its label, or, of many, its number.
std::string ShortLabel(const LoadedResult& file, const std::vector<LoadedResult>& results);

// A cell starting with a digit, a sign or "–" is a number and stands to the right.
std::string HtmlTable(const std::vector<std::string>& head,
                      const std::vector<std::vector<std::string>>& rows,
                      std::string_view style = "");

// What is folded away under a line.
std::string Folded(const std::string& summary, const std::string& inside);
// The numbers of a chart, folded away under it.
std::string NumbersBelow(const std::vector<std::string>& head,
                         const std::vector<std::vector<std::string>>& rows);

// A box with a heading (or none) around a chart or table.
std::string Card(const std::string& title, const std::string& inside);
// Boxes side by side where there is room.
std::string InGrid(const std::string& cards);

// What one colour stands for: a file, an engine of it, and the settings it ran with.
struct Series {
  const LoadedResult* file = nullptr;
  std::string engine, precision, tier;
  size_t batch = 0;
  std::string name;  // shortest text that tells it from the others

  bool Holds(const LoadedResult& loaded, const RowKey& key) const;
};
std::vector<Series> FindSeries(const std::vector<LoadedResult>& results);

// Folded away if there are more series than colours.
std::string Legend(const std::vector<Series>& series);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_COMPARE_HTML_PARTS_H_
