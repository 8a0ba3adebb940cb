// Attention over buds on a GPU: one warp per query. The gradient of a query is scattered to the nodes of its
// buds; that of a bud which the last leaf cuts goes to the full nodes below it. Each leaf then sums the
// gradients of the nodes above it.
#include "heed/core/kernels/content/tree_attention.h"

#include <algorithm>
#include <cmath>

#include "heed/core/ceil_div.h"
#include "heed/core/cuda/device/row_threads.h"
#include "heed/core/cuda/device/scatter_add.h"
#include "heed/core/cuda/device/sort.h"
#include "heed/core/cuda/device/tree_sums.h"
#include "heed/core/kernels/attention/head_view.h"
#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

/// Copies leaves into nodes, and sums pairs of children into their full parents level after level: one block
/// per 32 columns of a head, whose lanes are columns and whose warps take nodes.
template <class T>
__global__ void __launch_bounds__(cuda::block) sum_up(HeadView<const T> leaves, int64_t heads, int64_t first,
                                                      int64_t count, int64_t width, int64_t rows, T* nodes) {
  const int64_t chunks = (width + cuda::lanes - 1) / cuda::lanes, at = blockIdx.x / chunks;
  const int64_t column = blockIdx.x % chunks * cuda::lanes + cuda::lane();
  const int64_t own = threadIdx.x / cuda::lanes, step = cuda::block / cuda::lanes;
  T* const tree = nodes + at * rows * width + column;
  const bool inside = column < width;
  for (int64_t t = own; t < count && inside; t += step)
    tree[TreeNode::leaf(first + t).row() * width] = leaves.at(at / heads, at % heads, t)[column];
  for (int64_t level = 1; (first + count) >> level > 0; ++level) {
    __syncthreads();
    for (TreeNode node{level, (first >> level) + own}; node.end() <= first + count && inside;
         node.index += step)
      tree[node.row() * width] = tree[node.left().row() * width] + tree[node.right().row() * width];
  }
}

/// Extents and pointers of one call.
template <class T>
struct Call {
  int64_t batch, heads, queries, d, dv, rows, capacity, entries;
  cuda::Reach reach;
  T scale;
  bool counted;
  const int32_t* buds;
  HeadView<const T> q;
  const T *keys, *values;
  int64_t key_rows, value_rows;

  Call(const Tensor& query, const TreeParams& t)
      : batch(query.extent(0)),
        heads(query.extent(1)),
        queries(query.extent(2)),
        d(query.extent(3)),
        dv(t.value_nodes.extent(3)),
        rows(tree_rows(t.reach.keys)),
        capacity(t.buds.extent(2)),
        entries(capacity + tree_height(t.reach.keys) + 1),
        reach(t.reach),
        scale(static_cast<T>(t.scale)),
        counted(t.counted),
        buds(t.buds.data<int32_t>()),
        q(query),
        keys(t.key_nodes.data<T>()),
        values(t.value_nodes.data<T>()),
        key_rows(t.key_nodes.extent(2)),
        value_rows(t.value_nodes.extent(2)) {}

  int64_t all() const { return batch * heads * queries; }
  __device__ const int32_t* buds_of(int64_t b, int64_t i) const {
    return buds + (b * queries + i) * capacity;
  }
  __device__ const T* keys_of(int64_t head) const { return keys + head * key_rows * d; }
  __device__ const T* values_of(int64_t head) const { return values + head * value_rows * dv; }
};

/// The product of a row with a node's sum, by a warp.
template <class T>
__device__ T along(const T* row, const T* nodes, int64_t width, TreeNode node, int64_t leaves) {
  T sum = 0;
  for (int64_t c = cuda::lane(); c < width; c += cuda::lanes)
    sum += row[c] * cuda::node_sum(nodes, width, node, leaves, c);
  return cuda::warp_sum(sum);
}

/// out[b, h, i, :] = sum_n a_n V_n over the buds n of query i, and lse. A warp takes queries (b, h, i) in
/// turn; memory [warps of the grid, capacity] holds its scores.
template <class T>
__global__ void __launch_bounds__(cuda::block) attend(Call<T> call, T* memory, HeadView<T> out, T* lse) {
  T* const weights = memory + cuda::grid_warp() * call.capacity;
  for (int64_t at = cuda::grid_warp(); at < call.batch * call.heads * call.queries;
       at += cuda::grid_warps()) {
    const int64_t head = at / call.queries, i = at % call.queries, b = head / call.heads,
                  h = head % call.heads;
    const int64_t leaves = call.reach.leaves(b, i);
    const T *const q = call.q.at(b, h, i), *const keys = call.keys_of(head),
                   *const values = call.values_of(head);
    const int32_t* const buds = call.buds_of(b, i);
    // Scores of all buds: scale q . K_n / |n|, and the largest.
    int64_t count = 0;
    T most = cuda::lowest<T>(), total = 0;
    for (; leaves > 0 && count < call.capacity && buds[count] >= 0; ++count) {
      const TreeNode node = TreeNode::at_row(buds[count]);
      const T score = call.scale * along(q, keys, call.d, node, leaves) / static_cast<T>(node.count(leaves));
      if (cuda::lane() == count % cuda::lanes) weights[count] = score;
      most = std::max(most, score);
    }
    // e_n = exp(score - largest), total = sum |n| e_n or sum e_n.
    for (int64_t n = cuda::lane(); n < count; n += cuda::lanes) {
      const T e = std::exp(weights[n] - most);
      total += call.counted ? e * static_cast<T>(TreeNode::at_row(buds[n]).count(leaves)) : e;
      weights[n] = e;
    }
    total = cuda::warp_sum(total);
    __syncwarp();
    // out = sum_n e_n V_n / total; lanes are columns.
    T* const to = out.at(b, h, i);
    for (int64_t c = cuda::lane(); c < call.dv; c += cuda::lanes) {
      T sum = 0;
      for (int64_t n = 0; n < count; ++n)
        sum += weights[n] * cuda::node_sum(values, call.dv, TreeNode::at_row(buds[n]), leaves, c);
      to[c] = leaves > 0 ? sum * (T(1) / total) : T(0);
    }
    if (cuda::lane() == 0) lse[at] = leaves > 0 ? most + std::log(total) : cuda::lowest<T>();
    __syncwarp();
  }
}

/// Where the gradients of each query's buds go: ids [B, Tq, entries], first the buds themselves, then the
/// full nodes of the one that the last leaf cuts, which is the last; -1 for none. And the same as keys to
/// sort by.
template <class T>
__global__ void __launch_bounds__(cuda::block) find_targets(Call<T> call, int32_t* ids, uint32_t* keys) {
  for (int64_t at = cuda::global_thread(); at < call.batch * call.queries; at += cuda::grid_size()) {
    const int64_t b = at / call.queries, i = at % call.queries, leaves = call.reach.leaves(b, i);
    const int32_t* const buds = call.buds_of(b, i);
    int32_t* const id = ids + at * call.entries;
    TreeNode cut{0, 0};
    for (int64_t n = 0; n < call.capacity; ++n) {
      id[n] = leaves > 0 ? buds[n] : -1;
      if (id[n] < 0 || TreeNode::at_row(id[n]).end() <= leaves) continue;
      cut = TreeNode::at_row(id[n]);
      id[n] = -1;
    }
    int64_t e = call.capacity;
    if (cut.level > 0) {
      const int64_t last = leaves - 1;
      int64_t level = trailing_zeros(static_cast<uint64_t>(leaves));
      id[e++] = static_cast<int32_t>(TreeNode{level, last >> level}.row());
      for (++level; level <= cut.level; ++level) {
        const int64_t below = last >> (level - 1);
        if (below % 2 == 1) id[e++] = static_cast<int32_t>(TreeNode{level - 1, below - 1}.row());
      }
    }
    for (; e < call.entries; ++e) id[e] = -1;
    for (e = 0; e < call.entries; ++e)
      keys[at * call.entries + e] = static_cast<uint32_t>(id[e] < 0 ? call.rows : id[e]);
  }
}

/// dq, and what each entry's node gets of its query (factors) and of dout (weights), both [B, H, Tq,
/// entries].
template <class T>
__global__ void __launch_bounds__(cuda::block)
    back_queries(Call<T> call, HeadView<const T> out, const T* lse, HeadView<const T> dout, HeadView<T> dq,
                 T* factors, T* weights) {
  const int64_t at = cuda::grid_warp();
  if (at >= call.batch * call.heads * call.queries) return;
  const int64_t head = at / call.queries, i = at % call.queries, b = head / call.heads, h = head % call.heads;
  const int64_t leaves = call.reach.leaves(b, i);
  const T *const q = call.q.at(b, h, i), *const dout_row = dout.at(b, h, i);
  const T *const keys = call.keys_of(head), *const values = call.values_of(head);
  const int32_t* const buds = call.buds_of(b, i);
  const T inner = cuda::warp_dot(dout_row, out.at(b, h, i), call.dv);
  factors += at * call.entries;
  weights += at * call.entries;
  int64_t count = 0;
  T factor = 0, weight = 0;
  for (; leaves > 0 && count < call.capacity && buds[count] >= 0; ++count) {
    const TreeNode node = TreeNode::at_row(buds[count]);
    const auto size = static_cast<T>(node.count(leaves));
    weight = std::exp(call.scale * along(q, keys, call.d, node, leaves) / size - lse[at]);
    const T dscore =
        weight * (along(dout_row, values, call.dv, node, leaves) - (call.counted ? size : T(1)) * inner);
    factor = dscore * call.scale / size;
    if (cuda::lane() != count % cuda::lanes) continue;
    factors[count] = factor;
    weights[count] = weight;
  }
  for (int64_t e = call.capacity + cuda::lane(); e < call.entries; e += cuda::lanes) {
    factors[e] = factor;  // of the last bud
    weights[e] = weight;
  }
  __syncwarp();
  T* const to = dq.at(b, h, i);
  for (int64_t c = cuda::lane(); c < call.d; c += cuda::lanes) {
    T sum = 0;
    for (int64_t n = 0; n < count; ++n)
      sum += factors[n] * cuda::node_sum(keys, call.d, TreeNode::at_row(buds[n]), leaves, c);
    to[c] = sum;
  }
}

/// Rows of queries (or of dout) with their factors, on their way to the gradients of nodes.
template <class T>
struct Falling {
  const int32_t* ids;
  const T* factors;
  HeadView<const T> rows;
  T* nodes;
  int64_t heads, queries, entries, width, tree;

  __device__ int32_t id(int64_t list, int32_t which) const {
    return ids[list / heads * queries * entries + which];
  }
  __device__ T at(int64_t list, int32_t which, int64_t column) const {
    const int64_t i = which / static_cast<int32_t>(entries);
    return factors[list * queries * entries + which] * rows.at(list / heads, list % heads, i)[column];
  }
  __device__ T* to(int64_t list, int32_t id) const { return nodes + (list * tree + id) * width; }
};

/// The gradient of each leaf: the sum of those of itself and of the full nodes above it, by one warp per
/// leaf.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    hand_down(const T* nodes, int64_t all, int64_t heads, int64_t count, int64_t width, HeadView<T> leaves) {
  const int64_t at = cuda::grid_warp(), head = at / count, t = at % count;
  if (head >= all) return;
  const T* const tree = nodes + head * tree_rows(count) * width;
  T* const to = leaves.at(head / heads, head % heads, t);
  for (int64_t c = cuda::lane(); c < width; c += cuda::lanes) {
    T sum = 0;
    for (int64_t level = tree_height(count); level >= 0; --level) {
      const TreeNode node{level, t >> level};
      if (node.end() <= count) sum = tree[node.row() * width + c] + sum;
    }
    to[c] = sum;
  }
}

/// From the entries of queries to the gradients of leaves.
template <class T>
void fall(const Call<T>& call, const int32_t* ids, const int32_t* order, const Tensor& factors,
          const Tensor& rows, const Tensor& leaves) {
  const int64_t all = call.batch * call.heads, width = leaves.extent(3);
  const Tensor nodes = empty_like(leaves, Shape{all, call.rows, width});
  Fill::cuda(nodes, 0);
  const Falling<T> falling{ids,
                           factors.data<T>(),
                           HeadView<const T>(rows),
                           nodes.data<T>(),
                           call.heads,
                           call.queries,
                           call.entries,
                           width,
                           call.rows};
  cuda::add_runs<T>(falling, {order, all, call.heads, call.queries * call.entries, width});
  cuda::run(hand_down<T>, cuda::warps(all * leaves.extent(2)), static_cast<const T*>(nodes.data<T>()), all,
            call.heads, leaves.extent(2), width, HeadView<T>(leaves));
  Count::add(3 * leaves.size());
}

}  // namespace

void TreeSums::cuda(const Tensor& leaves, int64_t first, const Tensor& nodes) {
  const int64_t heads = leaves.extent(1), width = leaves.extent(3), all = leaves.extent(0) * heads;
  visit_float("tree_sums", nodes.dtype(), [&]<class T>(Type<T>) {
    cuda::run(sum_up<T>, cuda::blocks(all * ceil_div(width, cuda::lanes)), HeadView<const T>(leaves), heads,
              first, leaves.extent(2), width, nodes.extent(2), nodes.data<T>());
  });
  Count::add(2 * leaves.size());
}

void TreeAttention::cuda(const Tensor& q, const TreeParams& params, const Tensor& out, const Tensor& lse) {
  visit_float("tree_attention", q.dtype(), [&]<class T>(Type<T>) {
    const Call<T> call(q, params);
    const cuda::Grid grid = cuda::warps(std::min(call.all(), cuda::max_warps));
    const Tensor memory =
        empty_like(q, Shape{int64_t{grid.blocks.x} * (cuda::block / cuda::lanes), call.capacity});
    cuda::run(attend<T>, grid, call, memory.data<T>(), HeadView<T>(out), lse.data<T>());
    Count::add(call.all() * call.capacity * (2 * (call.d + call.dv) + 6));
  });
}

/// dq, dk and dv: lists where the gradients of all buds go and sorts them by node; a warp per query gives dq
/// and the factor of each entry; fall() adds the entries to nodes, and those to leaves.
void TreeAttentionBack::cuda(const TreeAttentionBackTensors& t, const TreeParams& params) {
  visit_float("tree_attention", t.q.dtype(), [&]<class T>(Type<T>) {
    const Call<T> call(t.q, params);
    const int64_t n = call.queries * call.entries;
    const Tensor indices(Shape{3, call.batch, n}, DType::i32, Device::cuda);
    int32_t *const ids = indices.data<int32_t>(), *const order = ids + call.batch * n;
    auto* const keys = reinterpret_cast<uint32_t*>(order + call.batch * n);
    cuda::run(find_targets<T>, cuda::line(call.batch * call.queries), call, ids, keys);
    cuda::sort_rows(keys, call.batch, n, cuda::bits_of(call.rows), order);
    const Tensor factors = empty_like(t.q, Shape{call.batch * call.heads, n}), weights = empty_like(factors);
    cuda::run(back_queries<T>, cuda::warps(call.all()), call, HeadView<const T>(t.out),
              static_cast<const T*>(t.lse.data<T>()), HeadView<const T>(t.dout), HeadView<T>(t.dq),
              factors.data<T>(), weights.data<T>());
    Count::add(call.all() * call.capacity * (6 * call.d + 4 * call.dv + 8));
    fall(call, ids, order, factors, t.q, t.dk);
    fall(call, ids, order, weights, t.dout, t.dv);
  });
}

}  // namespace heed::kernel
