// The beginning and the held-out end of a text.
#include "heed/data/text/held_out_end.h"

#include "heed/tests/data/scratch.h"

using namespace heed;

TEST_CASE("characters: the split is contiguous, 90 to 10, in characters or bytes") {
  const TextSplit split = hold_out_end("abcdefghijklmnopqrstuvwxy");
  CHECK(split.train == "abcdefghijklmnopqrstuv");
  CHECK(split.validation == "wxy");
  CHECK(hold_out_end("\u00E9\u00E9\u00E9\u00E9", 0.5).train == "\u00E9\u00E9");
  CHECK(hold_out_end("\u00E9\u00E9\u00E9\u00E9", 0.7, CharacterUnit::byte).train == "\u00E9\u00E9\xC3");
  CHECK(hold_out_end("\xFF\xFFzz", 0.5).train == "\xFF\xFF");
  refusal(Fault::usage, [] { hold_out_end("ab", 1.0); });
  refusal(Fault::usage, [] { hold_out_end("ab", 0.0); });
}
