// Buckets of the arena, sent in one order by everybody.
#include "train/exchange.h"

#include <algorithm>

#include "core/kernels/copy.h"
#include "core/launch.h"

namespace heed {

Exchange::Exchange(Optimizer& optimizer, std::unique_ptr<Sums> sums, int64_t bucket)
    : optimizer_(optimizer), sums_(std::move(sums)) {
  // A sweep ends with the layers that came first. Matrices lie before vectors, and vectors of all layers are
  // neighbours: they are complete last, so they are sent last.
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

void Exchange::begin() {
  sent_ = 0;
  for (Bucket& bucket : buckets_) bucket.waiting = static_cast<int64_t>(bucket.leaves.size());
}

Arrivals Exchange::watch() {
  return Arrivals([this](const Node& leaf) { arrived(leaf); });
}

void Exchange::arrived(const Node& leaf) {
  const auto found = bucket_of_.find(&leaf);
  if (found == bucket_of_.end()) return;
  --buckets_[found->second].waiting;
  while (sent_ < buckets_.size() && buckets_[sent_].waiting == 0) send(buckets_[sent_++]);
}

void Exchange::send(Bucket& bucket) {
  for (const Tensor& leaf : bucket.leaves) {
    Node& node = *leaf.node();
    // No gradient has arrived here: what lies there is of an earlier step.
    if (node.fresh) launch<kernel::Fill>(node.grad.device(), node.grad, 0.0);
    node.fresh = false;
  }
  sums_->start(view::slice(optimizer_.gradients(), 0, bucket.begin, bucket.end));
}

void Exchange::finish(const Tensor& tail) {
  sent_early_ = static_cast<int64_t>(sent_);
  while (sent_ < buckets_.size()) send(buckets_[sent_++]);
  sums_->start(tail);
  sums_->finish();
}

}  // namespace heed
