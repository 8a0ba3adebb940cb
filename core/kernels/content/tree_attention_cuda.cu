// Attention over buds on a GPU: one warp per query. The backward pass adds the gradients of each query to the
// nodes of its buds, or, for a partial bud, to the full nodes below it. Each leaf then sums the gradients of
// the nodes above it.
#include "heed/core/kernels/content/tree_attention.h"

#include <algorithm>
#include <cmath>

#include "heed/core/ceil_div.h"
#include "heed/core/cuda/device/row_threads.h"
#include "heed/core/cuda/device/scatter_add.h"
#include "heed/core/cuda/device/sort.h"
#include "heed/core/cuda/device/tree_sums.h"
#include "heed/core/kernels/content/tree_attention_call.h"
#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

/// Writes leaves [B, H, t, w] into nodes [B, H, rows, w] as leaves first, first + 1, ..., then level by level
/// the sum of the two children of each full node above them. One block per 32 columns of a head: its lanes
/// are columns, its warps take nodes in turn.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    sum_nodes(HeadView<const T> leaves, int64_t heads, int64_t first, int64_t num_leaves, int64_t width,
              int64_t rows, T* nodes) {
  const int64_t column_blocks = ceil_div(width, cuda::lanes), head = blockIdx.x / column_blocks;
  const int64_t column = blockIdx.x % column_blocks * cuda::lanes + cuda::lane();
  const int64_t warp = threadIdx.x / cuda::lanes, num_warps = cuda::block / cuda::lanes,
                end = first + num_leaves;
  T* const tree = nodes + head * rows * width + column;
  const bool has_column = column < width;
  for (int64_t t = warp; t < num_leaves && has_column; t += num_warps)
    tree[TreeNode::leaf(first + t).row() * width] = leaves.at(head / heads, head % heads, t)[column];
  for (int64_t level = 1; end >> level > 0; ++level) {
    __syncthreads();
    for (TreeNode node{level, (first >> level) + warp}; node.end() <= end && has_column;
         node.index += num_warps)
      tree[node.row() * width] = tree[node.left().row() * width] + tree[node.right().row() * width];
  }
}

/// A call of the backward pass. Each query has a list of entries, the full nodes that get its gradients: one
/// for each of its buds, then those below its partial bud, which the query sees in part.
template <class T>
struct BackCall : TreeAttentionCall<T> {
  int64_t entries;  ///< number of entries of a query

  BackCall(const Tensor& query, const TreeParams& params)
      : TreeAttentionCall<T>(query, params), entries(this->capacity + tree_height(params.visible.keys) + 1) {}
};

/// x . (sum of the leaves below the node that are among the first `leaves`), by a warp whose lanes share the
/// columns.
template <class T>
__device__ T dot_with_node(const T* x, const T* nodes, int64_t width, TreeNode node, int64_t leaves) {
  T sum = 0;
  for (int64_t c = cuda::lane(); c < width; c += cuda::lanes)
    sum += x[c] * cuda::node_sum(nodes, width, node, leaves, c);
  return cuda::warp_sum(sum);
}

/// out[b, h, i, :] = sum_n a_n V_n over the buds n of query i (see TreeAttention), and lse. Each warp takes
/// query rows (b, h, i) in turn; memory [warps of the grid, capacity] holds its scores.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    attend(TreeAttentionCall<T> call, T* memory, HeadView<T> out, T* lse) {
  T* const weights = memory + cuda::grid_warp() * call.capacity;
  for (int64_t row = cuda::grid_warp(); row < call.num_queries(); row += cuda::grid_warps()) {
    const int64_t head = row / call.queries, i = row % call.queries, b = head / call.heads,
                  h = head % call.heads;
    const int64_t leaves = call.visible.count(b, i);
    const T *const q = call.q.at(b, h, i), *const keys = call.keys_of(head),
                   *const values = call.values_of(head);
    const int32_t* const buds = call.buds_of(b, i);
    // weights[n] = score of bud n: scale q . K_n / |n|.
    int64_t num_buds = 0;
    T max_score = minus_infinity<T>, total = 0;
    for (; leaves > 0 && num_buds < call.capacity && buds[num_buds] >= 0; ++num_buds) {
      const TreeNode node = TreeNode::at_row(buds[num_buds]);
      const T score =
          call.scale * dot_with_node(q, keys, call.d, node, leaves) / static_cast<T>(node.count(leaves));
      if (cuda::lane() == num_buds % cuda::lanes) weights[num_buds] = score;
      max_score = std::max(max_score, score);
    }
    // weights[n] = e_n = exp(score - max_score), total = sum |n| e_n or sum e_n; lanes share the buds.
    for (int64_t n = cuda::lane(); n < num_buds; n += cuda::lanes) {
      const T e = std::exp(weights[n] - max_score);
      total += call.counts_leaves ? e * static_cast<T>(TreeNode::at_row(buds[n]).count(leaves)) : e;
      weights[n] = e;
    }
    total = cuda::warp_sum(total);
    __syncwarp();
    // out = sum_n e_n V_n / total; lanes are columns.
    T* const out_row = out.at(b, h, i);
    for (int64_t c = cuda::lane(); c < call.dv; c += cuda::lanes) {
      T sum = 0;
      for (int64_t n = 0; n < num_buds; ++n)
        sum += weights[n] * cuda::node_sum(values, call.dv, TreeNode::at_row(buds[n]), leaves, c);
      out_row[c] = leaves > 0 ? sum * (T(1) / total) : T(0);
    }
    if (cuda::lane() == 0) lse[row] = leaves > 0 ? max_score + std::log(total) : minus_infinity<T>;
    __syncwarp();
  }
}

/// ids [B, Tq, entries] = the row of the full node of each entry, -1 for none: first the buds themselves,
/// where full, then the full nodes below the partial bud, which is the last bud. sort_keys has these ids,
/// with num_full_nodes for -1, which sorts it last. One thread per query (b, i).
template <class T>
__global__ void __launch_bounds__(cuda::block)
    find_targets(BackCall<T> call, int32_t* ids, uint32_t* sort_keys) {
  for (int64_t query = cuda::global_thread(); query < call.batch * call.queries; query += cuda::grid_size()) {
    const int64_t b = query / call.queries, i = query % call.queries, leaves = call.visible.count(b, i);
    const int32_t* const buds = call.buds_of(b, i);
    int32_t* const id = ids + query * call.entries;
    TreeNode partial_bud = TreeNode::leaf(0);  // a leaf where no bud is partial
    for (int64_t n = 0; n < call.capacity; ++n) {
      id[n] = leaves > 0 ? buds[n] : -1;
      if (id[n] < 0 || TreeNode::at_row(id[n]).end() <= leaves) continue;
      partial_bud = TreeNode::at_row(id[n]);
      id[n] = -1;
    }
    // The full nodes below it: the largest one that ends with the last leaf, and the left siblings above it.
    int64_t e = call.capacity;
    if (partial_bud.level > 0) {
      const int64_t last_leaf = leaves - 1;
      int64_t level = trailing_zeros(static_cast<uint64_t>(leaves));
      id[e++] = static_cast<int32_t>(TreeNode{level, last_leaf >> level}.row());
      for (++level; level <= partial_bud.level; ++level) {
        const int64_t child = last_leaf >> (level - 1);
        if (child % 2 == 1) id[e++] = static_cast<int32_t>(TreeNode{level - 1, child - 1}.row());
      }
    }
    for (; e < call.entries; ++e) id[e] = -1;
    for (e = 0; e < call.entries; ++e)
      sort_keys[query * call.entries + e] = static_cast<uint32_t>(id[e] < 0 ? call.num_full_nodes : id[e]);
  }
}

/// dq[b, h, i, :] = sum over buds n of key_factor_n K_n, and for each entry the factors of the gradients of
/// its node: dK_n += key_factor_n q, dV_n += weight_n dout; key_factors and weights [B, H, Tq, entries]. One
/// warp per query row (b, h, i).
template <class T>
__global__ void __launch_bounds__(cuda::block)
    back_queries(BackCall<T> call, HeadView<const T> out, const T* lse, HeadView<const T> dout,
                 HeadView<T> dq, T* key_factors, T* weights) {
  const int64_t row = cuda::grid_warp();
  if (row >= call.num_queries()) return;
  const int64_t head = row / call.queries, i = row % call.queries, b = head / call.heads,
                h = head % call.heads;
  const int64_t leaves = call.visible.count(b, i);
  const T *const q = call.q.at(b, h, i), *const dout_row = dout.at(b, h, i);
  const T *const keys = call.keys_of(head), *const values = call.values_of(head);
  const int32_t* const buds = call.buds_of(b, i);
  const T dout_dot_out = cuda::warp_dot(dout_row, out.at(b, h, i), call.dv);
  key_factors += row * call.entries;
  weights += row * call.entries;
  // For each bud n with c_n = |n| or 1: weight a_n, dscore = a_n (dout . V_n - c_n dout . out).
  int64_t num_buds = 0;
  T key_factor = 0, weight = 0;
  for (; leaves > 0 && num_buds < call.capacity && buds[num_buds] >= 0; ++num_buds) {
    const TreeNode node = TreeNode::at_row(buds[num_buds]);
    const auto size = static_cast<T>(node.count(leaves));
    weight = std::exp(call.scale * dot_with_node(q, keys, call.d, node, leaves) / size - lse[row]);
    const T dscore = weight * (dot_with_node(dout_row, values, call.dv, node, leaves) -
                               call.denominator_count(size) * dout_dot_out);
    key_factor = dscore * call.scale / size;
    if (cuda::lane() != num_buds % cuda::lanes) continue;
    key_factors[num_buds] = key_factor;
    weights[num_buds] = weight;
  }
  // The full nodes below the partial bud, which is the last one, have its factors.
  for (int64_t e = call.capacity + cuda::lane(); e < call.entries; e += cuda::lanes) {
    key_factors[e] = key_factor;
    weights[e] = weight;
  }
  __syncwarp();
  // dq = sum_n key_factor_n K_n; lanes are columns.
  T* const dq_row = dq.at(b, h, i);
  for (int64_t c = cuda::lane(); c < call.d; c += cuda::lanes) {
    T sum = 0;
    for (int64_t n = 0; n < num_buds; ++n)
      sum += key_factors[n] * cuda::node_sum(keys, call.d, TreeNode::at_row(buds[n]), leaves, c);
    dq_row[c] = sum;
  }
}

/// The gradients of nodes [B H, num_full_nodes, width] as sums of factor times row over the entries of a
/// head, in the form that cuda::add_sorted_rows() takes. rows are q or dout [B, H, Tq, width].
template <class T>
struct EntryGradients {
  const int32_t* ids;
  const T* factors;
  HeadView<const T> rows;
  T* nodes;
  int64_t heads, queries, entries, width, num_full_nodes;

  __device__ int32_t id(int64_t head, int32_t entry) const {
    return ids[head / heads * queries * entries + entry];
  }
  __device__ T at(int64_t head, int32_t entry, int64_t column) const {
    const int64_t i = entry / static_cast<int32_t>(entries);
    return factors[head * queries * entries + entry] * rows.at(head / heads, head % heads, i)[column];
  }
  __device__ T* to(int64_t head, int32_t id) const { return nodes + (head * num_full_nodes + id) * width; }
};

/// leaves[b, h, t, :] = the sum of the gradients of leaf t and all full nodes above it. One warp per leaf.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    push_down_to_leaves(const T* nodes, int64_t num_heads, int64_t heads, int64_t num_leaves, int64_t width,
                        HeadView<T> leaves) {
  const int64_t row = cuda::grid_warp(), head = row / num_leaves, t = row % num_leaves;
  if (head >= num_heads) return;
  const T* const tree = nodes + head * tree_rows(num_leaves) * width;
  T* const leaf = leaves.at(head / heads, head % heads, t);
  for (int64_t c = cuda::lane(); c < width; c += cuda::lanes) {
    T sum = 0;
    for (int64_t level = tree_height(num_leaves); level >= 0; --level) {
      const TreeNode node{level, t >> level};
      if (node.end() <= num_leaves) sum = tree[node.row() * width + c] + sum;
    }
    leaf[c] = sum;
  }
}

/// Gradients of leaves [B, H, keys, width]: adds factor times row of each entry to its node, in the given
/// order, then passes the gradients of nodes down to the leaves.
template <class T>
void add_entries(const BackCall<T>& call, const int32_t* ids, const int32_t* order, const Tensor& factors,
                 const Tensor& rows, const Tensor& leaves) {
  const int64_t num_heads = call.batch * call.heads, width = leaves.extent(3);
  const Tensor nodes = empty_like(leaves, Shape{num_heads, call.num_full_nodes, width});
  Fill::cuda(nodes, 0);
  const EntryGradients<T> gradients{.ids = ids,
                                    .factors = factors.data<T>(),
                                    .rows = HeadView<const T>(rows),
                                    .nodes = nodes.data<T>(),
                                    .heads = call.heads,
                                    .queries = call.queries,
                                    .entries = call.entries,
                                    .width = width,
                                    .num_full_nodes = call.num_full_nodes};
  cuda::add_sorted_rows<T>(gradients, {.order = order,
                                       .lists = num_heads,
                                       .sharing = call.heads,
                                       .n = call.queries * call.entries,
                                       .width = width});
  cuda::run(push_down_to_leaves<T>, cuda::warp_per_row(num_heads * leaves.extent(2)),
            static_cast<const T*>(nodes.data<T>()), num_heads, call.heads, leaves.extent(2), width,
            HeadView<T>(leaves));
  Count::add(3 * leaves.size());
}

}  // namespace

/// Computes nodes with one block per 32 columns of a tree.
void TreeSums::cuda(const Tensor& leaves, int64_t first, const Tensor& nodes) {
  const int64_t heads = leaves.extent(1), width = leaves.extent(3), num_heads = leaves.extent(0) * heads;
  visit_float("tree_sums", nodes.dtype(), [&]<class T>(Type<T>) {
    cuda::run(sum_nodes<T>, cuda::block_per_row(num_heads * ceil_div(width, cuda::lanes)),
              HeadView<const T>(leaves), heads, first, leaves.extent(2), width, nodes.extent(2),
              nodes.data<T>());
  });
  Count::add(2 * leaves.size());
}

/// Computes out and lse with one warp per query row; each warp of the grid has memory for the scores of a
/// row.
void TreeAttention::cuda(const Tensor& q, const TreeParams& params, const Tensor& out, const Tensor& lse) {
  visit_float("tree_attention", q.dtype(), [&]<class T>(Type<T>) {
    const TreeAttentionCall<T> call(q, params);
    const cuda::Grid grid = cuda::warp_per_row(std::min(call.num_queries(), cuda::max_warps));
    const Tensor memory =
        empty_like(q, Shape{int64_t{grid.blocks.x} * (cuda::block / cuda::lanes), call.capacity});
    cuda::run(attend<T>, grid, call, memory.data<T>(), HeadView<T>(out), lse.data<T>());
    Count::add(call.num_queries() * call.capacity * (2 * (call.d + call.dv) + 6));
  });
}

/// dq, dk and dv: lists the entries of all queries and sorts them by node; one warp per query row gives dq
/// and the factors of its entries; add_entries() adds the entries to nodes, and these to leaves.
void TreeAttentionBack::cuda(const TreeAttentionBackTensors& t, const TreeParams& params) {
  visit_float("tree_attention", t.q.dtype(), [&]<class T>(Type<T>) {
    const BackCall<T> call(t.q, params);
    const int64_t n = call.queries * call.entries;
    const Tensor memory(Shape{3, call.batch, n}, DType::i32, Device::cuda);
    int32_t *const ids = memory.data<int32_t>(), *const order = ids + call.batch * n;
    auto* const sort_keys = reinterpret_cast<uint32_t*>(order + call.batch * n);
    cuda::run(find_targets<T>, cuda::grid_over(call.batch * call.queries), call, ids, sort_keys);
    cuda::sort_rows(sort_keys, call.batch, n, cuda::bits_of(call.num_full_nodes), order);
    const Tensor key_factors = empty_like(t.q, Shape{call.batch * call.heads, n}),
                 weights = empty_like(key_factors);
    cuda::run(back_queries<T>, cuda::warp_per_row(call.num_queries()), call, HeadView<const T>(t.out),
              static_cast<const T*>(t.lse.data<T>()), HeadView<const T>(t.dout), HeadView<T>(t.dq),
              key_factors.data<T>(), weights.data<T>());
    Count::add(call.num_queries() * call.capacity * (6 * call.d + 4 * call.dv + 8));
    add_entries(call, ids, order, key_factors, t.q, t.dk);
    add_entries(call, ids, order, weights, t.dout, t.dv);
  });
}

}  // namespace heed::kernel
