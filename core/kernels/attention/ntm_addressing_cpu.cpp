// NtmAddressing on the CPU: the queries of a head one after the other, heads in parallel.
#include "heed/core/kernels/attention/ntm_addressing.h"

#include <algorithm>
#include <cmath>

#include "heed/core/kernels/attention/head_rows.h"
#include "heed/core/kernels/attention/ntm_addressing_call.h"
#include "heed/core/kernels/simd/scratch.h"
#include "heed/core/kernels/simd/simd.h"
#include "heed/core/operation_count.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed::kernel {
namespace {

template <class T>
int64_t heads_per_task(const NtmAddressingCall<T>& call) {
  return flops_per_task / (call.queries * call.keys * (2 * call.shifts + 20) + 1) + 1;
}

/// sum[j] += factor x[(j - shift) mod n] for j < n.
template <class T>
void add_shifted(const T* x, int64_t shift, int64_t n, T factor, T* sum) {
  const int64_t rotation = ((shift % n) + n) % n;
  for (int64_t j = rotation; j < n; ++j) sum[j] += factor * x[j - rotation];
  for (int64_t j = 0; j < rotation; ++j) sum[j] += factor * x[j - rotation + n];
}

/// Sum over j < n of y[j] x[(j - shift) mod n].
template <class T>
T dot_shifted(const T* x, int64_t shift, int64_t n, const T* y) {
  const int64_t rotation = ((shift % n) + n) % n;
  T sum = 0;
  for (int64_t j = rotation; j < n; ++j) sum += y[j] * x[j - rotation];
  for (int64_t j = 0; j < rotation; ++j) sum += y[j] * x[j - rotation + n];
  return sum;
}

/// The weights of one query before sharpening: gated [n] = w_g and shifted [n] = w~ (see NtmAddressing).
template <class T>
struct ShiftedWeights {
  T *gated, *shifted;

  ShiftedWeights(BumpAllocator<T>& arena, int64_t keys)
      : gated(arena.take(keys)), shifted(arena.take(keys)) {}

  /// Computes the rows of query i of a head, which sees n keys; `previous` is w_(i-1) or null.
  void compute(const NtmAddressingCall<T>& call, int64_t head, int64_t i, int64_t n, const T* previous) {
    const int64_t row = head * call.queries + i;
    const T* content = call.content + row * call.keys;
    std::copy_n(content, n, gated);
    if (call.gate != nullptr && previous != nullptr) {
      const T g = call.gate[row];
      for (int64_t j = 0; j < n; ++j) gated[j] = g * content[j] + (1 - g) * previous[j];
    }
    if (call.shift == nullptr) {
      std::copy_n(gated, n, shifted);
      return;
    }
    std::fill_n(shifted, n, T(0));
    for (int64_t s = 0; s < call.shifts; ++s)
      add_shifted(gated, s - call.shifts / 2, n, call.shift[row * call.shifts + s], shifted);
  }
};

/// out[b, h, i, :] = w_i: content and w_(i-1) mixed by the gate, shifted, then sharpened (Graves et al. 2014,
/// equations 7 to 9). One task is some heads (b, h); the queries of a head follow one another.
template <class T>
void forward(const NtmAddressingCall<T>& call, T* out) {
  Scratch scratch(static_cast<int64_t>(sizeof(T)) * 2 * BumpAllocator<T>::rounded(call.keys));
  parallel_rows(call.batch * call.heads, heads_per_task(call), [&](int64_t begin, int64_t end) {
    const Scratch::Part part(scratch);
    BumpAllocator<T> arena(part.template data<T>());
    ShiftedWeights<T> weights(arena, call.keys);
    for (int64_t head = begin; head < end; ++head) {
      for (int64_t i = 0; i < call.queries; ++i) {
        const int64_t row = head * call.queries + i, n = call.num_visible(head, i);
        T* weights_row = out + row * call.keys;
        std::fill_n(weights_row, call.keys, T(0));
        if (n == 0) continue;
        weights.compute(call, head, i, n, call.previous_weights(head, i, out));
        const T max_weight = *std::max_element(weights.shifted, weights.shifted + n);
        if (call.sharp == nullptr || !(max_weight > 0)) {
          std::copy_n(weights.shifted, n, weights_row);
          continue;
        }
        T total = 0;
        for (int64_t j = 0; j < n; ++j)
          total += weights_row[j] = std::pow(weights.shifted[j] / max_weight, call.sharp[row]);
        for (int64_t j = 0; j < n; ++j) weights_row[j] /= total;
      }
    }
  });
  Count::add(call.batch * call.heads * call.queries * call.keys * (2 * call.shifts + 8));
}

/// Gradients of content, before, gate, shift and sharp from dout [B, H, Tq, Tk]. One task is some heads; each
/// goes from its last query to its first and passes the gradient of w_(i-1) on in dprevious [Tk].
template <class T>
void backward(const NtmAddressingCall<T>& call, const T* out, const T* dout,
              const NtmAddressingGradients<T>& gradients) {
  Scratch scratch(static_cast<int64_t>(sizeof(T)) * 5 * BumpAllocator<T>::rounded(call.keys));
  parallel_rows(call.batch * call.heads, heads_per_task(call) / 2 + 1, [&](int64_t begin, int64_t end) {
    const Scratch::Part part(scratch);
    BumpAllocator<T> arena(part.template data<T>());
    ShiftedWeights<T> weights(arena, call.keys);
    T *dweights = arena.take(call.keys), *dgated_sum = arena.take(call.keys),
      *dprevious = arena.take(call.keys);
    for (int64_t head = begin; head < end; ++head) {
      std::fill_n(dprevious, call.keys, T(0));
      for (int64_t i = call.queries - 1; i >= 0; --i) {
        const int64_t row = head * call.queries + i, n = call.num_visible(head, i);
        const T *w = out + row * call.keys, *previous = call.previous_weights(head, i, out);
        T* dcontent = gradients.content + row * call.keys;
        std::fill_n(dcontent, call.keys, T(0));
        if (gradients.gate != nullptr) gradients.gate[row] = 0;
        if (gradients.sharp != nullptr) gradients.sharp[row] = 0;
        if (gradients.shift != nullptr) std::fill_n(gradients.shift + row * call.shifts, call.shifts, T(0));
        for (int64_t j = 0; j < n; ++j) dweights[j] = dout[row * call.keys + j] + dprevious[j];
        std::fill_n(dprevious, call.keys, T(0));
        if (n == 0) continue;
        // Recomputes the gated and the shifted weights [n] of this query.
        weights.compute(call, head, i, n, previous);
        // Sharpening: dweights becomes the gradient of the shifted weights.
        if (call.sharp != nullptr) {
          T mean = 0, dsharp = 0;
          for (int64_t j = 0; j < n; ++j) mean += w[j] * dweights[j];
          for (int64_t j = 0; j < n; ++j) {
            const bool is_positive = weights.shifted[j] > 0;
            const T dlog = w[j] * (dweights[j] - mean);
            dsharp += is_positive ? dlog * std::log(weights.shifted[j]) : T(0);
            dweights[j] = is_positive ? call.sharp[row] * (dlog / weights.shifted[j]) : T(0);
          }
          gradients.sharp[row] = dsharp;
        }
        // Shift: dgated [n], and dshift_s = sum_j dweights_j gated_(j - s).
        const T* dgated = dweights;
        if (call.shift != nullptr) {
          std::fill_n(dgated_sum, n, T(0));
          for (int64_t s = 0; s < call.shifts; ++s) {
            const int64_t shift = s - call.shifts / 2;
            gradients.shift[row * call.shifts + s] = dot_shifted(weights.gated, shift, n, dweights);
            add_shifted(dweights, -shift, n, call.shift[row * call.shifts + s], dgated_sum);
          }
          dgated = dgated_sum;
        }
        // Gate: dcontent = g dgated, dprevious = (1 - g) dgated.
        if (call.gate == nullptr || previous == nullptr) {
          std::copy_n(dgated, n, dcontent);
          continue;
        }
        const T g = call.gate[row];
        const T* content = call.content + row * call.keys;
        T dgate = 0;
        for (int64_t j = 0; j < n; ++j) {
          dgate += dgated[j] * (content[j] - previous[j]);
          dcontent[j] = g * dgated[j];
          dprevious[j] = (1 - g) * dgated[j];
        }
        gradients.gate[row] = dgate;
      }
      if (gradients.before != nullptr) std::copy_n(dprevious, call.keys, gradients.before + head * call.keys);
    }
  });
  Count::add(call.batch * call.heads * call.queries * call.keys * (6 * call.shifts + 20));
}

}  // namespace

template <>
void NtmAddressing::cpu<target_isa>(const AddressingInputs& x, const AddressingParams& params,
                                    const Tensor& out) {
  visit_float("ntm_addressing", x.content.dtype(),
              [&]<class T>(Type<T>) { forward(NtmAddressingCall<T>(x, params), out.data<T>()); });
}

template <>
void NtmAddressingBack::cpu<target_isa>(const AddressingInputs& x, const AddressingParams& params,
                                        const Tensor& out, const Tensor& dout, const AddressingInputs& dx) {
  visit_float("ntm_addressing", x.content.dtype(), [&]<class T>(Type<T>) {
    backward<T>(NtmAddressingCall<T>(x, params), out.data<T>(), dout.data<T>(),
                NtmAddressingGradients<T>(dx));
  });
}

}  // namespace heed::kernel
