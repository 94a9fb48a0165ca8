#include "tools/bench/workload.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>

#include "tools/stats.h"

namespace pozor::tools {
namespace {

// Common English words, most of them one token in any vocabulary, and longer ones that are several.
constexpr std::array<std::string_view, 96> kWords = {
    "the",      "a",         "of",       "to",      "and",       "in",         "is",
    "was",      "for",       "on",       "with",    "as",        "by",         "at",
    "from",     "it",        "that",     "this",    "his",       "her",        "they",
    "we",       "you",       "one",      "two",     "three",     "first",      "last",
    "new",      "old",       "long",     "small",   "great",     "people",     "man",
    "woman",    "child",     "house",    "street",  "city",      "country",    "river",
    "mountain", "school",    "book",     "letter",  "music",     "picture",    "water",
    "fire",     "light",     "night",    "day",     "year",      "time",       "way",
    "work",     "life",      "world",    "hand",    "eye",       "door",       "table",
    "garden",   "horse",     "dog",      "bird",    "tree",      "flower",     "green",
    "red",      "white",     "running",  "playing", "reading",   "walking",    "carries",
    "writes",   "opened",    "found",    "looked",  "measured",  "thermostat", "photosynthesis",
    "Prague",   "Vltava",    "Dvorak",   "railway", "telescope", "embroidery", "unquestionable",
    "quantity", "attention", "sentence", "encoder", "processor"};

// Words of one token somewhere near the front of every vocabulary: they end a text to the token.
constexpr std::array<std::string_view, 4> kFillers = {"the", "a", "of", "."};

std::string Sentence(size_t words, SplitMix64& random) {
  std::string text;
  size_t since_stop = 0;
  for (size_t i = 0; i < words; ++i) {
    if (!text.empty()) text += ' ';
    text += kWords[random.Below(kWords.size())];
    if (++since_stop > 6 && random.Below(8) == 0) {
      text += random.Below(3) == 0 ? "," : ".";
      since_stop = 0;
    }
  }
  return text;
}

void DropLastWord(std::string* text) {
  const size_t space = text->rfind(' ');
  text->erase(space == std::string::npos ? 0 : space);
}

}  // namespace

Result<std::string> MakeText(size_t tokens, uint64_t seed, const TokenCounter& count) {
  SplitMix64 random(seed);
  std::string text = Sentence(tokens, random);
  POZOR_TRY(size_t now, count(text));
  // Too long by d tokens: at most d words go in one step, so the text never falls far below.
  while (now > tokens && !text.empty()) {
    for (size_t i = 0; i < std::max<size_t>(1, (now - tokens) / 2) && !text.empty(); ++i) {
      DropLastWord(&text);
    }
    POZOR_TRY(now, count(text));
  }
  while (now < tokens) {
    bool fitted = false;
    for (const std::string_view filler : kFillers) {
      std::string longer = text;
      if (!longer.empty()) longer += ' ';
      longer += filler;
      POZOR_TRY(const size_t then, count(longer));
      if (then > tokens) continue;
      fitted = then > now;
      now = then;
      text = std::move(longer);
      break;
    }
    if (!fitted) break;
  }
  return text;
}

std::vector<size_t> MixLengths(size_t texts, size_t longest, uint64_t seed) {
  SplitMix64 random(seed);
  std::vector<size_t> lengths;
  for (size_t i = 0; i < texts; ++i) {
    const double length = std::clamp(24 * std::exp(0.9 * random.Normal()), 5.0,
                                     static_cast<double>(std::max<size_t>(5, longest)));
    lengths.push_back(static_cast<size_t>(length));
  }
  return lengths;
}

std::string HashTexts(const std::vector<std::string>& texts) {
  uint64_t hash = 0xcbf29ce484222325u;
  const auto add = [&hash](char c) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  };
  for (const std::string& text : texts) {
    for (const char c : text) add(c);
    add('\n');
  }
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash));
  return digits;
}

Result<std::vector<std::string>> ReadLines(const std::string& path, size_t stride) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return IoError(path + ": cannot be opened; check the path and its permissions");
  std::vector<std::string> lines;
  std::string line;
  for (size_t i = 0; std::getline(file, line); ++i) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (i % std::max<size_t>(1, stride) == 0) lines.push_back(line);
  }
  if (lines.empty()) return InvalidArgument(path + ": has no lines; give a file with texts");
  return lines;
}

Status WriteLines(const std::string& path, const std::vector<std::string>& texts) {
  std::ofstream file(path, std::ios::binary);
  for (const std::string& text : texts) file << text << '\n';
  file.close();
  if (!file) return IoError(path + ": cannot be written; check the path and the free space");
  return {};
}

}  // namespace pozor::tools
