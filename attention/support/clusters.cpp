// Builds the levels of hierarchical clusters.
#include "heed/attention/support/clusters.h"

namespace heed {

int64_t Clusters::height(int64_t length) const {
  int64_t level = 0;
  while (length > block << (level + 1)) ++level;
  return level;
}

std::array<kernel::Pattern::Run, 2> Clusters::attended(int64_t level, int64_t index, int64_t count) const {
  const int64_t own = index / block * block;
  const auto run = [count](int64_t begin, int64_t end) {
    begin = std::max<int64_t>(begin, 0);
    end = std::min(end, count);
    return begin < end ? kernel::Pattern::Run{static_cast<int32_t>(begin), static_cast<int32_t>(end)}
                       : kernel::Pattern::Run{0, 0};
  };
  if (level == 0) return {run(own - block, causal ? index + 1 : own + 2 * block), run(0, 0)};
  // The level below covered adjacent halves of neighbouring blocks.
  const bool later_half = index - own >= block / 2;
  return {run(own - block, later_half ? own : own - block / 2),
          causal ? run(0, 0) : run(later_half ? own + block + block / 2 : own + block, own + 2 * block)};
}

namespace {

/// [B, H, T, w] -> [B, H, ceil(T / 2), 2, w], padded with zeros.
Tensor paired(Tensor x) {
  const int64_t half = (x.extent(2) + 1) / 2;
  if (x.extent(2) % 2 != 0) {
    Shape row = x.shape();
    row[2] = 1;
    x = concat(std::vector<Tensor>{x, Tensor::zeros(row, x.dtype(), x.device())}, 2);
  }
  return reshape(x, Shape{x.extent(0), x.extent(1), half, 2, x.extent(3)});
}

/// [B, H, T, 1, w] -> [B, H, T, w].
Tensor unpaired(const Tensor& x) {
  return reshape(x, Shape{x.extent(0), x.extent(1), x.extent(2), x.extent(4)});
}

Tensor pair_sums(const Tensor& x) { return unpaired(sum(paired(x), 3)); }

/// Means over children that are not empty; `present` is 1 for those.
Tensor pair_means(const Tensor& x, const Tensor& present) {
  return pair_sums(x) / maximum(pair_sums(present), 1);
}

}  // namespace

ClusterLevels cluster_levels(const Clusters& clusters, const Tensor& k, const Tensor& v, const Tensor& kept) {
  const int64_t length = k.extent(2);
  ClusterLevels out{.keys = {}, .values = {}, .present = {}, .first = {0}};
  std::vector<Tensor> keys{k}, values{v}, present;
  // Padding to an even length adds empty children.
  if (!clusters.causal)
    present.push_back(kept ? kept : Tensor::full(Shape{1, 1, length, 1}, 1, k.dtype(), k.device()));
  for (int64_t level = 1; level <= clusters.height(length); ++level) {
    out.first.push_back(out.first.back() + keys.back().extent(2));
    values.push_back(pair_sums(values.back()));
    keys.push_back(clusters.causal ? pair_sums(keys.back()) * 0.5 : pair_means(keys.back(), present.back()));
    if (clusters.causal) continue;
    present.push_back(minimum(pair_sums(present.back()), 1));
  }
  out.keys = concat(keys, 2);
  out.values = concat(values, 2);
  if (!clusters.causal) out.present = concat(present, 2);
  return out;
}

Tensor cluster_queries(const Clusters& clusters, const Tensor& q, const ClusterLevels& levels) {
  std::vector<Tensor> queries{q};
  for (size_t level = 1; level < levels.first.size(); ++level) {
    const Tensor& below = queries.back();
    queries.push_back(clusters.causal ? unpaired(slice(paired(below), 3, 0, 1))
                                      : pair_means(below, slice(levels.present, 2, levels.first[level - 1],
                                                                levels.first[level])));
  }
  return concat(queries, 2);
}

ScaledSums scaled_sums(const Tensor& with_sums) {
  const int64_t last = with_sums.rank() - 1, width = with_sums.extent(last) - 1;
  const Tensor lse = slice(with_sums, last, width, width + 1), log_scale = maximum(lse.detach(), -1e30);
  return {slice(with_sums, last, 0, width) * exp(lse - log_scale), log_scale};
}

Tensor divided_by_count(const Tensor& sums) {
  const int64_t last = sums.rank() - 1, width = sums.extent(last) - 1;
  return slice(sums, last, 0, width) / maximum(slice(sums, last, width, width + 1), 1e-6);
}

}  // namespace heed
