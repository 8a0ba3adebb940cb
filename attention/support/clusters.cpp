// Builds the levels of hierarchical clusters.
#include "heed/attention/support/clusters.h"

namespace heed {

int64_t Clusters::height(int64_t length) const {
  int64_t level = 0;
  while (length > block << (level + 1)) ++level;
  return level;
}

std::array<kernel::Pattern::Run, 2> Clusters::attended(int64_t level, int64_t index, int64_t count) const {
  const int64_t start = index / block * block, end = start + block;  // the cluster's own block
  const auto clipped_run = [count](int64_t run_begin, int64_t run_end) {
    run_begin = std::max<int64_t>(run_begin, 0);
    run_end = std::min(run_end, count);
    return run_begin < run_end
               ? kernel::Pattern::Run{static_cast<int32_t>(run_begin), static_cast<int32_t>(run_end)}
               : kernel::Pattern::Run{0, 0};
  };
  const kernel::Pattern::Run no_run{0, 0};
  if (level == 0) return {clipped_run(start - block, causal ? index + 1 : end + block), no_run};
  // The level below covers the half of a neighbouring block that is adjacent to the cluster's half of its own
  // block.
  const bool is_in_later_half = index - start >= block / 2;
  return {clipped_run(start - block, is_in_later_half ? start : start - block / 2),
          causal ? no_run : clipped_run(is_in_later_half ? end + block / 2 : end, end + block)};
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

/// Sums over both children of each cluster: [B, H, T, w] -> [B, H, ceil(T / 2), w].
Tensor pair_sums(const Tensor& x) { return unpaired(sum(paired(x), 3)); }

/// Means over both children of each cluster, without empty ones; `present` is 0 for these, 1 for others.
Tensor pair_means(const Tensor& x, const Tensor& present) {
  return pair_sums(x) / maximum(pair_sums(present), 1);
}

}  // namespace

ClusterLevels cluster_levels(const Clusters& clusters, const Tensor& k, const Tensor& v, const Tensor& kept) {
  const int64_t length = k.extent(2);
  ClusterLevels levels{.keys = {}, .values = {}, .present = {}, .first = {0}};
  std::vector<Tensor> keys{k}, values{v}, present;
  // Padding to an even length adds empty children.
  if (!clusters.causal)
    present.push_back(kept ? kept : Tensor::full(Shape{1, 1, length, 1}, 1, k.dtype(), k.device()));
  for (int64_t level = 1; level <= clusters.height(length); ++level) {
    levels.first.push_back(levels.first.back() + keys.back().extent(2));
    values.push_back(pair_sums(values.back()));
    keys.push_back(clusters.causal ? pair_sums(keys.back()) * 0.5 : pair_means(keys.back(), present.back()));
    if (clusters.causal) continue;
    present.push_back(minimum(pair_sums(present.back()), 1));
  }
  levels.keys = concat(keys, 2);
  levels.values = concat(values, 2);
  if (!clusters.causal) levels.present = concat(present, 2);
  return levels;
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
  const int64_t axis = with_sums.rank() - 1, width = with_sums.extent(axis) - 1;
  const Tensor lse = slice(with_sums, axis, width, width + 1), log_scale = maximum(lse.detach(), -1e30);
  return {slice(with_sums, axis, 0, width) * exp(lse - log_scale), log_scale};
}

Tensor divided_by_count(const Tensor& sums) {
  const int64_t axis = sums.rank() - 1, width = sums.extent(axis) - 1;
  return slice(sums, axis, 0, width) / maximum(slice(sums, axis, width, width + 1), 1e-6);
}

}  // namespace heed
