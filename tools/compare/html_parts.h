// Parts of the HTML report: tables, the style sheet, and the series that charts share.
#ifndef POZOR_TOOLS_COMPARE_HTML_PARTS_H_
#define POZOR_TOOLS_COMPARE_HTML_PARTS_H_

#include <string>
#include <string_view>
#include <vector>

#include "tools/compare/load.h"

namespace pozor::tools {

std::string_view StyleSheet();

// A cell starting with a digit, a sign or "–" is a number and stands to the right.
std::string HtmlTable(const std::vector<std::string>& head,
                      const std::vector<std::vector<std::string>>& rows);

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

std::string Legend(const std::vector<Series>& series);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_COMPARE_HTML_PARTS_H_
