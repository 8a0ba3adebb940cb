// Splits examples into training, validation and test.
#include <algorithm>

#include "heed/data/batching/shuffle.h"
#include "heed/train/tasks/lra/lra.h"

namespace heed {
namespace {

constexpr uint64_t holding_out = 0x686F6C64;

}  // namespace

LongSplits LongTask::cut(const Sequences& all) const {
  const int64_t one = options_.num_examples, two = one + options_.validation;
  return {all.slice(0, one), all.slice(one, two), all.slice(two, all.count())};
}

void LongTask::hold_out(LongSplits& splits, int64_t validation, bool shuffle) {
  const int64_t all = splits.train.count(), held = std::max<int64_t>(std::min(validation, all / 10), 1);
  if (shuffle) splits.train = splits.train.pick(shuffled(all, holding_out, 0));
  splits.validation = splits.train.slice(all - held, all);
  splits.train = splits.train.slice(0, all - held);
}

}  // namespace heed
