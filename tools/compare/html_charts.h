// The charts of the HTML report, each with its numbers below it. Empty text: nothing to draw.
#ifndef POZOR_TOOLS_COMPARE_HTML_CHARTS_H_
#define POZOR_TOOLS_COMPARE_HTML_CHARTS_H_

#include <string>
#include <vector>

#include "tools/compare/html_parts.h"
#include "tools/compare/load.h"

namespace pozor::tools {

// Tokens a second of every series, one chart a number of threads.
std::string LeaderBoard(const std::vector<LoadedResult>& results,
                        const std::vector<Series>& series);
// Speed over threads, one chart a workload.
std::string ThreadScaling(const std::vector<LoadedResult>& results,
                          const std::vector<Series>& series);
// Cumulative distribution of single calls, one chart a query workload.
std::string LatencyDistribution(const std::vector<LoadedResult>& results,
                                const std::vector<Series>& series);
// Measured ceilings, and each kernel as a dot, one chart a file.
std::string Rooflines(const std::vector<LoadedResult>& results);
// Tokens a second over length and batch (or threads, if one batch was measured), by file and
// engine.
std::string HeatMaps(const std::vector<Series>& series);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_COMPARE_HTML_CHARTS_H_
