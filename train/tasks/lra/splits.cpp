// Splits examples into training, validation and test.
#include <algorithm>

#include "heed/data/batching/shuffle.h"
#include "heed/train/tasks/lra/lra.h"

namespace heed {
namespace {

constexpr uint64_t hold_out_seed = 0x686F6C64;

}  // namespace

LongSplits LongTask::cut(const Sequences& all) const {
  const int64_t train_end = options_.num_examples, validation_end = train_end + options_.validation;
  return {.train = all.slice(0, train_end),
          .validation = all.slice(train_end, validation_end),
          .test = all.slice(validation_end, all.count())};
}

void LongTask::hold_out(LongSplits& splits, int64_t validation, bool shuffle) {
  const int64_t count = splits.train.count();
  const int64_t num_training = count - std::max<int64_t>(std::min(validation, count / 10), 1);
  if (shuffle) splits.train = splits.train.pick(shuffled(count, hold_out_seed, 0));
  splits.validation = splits.train.slice(num_training, count);
  splits.train = splits.train.slice(0, num_training);
}

}  // namespace heed
