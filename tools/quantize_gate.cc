#include "tools/quantize_gate.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>

#include "tools/rank.h"

namespace pozor::tools {
namespace {

constexpr size_t kLongBytes = 1000;  // some 250 tokens
constexpr size_t kMostLong = 50;
constexpr size_t kEnoughTexts = 50;
constexpr size_t kMostQueries = 300;
constexpr size_t kMostPairs = 20000;

class Rows {
 public:
  Rows(std::span<const float> data, size_t columns) : data_(data), columns_(columns) {
    for (size_t i = 0; i < count(); ++i) norms_.push_back(std::sqrt(Dot(i, i)));
  }
  size_t count() const { return data_.size() / columns_; }
  double Cosine(size_t i, size_t j) const {
    const double norms = norms_[i] * norms_[j];
    return norms > 0 ? Dot(i, j) / norms : 0;
  }

 private:
  double Dot(size_t i, size_t j) const {
    double sum = 0;
    for (size_t c = 0; c < columns_; ++c) {
      sum += double{data_[i * columns_ + c]} * double{data_[j * columns_ + c]};
    }
    return sum;
  }

  std::span<const float> data_;
  size_t columns_;
  std::vector<double> norms_;
};

// Cosine of row i of one with row i of the other.
std::vector<double> RowCosines(std::span<const float> a, std::span<const float> b, size_t columns) {
  std::vector<double> cosines;
  for (size_t at = 0; at < a.size(); at += columns) {
    double ab = 0, aa = 0, bb = 0;
    for (size_t c = at; c < at + columns; ++c) {
      ab += double{a[c]} * double{b[c]};
      aa += double{a[c]} * double{a[c]};
      bb += double{b[c]} * double{b[c]};
    }
    cosines.push_back(aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : 0.0);
  }
  return cosines;
}

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 1 : sum / static_cast<double>(values.size());
}

// Of pairs i, i + offset for growing offsets, up to a limit. Where f32 finds all pairs alike, as of
// one text again and again, there is no order to keep.
double RankOfPairs(const Rows& a, const Rows& b) {
  std::vector<double> x, y;
  for (size_t offset = 1; offset < a.count() && x.size() < kMostPairs; ++offset) {
    for (size_t i = 0; i + offset < a.count(); ++i) {
      x.push_back(a.Cosine(i, i + offset));
      y.push_back(b.Cosine(i, i + offset));
    }
  }
  const bool ordered = std::adjacent_find(x.begin(), x.end(), std::not_equal_to<>()) != x.end();
  if (x.size() < 3 || !ordered) return 1;
  const double correlation = SpearmanCorrelation(x, y);
  return std::isnan(correlation) ? 0 : correlation;
}

std::vector<size_t> NearestTen(const Rows& rows, size_t query) {
  std::vector<std::pair<double, size_t>> others;
  for (size_t i = 0; i < rows.count(); ++i) {
    if (i != query) others.emplace_back(-rows.Cosine(query, i), i);
  }
  const size_t count = std::min<size_t>(10, others.size());
  std::partial_sort(others.begin(), others.begin() + static_cast<std::ptrdiff_t>(count),
                    others.end());
  std::vector<size_t> nearest;
  nearest.reserve(count);
  for (size_t i = 0; i < count; ++i) nearest.push_back(others[i].second);
  std::sort(nearest.begin(), nearest.end());
  return nearest;
}

double TopTen(const Rows& a, const Rows& b) {
  size_t shared = 0, all = 0;
  const size_t step = std::max<size_t>(1, a.count() / kMostQueries);
  for (size_t query = 0; query < a.count(); query += step) {
    const std::vector<size_t> x = NearestTen(a, query), y = NearestTen(b, query);
    std::vector<size_t> both;
    std::set_intersection(x.begin(), x.end(), y.begin(), y.end(), std::back_inserter(both));
    shared += both.size();
    all += x.size();
  }
  return all == 0 ? 1 : static_cast<double>(shared) / static_cast<double>(all);
}

struct Limit {
  const char* name;
  double value, least;
};

std::vector<Limit> Against(const GateResult& r, const GateLimits& limits) {
  return {{"mean cosine", r.mean, limits.mean},
          {"cosine's first percentile", r.p1, limits.p1},
          {"mean cosine of long texts", r.long_mean, limits.long_mean},
          {"rank correlation", r.rank, limits.rank},
          {"top-10 overlap", r.top10, limits.top10}};
}

}  // namespace

GateTexts MakeGateTexts(std::span<const std::string_view> texts) {
  GateTexts gate;
  for (const std::string_view text : texts) gate.texts.emplace_back(text);
  gate.short_texts = gate.texts.size();
  std::string joined;
  for (const std::string_view text : texts) {
    if (gate.texts.size() == gate.short_texts + kMostLong) break;
    joined += (joined.empty() ? "" : " ") + std::string(text);
    if (joined.size() < kLongBytes) continue;
    gate.texts.push_back(std::move(joined));
    joined.clear();
  }
  return gate;
}

std::vector<std::string> TooFew(const GateTexts& texts) {
  std::vector<std::string> lines;
  if (texts.short_texts < kEnoughTexts) {
    const std::string count = std::to_string(texts.short_texts);
    lines.push_back(count + (texts.short_texts == 1 ? " text is" : " texts are") +
                    " too few to rank; give " + std::to_string(kEnoughTexts) + " or more");
  }
  if (texts.long_texts() == 0) {
    lines.push_back("all texts together are shorter than " + std::to_string(kLongBytes) +
                    " bytes, so no long text is compared; give more");
  }
  return lines;
}

GateResult Compare(std::span<const float> reference, std::span<const float> vectors,
                   const GateTexts& texts) {
  GateResult result;
  if (texts.texts.empty()) return result;
  result.short_texts = texts.short_texts;
  result.long_texts = texts.long_texts();
  const size_t columns = reference.size() / texts.texts.size();
  std::vector<double> all = RowCosines(reference, vectors, columns);
  std::vector<double> longer(all.begin() + static_cast<std::ptrdiff_t>(texts.short_texts),
                             all.end());
  all.resize(texts.short_texts);
  result.mean = Mean(all);
  result.long_mean = Mean(longer);
  std::sort(all.begin(), all.end());
  result.p1 = all.empty() ? 1 : all[all.size() / 100];
  result.least = all.empty() ? 1 : all.front();
  if (!longer.empty()) result.long_least = *std::min_element(longer.begin(), longer.end());
  const size_t shorter = texts.short_texts * columns;
  const Rows a(reference.first(shorter), columns), b(vectors.first(shorter), columns);
  result.rank = RankOfPairs(a, b);
  result.top10 = TopTen(a, b);
  return result;
}

std::string GateResult::Failures(const GateLimits& limits) const {
  std::string text;
  for (const Limit& limit : Against(*this, limits)) {
    if (limit.value >= limit.least) continue;
    char line[128];
    std::snprintf(line, sizeof line, "%s%s %.5f is below %g", text.empty() ? "" : ", ", limit.name,
                  limit.value, limit.least);
    text += line;
  }
  return text;
}

std::string GateResult::Text() const {
  const auto numbers = [](const char* format, auto... values) {
    char line[128];
    std::snprintf(line, sizeof line, format, values...);
    return std::string(line);
  };
  std::string text = numbers("cosine to f32: mean %.5f, p1 %.5f, min %.5f", mean, p1, least);
  if (HasLong()) text += numbers("; long texts: mean %.5f, min %.5f", long_mean, long_least);
  if (HasRank()) text += numbers("; rank correlation %.5f", rank);
  if (HasTop10()) text += numbers("; top-10 overlap %.4f", top10);
  return text;
}

}  // namespace pozor::tools
