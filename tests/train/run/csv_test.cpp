// CSV cells: formulas become text, numbers stay numbers.
#include "heed/train/run/csv.h"

#include "heed/core/error.h"
#include "heed/tests/catch.h"

using namespace heed;

TEST_CASE("csv: text that begins as a formula is marked as text, whatever the formula") {
  for (const char* formula :
       {"=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(1)", "\t=1", "\r=1", "\n=1", "=", "-", "+1"}) {
    CAPTURE(formula);
    CHECK(csv_text(formula) == text("\"'", formula, "\""));
    CHECK(csv_name(formula) == text("\"'", formula, "\""));
  }
}

TEST_CASE("csv: numbers and plain text stay as they are, quotes are doubled") {
  CHECK(csv_text("-1.5") == "\"-1.5\"");
  CHECK(csv_text("-2e-05") == "\"-2e-05\"");
  CHECK(csv_text("a=1, \"b\"") == "\"a=1, \"\"b\"\"\"");
  CHECK(csv_text("") == "\"\"");
  CHECK(csv_name("loss") == "loss");
  CHECK(csv_name("-3") == "-3");
  CHECK(csv_name("a,b") == "\"a,b\"");
  CHECK(csv_name("a\rb") == "\"a\rb\"");
}
