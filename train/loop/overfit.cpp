// Plans and scores a run on a few batches (train.overfit_batches), and judges the result.
#include "heed/train/loop/overfit.h"

#include <algorithm>

#include "heed/autograd/tape.h"
#include "heed/core/counted_work.h"
#include "heed/core/io/number_text.h"
#include "heed/train/config/setting_name.h"

namespace heed {

int64_t plan_epoch(const Config& config, int64_t epoch) {
  const int64_t overfit_batches = config.train.overfit_batches;
  if (overfit_batches == 0) return config.task->plan(epoch);
  const int64_t planned = config.task->plan(0);
  if (overfit_batches > planned && planned > 0)
    fail(setting_name("train.overfit_batches"), " = ", overfit_batches, ", but an epoch has ", planned,
         " batches. Give at most that many, or a smaller batch.");
  return std::min(overfit_batches, planned);
}

Scores overfit_scores(const Config& config, Module& model) {
  const NoGrad no_grad;
  double loss = 0, weight = 0;
  CountedWork work(static_cast<double>(config.train.overfit_batches));
  for (int64_t position = 0; position < config.train.overfit_batches; ++position) {
    const Batch batch = config.task->batch(position);
    loss += config.task->loss(model, batch, {}).item() * batch.weight;
    weight += batch.weight;
    work.add();
  }
  return {.list = {{"loss", weight > 0 ? loss / weight : 0}}, .lower_is_better = true};
}

std::string overfit_verdict(double first, double last) {
  // The loss of a density may be below 0: then only whether it falls counts.
  const double ratio = first > 0 ? last / first : last < first ? 0.5 : 1;
  const char* verdict = ratio <= 0.1 ? "it has learned these batches by heart"
                        : ratio < 0.9
                            ? "it learns; more steps or a higher learning rate should bring it near 0"
                            : "it does not learn; look at the learning rate, the targets and the loss";
  return formatted("loss %.4g at first, %.4g at last: ", first, last) + verdict;
}

}  // namespace heed
