// UTF-8, character classes and lines.
#include "heed/data/text/text.h"

#include "heed/tests/data/scratch.h"

using namespace heed;

TEST_CASE("text: code points go to UTF-8 and back at every boundary") {
  for (const char32_t code : {0x1, 0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x10FFFF}) {
    std::string bytes;
    append_code_point(bytes, code);
    CHECK(invalid_utf8(bytes) == std::string_view::npos);
    size_t at = 0;
    CHECK(next_code_point(bytes, at) == code);
    CHECK(at == bytes.size());
  }
  std::string bytes;
  append_code_point(bytes, 0xD800);
  append_code_point(bytes, 0x110000);
  CHECK(bytes == "\uFFFD\uFFFD");
}

TEST_CASE("text: invalid UTF-8 is found where it is") {
  const std::pair<const char*, size_t> cases[] = {
      {"ab\x80", 2},            // a continuation byte alone
      {"\xC0\x80", 0},          // overlong NUL
      {"a\xC1\xBF", 1},         // overlong
      {"\xE0\x9F\xBF", 0},      // overlong in three
      {"x\xED\xA0\x80", 1},     // a surrogate
      {"\xF0\x8F\xBF\xBF", 0},  // overlong in four
      {"\xF4\x90\x80\x80", 0},  // beyond U+10FFFF
      {"ok\xF5", 2},            // no sequence begins so
      {"caff\xC3", 4},          // cut short
      {"a\xE2\x82", 1},         // cut short
      {"a\xE2(\xA1", 1},        // a wrong continuation
  };
  for (const auto& [bytes, offset] : cases) {
    INFO(offset);
    CHECK(invalid_utf8(bytes) == offset);
    size_t at = 0;
    const std::string_view view = bytes;
    while (at < view.size()) next_code_point(view, at);  // comes to its end
    CHECK(at == view.size());
    const std::string shown = as_utf8(bytes);
    CHECK(invalid_utf8(shown) == std::string_view::npos);
    CHECK(shown.starts_with(std::string(view.substr(0, offset)) + "\uFFFD"));
  }
  CHECK(as_utf8("caffè — 日本 𝄞") == "caffè — 日本 𝄞");
  CHECK(invalid_utf8("caffè — 日本 𝄞") == std::string_view::npos);
}

TEST_CASE("text: letters, marks, digits and underscore are word characters") {
  for (const char32_t code : U"azAZ09_èÈçßøœŠÿяЖβאب日ア한ªº٣\u0301\u0F71Ⅷⓐ\u200D") {
    if (code == 0) continue;
    INFO(static_cast<uint32_t>(code));
    CHECK(is_word(code));
  }
  for (const char32_t code : U" .,-'’«»—…!?+=€$§°×÷½²\u2014\u00A0\u3000\U0001F600") {
    if (code == 0) continue;
    INFO(static_cast<uint32_t>(code));
    CHECK_FALSE(is_word(code));
  }
  CHECK_FALSE(is_word(0));
  CHECK_FALSE(is_word(0x10FFFF));
}

TEST_CASE("text: white space of every kind") {
  for (const char32_t code : U" \t\n\v\f\r\u0085\u00A0\u1680\u2003\u2028\u202F\u205F\u3000") {
    if (code != 0) CHECK(is_space(code));
  }
  for (const char32_t code : U"a_.\u200B\uFEFF") {
    if (code != 0) CHECK_FALSE(is_space(code));
  }
  CHECK(trimmed(" \t\u00A0 a b\u3000\r") == "a b");
  CHECK(trimmed(" \n ").empty());
  CHECK(trimmed("").empty());
  CHECK(trimmed("è") == "è");
  CHECK(blank_separated_words("  il  gatto\u00A0nero ") == 3);
  CHECK(blank_separated_words(" ") == 0);
  CHECK(code_points("caffè") == 5);
}

TEST_CASE("text: an error of encoding names file, line and column") {
  const std::string bad = refusal(Fault::data, [] { check_text("one\ntwo è\xE8 three\n", "corpus.it"); });
  CHECK_THAT(bad, containing("corpus.it:2:6"));
  CHECK_THAT(bad, containing("0xe8"));
  CHECK_THAT(bad, containing("byte 0xe8 (11 of the file)"));
  const std::string_view nul("ab\nc\0d", 6);
  CHECK_THAT(refusal(Fault::data, [&] { check_text(nul, "x"); }), containing("x:2:2: a NUL"));
  CHECK_NOTHROW(check_text("caffè\n", "x"));
  CHECK_NOTHROW(check_text("", "x"));
}

TEST_CASE("text: lines with LF, CRLF, a byte order mark, and no last newline") {
  using Lines = std::vector<std::string_view>;
  CHECK(split_lines("a\nb\n") == Lines{"a", "b"});
  CHECK(split_lines("a\r\nb") == Lines{"a", "b"});
  CHECK(split_lines("\xEF\xBB\xBF"
                    "a\n\nb\n") == Lines{"a", "", "b"});
  CHECK(split_lines("a\rb\n") == Lines{"a\rb"});
  CHECK(split_lines("").empty());
  CHECK(split_lines("\n") == Lines{""});
  CHECK(split_fields("a\t\tb", '\t') == Lines{"a", "", "b"});
  CHECK(split_fields("", '\t') == Lines{""});
}

TEST_CASE("text: classes of characters beyond ASCII") {
  for (const char32_t letter : {U'\u00AA', U'\u00E8', U'\u0416', U'\u4E2D', U'\U00020000'})
    CHECK((is_letter(letter) && is_word(letter) && !is_number(letter)));
  for (const char32_t digit : {U'\u0661', U'\uFF15'})
    CHECK((is_number(digit) && is_word(digit) && !is_letter(digit)));
  for (const char32_t number : {U'\u00B2', U'\u00BD'}) CHECK((is_number(number) && !is_word(number)));
  CHECK((is_number(U'\u2167') && is_word(U'\u2167') && !is_letter(U'\u2167')));  // a Roman numeral
  // Marks, connectors, joiners and circled letters are in words without being letters.
  for (const char32_t part :
       {U'\u0301', U'\u0903', U'\u20DD', U'\u203F', U'\u200D', U'\u24B6', U'\U0001F170'})
    CHECK((is_word(part) && !is_letter(part) && !is_number(part)));
  for (const char32_t other :
       {U'\u00A9', U'\u2014', U'\u20AC', U'\u24AF', U'\U0001F600', U'\uE000', char32_t{0x110000}})
    CHECK((!is_word(other) && !is_letter(other) && !is_number(other)));
}
