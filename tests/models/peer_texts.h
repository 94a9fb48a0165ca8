// Texts where tokenizers go wrong, and the Python that has the package `tokenizers`.
#ifndef POZOR_TESTS_MODELS_PEER_TEXTS_H_
#define POZOR_TESTS_MODELS_PEER_TEXTS_H_

#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string>
#include <utility>

#include "models/text/unicode.h"
#include "tests/support/process.h"
#include "tests/support/random.h"

namespace pozor::testing {

using test::Random;

template <class Table>
const auto& OneOf(const Table& table, Random& random) {
  return table[random.Index(std::size(table))];
}

// Blocks where something happens: scripts, marks, forms, planes.
inline const std::pair<char32_t, char32_t> kBlocks[] = {
    {0x20, 0x7E},     {0x20, 0x7E},     {0x20, 0x7E},       {0xA0, 0xFF},       {0x100, 0x24F},
    {0x300, 0x36F},   {0x370, 0x3FF},   {0x400, 0x4FF},     {0x590, 0x5FF},     {0x600, 0x6FF},
    {0x900, 0x97F},   {0xA80, 0xBFF},   {0xD00, 0xDFF},     {0xE00, 0xE7F},     {0x1000, 0x109F},
    {0x1100, 0x11FF}, {0x1E00, 0x1FFF}, {0x2000, 0x206F},   {0x20A0, 0x214F},   {0x2150, 0x218F},
    {0x2460, 0x24FF}, {0x3000, 0x30FF}, {0x4E00, 0x4FFF},   {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},
    {0xFE00, 0xFE0F}, {0xFF00, 0xFFEF}, {0x1D100, 0x1D4FF}, {0x1F1E0, 0x1F6FF}, {0x20000, 0x2CEAF},
    {0, 0xFFFF},      {0, 0x10FFFF},
};

inline const char* const kWords[] = {
    "the",
    "guitar",
    "man",
    "playing",
    "don't",
    "I'M",
    "He'LL",
    "12,345.67",
    "[MASK]",
    "[CLS]",
    "<mask>",
    "</s>",
    "<s>",
    "<LEFT>",
    "<both>",
    "<RIGHT>",
    "guitar man",
    "running",
    "snake_case",
    "##ing",
    "http://a.b/c?d=e",
    "``quoted''",
    "\u00C5ngstr\u00F6m",
    "caf\u00E9",
    "\uFB01ne",
    "\u201Cq\u201D",
    "<|endoftext|>",
};

inline const char* const kOdd[] = {
    "\x01",
    "\x07",
    "\x0B",
    "\x0C",
    "\x1C",
    "\x7F",
    "\u0085",
    "\u00A0",
    "\u00AD",
    "\u0300",
    "\u0345",
    "\u034F",
    "\u1680",
    "\u180E",
    "\u200B",
    "\u200C",
    "\u200D",
    "\u2028",
    "\u202F",
    "\u2581",
    "\u3000",
    "\uFE0F",
    "\uFEFF",
    "\uFFFD",
    "\u0130",
    "\u1E9E",
    "\u03A3",
    "\r\n",
    "\n\n",
    "\t",
    " ",
    "  ",
    "   ",
    "'\u017F",
    "\u0915\u094D\u0937",
    "e\u0301",
    "\u0344",
    "\U0001F469\u200D\U0001F467",
    "\U0001F1E8\U0001F1FF",
};

inline const char* const kBetween[] = {" ", " ", "", "", "\n", "  ", "\t"};

inline std::string RandomRun(Random& random) {
  std::string out;
  const bool mixed = random.Index(3) > 0;
  auto block = OneOf(kBlocks, random);
  for (size_t n = 1 + random.Index(7); n > 0; --n) {
    if (mixed) block = OneOf(kBlocks, random);
    const auto c =
        static_cast<char32_t>(block.first + random.Index(block.second - block.first + 1));
    if (c < 0xD800 || c > 0xDFFF) unicode::AppendUtf8(c, &out);
  }
  return out;
}

inline std::string RandomText(Random& random) {
  const char* const between = OneOf(kBetween, random);
  std::string out = random.Index(8) == 0 ? OneOf(kOdd, random) : "";
  for (size_t n = 1 + random.Index(7); n > 0; --n) {
    const size_t kind = random.Index(10);
    out += kind < 3 ? OneOf(kWords, random) : kind < 5 ? OneOf(kOdd, random) : RandomRun(random);
    if (n > 1) out += between;
  }
  return out;
}

inline std::string Hex(const std::string& text) {
  std::string out;
  char digits[3];
  for (const char c : text) {
    std::snprintf(digits, sizeof(digits), "%02x", static_cast<unsigned>(static_cast<uint8_t>(c)));
    out += digits;
  }
  return out;
}

// $POZOR_PYTHON, else python3.
inline std::string Python() {
  const char* named = std::getenv("POZOR_PYTHON");
  return named != nullptr && *named != '\0' ? named : "python3";
}

inline bool HasTokenizersPackage() {
  return RunProcess({Python(), "-c", "import tokenizers"}).exit_code == 0;
}

}  // namespace pozor::testing

#endif  // POZOR_TESTS_MODELS_PEER_TEXTS_H_
