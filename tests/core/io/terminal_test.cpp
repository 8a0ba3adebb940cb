// Text for terminals: control sequences are escaped, everything else is unchanged.
#include "heed/core/io/terminal.h"

#include <string>

#include "heed/core/io/utf8.h"
#include "heed/tests/catch.h"
#include "heed/tests/columns.h"

using namespace heed;

TEST_CASE("terminal: controls, marks of direction and separators of lines are written out") {
  CHECK(terminal_text("a\033]0;b\a") == "a\\u001b]0;b\\u0007");
  CHECK(terminal_text(std::string_view("\0\177", 2)) == "\\u0000\\u007f");
  CHECK(terminal_text("\u009b31m") == "\\u009b31m");  // the C1 form of ESC [
  CHECK(terminal_text("\u061c\u200e\u200f") == "\\u061c\\u200e\\u200f");
  CHECK(terminal_text("\u202a\u202e\u2066\u2069") == "\\u202a\\u202e\\u2066\\u2069");
  CHECK(terminal_text("\u2028\u2029\u0085") == "\\u2028\\u2029\\u0085");
  CHECK(terminal_text("a\r\b") == "a\\u000d\\u0008");
}

TEST_CASE("terminal: line ends and tabs stay in a text, and are written out in a word") {
  CHECK(terminal_text("a\tb\n") == "a\tb\n");
  CHECK(terminal_word("a\tb\n") == "a\\u0009b\\u000a");
}

TEST_CASE("terminal: bytes that are no UTF-8 are written out one by one") {
  CHECK(terminal_text("caf\xe9.") == "caf\\xe9.");
  CHECK(terminal_text("\x9b[") == "\\x9b[");                  // C1 as terminals of one byte a letter know it
  CHECK(terminal_text("\xc1\x9b") == "\\xc1\\x9b");           // overlong
  CHECK(terminal_text("\xed\xa0\x80") == "\\xed\\xa0\\x80");  // a surrogate
  CHECK(terminal_text("\xe2\x80") == "\\xe2\\x80");           // cut off
}

TEST_CASE("terminal: what a terminal only shows stays as it is") {
  for (const char* good :
       {"", "plain", "caf\u00e9", "\u6f22\u5b57", "\u0623\u0628", "\U0001f600", "\u2192 \\x"})
    CHECK(terminal_text(good) == good);
}

TEST_CASE("terminal: a JSON text stays the same JSON") {
  CHECK(terminal_text("{\"a\":\"\u202e\"}") == "{\"a\":\"\\u202e\"}");
}

TEST_CASE("terminal: every code point is either shown or written out, and none is lost") {
  for (char32_t code = 0x20; code < 0x3000; ++code) {
    std::string one;
    if (code < 0x80) {
      one = {static_cast<char>(code)};
    } else if (code < 0x800) {
      one = {static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 0x3F))};
    } else {
      one = {static_cast<char>(0xE0 | code >> 12), static_cast<char>(0x80 | (code >> 6 & 0x3F)),
             static_cast<char>(0x80 | (code & 0x3F))};
    }
    CAPTURE(static_cast<unsigned>(code));
    REQUIRE(utf8_at(one, 0).code == code);
    REQUIRE((terminal_word(one) == one) != is_terminal_control(code));
  }
}

TEST_CASE("terminal: COLUMNS says how wide it is, and what is no number does not") {
  {
    const Columns given("123");
    CHECK(terminal_columns(-1, 80) == 123);
  }
  for (const char* wrong : {"0", "-5", "wide", "12x", "", "99999999999999999999"}) {
    const Columns given(wrong);
    CAPTURE(wrong);
    CHECK(terminal_columns(-1, 80) == 80);
  }
}

TEST_CASE("terminal: display width counts columns, not bytes") {
  CHECK(display_width("città") == 5);
  CHECK(display_width("citta\u0300") == 5);
  CHECK(display_width("\u05C1\u0941\u06D6") == 0);  // marks of Hebrew, Devanagari and Arabic
  CHECK(display_width("\U0001CCFF") == 1);          // not assigned
  CHECK(display_width("▁The") == 4);
  CHECK(display_width("日本") == 4);
  CHECK(display_width("😀") == 2);
  CHECK(display_width("") == 0);
}
