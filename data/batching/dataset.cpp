// Datasets of tensors, and their splits.
#include "heed/data/batching/dataset.h"

#include <algorithm>
#include <cmath>

#include "heed/core/io/hash.h"
#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/launch.h"
#include "heed/data/batching/shuffle.h"

namespace heed {
namespace {

void check_index(const char* what, int64_t index, int64_t size) {
  if (index < 0 || index >= size)
    fail(what, ": there is no example ", index, ". It has ", size, ", counted from 0.");
}

/// A contiguous copy on the CPU.
Tensor on_host(const Tensor& x) {
  Tensor host = x.detach().to(Device::cpu);
  if (host.contiguous()) return host;
  Tensor copy(host.shape(), host.dtype(), Device::cpu);
  launch<kernel::Copy>(Device::cpu, host, copy);
  return copy;
}

/// Adds type, shape and elements of a tensor to a hash.
void add_tensor(Sha256& sum, const Tensor& x) {
  const Tensor host = on_host(x);
  sum.update(text(to_string(host.dtype()), " ", host.shape(), "\n"));
  sum.update({static_cast<const char*>(host.raw()), static_cast<size_t>(host.bytes())});
}

std::string prefixed_hash(const Sha256& sum) { return "sha256:" + sum.hex(); }

}  // namespace

std::string Dataset::identity() const {
  constexpr int64_t max_hashed = 64;
  const int64_t count = size(), num_hashed = std::min(count, max_hashed);
  const int64_t spacing = num_hashed > 1 ? (count - 1) / (num_hashed - 1) : 0;
  Sha256 sum;
  sum.update(text(count, " examples\n"));
  for (int64_t i = 0; i < num_hashed; ++i) {
    for (const Tensor& x : read(i + 1 == num_hashed ? count - 1 : i * spacing)) add_tensor(sum, x);
  }
  return prefixed_hash(sum);
}

int64_t Dataset::length(int64_t index) const {
  const Example example = get(index);
  return example.empty() || example[0].rank() == 0 ? 1 : example[0].extent(0);
}

Example Dataset::read(int64_t index) const {
  const std::lock_guard lock(*mutex_);
  return get(index);
}

int64_t Dataset::read_length(int64_t index) const {
  const std::lock_guard lock(*mutex_);
  return length(index);
}

TensorDataset::TensorDataset(std::vector<Tensor> tensors) {
  if (tensors.empty()) fail("TensorDataset: no tensors are given. Give at least one, [N, ...].");
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& x = tensors[i];
    if (!x || x.rank() == 0)
      fail("TensorDataset: tensor ", i,
           " has no axis of examples. Its first axis must count them: [N, ...].");
    if (i == 0) size_ = x.extent(0);
    if (x.extent(0) != size_) {
      fail("TensorDataset: tensor ", i, " is ", x.shape(), ", but tensor 0 has ", size_,
           " examples. First extents must agree.");
    }
    tensors_.push_back(on_host(x));
  }
}

Example TensorDataset::get(int64_t index) const {
  check_index("TensorDataset", index, size_);
  Example out;
  for (const Tensor& x : tensors_) {
    const Shape without_batch(std::vector<int64_t>(x.shape().begin() + 1, x.shape().end()));
    out.push_back(view::reshape(view::slice(x, /*axis=*/0, index, index + 1), without_batch));
  }
  return out;
}

std::string TensorDataset::identity() const {
  Sha256 sum;
  for (const Tensor& x : tensors_) add_tensor(sum, x);
  return prefixed_hash(sum);
}

Subset::Subset(const Dataset& all, std::vector<int64_t> indices) : all_(all), indices_(std::move(indices)) {
  for (const int64_t index : indices_) check_index("Subset", index, all.size());
}

std::string Subset::identity() const {
  Sha256 sum;
  sum.update(all_.identity() + "\n");
  sum.update({reinterpret_cast<const char*>(indices_.data()), indices_.size() * sizeof(int64_t)});
  return prefixed_hash(sum);
}

int64_t Subset::index_in_all(int64_t index) const {
  check_index("Subset", index, size());
  return indices_[static_cast<size_t>(index)];
}

std::pair<Subset, Subset> random_split(const Dataset& all, double share, uint64_t seed) {
  if (!(share >= 0 && share <= 1)) fail("random_split: share = ", share, ". It must be 0 to 1.");
  const std::vector<int64_t> order = shuffled(all.size(), seed, 0);
  const auto middle = order.begin() + std::llround(share * static_cast<double>(order.size()));
  return {Subset(all, {order.begin(), middle}), Subset(all, {middle, order.end()})};
}

}  // namespace heed
