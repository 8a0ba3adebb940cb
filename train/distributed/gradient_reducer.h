// Sums gradients over processes during the backward pass.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "heed/autograd/gradient_hooks.h"
#include "heed/core/distributed/process_group.h"
#include "heed/train/optim/optimizer.h"

namespace heed {

/// Sums the gradients of an optimizer over a process group, in buckets of adjacent parameters (Li et al.
/// 2020, "PyTorch distributed", arXiv 2006.15704). The order of buckets is fixed: the matrices of the model
/// from last to first, then the vectors. A bucket is sent once its gradients are complete and all earlier
/// ones are sent.
class GradientReducer {
 public:
  /// `bucket` is the size of a bucket in elements; a larger parameter gets its own bucket.
  GradientReducer(Optimizer& optimizer, std::unique_ptr<AllReduce> sums, int64_t bucket = int64_t{1} << 20);
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;

  /// Begins a step. Called before its first backward pass.
  void begin();
  /// Returns hooks to keep during the last backward pass of a step: they send buckets that become complete.
  GradientHooks watch();
  /// Sends the remaining buckets and `tail` (contiguous, of the gradients' dtype). Afterwards gradients and
  /// tail hold the sums over the group; on a GPU, in stream order.
  void finish(const Tensor& tail);

  /// Number of buckets.
  int64_t buckets() const { return static_cast<int64_t>(buckets_.size()); }
  /// Number of buckets of the last step that were sent before finish().
  int64_t sent_early() const { return sent_early_; }

 private:
  struct Bucket {
    int64_t begin = 0, end = 0;       // elements of Optimizer::gradients()
    std::vector<Tensor> leaves = {};  // parameters, in the order of their elements
    int64_t waiting = 0;              // number of leaves whose gradient is not complete
  };

  void gradient_complete(const Node& leaf);
  void send(Bucket& bucket);

  Optimizer& optimizer_;
  std::unique_ptr<AllReduce> sums_;
  std::vector<Bucket> buckets_;              // in the order of sending
  std::map<const Node*, size_t> bucket_of_;  // index of each leaf's bucket
  size_t sent_ = 0;                          // number of buckets sent in this step
  int64_t sent_early_ = 0;                   // number of them sent before finish()
};

}  // namespace heed
