// Validation: the main process scores, the others receive the scores.
#include "heed/train/loop/validation.h"

#include <cstring>

#include "heed/autograd/tape.h"
#include "heed/train/loop/overfit.h"
#include "heed/train/progress/progress.h"

namespace heed {
namespace {

/// The scores of the main process, sent to all processes as bytes.
Scores broadcast(ProcessGroup& group, const Scores& scores) {
  std::string bytes = scores.lower_is_better ? "<" : ">";
  for (const auto& [name, value] : scores.list)
    bytes += name + '\0' + std::string(reinterpret_cast<const char*>(&value), sizeof value);
  bytes = group.broadcast(bytes);
  Scores all{.list = {}, .lower_is_better = bytes[0] == '<'};
  for (size_t at = 1; at < bytes.size();) {
    const size_t end = bytes.find('\0', at);
    double value = 0;
    std::memcpy(&value, bytes.data() + end + 1, sizeof value);
    all.list.emplace_back(bytes.substr(at, end - at), value);
    at = end + 1 + sizeof value;
  }
  return all;
}

}  // namespace

Scores Validation::run() {
  const NoGrad no_grad;
  const double began = seconds_now();
  Scores scores;
  group_.together_on_main([&] {
    scores =
        config_.train.overfit_batches > 0 ? overfit_scores(config_, model_) : config_.task->validate(model_);
    if (scores.list.empty())
      fail("task ", config_.task_name, ": validate() gave no score. Return one: the first decides which ",
           "checkpoint is the best.");
  });
  scores = broadcast(group_, scores);
  last_seconds_ = seconds_now() - began;
  seconds_ += last_seconds_;
  ++count_;
  return scores;
}

}  // namespace heed
