// NtmAddressing on a GPU: a block takes a head, query after query, as each begins where the one before ended.
#include "heed/core/kernels/attention/ntm_addressing.h"

#include <algorithm>
#include <cmath>

#include "heed/core/cuda/device/row_threads.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

template <class T>
struct Call {
  int64_t batch, heads, queries, keys, shifts, first_query;
  const T *content, *before, *gate, *shift, *sharp;
  const int32_t* lengths;
  bool causal;

  Call(const AddressingInputs& x, const AddressingParams& t)
      : batch(x.content.extent(0)),
        heads(x.content.extent(1)),
        queries(x.content.extent(2)),
        keys(x.content.extent(3)),
        shifts(x.shift ? x.shift.extent(3) : 1),
        first_query(t.first_query),
        content(cuda::pointer<T>(x.content)),
        before(cuda::pointer<T>(x.before)),
        gate(cuda::pointer<T>(x.gate)),
        shift(cuda::pointer<T>(x.shift)),
        sharp(cuda::pointer<T>(x.sharp)),
        lengths(cuda::pointer<int32_t>(t.key_lengths)),
        causal(t.causal) {}

  __device__ int64_t num_visible(int64_t head, int64_t i) const {
    int64_t n = keys;
    if (lengths != nullptr) n = std::clamp<int64_t>(lengths[head / heads], 0, n);
    return causal ? std::clamp<int64_t>(first_query + i + 1, 0, n) : n;
  }
  /// The weights before query i; null where there are none.
  __device__ const T* previous(int64_t head, int64_t i, const T* out) const {
    if (i > 0) return out + (head * queries + i - 1) * keys;
    return before == nullptr ? nullptr : before + head * keys;
  }
};

/// The sum over s of factor_s from[(j - s) mod n], s from -r to r; or s from r to -r.
template <class T>
__device__ T shifted_at(const T* from, int64_t j, int64_t n, const T* factors, int64_t shifts, int sign) {
  T sum = 0;
  for (int64_t s = 0; s < shifts; ++s) {
    const int64_t at = (j - sign * (s - shifts / 2)) % n;
    sum += factors[s] * from[at < 0 ? at + n : at];
  }
  return sum;
}

/// gated [n] = g content + (1 - g) (weights of the query before), and shifted [n] = gated, shifted: the steps
/// of one query before it sharpens.
template <class T>
__device__ void make_row(const Call<T>& call, int64_t head, int64_t i, int64_t n, const T* last, T* gated,
                         T* shifted) {
  const int64_t row = head * call.queries + i;
  const T* content = call.content + row * call.keys;
  const bool mixed = call.gate != nullptr && last != nullptr;
  const T g = mixed ? call.gate[row] : T(1);
  for (int64_t j = threadIdx.x; j < n; j += cuda::block)
    gated[j] = mixed ? g * content[j] + (1 - g) * last[j] : content[j];
  __syncthreads();
  for (int64_t j = threadIdx.x; j < n; j += cuda::block)
    shifted[j] = call.shift == nullptr
                     ? gated[j]
                     : shifted_at(gated, j, n, call.shift + row * call.shifts, call.shifts, 1);
  __syncthreads();
}

/// out [Tq, Tk] of one head, by one block: its queries one after the other, threads over keys. memory [heads,
/// 2, keys] holds the gated and the shifted weights of a query.
template <class T>
__global__ void __launch_bounds__(cuda::block) address(Call<T> call, T* memory, T* out) {
  __shared__ T scratch[cuda::lanes];
  const int64_t head = blockIdx.x;
  T *const gated = memory + 2 * head * call.keys, *const shifted = gated + call.keys;
  for (int64_t i = 0; i < call.queries; ++i) {
    const int64_t row = head * call.queries + i, n = call.num_visible(head, i);
    T* to = out + row * call.keys;
    for (int64_t j = n + threadIdx.x; j < call.keys; j += cuda::block) to[j] = T(0);
    if (n == 0) continue;
    make_row(call, head, i, n, call.previous(head, i, out), gated, shifted);
    T max_weight = cuda::lowest<T>(), total = 0;
    for (int64_t j = threadIdx.x; j < n; j += cuda::block) max_weight = std::max(max_weight, shifted[j]);
    max_weight = cuda::block_max(max_weight, cuda::lowest<T>(), scratch);
    const bool sharpened = call.sharp != nullptr && max_weight > 0;
    for (int64_t j = threadIdx.x; j < n; j += cuda::block) {
      to[j] = sharpened ? std::pow(shifted[j] / max_weight, call.sharp[row]) : shifted[j];
      total += to[j];
    }
    total = cuda::block_sum(total, scratch);
    for (int64_t j = threadIdx.x; j < n && sharpened; j += cuda::block) to[j] /= total;
    __syncthreads();
  }
}

/// Where the gradients go; null where they are not wanted.
template <class T>
struct Gradients {
  T *content, *before, *gate, *shift, *sharp;
};

/// Gradients of one head, by one block: from its last query to its first, where a thread keeps its own keys.
/// memory [heads, 5, keys] holds the rows of a query.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    address_back(Call<T> call, const T* out, const T* dout, T* memory, Gradients<T> to) {
  __shared__ T scratch[cuda::lanes];
  const int64_t head = blockIdx.x, step = cuda::block, own = threadIdx.x;
  T* const gated = memory + 5 * head * call.keys;
  T *const shifted = gated + call.keys, *const dweights = shifted + call.keys,
           *const inner = dweights + call.keys,
           *const dprevious = inner + call.keys;  // from later queries to the weights of this one
  for (int64_t j = own; j < call.keys; j += step) dprevious[j] = T(0);
  for (int64_t i = call.queries - 1; i >= 0; --i) {
    const int64_t row = head * call.queries + i, n = call.num_visible(head, i);
    const T *y = out + row * call.keys, *last = call.previous(head, i, out);
    T* dcontent = to.content + row * call.keys;
    for (int64_t j = own; j < call.keys; j += step) {
      if (j < n)
        dweights[j] = dout[row * call.keys + j] + dprevious[j];
      else
        dcontent[j] = T(0);
      dprevious[j] = T(0);
    }
    if (n == 0 || call.gate == nullptr || last == nullptr) {
      if (own == 0 && to.gate != nullptr) to.gate[row] = T(0);
    }
    if (n == 0) {
      if (own == 0 && to.sharp != nullptr) to.sharp[row] = T(0);
      for (int64_t s = own; s < call.shifts && to.shift != nullptr; s += step)
        to.shift[row * call.shifts + s] = T(0);
      continue;
    }
    // The gated and the shifted weights of this query again, [n] each.
    make_row(call, head, i, n, last, gated, shifted);
    // Sharpening: dweights becomes the gradient of the shifted weights.
    if (call.sharp != nullptr) {
      T mean = 0, dsharp = 0;
      for (int64_t j = own; j < n; j += step) mean += y[j] * dweights[j];
      mean = cuda::block_sum(mean, scratch);
      for (int64_t j = own; j < n; j += step) {
        const bool is_positive = shifted[j] > 0;
        const T dlog = y[j] * (dweights[j] - mean);
        dsharp += is_positive ? dlog * std::log(shifted[j]) : T(0);
        dweights[j] = is_positive ? call.sharp[row] * (dlog / shifted[j]) : T(0);
      }
      dsharp = cuda::block_sum(dsharp, scratch);
      if (own == 0) to.sharp[row] = dsharp;
    }
    // Shift: dgated [n], and dshift_s = sum_j dweights_j gated_(j - s).
    const T* dgated = dweights;
    if (call.shift != nullptr) {
      __syncthreads();
      const T* factors = call.shift + row * call.shifts;
      for (int64_t s = 0; s < call.shifts; ++s) {
        T along = 0;
        for (int64_t j = own; j < n; j += step) {
          const int64_t at = (j - (s - call.shifts / 2)) % n;
          along += dweights[j] * gated[at < 0 ? at + n : at];
        }
        along = cuda::block_sum(along, scratch);
        if (own == 0) to.shift[row * call.shifts + s] = along;
      }
      for (int64_t j = own; j < n; j += step) inner[j] = shifted_at(dweights, j, n, factors, call.shifts, -1);
      dgated = inner;
    }
    // Gate: dcontent = g dgated, and (1 - g) dgated goes to the weights of the query before.
    const bool mixed = call.gate != nullptr && last != nullptr;
    const T g = mixed ? call.gate[row] : T(1);
    const T* content = call.content + row * call.keys;
    T dgate = 0;
    for (int64_t j = own; j < n; j += step) {
      if (mixed) {
        dgate += dgated[j] * (content[j] - last[j]);
        dprevious[j] = (1 - g) * dgated[j];
      }
      dcontent[j] = g * dgated[j];
    }
    dgate = cuda::block_sum(dgate, scratch);
    if (own == 0 && mixed) to.gate[row] = dgate;
    __syncthreads();
  }
  for (int64_t j = own; j < call.keys && to.before != nullptr; j += step)
    to.before[head * call.keys + j] = dprevious[j];
}

}  // namespace

void NtmAddressing::cuda(const AddressingInputs& x, const AddressingParams& params, const Tensor& out) {
  visit_float("addressing", x.content.dtype(), [&]<class T>(Type<T>) {
    const Call<T> call(x, params);
    const Tensor memory = empty_like(x.content, Shape{call.batch * call.heads, 2, call.keys});
    cuda::run(address<T>, cuda::blocks(call.batch * call.heads), call, memory.data<T>(), out.data<T>());
    Count::add(x.content.size() * (2 * call.shifts + 8));
  });
}

/// Gradients of NtmAddressing: one block per head (b, h), with five rows [Tk] of working memory.
void NtmAddressingBack::cuda(const AddressingInputs& x, const AddressingParams& params, const Tensor& out,
                             const Tensor& dout, const AddressingInputs& dx) {
  visit_float("addressing", x.content.dtype(), [&]<class T>(Type<T>) {
    const Call<T> call(x, params);
    const Tensor memory = empty_like(x.content, Shape{call.batch * call.heads, 5, call.keys});
    const Gradients<T> gradients{cuda::pointer<T>(dx.content), cuda::pointer<T>(dx.before),
                                 cuda::pointer<T>(dx.gate), cuda::pointer<T>(dx.shift),
                                 cuda::pointer<T>(dx.sharp)};
    cuda::run(address_back<T>, cuda::blocks(call.batch * call.heads), call,
              static_cast<const T*>(out.data<T>()), static_cast<const T*>(dout.data<T>()), memory.data<T>(),
              gradients);
    Count::add(x.content.size() * (6 * call.shifts + 20));
  });
}

}  // namespace heed::kernel
