// NtmAddressing on the CPU: query after query, each head by itself.
#include "heed/core/kernels/attention/ntm_addressing.h"

#include <algorithm>
#include <cmath>

#include "heed/core/kernels/attention/head_rows.h"
#include "heed/core/kernels/simd/scratch.h"
#include "heed/core/kernels/simd/simd.h"
#include "heed/core/operation_count.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed::kernel {
namespace {

template <class T>
const T* numbers(const Tensor& x) {
  return x ? x.data<T>() : nullptr;
}

template <class T>
struct Call {
  int64_t batch, heads, queries, keys, shifts;
  const T *content, *before, *gate, *shift, *sharp;
  const AddressingParams& params;
  const int32_t* lengths;

  Call(const AddressingInputs& x, const AddressingParams& t)
      : batch(x.content.extent(0)),
        heads(x.content.extent(1)),
        queries(x.content.extent(2)),
        keys(x.content.extent(3)),
        shifts(x.shift ? x.shift.extent(3) : 1),
        content(numbers<T>(x.content)),
        before(numbers<T>(x.before)),
        gate(numbers<T>(x.gate)),
        shift(numbers<T>(x.shift)),
        sharp(numbers<T>(x.sharp)),
        params(t),
        lengths(t.key_lengths ? t.key_lengths.data<int32_t>() : nullptr) {}

  int64_t num_visible(int64_t head, int64_t i) const {
    int64_t n = keys;
    if (lengths != nullptr) n = std::clamp<int64_t>(lengths[head / heads], 0, n);
    return params.causal ? std::clamp<int64_t>(params.first_query + i + 1, 0, n) : n;
  }
  int64_t grain() const { return flops_per_task / (queries * keys * (2 * shifts + 20) + 1) + 1; }
  /// The weights before query i; null where there are none.
  const T* previous(int64_t head, int64_t i, const T* out) const {
    if (i > 0) return out + (head * queries + i - 1) * keys;
    return before == nullptr ? nullptr : before + head * keys;
  }
};

/// to[j] += factor from[j - s], places going round among n.
template <class T>
void add_shifted(const T* from, int64_t s, int64_t n, T factor, T* to) {
  const int64_t cut = ((s % n) + n) % n;  // from[0] goes to to[cut]
  for (int64_t j = cut; j < n; ++j) to[j] += factor * from[j - cut];
  for (int64_t j = 0; j < cut; ++j) to[j] += factor * from[j - cut + n];
}

template <class T>
T dot_shifted(const T* from, int64_t s, int64_t n, const T* with) {
  const int64_t cut = ((s % n) + n) % n;
  T total = 0;
  for (int64_t j = cut; j < n; ++j) total += with[j] * from[j - cut];
  for (int64_t j = 0; j < cut; ++j) total += with[j] * from[j - cut + n];
  return total;
}

/// gated [n] = g content + (1 - g) (weights of the query before), and shifted [n] = gated, shifted: the steps
/// of one query before it sharpens.
template <class T>
struct Row {
  T *gated, *shifted;

  void make(const Call<T>& call, int64_t head, int64_t i, int64_t n, const T* last) {
    const int64_t row = head * call.queries + i;
    const T* content = call.content + row * call.keys;
    std::copy_n(content, n, gated);
    if (call.gate != nullptr && last != nullptr) {
      const T g = call.gate[row];
      for (int64_t j = 0; j < n; ++j) gated[j] = g * content[j] + (1 - g) * last[j];
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
void forward(const Call<T>& call, T* out) {
  Scratch scratch(static_cast<int64_t>(sizeof(T)) * 2 * BumpAllocator<T>::rounded(call.keys));
  parallel_rows(call.batch * call.heads, call.grain(), [&](int64_t begin, int64_t end) {
    const Scratch::Part part(scratch);
    BumpAllocator<T> arena(part.template data<T>());
    T* gated = arena.take(call.keys);
    Row<T> work{gated, arena.take(call.keys)};
    for (int64_t head = begin; head < end; ++head) {
      for (int64_t i = 0; i < call.queries; ++i) {
        const int64_t row = head * call.queries + i, n = call.num_visible(head, i);
        T* to = out + row * call.keys;
        std::fill_n(to, call.keys, T(0));
        if (n == 0) continue;
        work.make(call, head, i, n, call.previous(head, i, out));
        const T max_weight = *std::max_element(work.shifted, work.shifted + n);
        if (call.sharp == nullptr || !(max_weight > 0)) {
          std::copy_n(work.shifted, n, to);
          continue;
        }
        T total = 0;
        for (int64_t j = 0; j < n; ++j)
          total += to[j] = std::pow(work.shifted[j] / max_weight, call.sharp[row]);
        for (int64_t j = 0; j < n; ++j) to[j] /= total;
      }
    }
  });
  Count::add(call.batch * call.heads * call.queries * call.keys * (2 * call.shifts + 8));
}

/// Where the gradients go; null where they are not wanted.
template <class T>
struct Gradients {
  T *content, *before, *gate, *shift, *sharp;
};

/// Gradients of content, before, gate, shift and sharp from dout [B, H, Tq, Tk]. One task is some heads; each
/// goes from its last query to its first and hands the gradient of w_(i-1) on in dprevious [Tk].
template <class T>
void backward(const Call<T>& call, const T* out, const T* dout, const Gradients<T>& to) {
  Scratch scratch(static_cast<int64_t>(sizeof(T)) * 5 * BumpAllocator<T>::rounded(call.keys));
  parallel_rows(call.batch * call.heads, call.grain() / 2 + 1, [&](int64_t begin, int64_t end) {
    const Scratch::Part part(scratch);
    BumpAllocator<T> arena(part.template data<T>());
    T* gated = arena.take(call.keys);
    Row<T> work{gated, arena.take(call.keys)};
    T *dweights = arena.take(call.keys), *inner = arena.take(call.keys), *dprevious = arena.take(call.keys);
    for (int64_t head = begin; head < end; ++head) {
      std::fill_n(dprevious, call.keys, T(0));  // from later queries to the weights of this one
      for (int64_t i = call.queries - 1; i >= 0; --i) {
        const int64_t row = head * call.queries + i, n = call.num_visible(head, i);
        const T *y = out + row * call.keys, *last = call.previous(head, i, out);
        T* dcontent = to.content + row * call.keys;
        std::fill_n(dcontent, call.keys, T(0));
        if (to.gate != nullptr) to.gate[row] = 0;
        if (to.sharp != nullptr) to.sharp[row] = 0;
        if (to.shift != nullptr) std::fill_n(to.shift + row * call.shifts, call.shifts, T(0));
        for (int64_t j = 0; j < n; ++j) dweights[j] = dout[row * call.keys + j] + dprevious[j];
        std::fill_n(dprevious, call.keys, T(0));
        if (n == 0) continue;
        // The gated and the shifted weights of this query again, [n] each.
        work.make(call, head, i, n, last);
        // Sharpening: dweights becomes the gradient of the shifted weights.
        if (call.sharp != nullptr) {
          T mean = 0, dsharp = 0;
          for (int64_t j = 0; j < n; ++j) mean += y[j] * dweights[j];
          for (int64_t j = 0; j < n; ++j) {
            const bool is_positive = work.shifted[j] > 0;
            const T dlog = y[j] * (dweights[j] - mean);
            dsharp += is_positive ? dlog * std::log(work.shifted[j]) : T(0);
            dweights[j] = is_positive ? call.sharp[row] * (dlog / work.shifted[j]) : T(0);
          }
          to.sharp[row] = dsharp;
        }
        // Shift: dgated [n], and dshift_s = sum_j dweights_j gated_(j - s).
        const T* dgated = dweights;
        if (call.shift != nullptr) {
          std::fill_n(inner, n, T(0));
          for (int64_t s = 0; s < call.shifts; ++s) {
            const int64_t by = s - call.shifts / 2;
            to.shift[row * call.shifts + s] = dot_shifted(work.gated, by, n, dweights);
            add_shifted(dweights, -by, n, call.shift[row * call.shifts + s], inner);
          }
          dgated = inner;
        }
        // Gate: dcontent = g dgated, and (1 - g) dgated goes to the weights of the query before.
        if (call.gate == nullptr || last == nullptr) {
          std::copy_n(dgated, n, dcontent);
          continue;
        }
        const T g = call.gate[row];
        const T* content = call.content + row * call.keys;
        T dgate = 0;
        for (int64_t j = 0; j < n; ++j) {
          dgate += dgated[j] * (content[j] - last[j]);
          dcontent[j] = g * dgated[j];
          dprevious[j] = (1 - g) * dgated[j];
        }
        to.gate[row] = dgate;
      }
      if (to.before != nullptr) std::copy_n(dprevious, call.keys, to.before + head * call.keys);
    }
  });
  Count::add(call.batch * call.heads * call.queries * call.keys * (6 * call.shifts + 20));
}

template <class T>
T* target(const Tensor& x) {
  return x ? x.data<T>() : nullptr;
}

}  // namespace

template <>
void NtmAddressing::cpu<here>(const AddressingInputs& x, const AddressingParams& params, const Tensor& out) {
  visit_float("addressing", x.content.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    forward(Call<T>(x, params), out.data<T>());
  });
}

template <>
void NtmAddressingBack::cpu<here>(const AddressingInputs& x, const AddressingParams& params,
                                  const Tensor& out, const Tensor& dout, const AddressingInputs& dx) {
  visit_float("addressing", x.content.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    backward(Call<T>(x, params), out.data<T>(), dout.data<T>(),
             Gradients<T>{target<T>(dx.content), target<T>(dx.before), target<T>(dx.gate),
                          target<T>(dx.shift), target<T>(dx.sharp)});
  });
}

}  // namespace heed::kernel
