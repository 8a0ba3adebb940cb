// Extents and pointers of a call of NTM addressing, for the CPU and for devices.
#pragma once

#include <algorithm>

#include "heed/core/host_device.h"
#include "heed/core/kernels/attention/head_view.h"
#include "heed/core/kernels/attention/ntm_addressing.h"

namespace heed::kernel {

/// Extents and inputs of a call; null for empty inputs. queries = Tq, keys = Tk, shifts = 2 r + 1.
template <class T>
struct NtmAddressingCall {
  int64_t batch, heads, queries, keys, shifts, first_query;
  const T *content, *before, *gate, *shift, *sharp;
  const int32_t* lengths;
  bool causal;

  NtmAddressingCall(const AddressingInputs& x, const AddressingParams& params)
      : batch(x.content.extent(0)),
        heads(x.content.extent(1)),
        queries(x.content.extent(2)),
        keys(x.content.extent(3)),
        shifts(x.shift ? x.shift.extent(3) : 1),
        first_query(params.first_query),
        content(data_or_null<T>(x.content)),
        before(data_or_null<T>(x.before)),
        gate(data_or_null<T>(x.gate)),
        shift(data_or_null<T>(x.shift)),
        sharp(data_or_null<T>(x.sharp)),
        lengths(data_or_null<int32_t>(params.key_lengths)),
        causal(params.causal) {}

  /// Number of keys that query i of a head (b H + h) sees, always the first ones.
  HEED_BOTH int64_t num_visible(int64_t head, int64_t i) const {
    int64_t n = keys;
    if (lengths != nullptr) n = std::clamp<int64_t>(lengths[head / heads], 0, n);
    return causal ? std::clamp<int64_t>(first_query + i + 1, 0, n) : n;
  }
  /// w_(i-1), the weights [Tk] of the query before query i; null where there is none.
  HEED_BOTH const T* previous_weights(int64_t head, int64_t i, const T* out) const {
    if (i > 0) return out + (head * queries + i - 1) * keys;
    return before == nullptr ? nullptr : before + head * keys;
  }
};

/// Gradients of AddressingInputs; null where they are not wanted.
template <class T>
struct NtmAddressingGradients {
  T *content, *before, *gate, *shift, *sharp;

  explicit NtmAddressingGradients(const AddressingInputs& dx)
      : content(data_or_null<T>(dx.content)),
        before(data_or_null<T>(dx.before)),
        gate(data_or_null<T>(dx.gate)),
        shift(data_or_null<T>(dx.shift)),
        sharp(data_or_null<T>(dx.sharp)) {}
};

}  // namespace heed::kernel
