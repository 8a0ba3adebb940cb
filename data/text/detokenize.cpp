// Joins words and punctuation marks to natural text: decides between which of them there is no blank.
#include <algorithm>

#include "heed/data/text/text.h"
#include "heed/data/tokenizers/vocabulary.h"

namespace heed {
namespace {

constexpr std::u32string_view closing = U".,;:!?)]}»”…%›°";
constexpr std::u32string_view opening = U"([{«“‘„‹¿¡$£";

bool in(std::u32string_view set, char32_t code) { return set.find(code) != std::u32string_view::npos; }
bool is_apostrophe(char32_t code) { return code == '\'' || code == U'’'; }
bool is_hyphen(char32_t code) { return code == '-' || code == '/' || code == U'‐'; }

/// A word, or a run of punctuation marks, with the properties that the rules need.
struct Part {
  explicit Part(std::string_view piece) : text(piece) {
    for (size_t at = 0; at < piece.size();) {
      last = next_code_point(piece, at);
      if (length++ == 0) first = last;
      is_digits = is_digits && is_digit(last);
      num_quotes += last == '"' ? 1 : 0;
    }
    is_word = length > 0 && heed::is_word(first);
    is_digits = is_digits && length > 0;
  }
  std::string_view text;
  char32_t first = 0, last = 0;  ///< first and last character
  int64_t length = 0;            ///< in code points
  int num_quotes = 0;            ///< straight double quotation marks
  bool is_word = false, is_digits = true;
};

template <size_t n>
bool contains(const std::string_view (&list)[n], std::string_view text) {
  return std::find(std::begin(list), std::end(list), text) != std::end(list);
}

/// True if no blank separates the mark from the words around it: 1,000 and 3.5 and 10:30 and p.m., but not
/// "in 2005, 300".
bool joins(const Part& left, const Part& mark, const Part& right) {
  if (!left.is_word || !right.is_word || mark.length != 1) return false;
  if (!left.is_digits && !right.is_digits) return mark.first == '.' && left.length == 1 && right.length == 1;
  if (!left.is_digits || !right.is_digits || left.length > 3) return false;
  if (mark.first == ':') return left.length <= 2 && right.length == 2;
  return mark.first == '.' || (mark.first == ',' && (right.length == 3 || left.text == "0"));
}

/// True for the part of a contraction after its apostrophe: it's, don't, we'll, o'clock.
bool ends_contraction(const Part& right) {
  constexpr std::string_view known[] = {"s", "t", "re", "ve", "ll", "d", "m", "clock", "S", "T"};
  return contains(known, right.text);
}

/// True if an apostrophe stands for the dropped last vowel of `left`: l'uomo, dell'arte, un'ora, cos'altro,
/// O'Neill. Not for a plural such as students', nor before 'a quotation'.
bool drops_vowel_before(const Part& left, const Part& right) {
  constexpr std::u32string_view vowels = U"aeiouyAEIOUY";
  if (left.text == "O" || left.text == "cos" || left.text == "Cos") return true;
  if (left.is_digits || left.last >= 0x80 || in(vowels, left.last)) return false;
  if (left.length == 1 || left.text.ends_with("ll")) return true;
  const bool before_vowel = right.first >= 0x80 || right.is_digits || in(U"aeiouhAEIOUH", right.first);
  return left.last != 's' && before_vowel;
}

/// True for a word that is spelled with an apostrophe at its end: un po' di, E' vero.
bool ends_in_apostrophe(const Part& left) {
  constexpr std::string_view known[] = {"po", "mo", "Po", "Mo", "e", "E"};
  return contains(known, left.text);
}

}  // namespace

std::string detokenise(std::span<const std::string_view> pieces) {
  std::vector<Part> parts(pieces.begin(), pieces.end());
  std::string out;
  bool double_open = false;  // inside of straight double quotation marks
  bool single_open = false;  // inside of a quotation that an apostrophe opened
  bool glued = true;         // the part before wants no blank behind it
  const Part none{std::string_view{}};
  for (size_t i = 0; i < parts.size(); ++i) {
    const Part& part = parts[i];
    const Part& left = i > 0 ? parts[i - 1] : none;
    const Part& right = i + 1 < parts.size() ? parts[i + 1] : none;
    bool no_blank_before = glued;
    bool no_blank_behind = false;
    if (part.is_word) {
      // Words need no rule of their own.
    } else if (is_apostrophe(part.first) && part.length == 1) {
      const bool elision =
          left.is_word && right.is_word && (ends_contraction(right) || drops_vowel_before(left, right));
      // Between words, a straight apostrophe after a vowel opens a quotation unless one is open.
      const bool opens = !elision && !single_open && part.first == '\'' && right.is_word &&
                         (!left.is_word || (left.last != 's' && !ends_in_apostrophe(left)));
      no_blank_before = no_blank_before || (left.is_word && !opens) || (single_open && !elision);
      no_blank_behind = elision || opens;
      single_open = opens || (single_open && elision);
    } else {
      const bool between = left.is_word && right.is_word;
      no_blank_before = no_blank_before || in(closing, part.first) || (part.first == '"' && double_open) ||
                        (is_apostrophe(part.first) && left.is_word) || (is_hyphen(part.first) && between);
      double_open = (part.num_quotes % 2 == 1) ? !double_open : double_open;
      no_blank_behind = in(opening, part.last) || (part.last == '"' && double_open) ||
                        (is_hyphen(part.last) && between) || joins(left, part, right);
      if (part.length > 1 && is_apostrophe(part.last) && single_open) single_open = false;
    }
    if (!no_blank_before) out += ' ';
    out += part.text;
    glued = no_blank_behind;
  }
  return out;
}

}  // namespace heed
