// Splitting at white space.
#include "heed/train/metrics/whitespace.h"

#include "heed/tests/catch.h"

using namespace heed;

TEST_CASE("words: white space of any kind separates") {
  using Words = std::vector<std::string_view>;
  CHECK(score_words("").empty());
  CHECK(score_words(" \t\n").empty());
  CHECK(score_words("one") == Words{"one"});
  CHECK(score_words("  one\xc2\xa0two\xe3\x80\x80three\x1f"
                    "four ") == Words{"one", "two", "three", "four"});
  CHECK(score_words("perch\xc3\xa9 \xff no") == Words{"perch\xc3\xa9", "\xff", "no"});
}
