// Escaping for markup, JSON and terminals, and the width of columns.
#include "heed/attention/inspect/text_escapes.h"

#include <cmath>

#include "heed/core/io/terminal.h"
#include "heed/tests/catch.h"

using namespace heed;
using namespace heed::picture;

TEST_CASE("picture encode: invisible and broken tokens become visible") {
  CHECK(visible("▁più") == "▁più");
  CHECK(visible("") == "∅");
  CHECK(visible(" \n\t") == "␣␊␉");
  CHECK(visible("\033[31m") == "␛[31m");
  CHECK(visible("a\xff"
                "b\xc3") == "a\uFFFDb\uFFFD");
  CHECK(visible("\xed\xa0\x80") == "\uFFFD");  // a surrogate
  CHECK(visible("\xf5\x80\x80\x80").find('\xf5') == std::string::npos);
  CHECK(visible("\u202e"
                "abc") == "\uFFFDabc");  // right-to-left override
  CHECK(visible("\u009b"
                "31m") == "\uFFFD31m");  // an escape sequence in one character
}

TEST_CASE("picture encode: shortening stays inside its columns and between characters") {
  CHECK(shorten("medaglione", 10) == "medaglione");
  CHECK(shorten("medaglione", 5) == "meda…");
  CHECK(shorten("日本語", 4) == "日…");
  CHECK(display_width(shorten("日本語日本語", 5)) <= 5);
  CHECK(shorten("città", 0).empty());
}

TEST_CASE("picture encode: markup and scripts cannot be left") {
  CHECK(escape("<a href=\"x\">'&'</a>") == "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;&lt;/a&gt;");
  CHECK(escape("line\nnext\t\x01") == "line\nnext\t\uFFFD");
  CHECK(json("</script>") == "\"\\u003c/script\\u003e\"");
  CHECK(json("a\"b\\c\n") == "\"a\\\"b\\\\c\\u000a\"");
  CHECK(json("\u2028") == "\"\uFFFD\"");
  CHECK(json("è") == "\"è\"");
}

TEST_CASE("picture encode: numbers read the same everywhere") {
  CHECK(fixed(0.25, 3) == "0.250");
  CHECK(fixed(-0.0001, 2) == "0.00");
  CHECK(fixed(NAN, 2) == "nan");
  CHECK(trimmed(2.50, 2) == "2.5");
  CHECK(trimmed(300, 0) == "300");
  CHECK(trimmed(100.0, 2) == "100");
  CHECK(json(NAN) == "null");
  CHECK(json(0.125) == "0.125");
}

TEST_CASE("picture encode: base64 as in RFC 4648") {
  CHECK(base64("") == "");
  CHECK(base64("f") == "Zg==");
  CHECK(base64("fo") == "Zm8=");
  CHECK(base64("foobar") == "Zm9vYmFy");
  CHECK(base64(std::string("\xff\xfe\x00", 3)) == "//4A");
}
