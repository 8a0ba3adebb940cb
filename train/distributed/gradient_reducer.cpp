// Divides gradients into buckets, which every process sends in the same order.
#include "heed/train/distributed/gradient_reducer.h"

#include <algorithm>

#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/launch.h"

namespace heed {

GradientReducer::GradientReducer(Optimizer& optimizer, std::unique_ptr<AllReduce> sums, int64_t bucket)
    : optimizer_(optimizer), sums_(std::move(sums)) {
  // Buckets of the leaves in elements [begin, end), the last leaves first: a backward pass ends with the
  // first layers.
  const auto add_buckets = [&](int64_t begin, int64_t end) {
    std::vector<Bucket> ascending;
    for (const Tensor& leaf : optimizer.leaves()) {
      if (leaf.offset() < begin || leaf.offset() >= end) continue;
      if (ascending.empty() || leaf.offset() + leaf.size() - ascending.back().begin > bucket)
        ascending.push_back({.begin = leaf.offset()});
      ascending.back().end = leaf.offset() + leaf.size();
      ascending.back().leaves.push_back(leaf);
    }
    buckets_.insert(buckets_.end(), ascending.rbegin(), ascending.rend());
  };
  // The vectors of all layers are stored behind the matrices. They are sent last, since those of the first
  // layer are complete last. Muon's matrices do not wait for the embeddings.
  add_buckets(0, optimizer.orthogonalized());
  add_buckets(optimizer.orthogonalized(), optimizer.decayed());
  add_buckets(optimizer.decayed(), optimizer.size());
  for (size_t i = 0; i < buckets_.size(); ++i) {
    for (const Tensor& leaf : buckets_[i].leaves) bucket_of_[leaf.node().get()] = i;
  }
}

void GradientReducer::begin() {
  sent_ = 0;
  for (Bucket& bucket : buckets_) bucket.waiting = static_cast<int64_t>(bucket.leaves.size());
}

GradientHooks GradientReducer::watch() {
  return GradientHooks([this](const Node& leaf) { gradient_complete(leaf); });
}

void GradientReducer::gradient_complete(const Node& leaf) {
  const auto found = bucket_of_.find(&leaf);
  if (found == bucket_of_.end()) return;
  --buckets_[found->second].waiting;
  while (sent_ < buckets_.size() && buckets_[sent_].waiting == 0) send(buckets_[sent_++]);
}

void GradientReducer::send(Bucket& bucket) {
  for (const Tensor& leaf : bucket.leaves) {
    Node& node = *leaf.node();
    // A fresh node has no gradient in this step: its buffer still holds that of an earlier one.
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
