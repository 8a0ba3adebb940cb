// tests core/io/table_text.h
#include "heed/core/io/table_text.h"

#include "heed/tests/catch.h"

namespace heed {

TEST_CASE("tables: columns are aligned, and no line ends with spaces") {
  CHECK(aligned_table({{"a", "what"}, {"long", ""}, {"b", "c"}}) == "a     what\nlong\nb     c\n");
  CHECK(aligned_table({}).empty());
}

TEST_CASE("tables: the first row is the head in Markdown") {
  CHECK(markdown_table({{"a", "b"}, {"1", "2"}}) == "| a | b |\n|---|---|\n| 1 | 2 |\n");
}

}  // namespace heed
