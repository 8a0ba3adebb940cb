// NtmAddressing on a GPU: one block per head takes its queries one after the other, since each needs the
// weights of the one before.
#include "heed/core/kernels/attention/ntm_addressing.h"

#include <algorithm>
#include <cmath>

#include "heed/core/cuda/device/row_threads.h"
#include "heed/core/kernels/attention/ntm_addressing_call.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

/// Sum over s from -r to r of factors[s + r] x[(j - sign s) mod n], with 2 r + 1 = shifts.
template <class T>
__device__ T shifted_at(const T* x, int64_t j, int64_t n, const T* factors, int64_t shifts, int sign) {
  T sum = 0;
  for (int64_t s = 0; s < shifts; ++s) {
    const int64_t source = (j - sign * (s - shifts / 2)) % n;
    sum += factors[s] * x[source < 0 ? source + n : source];
  }
  return sum;
}

/// The weights of query i of a head before sharpening: gated [n] = w_g and shifted [n] = w~ (see
/// NtmAddressing), by one block whose threads share the n keys. `previous` is w_(i-1) or null.
template <class T>
__device__ void shift_weights(const NtmAddressingCall<T>& call, int64_t head, int64_t i, int64_t n,
                              const T* previous, T* gated, T* shifted) {
  const int64_t row = head * call.queries + i;
  const T* content = call.content + row * call.keys;
  const bool has_gate = call.gate != nullptr && previous != nullptr;
  const T g = has_gate ? call.gate[row] : T(1);
  for (int64_t j = threadIdx.x; j < n; j += cuda::block)
    gated[j] = has_gate ? g * content[j] + (1 - g) * previous[j] : content[j];
  __syncthreads();
  for (int64_t j = threadIdx.x; j < n; j += cuda::block)
    shifted[j] = call.shift == nullptr
                     ? gated[j]
                     : shifted_at(gated, j, n, call.shift + row * call.shifts, call.shifts, /*sign=*/1);
  __syncthreads();
}

/// out [Tq, Tk] of one head, by one block: its queries one after the other; threads share the keys. memory [B
/// H, 2, Tk] holds the gated and the shifted weights of a query.
template <class T>
__global__ void __launch_bounds__(cuda::block) address(NtmAddressingCall<T> call, T* memory, T* out) {
  __shared__ T scratch[cuda::lanes];
  const int64_t head = blockIdx.x;
  T *const gated = memory + 2 * head * call.keys, *const shifted = gated + call.keys;
  for (int64_t i = 0; i < call.queries; ++i) {
    const int64_t row = head * call.queries + i, n = call.num_visible(head, i);
    T* weights = out + row * call.keys;
    for (int64_t j = n + threadIdx.x; j < call.keys; j += cuda::block) weights[j] = T(0);
    if (n == 0) continue;
    shift_weights(call, head, i, n, call.previous_weights(head, i, out), gated, shifted);
    T max_weight = minus_infinity<T>, total = 0;
    for (int64_t j = threadIdx.x; j < n; j += cuda::block) max_weight = std::max(max_weight, shifted[j]);
    max_weight = cuda::block_max(max_weight, minus_infinity<T>, scratch);
    const bool is_sharpened = call.sharp != nullptr && max_weight > 0;
    for (int64_t j = threadIdx.x; j < n; j += cuda::block) {
      weights[j] = is_sharpened ? std::pow(shifted[j] / max_weight, call.sharp[row]) : shifted[j];
      total += weights[j];
    }
    total = cuda::block_sum(total, scratch);
    for (int64_t j = threadIdx.x; j < n && is_sharpened; j += cuda::block) weights[j] /= total;
    __syncthreads();
  }
}

/// Gradients of one head, by one block: from its last query to its first; threads share the keys. memory [B
/// H, 5, Tk] holds working rows of a query: gated, shifted, dweights, dgated_sum and dprevious, the gradient
/// of w_(i-1).
template <class T>
__global__ void __launch_bounds__(cuda::block)
    address_back(NtmAddressingCall<T> call, const T* out, const T* dout, T* memory,
                 NtmAddressingGradients<T> gradients) {
  __shared__ T scratch[cuda::lanes];
  const int64_t head = blockIdx.x, step = cuda::block, thread = threadIdx.x;
  T* const gated = memory + 5 * head * call.keys;
  T *const shifted = gated + call.keys, *const dweights = shifted + call.keys,
           *const dgated_sum = dweights + call.keys, *const dprevious = dgated_sum + call.keys;
  for (int64_t j = thread; j < call.keys; j += step) dprevious[j] = T(0);
  for (int64_t i = call.queries - 1; i >= 0; --i) {
    const int64_t row = head * call.queries + i, n = call.num_visible(head, i);
    const T *w = out + row * call.keys, *previous = call.previous_weights(head, i, out);
    T* dcontent = gradients.content + row * call.keys;
    for (int64_t j = thread; j < call.keys; j += step) {
      if (j < n)
        dweights[j] = dout[row * call.keys + j] + dprevious[j];
      else
        dcontent[j] = T(0);
      dprevious[j] = T(0);
    }
    if (n == 0 || call.gate == nullptr || previous == nullptr) {
      if (thread == 0 && gradients.gate != nullptr) gradients.gate[row] = T(0);
    }
    if (n == 0) {
      if (thread == 0 && gradients.sharp != nullptr) gradients.sharp[row] = T(0);
      for (int64_t s = thread; s < call.shifts && gradients.shift != nullptr; s += step)
        gradients.shift[row * call.shifts + s] = T(0);
      continue;
    }
    // Recomputes the gated and the shifted weights [n] of this query.
    shift_weights(call, head, i, n, previous, gated, shifted);
    // Sharpening: dweights becomes the gradient of the shifted weights.
    if (call.sharp != nullptr) {
      T mean = 0, dsharp = 0;
      for (int64_t j = thread; j < n; j += step) mean += w[j] * dweights[j];
      mean = cuda::block_sum(mean, scratch);
      for (int64_t j = thread; j < n; j += step) {
        const bool is_positive = shifted[j] > 0;
        const T dlog = w[j] * (dweights[j] - mean);
        dsharp += is_positive ? dlog * std::log(shifted[j]) : T(0);
        dweights[j] = is_positive ? call.sharp[row] * (dlog / shifted[j]) : T(0);
      }
      dsharp = cuda::block_sum(dsharp, scratch);
      if (thread == 0) gradients.sharp[row] = dsharp;
    }
    // Shift: dgated [n], and dshift_s = sum_j dweights_j gated_(j - s).
    const T* dgated = dweights;
    if (call.shift != nullptr) {
      __syncthreads();
      const T* factors = call.shift + row * call.shifts;
      for (int64_t s = 0; s < call.shifts; ++s) {
        T dshift = 0;
        for (int64_t j = thread; j < n; j += step) {
          const int64_t source = (j - (s - call.shifts / 2)) % n;
          dshift += dweights[j] * gated[source < 0 ? source + n : source];
        }
        dshift = cuda::block_sum(dshift, scratch);
        if (thread == 0) gradients.shift[row * call.shifts + s] = dshift;
      }
      for (int64_t j = thread; j < n; j += step)
        dgated_sum[j] = shifted_at(dweights, j, n, factors, call.shifts, /*sign=*/-1);
      dgated = dgated_sum;
    }
    // Gate: dcontent = g dgated, dprevious = (1 - g) dgated.
    const bool has_gate = call.gate != nullptr && previous != nullptr;
    const T g = has_gate ? call.gate[row] : T(1);
    const T* content = call.content + row * call.keys;
    T dgate = 0;
    for (int64_t j = thread; j < n; j += step) {
      if (has_gate) {
        dgate += dgated[j] * (content[j] - previous[j]);
        dprevious[j] = (1 - g) * dgated[j];
      }
      dcontent[j] = g * dgated[j];
    }
    dgate = cuda::block_sum(dgate, scratch);
    if (thread == 0 && has_gate) gradients.gate[row] = dgate;
    __syncthreads();
  }
  for (int64_t j = thread; j < call.keys && gradients.before != nullptr; j += step)
    gradients.before[head * call.keys + j] = dprevious[j];
}

}  // namespace

void NtmAddressing::cuda(const AddressingInputs& x, const AddressingParams& params, const Tensor& out) {
  visit_float("ntm_addressing", x.content.dtype(), [&]<class T>(Type<T>) {
    const NtmAddressingCall<T> call(x, params);
    const Tensor memory = empty_like(x.content, Shape{call.batch * call.heads, 2, call.keys});
    cuda::run(address<T>, cuda::block_per_row(call.batch * call.heads), call, memory.data<T>(),
              out.data<T>());
    Count::add(x.content.size() * (2 * call.shifts + 8));
  });
}

/// Gradients of NtmAddressing: one block per head (b, h), with five rows [Tk] of working memory.
void NtmAddressingBack::cuda(const AddressingInputs& x, const AddressingParams& params, const Tensor& out,
                             const Tensor& dout, const AddressingInputs& dx) {
  visit_float("ntm_addressing", x.content.dtype(), [&]<class T>(Type<T>) {
    const NtmAddressingCall<T> call(x, params);
    const Tensor memory = empty_like(x.content, Shape{call.batch * call.heads, 5, call.keys});
    cuda::run(address_back<T>, cuda::block_per_row(call.batch * call.heads), call,
              static_cast<const T*>(out.data<T>()), static_cast<const T*>(dout.data<T>()), memory.data<T>(),
              NtmAddressingGradients<T>(dx));
    Count::add(x.content.size() * (6 * call.shifts + 20));
  });
}

}  // namespace heed::kernel
