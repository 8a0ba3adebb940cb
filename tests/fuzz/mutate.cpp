// Deterministic damage to bytes.
#include "heed/tests/fuzz/mutate.h"

#include <algorithm>
#include <array>

namespace heed {
namespace {

/// Random numbers by SplitMix64 of Steele, Lea and Flood (2014).
class SplitMix {
 public:
  explicit SplitMix(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
  }
  /// Below `count`, or 0 when that is 0.
  size_t below(size_t count) { return count == 0 ? 0 : static_cast<size_t>(next() % count); }

 private:
  uint64_t state_;
};

constexpr uint64_t awkward[] = {0,
                                1,
                                0x7F,
                                0x80,
                                0xFF,
                                0x7FFF,
                                0x8000,
                                0xFFFF,
                                0x10000,
                                0x7FFFFFFF,
                                0x80000000,
                                0xFFFFFFFF,
                                0x100000000,
                                0x7FFFFFFFFFFFFFFF,
                                0x8000000000000000,
                                0xFFFFFFFFFFFFFFFF,
                                0x3FFFFFFFFFFFFFFF,
                                100'000'000,
                                100'000'001,
                                64 << 10};

constexpr std::string_view awkward_text[] = {"-1",
                                             "0",
                                             "1e999",
                                             "nan",
                                             "9223372036854775807",
                                             "9223372036854775808",
                                             "18446744073709551616",
                                             "\"",
                                             "{",
                                             "}",
                                             "[[[[[[[[",
                                             "]",
                                             ",",
                                             ":",
                                             "\\u0000",
                                             "\\ud800",
                                             "\t",
                                             "\r\n",
                                             "\n",
                                             "\xEF\xBB\xBF",
                                             "\xFF",
                                             "\xC0\x80",
                                             "\xED\xA0\x80",
                                             "\xF4\x90\x80\x80",
                                             "../",
                                             "/",
                                             "\x1b[2J",
                                             "U+110000",
                                             "0x100"};

/// A number written over the bytes, little- or big-endian, 1 to 8 of them.
void overwrite_number(std::string& bytes, SplitMix& generator) {
  const size_t width = size_t{1} << generator.below(4);
  if (bytes.size() < width) return;
  // Length fields are more often found near the start and the end.
  const size_t near = std::min<size_t>(bytes.size() - width + 1, 64);
  size_t at = generator.below(bytes.size() - width + 1);
  if (generator.below(2) == 0)
    at = generator.below(2) == 0 ? generator.below(near) : bytes.size() - width - generator.below(near);
  uint64_t value = awkward[generator.below(std::size(awkward))];
  if (generator.below(4) == 0) value = bytes.size() + generator.below(33) - 16;
  const bool little = generator.below(2) == 0;
  for (size_t i = 0; i < width; ++i) {
    bytes[little ? at + i : at + width - 1 - i] = static_cast<char>(value >> (8 * i) & 0xFF);
  }
}

/// A run of digits replaced by another number.
bool overwrite_digits(std::string& bytes, SplitMix& generator) {
  const size_t from = generator.below(bytes.size());
  const auto digit = [&](size_t at) { return bytes[at] >= '0' && bytes[at] <= '9'; };
  size_t at = from;
  while (at < bytes.size() && !digit(at)) ++at;
  size_t end = at;
  while (end < bytes.size() && digit(end)) ++end;
  if (at == end) return false;
  const size_t choice = generator.below(3);
  const std::string number = choice == 0   ? std::to_string(awkward[generator.below(std::size(awkward))])
                             : choice == 1 ? std::string(awkward_text[generator.below(7)])
                                           : std::to_string(generator.below(300));
  bytes.replace(at, end - at, number);
  return true;
}

/// A piece put behind itself so often that 256 bytes to 256 KiB are added: what nests or chains once,
/// such as the dot of a name, then does so deeper than any stack. Doubling alone never gets there.
void repeat(std::string& bytes, size_t at, SplitMix& generator) {
  const std::string piece = bytes.substr(at, 1 + generator.below(size_t{1} << generator.below(5)));
  const size_t total = size_t{256} << 2 * generator.below(6);
  if (bytes.size() > total) return;
  std::string more;
  while (more.size() < total) more += piece;
  bytes.insert(at, more);
}

const char* damage(std::string& bytes, std::span<const std::string> others, SplitMix& generator) {
  if (bytes.empty()) {
    bytes.assign(1 + generator.below(8), static_cast<char>(generator.next() & 0xFF));
    return "bytes made";
  }
  const size_t at = generator.below(bytes.size());
  const size_t maximum = std::min<size_t>(bytes.size() - at, size_t{1} << generator.below(12));
  const size_t count = 1 + generator.below(maximum);
  switch (generator.below(12)) {
    case 0:
    case 1:
      bytes[at] = static_cast<char>(bytes[at] ^ 1 << generator.below(8));
      return "bit flip";
    case 2:
      bytes[at] = static_cast<char>(generator.next() & 0xFF);
      return "byte set";
    case 3:
      bytes.resize(at);
      return "truncation";
    case 4:
      bytes.erase(at, count);
      return "part cut out";
    case 5:
      bytes.insert(generator.below(bytes.size() + 1), bytes.substr(at, count));
      return "part doubled";
    case 6:
      overwrite_number(bytes, generator);
      return "length field";
    case 7:
      if (overwrite_digits(bytes, generator)) return "digits";
      overwrite_number(bytes, generator);
      return "length field";
    case 8: {
      const std::string_view word = awkward_text[generator.below(std::size(awkward_text))];
      if (generator.below(2) == 0) {
        bytes.insert(at, word);
      } else {
        bytes.replace(at, std::min(word.size(), bytes.size() - at), word);
      }
      return "awkward text";
    }
    case 9: {
      if (others.empty()) break;
      const std::string& other = others[generator.below(others.size())];
      const size_t cut = generator.below(other.size());
      if (generator.below(2) == 0) {
        bytes = bytes.substr(0, at) + other.substr(cut);
      } else {
        bytes.insert(at, other.substr(cut, count));
      }
      return "splice";
    }
    case 10:
      repeat(bytes, at, generator);
      return "part repeated";
    default:
      break;
  }
  std::string extra(1 + generator.below(32), static_cast<char>(generator.next() & 0xFF));
  bytes.insert(generator.below(2) == 0 ? bytes.size() : at, extra);
  return "bytes added";
}

}  // namespace

Mutation mutate(std::string_view base, std::span<const std::string> others, uint64_t number) {
  SplitMix generator(number);
  Mutation made{.bytes = std::string(base), .kind = ""};
  const size_t times = generator.below(3) == 0 ? 1 + generator.below(6) : 1;
  for (size_t i = 0; i < times; ++i) made.kind = damage(made.bytes, others, generator);
  return made;
}

std::string repeat_part(std::string_view base, uint64_t number) {
  SplitMix generator(number);
  std::string bytes(base);
  if (!bytes.empty()) repeat(bytes, generator.below(bytes.size()), generator);
  return bytes;
}

std::string flip_bit(std::string_view base, size_t begin, size_t end, uint64_t number) {
  SplitMix generator(number);
  std::string bytes(base);
  const size_t at = begin + generator.below(end - begin);
  bytes[at] = static_cast<char>(bytes[at] ^ 1 << generator.below(8));
  return bytes;
}

}  // namespace heed
