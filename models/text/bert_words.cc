#include "models/text/bert_words.h"

#include <bit>
#include <cstring>
#include <string>

#include "models/text/unicode.h"

namespace pozor {
namespace {

constexpr uint64_t kOnes = 0x0101010101010101u;
constexpr uint64_t kHighs = 0x8080808080808080u;

uint64_t Load(const char* p) {
  uint64_t bytes;
  std::memcpy(&bytes, p, 8);
  if constexpr (std::endian::native == std::endian::big) bytes = __builtin_bswap64(bytes);
  return bytes;
}

// The number of leading bytes (of 8, the first is the lowest) that are ASCII letters or digits.
size_t AlphanumericBytes(uint64_t bytes) {
  const uint64_t low = bytes & ~kHighs;
  const uint64_t small = low | kOnes * 0x20;
  // The high bit of a byte tells whether the byte is at least (above) a bound; no carry leaves it.
  const uint64_t letter = (small + kOnes * (0x80 - 'a')) & ~(small + kOnes * (0x80 - 'z' - 1));
  const uint64_t digit = (low + kOnes * (0x80 - '0')) & ~(low + kOnes * (0x80 - '9' - 1));
  const uint64_t other = ~((letter | digit) & ~bytes) & kHighs;
  return static_cast<size_t>(std::countr_zero(other)) / 8;  // 8 if there is no other
}

// The first `size` bytes, 0 to 8.
uint64_t Keep(uint64_t bytes, size_t size) {
  return size == 8 ? bytes : bytes & ((uint64_t{1} << (8 * size)) - 1);
}

}  // namespace

BertWords::BertWords(const Normalizer& normalizer, bool lowercase, const TokenModel& model)
    : normalizer_(normalizer), model_(model), lower_mask_(lowercase ? kOnes * 0x20 : 0) {
  ModelScratch scratch;
  kinds_.fill(kHard);
  punctuation_ids_.fill(-1);
  for (uint8_t c = 1; c < 0x80; ++c) {
    const uint16_t bits = unicode::RecordOf(c).bits;
    if ((bits & unicode::kPunctuationBit) != 0) {
      const char byte = static_cast<char>(c);
      scratch.tokens.clear();
      model_.Tokenize({&byte, 1}, scratch);
      kinds_[c] = kPunctuation;
      punctuation_ids_[c] = scratch.tokens[0].id;
    } else if (BreaksChunk(static_cast<char>(c))) {
      kinds_[c] = kSpace;
    } else if ((bits & unicode::kWordBit) != 0) {
      kinds_[c] = kWord;
    }
  }
}

// Takes words that begin before `limit` until one needs more care; returns where the next begins.
// 16 bytes can be read at any place before `limit`.
const char* BertWords::Words(const char* p, const char* limit, const char* end, Buffers& buffers,
                             IdBuffer* ids) const {
  int32_t* out = ids->Room(static_cast<size_t>(end - p));  // a token has at least a byte
  const int32_t* const first = out;
  while (p < limit) {
    const uint8_t kind = kinds_[static_cast<uint8_t>(*p)];
    if (kind == kSpace) {
      ++p;
      continue;
    }
    if (kind == kPunctuation) {
      *out++ = punctuation_ids_[static_cast<uint8_t>(*p)];
      ++p;
      continue;
    }
    if (kind == kHard) break;
    uint64_t low = Load(p), high = 0;
    size_t size = AlphanumericBytes(low);
    if (size < 8) {
      low = Keep(low | lower_mask_, size);
    } else {
      high = Load(p + 8);
      const size_t more = AlphanumericBytes(high);
      if (more == 8) break;
      high = Keep(high | lower_mask_, more);
      low |= lower_mask_;
      size += more;
    }
    if (p + size < end && kinds_[static_cast<uint8_t>(p[size])] == kHard) break;
    const uint64_t hash = WordCache::Hash(low, high);
    if (const WordCache::Entry* entry = buffers.cache.Find(hash, low, high, size)) {
      std::memcpy(out, entry->ids, sizeof(entry->ids));
      out += entry->count;
    } else {
      out += NewWord({low, high, 0, 0}, hash, size, buffers, out);
    }
    p += size;
  }
  ids->Advance(static_cast<size_t>(out - first));
  return p;
}

size_t BertWords::NewWord(const WordCache::Key& key, uint64_t hash, size_t size, Buffers& buffers,
                          int32_t* out) const {
  char word[16];
  for (size_t i = 0; i < 16; ++i) word[i] = static_cast<char>(key[i / 8] >> (8 * (i % 8)));
  std::vector<ModelToken>& tokens = buffers.model.tokens;
  tokens.clear();
  model_.Tokenize({word, size}, buffers.model);
  buffers.cache.Insert(hash, key, size, tokens.data(), tokens.size());
  for (size_t i = 0; i < tokens.size(); ++i) out[i] = tokens[i].id;
  return tokens.size();
}

Status BertWords::Append(std::string_view text, size_t begin, size_t end, Buffers& buffers,
                         IdBuffer* ids) const {
  constexpr size_t kReach = 16;
  while (begin < end) {
    const char* p = text.data() + begin;
    const char* const stop = text.data() + end;
    if (end - begin >= kReach) {
      p = Words(p, stop - (kReach - 1), stop, buffers, ids);
      begin = static_cast<size_t>(p - text.data());
    }
    if (end - begin < kReach) {
      // The end of a text lies in a buffer of its own, so that reads may go beyond it.
      char tail[2 * kReach] = {};
      std::memcpy(tail, text.data() + begin, end - begin);
      const char* const tail_end = tail + (end - begin);
      begin += static_cast<size_t>(Words(tail, tail_end, tail_end, buffers, ids) - tail);
    }
    if (begin == end) break;
    POZOR_TRY(begin, HardChunk(text, begin, end, buffers, ids));
  }
  return Status();
}

// Everything up to the next ASCII white space by the general functions: nothing reaches across
// that, neither accents nor words.
Result<size_t> BertWords::HardChunk(std::string_view text, size_t begin, size_t end,
                                    Buffers& buffers, IdBuffer* ids) const {
  size_t stop = begin;
  while (stop < end && !BreaksChunk(text[stop])) ++stop;
  const std::string_view chunk = text.substr(begin, stop - begin);
  const size_t invalid = unicode::FindInvalidUtf8(chunk);
  if (invalid < chunk.size()) return InvalidUtf8(text, begin + invalid);
  AlignedText& normalized = buffers.text;
  normalized.Start(chunk, 0, false);
  normalizer_.Apply(normalized, buffers.spare);
  const std::string_view bytes = normalized.bytes;
  size_t word = 0;
  const auto finish = [&](size_t at) {
    if (word < at) {
      AppendWord(model_, bytes, word, at, buffers.cache, buffers.model, ids);
    }
  };
  for (size_t i = 0, size = 0; i < bytes.size(); i += size) {
    const uint16_t bits = unicode::RecordOf(unicode::Decode(bytes.data() + i, &size)).bits;
    if ((bits & (unicode::kSpaceBit | unicode::kPunctuationBit)) == 0) continue;
    finish(i);
    word = i + size;
    if ((bits & unicode::kPunctuationBit) == 0) continue;
    AppendWord(model_, bytes, i, i + size, buffers.cache, buffers.model, ids);
  }
  finish(bytes.size());
  return stop;
}

Status InvalidUtf8(std::string_view text, size_t at) {
  constexpr char kDigits[] = "0123456789abcdef";
  const auto byte = static_cast<uint8_t>(text[at]);
  const std::string shown = {'0', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
  return InvalidArgument("text: byte " + std::to_string(at) + " (" + shown +
                         ") is not valid UTF-8; convert the text to UTF-8");
}

}  // namespace pozor
