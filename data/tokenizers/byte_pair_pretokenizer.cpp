// Splits text into the words within which byte pairs are merged.
#include <algorithm>
#include <array>

#include "heed/core/parallel/thread_pool.h"
#include "heed/data/text/text.h"
#include "heed/data/tokenizers/byte_pair.h"

namespace heed {
namespace {

/// Kinds of characters that make different words.
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

/// The end of the run of characters of this kind that begins at `at`.
size_t run_end(std::string_view text, size_t at, Kind kind) {
  while (at < text.size()) {
    size_t next = at;
    if (next_kind(text, next) != kind) break;
    at = next;
  }
  return at;
}

}  // namespace

size_t byte_pair_word(std::string_view text, size_t at, PreTokenizer pre_tokenizer) {
  const bool individual_digits = pre_tokenizer == PreTokenizer::individual_digits;
  if (text[at] == '\'') {
    for (const std::string_view ending : {"s", "t", "re", "ve", "m", "ll", "d"}) {
      if (text.substr(at + 1).starts_with(ending)) return at + 1 + ending.size();
    }
  }
  size_t end = at;
  Kind kind = next_kind(text, end);
  if (text[at] == ' ' && end < text.size()) {  // a blank belongs to the word behind it
    size_t second_end = end;
    const Kind second = next_kind(text, second_end);
    if (second != Kind::space && !(individual_digits && second == Kind::number)) {
      kind = second;
      end = second_end;
    }
  }
  if (individual_digits && kind == Kind::number) return end;
  if (kind != Kind::space) return run_end(text, end, kind);
  size_t last = at;  // start of the last white space character
  while (end < text.size()) {
    size_t next = end;
    const Kind next_character = next_kind(text, next);
    if (individual_digits && next_character == Kind::number) return end;
    if (next_character != Kind::space) break;
    last = end;
    end = next;
  }
  return end == text.size() || last == at ? end : last;
}

std::vector<size_t> detail::byte_pair_cuts(std::string_view text) {
  constexpr size_t min_part = size_t{1} << 16;  // bytes
  const size_t num_parts = std::clamp<size_t>(text.size() / min_part, 1, static_cast<size_t>(threads()) * 4);
  std::vector<size_t> cuts{0};
  for (size_t part = 1; part < num_parts; ++part) {
    // A line end after a visible character ends a word, and no later word depends on text before it.
    size_t cut = std::max(text.size() / num_parts * part, cuts.back() + 1);
    while (cut < text.size() && !(text[cut] == '\n' && text[cut - 1] > ' ' && text[cut - 1] < 0x7F)) ++cut;
    if (cut < text.size()) cuts.push_back(cut);
  }
  cuts.push_back(text.size());
  return cuts;
}

}  // namespace heed
