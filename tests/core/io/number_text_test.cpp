// Numbers as text: what is read, what is written, and that no locale changes either.
#include "heed/core/io/number_text.h"

#include <cmath>
#include <limits>

#include "heed/core/io/byte_text.h"
#include "heed/core/io/json.h"
#include "heed/tests/catch.h"
#include "heed/tests/comma_locale.h"

using namespace heed;

TEST_CASE("number text: a number is the whole of a text, or it is none") {
  CHECK(parsed_number("0.35") == 0.35);
  CHECK(parsed_number("-2.5e-3") == -0.0025);
  CHECK(parsed_number("1e+06") == 1e6);
  CHECK(parsed_number("7") == 7);
  CHECK(parsed_number("5e-324") == 5e-324);
  for (const char* text : {"", " ", "0,35", "0.35abc", "0x1p-1", "nan", "inf", "-inf", "+3", "+-3", " 1",
                           "1 ", "1e400", "--1", ".", "e5", "1_000"}) {
    CAPTURE(text);
    CHECK_FALSE(parsed_number(text).has_value());
  }
  CHECK(parsed_integer("-3") == -3);
  CHECK(parsed_integer("9223372036854775807") == std::numeric_limits<int64_t>::max());
  for (const char* text : {"", "3.0", "1e3", "+3", "9223372036854775808", "3 "}) {
    CAPTURE(text);
    CHECK_FALSE(parsed_integer(text).has_value());
  }
}

TEST_CASE("number text: formatted text has any length") {
  CHECK(formatted("%s %5.2f|%-4d|%lld", "loss", 0.351, 7, 12345678901LL) == "loss  0.35|7   |12345678901");
  CHECK(formatted("%.3f", std::numeric_limits<double>::max()).size() == 313);
  CHECK(formatted("%s", "").empty());
}

TEST_CASE("number text: a locale with decimal commas changes no number that is written or read") {
  const auto all = [] {
    return formatted("%.5g %.2f %e", 0.35, 1234567.891, 1e-7) + exact_number(1234.5) +
           text(" ", 0.25f, 1e30) + bytes_text(1'500'000'000) +
           Json::object({{"score", 0.35}, {"steps", 1e6}}).dump();
  };
  const std::string before = all();
  const CommaLocale locale;
  if (!locale.made()) return;
  char digits[16];
  std::snprintf(digits, sizeof digits, "%.2f", 0.35);
  REQUIRE(std::string(digits) == "0,35");  // the C library follows it
  CHECK(all() == before);
  CHECK(parsed_number("0.35") == 0.35);
  CHECK(parse_json("[0.35, 1e-3]", "numbers").list()[0].real() == 0.35);
  std::snprintf(digits, sizeof digits, "%.2f", 0.35);
  CHECK(std::string(digits) == "0,35");  // it is as the program has set it
}
