// Validation: the main process scores, the others receive the scores.
#include "heed/train/loop/validation.h"

#include <cstring>

#include "heed/autograd/tape.h"
#include "heed/train/loop/overfit.h"
#include "heed/train/progress/progress.h"

namespace heed {
namespace {

/// The scores of the main process, sent to all processes as bytes: '<' or '>' for lower_is_better, then for
/// each score its name, a zero byte and the bytes of its value.
Scores broadcast(ProcessGroup& group, const Scores& scores) {
  std::string bytes = scores.lower_is_better ? "<" : ">";
  for (const auto& [name, value] : scores.list)
    bytes += name + '\0' + std::string(reinterpret_cast<const char*>(&value), sizeof value);
  bytes = group.broadcast(bytes);
  Scores all{.list = {}, .lower_is_better = bytes[0] == '<'};
  for (size_t name_begin = 1; name_begin < bytes.size();) {
    const size_t name_end = bytes.find('\0', name_begin);
    double value = 0;
    std::memcpy(&value, bytes.data() + name_end + 1, sizeof value);
    all.list.emplace_back(bytes.substr(name_begin, name_end - name_begin), value);
    name_begin = name_end + 1 + sizeof value;
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
