// Splits text into the words within which byte pairs are merged.
#include <algorithm>
#include <array>

#include "heed/core/parallel/thread_pool.h"
#include "heed/data/text/text.h"
#include "heed/data/tokenizers/byte_pair.h"

namespace heed {
namespace {

enum class Kind : uint8_t { space, letter, number, other };

Kind kind_of(char32_t code) {
  if (is_letter(code)) return Kind::letter;
  if (is_number(code)) return Kind::number;
  return is_space(code) ? Kind::space : Kind::other;
}

/// The kind of the character at `at`; moves `at` past it.
Kind next_kind(std::string_view text, size_t& at) {
  static const std::array<Kind, 128> ascii = [] {
    std::array<Kind, 128> kinds{};
    for (size_t i = 0; i < kinds.size(); ++i) kinds[i] = kind_of(static_cast<char32_t>(i));
    return kinds;
  }();
  const auto byte = static_cast<unsigned char>(text[at]);
  if (byte >= ascii.size()) return kind_of(next_code_point(text, at));
  ++at;
  return ascii[byte];
}

/// The end of the run of this kind at `at`.
size_t run_end(std::string_view text, size_t at, Kind kind) {
  while (at < text.size()) {
    size_t after = at;
    if (next_kind(text, after) != kind) break;
    at = after;
  }
  return at;
}

}  // namespace

size_t byte_pair_word(std::string_view text, size_t at) {
  if (text[at] == '\'') {
    for (const std::string_view ending : {"s", "t", "re", "ve", "m", "ll", "d"}) {
      if (text.substr(at + 1).starts_with(ending)) return at + 1 + ending.size();
    }
  }
  size_t after = at;
  Kind kind = next_kind(text, after);
  if (text[at] == ' ' && after < text.size()) {
    size_t second = after;
    const Kind following = next_kind(text, second);
    if (following != Kind::space) {
      kind = following;
      after = second;
    }
  }
  if (kind != Kind::space) return run_end(text, after, kind);
  size_t last = at;  // start of the last white space character
  while (after < text.size()) {
    size_t next = after;
    if (next_kind(text, next) != Kind::space) break;
    last = after;
    after = next;
  }
  return after == text.size() || last == at ? after : last;
}

std::vector<size_t> detail::byte_pair_cuts(std::string_view text) {
  constexpr size_t least = size_t{1} << 16;
  const size_t parts = std::clamp<size_t>(text.size() / least, 1, static_cast<size_t>(threads()) * 4);
  std::vector<size_t> cuts{0};
  for (size_t part = 1; part < parts; ++part) {
    // A line end after a visible character ends a word, and no later word depends on text before it.
    size_t at = std::max(text.size() / parts * part, cuts.back() + 1);
    while (at < text.size() && !(text[at] == '\n' && text[at - 1] > ' ' && text[at - 1] < 0x7F)) ++at;
    if (at < text.size()) cuts.push_back(at);
  }
  cuts.push_back(text.size());
  return cuts;
}

}  // namespace heed
