// utf8proc's tables, corrected by what differs in those of Hugging Face's tokenizers.
#include "heed/data/tokenizers/unicode_forms.h"

#include <utf8proc.h>

#include <cstdlib>
#include <memory>
#include <new>

#include "heed/core/error.h"
#include "heed/data/text/code_ranges.h"
#include "heed/data/text/text.h"

namespace heed {
namespace {

/// Characters with a decomposition or a combining class that came after Unicode 11.
constexpr CodeRange without_normal_form[] = {
    {0x7FD, 0x7FD},     {0x898, 0x89F},     {0x8CA, 0x8D3},     {0x9FE, 0x9FE},     {0xC3C, 0xC3C},
    {0xD3B, 0xD3C},     {0xEBA, 0xEBA},     {0x1715, 0x1715},   {0x1ABF, 0x1ACE},   {0x1DF6, 0x1DFA},
    {0x32FF, 0x32FF},   {0xA7F2, 0xA7F4},   {0xA82C, 0xA82C},   {0xAB69, 0xAB69},   {0x10781, 0x107BA},
    {0x10D24, 0x10D27}, {0x10EAB, 0x10EAC}, {0x10EFD, 0x10EFF}, {0x10F46, 0x10F50}, {0x10F82, 0x10F85},
    {0x11070, 0x11070}, {0x1133B, 0x1133B}, {0x1145E, 0x1145E}, {0x11839, 0x1183A}, {0x11930, 0x11943},
    {0x119E0, 0x119E0}, {0x11A34, 0x11A34}, {0x11A47, 0x11A47}, {0x11A99, 0x11A99}, {0x11D42, 0x11D42},
    {0x11D44, 0x11D45}, {0x11D97, 0x11D97}, {0x11F41, 0x11F42}, {0x16FF0, 0x16FF1}, {0x1E030, 0x1E06D},
    {0x1E08F, 0x1E08F}, {0x1E130, 0x1E136}, {0x1E2AE, 0x1E2AE}, {0x1E2EC, 0x1E2EF}, {0x1E4EC, 0x1E4EF},
    {0x1F16C, 0x1F16C}, {0x1FBF0, 0x1FBF9}};

/// Letters, marks and digits that came after Unicode 15.
constexpr CodeRange word_after_unicode_15[] = {
    {0x897, 0x897},     {0x1C89, 0x1C8A},   {0xA7CB, 0xA7CD},   {0xA7DA, 0xA7DC},   {0x105C0, 0x105F3},
    {0x10D40, 0x10D65}, {0x10D69, 0x10D6D}, {0x10D6F, 0x10D85}, {0x10EC2, 0x10EC4}, {0x10EFC, 0x10EFC},
    {0x11380, 0x11389}, {0x1138B, 0x1138B}, {0x1138E, 0x1138E}, {0x11390, 0x113B5}, {0x113B7, 0x113C0},
    {0x113C2, 0x113C2}, {0x113C5, 0x113C5}, {0x113C7, 0x113CA}, {0x113CC, 0x113D3}, {0x113E1, 0x113E2},
    {0x116D0, 0x116E3}, {0x11BC0, 0x11BE0}, {0x11BF0, 0x11BF9}, {0x11F5A, 0x11F5A}, {0x13460, 0x143FA},
    {0x16100, 0x16139}, {0x16D40, 0x16D6C}, {0x16D70, 0x16D79}, {0x18CFF, 0x18CFF}, {0x1CCF0, 0x1CCF9},
    {0x1E5D0, 0x1E5FA}, {0x2EBF0, 0x2EE5D}};

/// Capital letters from `first` to `last`, every `step`-th one, whose small letters are `distance` above
/// them.
struct Capitals {
  char32_t first, last;
  int step, distance;
};

/// Capital letters that came after Unicode 15.
constexpr Capitals capitals_after_unicode_15[] = {
    {0x1C89, 0x1C89, 1, 1},      {0xA7CB, 0xA7CB, 1, 0x264 - 0xA7CB},
    {0xA7CC, 0xA7CE, 2, 1},      {0xA7D2, 0xA7D4, 2, 1},
    {0xA7DA, 0xA7DA, 1, 1},      {0xA7DC, 0xA7DC, 1, 0x19B - 0xA7DC},
    {0x10D50, 0x10D65, 1, 0x20}, {0x16EA0, 0x16EB8, 1, 0x1B}};

/// The normal form of a text without characters that came after Unicode 11.
void append_normal_form(std::string& out, std::string_view text, NormalForm form) {
  if (text.empty()) return;
  const bool composes = form == NormalForm::nfc || form == NormalForm::nfkc;
  const bool is_compatible = form == NormalForm::nfkc || form == NormalForm::nfkd;
  const int options = UTF8PROC_STABLE | (composes ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE) |
                      (is_compatible ? UTF8PROC_COMPAT : 0);
  utf8proc_uint8_t* made = nullptr;
  const utf8proc_ssize_t size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                             static_cast<utf8proc_ssize_t>(text.size()), &made,
                                             static_cast<utf8proc_option_t>(options));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owned(made, &std::free);
  if (size == UTF8PROC_ERROR_NOMEM) throw std::bad_alloc();
  if (size < 0)
    fail(Fault::internal, "normal form: ", utf8proc_errmsg(size), " in a text of ", text.size(), " bytes.");
  out.append(reinterpret_cast<const char*>(made), static_cast<size_t>(size));
}

}  // namespace

std::string normal_form(std::string_view text, NormalForm form) {
  std::string out;
  size_t begin = 0;  // where what can be normalised begins
  for (size_t at = 0; at < text.size();) {
    const size_t here = at;
    if (!is_in(without_normal_form, next_code_point(text, at))) continue;
    append_normal_form(out, text.substr(begin, here - begin), form);
    out += text.substr(here, at - here);
    begin = at;
  }
  append_normal_form(out, text.substr(begin), form);
  return out;
}

void append_lower_case(std::string& out, char32_t code) {
  for (const Capitals& one : capitals_after_unicode_15) {
    if (code >= one.first && code <= one.last && (code - one.first) % static_cast<char32_t>(one.step) == 0)
      return append_code_point(out, code + static_cast<char32_t>(one.distance));
  }
  append_code_point(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code))));
  if (code == 0x130) append_code_point(out, 0x307);  // a dotted I is an i and a dot above
}

bool is_word_of_tokenizers(char32_t code) { return is_word(code) || is_in(word_after_unicode_15, code); }

}  // namespace heed
