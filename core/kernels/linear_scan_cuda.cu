// Causal sums in chunks on a device, all chunks at once: sums of each segment, what lies before each (or
// after it), and then every tile of 64 rows by itself, from the state of its segment and the pairs within
// that.
#include "core/kernels/linear_scan.h"

#include "core/count.h"
#include "core/kernels/scan_device.h"

namespace heed::kernel {
namespace {

using cuda::mine;
using cuda::tile_rows;

/// out_i = x_i . M + sum over j of (a_i . b_j) c_j, with the M of i's segment and the j of that up to i, or
/// from i on where `back`.
template <class T>
struct ScanCall {
  Heads<const T> x, a, b, c;
  const T* states;  ///< [heads, segments, f, d] or null: zero
  bool turned;      ///< M is the state with its sides changed
  bool back;
  Heads<T> out;
  int64_t H, length, segment, f, d;
  int64_t depth, map_depth, columns;  ///< of x; of a and b; of c and out
};

/// W: columns that a block makes.
template <class T, int W>
__global__ void __launch_bounds__(cuda::tile_threads) scan(ScanCall<T> x) {
  constexpr int wide = tile_rows, ld = cuda::tile_ld(wide), ldw = cuda::tile_ld(W), C = W / 16;
  T* left = cuda::shared<T>();
  T* right = left + cuda::tile_size(wide);
  T* map_tile = right + cuda::tile_size(wide);
  const cuda::Share me;
  const int64_t tiles = cuda::tiles_of(x.length), head = blockIdx.x / tiles, b = head / x.H, h = head % x.H;
  const int64_t first = blockIdx.x % tiles * wide, column = int64_t{blockIdx.y} * W;
  const int64_t rows = min(x.length - first, int64_t{wide});
  const int64_t segment = first / x.segment, segments = (x.length + x.segment - 1) / x.segment;
  T sum[mine][C];
  cuda::clear(sum);
  for (int64_t c = 0; x.states != nullptr && c < x.depth; c += wide) {
    const T* state = x.states + (head * segments + segment) * x.f * x.d;
    cuda::fetch_tile<T, wide>(left, x.x.at(b, h, first) + c, x.x.ld, rows, x.depth - c);
    if (x.turned) {
      cuda::fetch_turned(right, state + column * x.d + c, x.d, min(x.columns - column, int64_t{W}),
                         x.depth - c);
    } else {
      cuda::fetch_tile<T, W>(right, state + c * x.d + column, x.d, x.depth - c, x.columns - column);
    }
    cuda::commit_copies();
    cuda::wait_for_copies<0>();
    __syncthreads();
    if (x.turned) {
      cuda::gather<T, ld, ld>(me, left, right, wide, sum);
    } else {
      cuda::gather<T, ld, ldw>(me, left, right, wide, sum);
    }
    __syncthreads();
  }
  const int64_t begin = x.back ? first : segment * x.segment;
  const int64_t end = x.back ? min((segment + 1) * x.segment, x.length) : first + rows;
  for (int64_t j = begin; j < end; j += wide) {
    const int64_t count = min(end - j, int64_t{wide});
    T map[mine][4];
    cuda::clear(map);
    cuda::dots_of_slices<T, wide>(
        me, left, right, x.map_depth,
        [&](int64_t c) {
          cuda::fetch_tile<T, wide>(left, x.a.at(b, h, first) + c, x.a.ld, rows, x.map_depth - c);
        },
        [&](int64_t c) {
          cuda::fetch_tile<T, wide>(right, x.b.at(b, h, j) + c, x.b.ld, count, x.map_depth - c);
        },
        map);
    cuda::fetch_tile<T, W>(right, x.c.at(b, h, j) + column, x.c.ld, count, x.columns - column);
    cuda::commit_copies();
#pragma unroll
    for (int r = 0; r < mine; ++r) {
      const int64_t i = first + me.row(r);
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        const int64_t other = j + me.key(n);
        if (other >= end || (x.back ? other < i : other > i)) map[r][n] = T(0);
      }
    }
    cuda::put_map(me, map, map_tile);
    cuda::wait_for_copies<0>();
    __syncthreads();
    cuda::gather<T, ld, ldw>(me, map_tile, right, wide, sum);
    __syncthreads();
  }
#pragma unroll
  for (int r = 0; r < mine; ++r) {
    if (me.row(r) < rows)
      cuda::put_columns(me, sum[r], x.columns - column, x.out.at(b, h, first + me.row(r)) + column);
  }
}

template <class T>
class Scan {
 public:
  Scan(const Tensor& phi, const Tensor& v)
      : B_(phi.extent(0)), H_(phi.extent(1)), length_(phi.extent(2)), f_(phi.extent(3)), d_(v.extent(3)) {
    // As many operations for the pairs of a segment as for its state; then states take the room of the
    // inputs.
    segment_ = std::max<int64_t>(1, cuda::tiles_of(2 * f_ * d_ / std::max<int64_t>(1, f_ + d_))) * tile_rows;
    segments_ = cuda::pieces(length_, segment_);
  }

  /// What lies before each segment, or after it, of sums of a_t b_t^T; empty where that is nothing.
  Tensor states(const Tensor& a, const Tensor& b, const Tensor& outside, const Tensor& total,
                bool back) const {
    if (segments_ <= 1 && !outside && !total) return {};
    const Tensor all(Shape{std::max<int64_t>(1, B_ * H_ * segments_ * f_ * d_)}, a.dtype(), a.device());
    start_segment_sums(a, b, segment_, all.data<T>());
    start_pass_states_on(all.data<T>(), B_, H_, segments_, f_, d_, d_, outside, total, back);
    Count::add(2 * B_ * H_ * length_ * f_ * d_);
    return all;
  }

  void run(const Tensor& x, const Tensor& states, bool turned, bool back, const Tensor& a, const Tensor& b,
           const Tensor& c, const Tensor& out) const {
    const ScanCall<T> call{.x = Heads<const T>(x),
                           .a = Heads<const T>(a),
                           .b = Heads<const T>(b),
                           .c = Heads<const T>(c),
                           .states = states ? states.data<T>() : nullptr,
                           .turned = turned,
                           .back = back,
                           .out = Heads<T>(out),
                           .H = H_,
                           .length = length_,
                           .segment = segment_,
                           .f = f_,
                           .d = d_,
                           .depth = x.extent(3),
                           .map_depth = a.extent(3),
                           .columns = out.extent(3)};
    if (call.columns <= 32) {
      start<32>(call);
    } else {
      start<64>(call);
    }
    const int64_t pairs = std::min(segment_, length_) / 2;
    const int64_t state = states ? f_ * d_ : 0;
    Count::add(2 * B_ * H_ * length_ * (state + pairs * (call.map_depth + call.columns)));
  }

 private:
  template <int W>
  void start(const ScanCall<T>& call) const {
    cuda::run(scan<T, W>,
              {.blocks = dim3(static_cast<unsigned>(B_ * H_ * cuda::tiles_of(length_)),
                              static_cast<unsigned>(cuda::pieces(call.columns, W))),
               .threads = dim3(cuda::tile_threads),
               .shared_bytes = 3 * cuda::tile_size(tile_rows) * static_cast<int>(sizeof(T))},
              call);
  }

  int64_t B_, H_, length_, f_, d_, segment_, segments_;
};

}  // namespace

void LinearScan::cuda(const Tensor& phi_q, const Tensor& phi_k, const Tensor& v, const Tensor& start,
                      const Tensor& out, const Tensor& end) {
  visit_float("linear_scan", phi_q.dtype(), [&](auto type) {
    const Scan<typename decltype(type)::type> scan(phi_q, v);
    const Tensor before = scan.states(phi_k, v, start, end, false);
    scan.run(phi_q, before, false, false, phi_q, phi_k, v, out);
  });
}

void LinearScanBack::cuda(const Tensor& phi_q, const Tensor& phi_k, const Tensor& v, const Tensor& start,
                          const Tensor& dout, const Tensor& dend, const Tensor& dphi_q, const Tensor& dphi_k,
                          const Tensor& dv, const Tensor& dstart) {
  visit_float("linear_scan", phi_q.dtype(), [&](auto type) {
    const Scan<typename decltype(type)::type> scan(phi_q, v);
    const Tensor before = scan.states(phi_k, v, start, Tensor(), false);
    scan.run(dout, before, true, false, dout, v, phi_k, dphi_q);
    const Tensor after = scan.states(phi_q, dout, dend, dstart, true);
    scan.run(v, after, true, true, v, dout, phi_q, dphi_k);
    scan.run(phi_k, after, false, true, phi_k, phi_q, dout, dv);
  });
}

}  // namespace heed::kernel
