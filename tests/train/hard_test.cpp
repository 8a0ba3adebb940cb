// Training with hard attention: the reward reaches it, and a run that stops goes on as if it had not.
#include "tests/catch.h"
#include "tests/scratch.h"
#include "tests/train/small_run.h"

using namespace heed;

TEST_CASE("hard: a translator with hard cross attention stops and goes on to the same bits") {
  Scratch scratch;
  const Settings settings{{"attention.cross", "hard"}, {"attention.decoder", "hard:score=dot,soft=0.2"}};
  const Outcome whole = sit(scratch / "whole", tiny(settings));
  CHECK(whole.step == 12);
  sit(scratch / "stopped", tiny(settings), 7);
  CHECK(sit(scratch / "stopped", tiny(settings)).step == 12);
  check_same(scratch / "whole", scratch / "stopped", 12);
}
