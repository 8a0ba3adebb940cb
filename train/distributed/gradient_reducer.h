// Gradients of several processes added up while the backward pass still runs.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "autograd/arrivals.h"
#include "core/group.h"
#include "train/optimizer.h"

namespace heed {

/// Adds up the gradients in an optimizer's arena over a group by `sums`, in buckets of neighbours. A bucket
/// is sent as soon as the sweep has finished the gradients in it and those of the buckets before have been
/// sent: the order is fixed, from the last matrices of the model to the first, then what is left. Li et al.
/// 2020, "PyTorch distributed", arXiv 2006.15704.
class Exchange {
 public:
  /// `bucket` is the size of a bucket in elements, but for a parameter that alone is larger.
  Exchange(Optimizer& optimizer, std::unique_ptr<Sums> sums, int64_t bucket = int64_t{1} << 20);
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  /// To be called before the first sweep of a step.
  void begin();
  /// To be kept while the last sweep of a step runs: what that completes is sent meanwhile.
  Arrivals watch();
  /// Sends what has not been sent, and `tail` (contiguous, of the arena's type). Afterwards the arena and the
  /// tail hold the sums over the group; on a device, as far as its later work can see.
  void finish(const Tensor& tail);

  int64_t buckets() const { return static_cast<int64_t>(buckets_.size()); }
  /// How many buckets of the last step had been sent when finish() was called.
  int64_t sent_early() const { return sent_early_; }

 private:
  struct Bucket {
    int64_t begin = 0, end = 0;  // in the arena
    std::vector<Tensor> leaves = {};
    int64_t waiting = 0;  // leaves whose gradients are to come
  };

  void arrived(const Node& leaf);
  void send(Bucket& bucket);

  Optimizer& optimizer_;
  std::unique_ptr<Sums> sums_;
  std::vector<Bucket> buckets_;  // in the order in which they are sent
  std::map<const Node*, size_t> bucket_of_;
  size_t sent_ = 0;
  int64_t sent_early_ = 0;
};

}  // namespace heed
