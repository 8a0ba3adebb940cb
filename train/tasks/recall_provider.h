// RecallProvider: the interface of a task whose sequences hold keys with values and ask for some of them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heed/data/synthetic/key_swap.h"
#include "heed/train/tasks/task.h"

namespace heed {

/// Gives test sequences with two keys swapped, for `heed interchange`. A task that supports it derives from
/// it, too.
class RecallProvider {
 public:
  virtual ~RecallProvider() = default;
  /// The swaps of at most `count` test sequences, those that have one, in their order; all of one length.
  /// A usage error for a task whose values do not stand behind their keys.
  virtual std::vector<KeySwap> key_swaps(int64_t count) const = 0;
  /// The most probable token behind each of `rows` (b T + t) of sequences ids i32 [B, T]. No gradient is
  /// recorded.
  virtual std::vector<int64_t> answers(Module& model, const Tensor& ids, std::span<const int32_t> rows,
                                       const ForwardContext& context) const = 0;
};

/// Casts the task to its RecallProvider. A usage error where the task is none.
const RecallProvider& recall_provider(const Task& task);

}  // namespace heed
