// tests core/io/table_text.h
#include "heed/core/io/table_text.h"

#include "heed/tests/catch.h"

namespace heed {

TEST_CASE("tables: columns are aligned, and no line ends with spaces") {
  CHECK(aligned_table({{"a", "what"}, {"long", ""}, {"b", "c"}}) == "a     what\nlong\nb     c\n");
  CHECK(aligned_table({}).empty());
}

TEST_CASE("tables: cells are folded where the table is too wide, the widest first, and numbers are not") {
  const std::vector<TableRow> rows{
      {"name", "time ms", "what it is"}, {"softmax", "12.345", "weights of all keys"}, {"none", "1", ""}};
  CHECK(aligned_table(rows, {.columns = 80, .alignment = "lr"}) ==
        "name     time ms  what it is\nsoftmax   12.345  weights of all keys\nnone           1\n");
  CHECK(
      aligned_table(rows, {.columns = 27, .alignment = "lr"}) ==
      "name     time ms  what it\n                  is\nsoftmax   12.345  weights\n                  of all\n"
      "                  keys\nnone           1\n");
  CHECK(aligned_table({{"a", "b|c,d"}}, {.columns = 6}) == "a  b|\n   c,d\n");
  CHECK(aligned_table({{"日本", "x"}, {"a", "y"}}, {.columns = 9, .indent = 2}) == "  日本  x\n  a     y\n");
}

TEST_CASE("tables: columns that do not fit beside each other follow below, with the first one repeated") {
  const std::vector<TableRow> rows{
      {"run", "loss", "bleu", "seconds"}, {"a", "1.5", "30.25", "17"}, {"b", "failed here"}};
  CHECK(aligned_table(rows, {.columns = 14, .alignment = "lrrr"}) ==
        "run  loss\na     1.5\nb    failed\n     here\n\nrun   bleu\na    30.25\n\nrun  seconds\na         "
        "17\n");
}

TEST_CASE("folding: lines hang under their second column, or beyond their first letter") {
  CHECK(folded("one two three", 8) == "one two\nthree\n");
  CHECK(folded("one two three", 9, "    ") == "one two\n    three\n");
  CHECK(folded("a  b\nc", 80) == "a  b\nc\n");
  CHECK(folded("one-long-word two", 5) == "one-long-word\ntwo\n");
  CHECK(folded("a|bb|ccc", 5) == "a|bb|\nccc\n");
  CHECK(folded_lines("  name  one two three\nx", 16) == "  name  one two\n        three\nx");
  CHECK(folded_lines("error: one two three\n", 14) == "error: one two\n  three\n");
  CHECK(folded_lines("    one two three", 12) == "    one two\n    three");
  CHECK(folded_lines("short", 80) == "short");
}

TEST_CASE("tables: the first row is the head in Markdown") {
  CHECK(markdown_table({{"a", "b"}, {"1", "2"}}) == "| a | b |\n|---|---|\n| 1 | 2 |\n");
}

}  // namespace heed
