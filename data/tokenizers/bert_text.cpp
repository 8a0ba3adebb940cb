// Character classes, normalisation and words of BERT.
#include "heed/data/tokenizers/bert_text.h"

#include <utf8proc.h>

#include "heed/data/text/code_ranges.h"
#include "heed/data/text/text.h"
#include "heed/data/tokenizers/unicode_forms.h"

namespace heed {
namespace {

/// The format characters, nonspacing marks and punctuation in these ranges came after Unicode 7. Hugging
/// Face's tokenizers, whose tables are of that version, take them for letters, and so did every BERT that was
/// trained with it.
constexpr CodeRange after_unicode_7[] = {
    {0x61D, 0x61D},     {0x7FD, 0x7FD},     {0x890, 0x8E2},     {0x9FD, 0x9FE},     {0xA76, 0xA76},
    {0xAFA, 0xAFF},     {0xB55, 0xB55},     {0xC04, 0xC3C},     {0xC77, 0xC77},     {0xC84, 0xC84},
    {0xD00, 0xD00},     {0xD3B, 0xD3C},     {0xD81, 0xD81},     {0xEBA, 0xEBA},     {0xECE, 0xECE},
    {0x180F, 0x1886},   {0x1ABF, 0x1ACE},   {0x1B7D, 0x1B7E},   {0x1DF6, 0x1DFB},   {0x2E43, 0x2E5D},
    {0xA82C, 0xA82C},   {0xA8C5, 0xA8C5},   {0xA8FF, 0xA8FF},   {0xA9BD, 0xA9BD},   {0x10D24, 0x10F89},
    {0x11070, 0x11074}, {0x110C2, 0x110CD}, {0x111C9, 0x111C9}, {0x111CF, 0x111CF}, {0x1123E, 0x11241},
    {0x1133B, 0x1133B}, {0x11438, 0x1145E}, {0x11660, 0x1166C}, {0x116B9, 0x116B9}, {0x1182F, 0x11FFF},
    {0x12FF1, 0x13455}, {0x16E97, 0x16F4F}, {0x16FE2, 0x16FE4}, {0x1CF00, 0x1CF46}, {0x1E000, 0x1E4EF},
    {0x1E944, 0x1E95F}};

/// The ideographs that BERT puts blanks around. Kana, Hangul and later extensions are none.
constexpr CodeRange ideographs[] = {{0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFAFF},
                                    {0x20000, 0x2A6DF}, {0x2A700, 0x2B81F}, {0x2B920, 0x2CEAF},
                                    {0x2F800, 0x2FA1F}};

/// The general category; that of a letter for what came after Unicode 7.
utf8proc_category_t bert_category(char32_t code) {
  if (is_in(after_unicode_7, code)) return UTF8PROC_CATEGORY_LO;
  return utf8proc_category(static_cast<utf8proc_int32_t>(code));
}

bool is_left_out(char32_t code) {
  if (code == '\t' || code == '\n' || code == '\r') return false;
  if (code == replacement_character) return true;
  const utf8proc_category_t category = bert_category(code);
  return category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF ||
         category == UTF8PROC_CATEGORY_CO;
}

/// True for marks of no width. Unicode 14 made U+1734 a spacing one.
bool is_nonspacing_mark(char32_t code) {
  return code >= 0x300 && (code == 0x1734 || bert_category(code) == UTF8PROC_CATEGORY_MN);
}

bool is_bert_punctuation(char32_t code) {
  if (code < 0x80) return code > ' ' && code < 0x7F && (code == '_' || !is_word(code));
  if (code == 0x166D || code == 0x111C9) return true;  // in Unicode 7; later a symbol and a mark
  const utf8proc_category_t category = bert_category(code);
  return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}

}  // namespace

std::string bert_normalized(std::string_view text, const BertNormalizer& normalizer) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const char32_t code = next_code_point(text, at);
    if (normalizer.clean_text && is_left_out(code)) continue;
    const bool is_alone = normalizer.space_ideographs && is_in(ideographs, code);
    if (is_alone) out += ' ';
    append_code_point(out, normalizer.clean_text && is_space(code) ? U' ' : code);
    if (is_alone) out += ' ';
  }
  if (normalizer.strip_accents) out = normal_form(out, NormalForm::nfd);
  if (!normalizer.strip_accents && !normalizer.lower_case) return out;
  std::string changed;
  changed.reserve(out.size());
  for (size_t at = 0; at < out.size();) {
    const char32_t code = next_code_point(out, at);
    if (normalizer.strip_accents && is_nonspacing_mark(code)) continue;
    if (normalizer.lower_case)
      append_lower_case(changed, code);
    else
      append_code_point(changed, code);
  }
  return changed;
}

std::vector<std::string_view> bert_words(std::string_view text) {
  std::vector<std::string_view> words;
  size_t begin = 0;
  const auto end_word = [&](size_t end) {
    if (end > begin) words.push_back(text.substr(begin, end - begin));
  };
  for (size_t at = 0; at < text.size();) {
    const size_t here = at;
    const char32_t code = next_code_point(text, at);
    const bool is_alone = is_bert_punctuation(code);
    if (!is_alone && !is_space(code)) continue;
    end_word(here);
    if (is_alone) words.push_back(text.substr(here, at - here));
    begin = at;
  }
  end_word(text.size());
  return words;
}

}  // namespace heed
