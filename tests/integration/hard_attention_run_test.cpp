// Training with hard attention: rewards reach it, and a resumed run equals an uninterrupted one.
#include <cmath>

#include "heed/core/io/safetensors.h"
#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"
#include "heed/tests/train/small_run.h"

using namespace heed;

TEST_CASE("hard: a translator with hard cross attention stops and goes on to the same bits") {
  Scratch scratch;
  const Settings settings{{"attention.cross", "hard"}, {"attention.decoder", "hard:score=dot,soft=0.2"}};
  const TrainResult whole = train_session(scratch / "whole", tiny(settings));
  CHECK(whole.step == 12);
  train_session(scratch / "stopped", tiny(settings), 7);
  CHECK(train_session(scratch / "stopped", tiny(settings)).step == 12);
  check_same(scratch / "whole", scratch / "stopped", 12);
  // Every attention was told how well its samples did: baselines have moved, and only by steps that count.
  const SafeTensors saved = SafeTensors::parse(bytes_of(scratch / "whole", 12, "model.safetensors"), "model");
  int64_t baselines = 0;
  for (const TensorEntry& entry : saved.entries()) {
    if (entry.name.find("baseline") == std::string::npos) continue;
    ++baselines;
    const std::vector<float> values = saved.array(entry.name).values<float>();
    CHECK(values[0] < 0);
    CHECK(values[1] > 0);
    CHECK(values[1] <= 1 - std::pow(0.9F, 24.0F) + 1e-5F);  // two batches a step
  }
  CHECK(baselines == 2);
}
