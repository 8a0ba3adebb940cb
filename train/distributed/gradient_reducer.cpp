// Buckets of gradients, sent by every process in the same order.
#include "heed/train/distributed/gradient_reducer.h"

#include <algorithm>

#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/launch.h"

namespace heed {

GradientReducer::GradientReducer(Optimizer& optimizer, std::unique_ptr<AllReduce> sums, int64_t bucket)
    : optimizer_(optimizer), sums_(std::move(sums)) {
  // The backward pass ends with the first layers. Vectors of all layers are stored together after the
  // matrices: they are complete last, so they are sent last.
  const std::span<const Tensor> leaves = optimizer.leaves();
  const auto close = [&](int64_t first, int64_t last) {
    std::vector<Bucket> part;
    for (const Tensor& leaf : leaves) {
      if (leaf.offset() < first || leaf.offset() >= last) continue;
      if (part.empty() || leaf.offset() + leaf.size() - part.back().begin > bucket)
        part.push_back({.begin = leaf.offset()});
      part.back().end = leaf.offset() + leaf.size();
      part.back().leaves.push_back(leaf);
    }
    std::reverse(part.begin(), part.end());
    for (Bucket& one : part) buckets_.push_back(std::move(one));
  };
  close(0, optimizer.decayed());
  close(optimizer.decayed(), optimizer.size());
  for (size_t i = 0; i < buckets_.size(); ++i) {
    for (const Tensor& leaf : buckets_[i].leaves) bucket_of_[leaf.node().get()] = i;
  }
}

void GradientReducer::begin() {
  sent_ = 0;
  for (Bucket& bucket : buckets_) bucket.waiting = static_cast<int64_t>(bucket.leaves.size());
}

GradientHooks GradientReducer::watch() {
  return GradientHooks([this](const Node& leaf) { arrived(leaf); });
}

void GradientReducer::arrived(const Node& leaf) {
  const auto found = bucket_of_.find(&leaf);
  if (found == bucket_of_.end()) return;
  --buckets_[found->second].waiting;
  while (sent_ < buckets_.size() && buckets_[sent_].waiting == 0) send(buckets_[sent_++]);
}

void GradientReducer::send(Bucket& bucket) {
  for (const Tensor& leaf : bucket.leaves) {
    Node& node = *leaf.node();
    // No gradient was computed: the buffer still holds that of an earlier step.
    if (node.fresh) launch<kernel::Fill>(node.grad.device(), node.grad, 0.0);
    node.fresh = false;
  }
  sums_->start(view::slice(optimizer_.gradients(), 0, bucket.begin, bucket.end));
}

void GradientReducer::finish(const Tensor& tail) {
  sent_early_ = static_cast<int64_t>(sent_);
  while (sent_ < buckets_.size()) send(buckets_[sent_++]);
  sums_->start(tail);
  sums_->finish();
}

}  // namespace heed
