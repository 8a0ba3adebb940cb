// Joins tokens to natural text: which of them are written without a blank between them.
#include <algorithm>

#include "heed/data/text/text.h"
#include "heed/data/tokenizers/vocabulary.h"

namespace heed {
namespace {

constexpr std::u32string_view closing = U".,;:!?)]}»”…%›°";
constexpr std::u32string_view opening = U"([{«“‘„‹¿¡$£";

bool in(std::u32string_view set, char32_t code) { return set.find(code) != std::u32string_view::npos; }
bool apostrophe(char32_t code) { return code == '\'' || code == U'’'; }
bool hyphen(char32_t code) { return code == '-' || code == '/' || code == U'‐'; }

/// A word with the properties that the rules need.
struct Part {
  explicit Part(std::string_view piece) : text(piece) {
    for (size_t at = 0; at < piece.size();) {
      last = next_code_point(piece, at);
      if (length++ == 0) first = last;
      digits = digits && is_digit(last);
      quotes += last == '"' ? 1 : 0;
    }
    word = length > 0 && is_word(first);
    digits = digits && length > 0;
  }
  std::string_view text;
  char32_t first = 0, last = 0;
  int64_t length = 0;  ///< in code points
  int quotes = 0;      ///< straight double quotation marks
  bool word = false, digits = true;
};

template <size_t n>
bool among(const std::string_view (&list)[n], std::string_view text) {
  return std::find(std::begin(list), std::end(list), text) != std::end(list);
}

/// True for 1,000 and 3.5 and 10:30 and p.m., but not "in 2005, 300".
bool joins(const Part& left, const Part& mark, const Part& right) {
  if (!left.word || !right.word || mark.length != 1) return false;
  if (!left.digits && !right.digits) return mark.first == '.' && left.length == 1 && right.length == 1;
  if (!left.digits || !right.digits || left.length > 3) return false;
  if (mark.first == ':') return left.length <= 2 && right.length == 2;
  return mark.first == '.' || (mark.first == ',' && (right.length == 3 || left.text == "0"));
}

/// True for the part of a contraction after its apostrophe: it's, don't, we'll, o'clock.
bool ends_contraction(const Part& right) {
  constexpr std::string_view known[] = {"s", "t", "re", "ve", "ll", "d", "m", "clock", "S", "T"};
  return among(known, right.text);
}

/// True for a word that lost its vowel to an apostrophe before another one: l'uomo, dell'arte, un'ora,
/// cos'altro, O'Neill. Not for a plural such as students', nor before 'a quotation'.
bool elided(const Part& left, const Part& right) {
  constexpr std::u32string_view vowels = U"aeiouyAEIOUY";
  if (left.text == "O" || left.text == "cos" || left.text == "Cos") return true;
  if (left.digits || left.last >= 0x80 || in(vowels, left.last)) return false;
  if (left.length == 1 || left.text.ends_with("ll")) return true;
  const bool before_vowel = right.first >= 0x80 || right.digits || in(U"aeiouhAEIOUH", right.first);
  return left.last != 's' && before_vowel;
}

/// True for a word that ends in an apostrophe: un po' di, E' vero.
bool shortened(const Part& left) {
  constexpr std::string_view known[] = {"po", "mo", "Po", "Mo", "e", "E"};
  return among(known, left.text);
}

}  // namespace

std::string detokenise(std::span<const std::string_view> pieces) {
  std::vector<Part> parts(pieces.begin(), pieces.end());
  std::string out;
  bool open = false;         // after an opening straight double quotation mark
  bool single_open = false;  // after an apostrophe that opens a quotation
  bool glued = true;         // no blank before the next word
  const Part none{std::string_view{}};
  for (size_t i = 0; i < parts.size(); ++i) {
    const Part& part = parts[i];
    const Part& left = i > 0 ? parts[i - 1] : none;
    const Part& right = i + 1 < parts.size() ? parts[i + 1] : none;
    bool attach = glued;  // no blank before it
    bool hold = false;    // no blank after it
    if (part.word) {
      // Words need no rule of their own.
    } else if (apostrophe(part.first) && part.length == 1) {
      const bool elision = left.word && right.word && (ends_contraction(right) || elided(left, right));
      // Between words, a straight apostrophe after a vowel opens a quotation unless one is open.
      const bool opens = !elision && !single_open && part.first == '\'' && right.word &&
                         (!left.word || (left.last != 's' && !shortened(left)));
      attach = attach || (left.word && !opens) || (single_open && !elision);
      hold = elision || opens;
      single_open = opens || (single_open && elision);
    } else {
      const bool between = left.word && right.word;
      attach = attach || in(closing, part.first) || (part.first == '"' && open) ||
               (apostrophe(part.first) && left.word) || (hyphen(part.first) && between);
      open = (part.quotes % 2 == 1) ? !open : open;
      hold = in(opening, part.last) || (part.last == '"' && open) || (hyphen(part.last) && between) ||
             joins(left, part, right);
      if (part.length > 1 && apostrophe(part.last) && single_open) single_open = false;
    }
    if (!attach) out += ' ';
    out += part.text;
    glued = hold;
  }
  return out;
}

}  // namespace heed
