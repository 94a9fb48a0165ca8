#include "tools/compare/html_parts.h"

#include <algorithm>
#include <set>

#include "tools/bench/text.h"
#include "tools/compare/svg.h"

namespace pozor::tools {
namespace {

bool LooksLikeNumber(const std::string& text) {
  if (text == "–") return true;
  return !text.empty() && text.find_first_not_of("0123456789.+-") == std::string::npos;
}

template <class Get>
bool Varies(const std::vector<Series>& series, Get get) {
  std::set<std::string> values;
  for (const Series& one : series) values.insert(get(one));
  return values.size() > 1;
}

// Only what differs among the series goes into their names.
void NameSeries(const std::vector<LoadedResult>& results, std::vector<Series>* series) {
  const auto batch = [](const Series& s) {
    return s.batch == 0 ? std::string("auto") : std::to_string(s.batch);
  };
  const bool files = Varies(*series, [](const Series& s) { return s.file->path; });
  const bool engines = Varies(*series, [](const Series& s) { return s.engine; });
  const bool precisions = Varies(*series, [](const Series& s) { return s.precision; });
  const bool tiers = Varies(*series, [](const Series& s) { return s.tier; });
  for (Series& one : *series) {
    std::vector<std::string> parts;
    if (files) parts.push_back(ShortLabel(*one.file, results));
    if (engines || parts.empty()) parts.push_back(one.engine);
    if (precisions) parts.push_back(one.precision);
    if (tiers) parts.push_back(one.tier);
    const bool batches = std::any_of(series->begin(), series->end(), [&](const Series& other) {
      return other.file == one.file && other.engine == one.engine && other.batch != one.batch;
    });
    if (batches) parts.push_back("batch " + batch(one));
    one.name = Join(parts, " · ");
  }
}

}  // namespace

std::string_view StyleSheet() {
  return R"(
:root { color-scheme: light dark; --page: #fbfbfa; --card: #ffffff; --ink: #1c1c1a; --soft: #5f5e58;
  --rule: #dddbd3; --faint: #ecebe5; --good: #19703c; --bad: #b3261e; --heat: #1f5fa8; --on-heat: #ffffff;
  --s0: #1f6fb2; --s1: #d4620b; --s2: #16866a; --s3: #a4468f; --s4: #b08900; --s5: #3d9fd0; --s6: #7a5fc0; --s7: #77746a; }
@media (prefers-color-scheme: dark) { :root { --page: #161614; --card: #1f1f1c; --ink: #ecebe4; --soft: #a5a398;
  --rule: #3b3a35; --faint: #2b2a26; --good: #6cc48b; --bad: #f2877d; --heat: #6aaef0; --on-heat: #10100e;
  --s0: #62aef0; --s1: #f09a4e; --s2: #4cc3a0; --s3: #db86c6; --s4: #d8b63c; --s5: #8fd3f5; --s6: #b09cf0; --s7: #a7a498; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1120px; padding: 24px 20px 60px; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, "Segoe UI", "Noto Sans", sans-serif; }
h1 { font-size: 26px; margin: 0 0 4px; } h2 { font-size: 20px; margin: 36px 0 8px; } h3 { font-size: 15px; margin: 14px 0 6px; }
p { margin: 6px 0 10px; } .soft { color: var(--soft); }
section.card { background: var(--card); border: 1px solid var(--rule); border-radius: 8px; padding: 14px 18px; margin: 12px 0; overflow-x: auto; }
.grid-of-charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(480px, 100%), 1fr)); gap: 12px; } .grid-of-charts section.card { margin: 0; }
table { border-collapse: collapse; font-size: 13.5px; font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: 600; border-bottom: 1px solid var(--rule); padding: 4px 14px 4px 0; vertical-align: bottom; }
td { border-bottom: 1px solid var(--faint); padding: 4px 14px 4px 0; vertical-align: top; overflow-wrap: break-word; } td.n, th.n { text-align: right; white-space: nowrap; }
td:last-child, th:last-child { padding-right: 0; }
td:first-child, th:first-child { position: sticky; left: 0; background: var(--card); }
@media (max-width: 700px) { td:first-child, th:first-child { max-width: 36vw; } }
table.facts td { min-width: 8em; } table.files td:nth-last-child(7) { min-width: 13em; } table.rows td:first-child, table.overview td:nth-child(2) { min-width: 13em; }
details + details { border-top: 1px solid var(--faint); padding-top: 8px; }
.faster { color: var(--good); font-weight: 600; } .slower { color: var(--bad); font-weight: 600; } .not-comparable { color: var(--soft); }
details { margin-top: 8px; } details + .grid-of-charts { margin-top: 10px; } summary { cursor: pointer; color: var(--soft); font-size: 13.5px; } details table { margin-top: 8px; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 18px; font-size: 13.5px; margin: 4px 0 10px; }
.legend i { display: inline-block; width: 12px; height: 12px; border-radius: 3px; margin-right: 6px; vertical-align: -1px; }
svg { max-width: 100%; height: auto; display: block; }
svg .label { font-size: 12px; fill: var(--soft); } svg .strong { fill: var(--ink); } svg .on-heat { fill: var(--on-heat); font-weight: 600; }
svg .axis { stroke: var(--soft); stroke-width: 1; } svg .grid { stroke: var(--faint); stroke-width: 1; } svg .error { stroke: var(--ink); stroke-width: 1.2; }
svg .line { fill: none; stroke-width: 2; } svg .dashed { stroke-dasharray: 5 4; stroke-width: 1.5; } svg .heat { fill: var(--heat); }
.s0 { --c: var(--s0); } .s1 { --c: var(--s1); } .s2 { --c: var(--s2); } .s3 { --c: var(--s3); }
.s4 { --c: var(--s4); } .s5 { --c: var(--s5); } .s6 { --c: var(--s6); } .s7 { --c: var(--s7); }
svg .fill { fill: var(--c); } svg .line { stroke: var(--c); } .legend i { background: var(--c); }
@media print { body { max-width: none; } section.card { break-inside: avoid; } }
)";
}

std::string FileNumber(size_t index) { return "#" + std::to_string(index + 1); }

std::string FileNumbers(const std::vector<size_t>& indices) {
  std::vector<std::string> runs;
  for (size_t first = 0; first < indices.size();) {
    size_t last = first;
    while (last + 1 < indices.size() && indices[last + 1] == indices[last] + 1) ++last;
    std::string run = FileNumber(indices[first]);
    if (last > first) run += Cat({last > first + 1 ? "–" : ", ", FileNumber(indices[last])});
    runs.push_back(std::move(run));
    first = last + 1;
  }
  return Join(runs, ", ");
}

std::string ShortLabel(const LoadedResult& file, const std::vector<LoadedResult>& results) {
  return results.size() <= kFewFiles ? file.label
                                     : FileNumber(static_cast<size_t>(&file - results.data()));
}

std::string HtmlTable(const std::vector<std::string>& head,
                      const std::vector<std::vector<std::string>>& rows, std::string_view style) {
  std::vector<bool> numeric(head.size(), !rows.empty());
  for (const std::vector<std::string>& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      if (!LooksLikeNumber(row[i])) numeric[i] = false;
    }
  }
  std::string html = style.empty() ? "<table>" : Cat({"<table class=\"", style, "\">"});
  html += "<thead><tr>";
  for (size_t i = 0; i < head.size(); ++i) {
    html += Cat({numeric[i] ? "<th class=\"n\">" : "<th>", Escape(head[i]), "</th>"});
  }
  html += "</tr></thead><tbody>\n";
  for (const std::vector<std::string>& row : rows) {
    html += "<tr>";
    for (size_t i = 0; i < row.size(); ++i) {
      html += Cat({numeric[i] ? "<td class=\"n\">" : "<td>", Escape(row[i]), "</td>"});
    }
    html += "</tr>\n";
  }
  return html + "</tbody></table>\n";
}

std::string Folded(const std::string& summary, const std::string& inside) {
  return Cat({"<details><summary>", Escape(summary), "</summary>", inside, "</details>\n"});
}

std::string NumbersBelow(const std::vector<std::string>& head,
                         const std::vector<std::vector<std::string>>& rows) {
  return Folded("The numbers", HtmlTable(head, rows));
}

std::string Card(const std::string& title, const std::string& inside) {
  return Cat({"<section class=\"card\">", title.empty() ? "" : "<h3>", Escape(title),
              title.empty() ? "" : "</h3>", inside, "</section>\n"});
}

std::string InGrid(const std::string& cards) {
  return cards.empty() ? "" : Cat({"<div class=\"grid-of-charts\">", cards, "</div>\n"});
}

bool Series::Holds(const LoadedResult& loaded, const RowKey& key) const {
  return file == &loaded && engine == key.engine && precision == key.precision &&
         tier == key.tier && batch == key.batch;
}

std::vector<Series> FindSeries(const std::vector<LoadedResult>& results) {
  std::vector<Series> series;
  for (const LoadedResult& loaded : results) {
    for (const Row& row : loaded.result.rows) {
      const bool known = std::any_of(series.begin(), series.end(),
                                     [&](const Series& one) { return one.Holds(loaded, row.key); });
      if (known) continue;
      Series one;
      one.file = &loaded;
      one.engine = row.key.engine;
      one.precision = row.key.precision;
      one.tier = row.key.tier;
      one.batch = row.key.batch;
      series.push_back(std::move(one));
    }
  }
  NameSeries(results, &series);
  return series;
}

std::string Legend(const std::vector<Series>& series) {
  std::string html = "<div class=\"legend\">";
  for (size_t i = 0; i < series.size(); ++i) {
    html += Cat({"<span><i class=\"s", std::to_string(i % kSeriesColours), "\"></i>",
                 Escape(series[i].name), "</span>"});
  }
  html += "</div>\n";
  if (series.size() <= kSeriesColours) return html;
  return Folded(Cat({"Colours stand for ", std::to_string(series.size()),
                     " series and repeat; point at a bar or a line for its name"}),
                html);
}

}  // namespace pozor::tools
