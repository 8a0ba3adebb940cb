// Addressing on a GPU: a block takes a head, query after query, as each begins where the one before ended.
#include "core/kernels/addressing.h"

#include <algorithm>
#include <cmath>

#include "core/count.h"
#include "core/cuda/head_rows.h"
#include "core/cuda/team.h"

namespace heed::kernel {
namespace {

template <class T>
struct Call {
  int64_t batch, heads, queries, keys, shifts, first_query;
  const T *content, *before, *gate, *shift, *sharp;
  const int32_t* lengths;
  bool causal;

  Call(const Tensor& c, const Tensor& w, const Tensor& g, const Tensor& s, const Tensor& p,
       const AddressingTerms& t)
      : batch(c.extent(0)),
        heads(c.extent(1)),
        queries(c.extent(2)),
        keys(c.extent(3)),
        shifts(s ? s.extent(3) : 1),
        first_query(t.first_query),
        content(cuda::pointer<T>(c)),
        before(cuda::pointer<T>(w)),
        gate(cuda::pointer<T>(g)),
        shift(cuda::pointer<T>(s)),
        sharp(cuda::pointer<T>(p)),
        lengths(cuda::pointer<int32_t>(t.key_lengths)),
        causal(t.causal) {}

  __device__ int64_t open(int64_t head, int64_t i) const {
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
__device__ T turned_at(const T* from, int64_t j, int64_t n, const T* factors, int64_t shifts, int sign) {
  T sum = 0;
  for (int64_t s = 0; s < shifts; ++s) {
    const int64_t at = (j - sign * (s - shifts / 2)) % n;
    sum += factors[s] * from[at < 0 ? at + n : at];
  }
  return sum;
}

/// What one query makes of its content on the way to its weights; `gated` and `turned` are working memory.
template <class T>
__device__ void make_row(const Call<T>& call, int64_t head, int64_t i, int64_t n, const T* last, T* gated,
                         T* turned) {
  const int64_t row = head * call.queries + i;
  const T* content = call.content + row * call.keys;
  const bool mixed = call.gate != nullptr && last != nullptr;
  const T g = mixed ? call.gate[row] : T(1);
  for (int64_t j = threadIdx.x; j < n; j += cuda::block)
    gated[j] = mixed ? g * content[j] + (1 - g) * last[j] : content[j];
  __syncthreads();
  for (int64_t j = threadIdx.x; j < n; j += cuda::block)
    turned[j] = call.shift == nullptr
                    ? gated[j]
                    : turned_at(gated, j, n, call.shift + row * call.shifts, call.shifts, 1);
  __syncthreads();
}

/// memory [heads, 2, keys]
template <class T>
__global__ void __launch_bounds__(cuda::block) address(Call<T> call, T* memory, T* out) {
  __shared__ T scratch[cuda::lanes];
  const int64_t head = blockIdx.x;
  T *const gated = memory + 2 * head * call.keys, *const turned = gated + call.keys;
  for (int64_t i = 0; i < call.queries; ++i) {
    const int64_t row = head * call.queries + i, n = call.open(head, i);
    T* to = out + row * call.keys;
    for (int64_t j = n + threadIdx.x; j < call.keys; j += cuda::block) to[j] = T(0);
    if (n == 0) continue;
    make_row(call, head, i, n, call.previous(head, i, out), gated, turned);
    T most = cuda::lowest<T>(), total = 0;
    for (int64_t j = threadIdx.x; j < n; j += cuda::block) most = std::max(most, turned[j]);
    most = cuda::block_max(most, cuda::lowest<T>(), scratch);
    const bool sharpened = call.sharp != nullptr && most > 0;
    for (int64_t j = threadIdx.x; j < n; j += cuda::block) {
      to[j] = sharpened ? std::pow(turned[j] / most, call.sharp[row]) : turned[j];
      total += to[j];
    }
    total = cuda::block_sum(total, scratch);
    for (int64_t j = threadIdx.x; j < n && sharpened; j += cuda::block) to[j] /= total;
    __syncthreads();
  }
}

/// Where the gradients go; null where they are not wanted.
template <class T>
struct Slopes {
  T *content, *before, *gate, *shift, *sharp;
};

/// memory [heads, 5, keys]. A thread keeps its own keys from query to query.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    address_back(Call<T> call, const T* out, const T* dout, T* memory, Slopes<T> to) {
  __shared__ T scratch[cuda::lanes];
  const int64_t head = blockIdx.x, step = cuda::block, own = threadIdx.x;
  T* const gated = memory + 5 * head * call.keys;
  T *const turned = gated + call.keys, *const slope = turned + call.keys, *const inner = slope + call.keys,
           *const carried = inner + call.keys;  // from later queries to the weights of this one
  for (int64_t j = own; j < call.keys; j += step) carried[j] = T(0);
  for (int64_t i = call.queries - 1; i >= 0; --i) {
    const int64_t row = head * call.queries + i, n = call.open(head, i);
    const T *y = out + row * call.keys, *last = call.previous(head, i, out);
    T* dcontent = to.content + row * call.keys;
    for (int64_t j = own; j < call.keys; j += step) {
      if (j < n)
        slope[j] = dout[row * call.keys + j] + carried[j];
      else
        dcontent[j] = T(0);
      carried[j] = T(0);
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
    make_row(call, head, i, n, last, gated, turned);
    if (call.sharp != nullptr) {
      T mean = 0, bent = 0;
      for (int64_t j = own; j < n; j += step) mean += y[j] * slope[j];
      mean = cuda::block_sum(mean, scratch);
      for (int64_t j = own; j < n; j += step) {
        const bool some = turned[j] > 0;
        const T dlog = y[j] * (slope[j] - mean);
        bent += some ? dlog * std::log(turned[j]) : T(0);
        slope[j] = some ? call.sharp[row] * (dlog / turned[j]) : T(0);
      }
      bent = cuda::block_sum(bent, scratch);
      if (own == 0) to.sharp[row] = bent;
    }
    const T* dgated = slope;
    if (call.shift != nullptr) {
      __syncthreads();
      const T* factors = call.shift + row * call.shifts;
      for (int64_t s = 0; s < call.shifts; ++s) {
        T along = 0;
        for (int64_t j = own; j < n; j += step) {
          const int64_t at = (j - (s - call.shifts / 2)) % n;
          along += slope[j] * gated[at < 0 ? at + n : at];
        }
        along = cuda::block_sum(along, scratch);
        if (own == 0) to.shift[row * call.shifts + s] = along;
      }
      for (int64_t j = own; j < n; j += step) inner[j] = turned_at(slope, j, n, factors, call.shifts, -1);
      dgated = inner;
    }
    const bool mixed = call.gate != nullptr && last != nullptr;
    const T g = mixed ? call.gate[row] : T(1);
    const T* content = call.content + row * call.keys;
    T pull = 0;
    for (int64_t j = own; j < n; j += step) {
      if (mixed) {
        pull += dgated[j] * (content[j] - last[j]);
        carried[j] = (1 - g) * dgated[j];
      }
      dcontent[j] = g * dgated[j];
    }
    pull = cuda::block_sum(pull, scratch);
    if (own == 0 && mixed) to.gate[row] = pull;
    __syncthreads();
  }
  for (int64_t j = own; j < call.keys && to.before != nullptr; j += step)
    to.before[head * call.keys + j] = carried[j];
}

}  // namespace

void Addressing::cuda(const Tensor& content, const Tensor& before, const Tensor& gate, const Tensor& shift,
                      const Tensor& sharp, const AddressingTerms& terms, const Tensor& out) {
  visit_float("addressing", content.dtype(), [&]<class T>(Type<T>) {
    const Call<T> call(content, before, gate, shift, sharp, terms);
    const Tensor memory = like(content, Shape{call.batch * call.heads, 2, call.keys});
    cuda::run(address<T>, cuda::blocks(call.batch * call.heads), call, memory.data<T>(), out.data<T>());
    Count::add(content.size() * (2 * call.shifts + 8));
  });
}

void AddressingBack::cuda(const Tensor& content, const Tensor& before, const Tensor& gate,
                          const Tensor& shift, const Tensor& sharp, const AddressingTerms& terms,
                          const Tensor& out, const Tensor& dout, const Tensor& dcontent,
                          const Tensor& dbefore, const Tensor& dgate, const Tensor& dshift,
                          const Tensor& dsharp) {
  visit_float("addressing", content.dtype(), [&]<class T>(Type<T>) {
    const Call<T> call(content, before, gate, shift, sharp, terms);
    const Tensor memory = like(content, Shape{call.batch * call.heads, 5, call.keys});
    const Slopes<T> slopes{cuda::pointer<T>(dcontent), cuda::pointer<T>(dbefore), cuda::pointer<T>(dgate),
                           cuda::pointer<T>(dshift), cuda::pointer<T>(dsharp)};
    cuda::run(address_back<T>, cuda::blocks(call.batch * call.heads), call,
              static_cast<const T*>(out.data<T>()), static_cast<const T*>(dout.data<T>()), memory.data<T>(),
              slopes);
    Count::add(content.size() * (6 * call.shifts + 20));
  });
}

}  // namespace heed::kernel
