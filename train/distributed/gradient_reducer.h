// Sums gradients over processes during the backward pass.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "heed/autograd/gradient_hooks.h"
#include "heed/core/distributed/process_group.h"
#include "heed/train/optim/optimizer.h"

namespace heed {

/// Sums the gradients of an optimizer over a process group, in buckets of adjacent parameters. Sends a bucket
/// once its gradients and all earlier buckets are complete: a fixed order, from the last matrices of the
/// model to the first, then the rest. Li et al. 2020, "PyTorch distributed", arXiv 2006.15704.
class GradientReducer {
 public:
  /// `bucket` is the size of a bucket in elements; a larger parameter gets its own bucket.
  GradientReducer(Optimizer& optimizer, std::unique_ptr<AllReduce> sums, int64_t bucket = int64_t{1} << 20);
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;

  /// Call it before the first backward pass of a step.
  void begin();
  /// Keep it during the last backward pass of a step: buckets are sent as they become complete.
  GradientHooks watch();
  /// Sends the remaining buckets and `tail` (contiguous, of the gradients' type). Then the gradients and the
  /// tail hold the sums over the group; on a GPU, in stream order.
  void finish(const Tensor& tail);

  /// Number of pieces that gradients are sent in.
  int64_t buckets() const { return static_cast<int64_t>(buckets_.size()); }
  /// Number of buckets of the last step that were sent before finish().
  int64_t sent_early() const { return sent_early_; }

 private:
  struct Bucket {
    int64_t begin = 0, end = 0;  // in Optimizer::gradients()
    std::vector<Tensor> leaves = {};
    int64_t waiting = 0;  // leaves without their gradient yet
  };

  void arrived(const Node& leaf);
  void send(Bucket& bucket);

  Optimizer& optimizer_;
  std::unique_ptr<AllReduce> sums_;
  std::vector<Bucket> buckets_;  // in the order of sending
  std::map<const Node*, size_t> bucket_of_;
  size_t sent_ = 0;
  int64_t sent_early_ = 0;
};

}  // namespace heed
