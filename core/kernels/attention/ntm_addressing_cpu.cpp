// Addressing on the CPU: query after query, each head by itself.
#include "core/kernels/addressing.h"
#include "core/kernels/here.h"

#include <algorithm>
#include <cmath>

#include "core/count.h"
#include "core/kernels/heads.h"
#include "core/kernels/scratch.h"
#include "core/parallel.h"

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
  const AddressingTerms& terms;
  const int32_t* lengths;

  Call(const Tensor& c, const Tensor& w, const Tensor& g, const Tensor& s, const Tensor& p,
       const AddressingTerms& t)
      : batch(c.extent(0)),
        heads(c.extent(1)),
        queries(c.extent(2)),
        keys(c.extent(3)),
        shifts(s ? s.extent(3) : 1),
        content(numbers<T>(c)),
        before(numbers<T>(w)),
        gate(numbers<T>(g)),
        shift(numbers<T>(s)),
        sharp(numbers<T>(p)),
        terms(t),
        lengths(t.key_lengths ? t.key_lengths.data<int32_t>() : nullptr) {}

  int64_t open(int64_t head, int64_t i) const {
    int64_t n = keys;
    if (lengths != nullptr) n = std::clamp<int64_t>(lengths[head / heads], 0, n);
    return terms.causal ? std::clamp<int64_t>(terms.first_query + i + 1, 0, n) : n;
  }
  int64_t grain() const { return piece_flops / (queries * keys * (2 * shifts + 20) + 1) + 1; }
  /// The weights before query i; null where there are none.
  const T* previous(int64_t head, int64_t i, const T* out) const {
    if (i > 0) return out + (head * queries + i - 1) * keys;
    return before == nullptr ? nullptr : before + head * keys;
  }
};

/// to[j] += factor from[j - s], places going round among n.
template <class T>
void add_turned(const T* from, int64_t s, int64_t n, T factor, T* to) {
  const int64_t cut = ((s % n) + n) % n;  // from[0] goes to to[cut]
  for (int64_t j = cut; j < n; ++j) to[j] += factor * from[j - cut];
  for (int64_t j = 0; j < cut; ++j) to[j] += factor * from[j - cut + n];
}

template <class T>
T dot_turned(const T* from, int64_t s, int64_t n, const T* with) {
  const int64_t cut = ((s % n) + n) % n;
  T total = 0;
  for (int64_t j = cut; j < n; ++j) total += with[j] * from[j - cut];
  for (int64_t j = 0; j < cut; ++j) total += with[j] * from[j - cut + n];
  return total;
}

/// What one query makes of its content on the way to its weights.
template <class T>
struct Row {
  T *gated, *turned;

  void make(const Call<T>& call, int64_t head, int64_t i, int64_t n, const T* last) {
    const int64_t row = head * call.queries + i;
    const T* content = call.content + row * call.keys;
    std::copy_n(content, n, gated);
    if (call.gate != nullptr && last != nullptr) {
      const T g = call.gate[row];
      for (int64_t j = 0; j < n; ++j) gated[j] = g * content[j] + (1 - g) * last[j];
    }
    if (call.shift == nullptr) {
      std::copy_n(gated, n, turned);
      return;
    }
    std::fill_n(turned, n, T(0));
    for (int64_t s = 0; s < call.shifts; ++s)
      add_turned(gated, s - call.shifts / 2, n, call.shift[row * call.shifts + s], turned);
  }
};

template <class T>
void forward(const Call<T>& call, T* out) {
  Scratch scratch(static_cast<int64_t>(sizeof(T)) * 2 * Carve<T>::rounded(call.keys));
  parallel_rows(call.batch * call.heads, call.grain(), [&](int64_t begin, int64_t end) {
    const Scratch::Part part(scratch);
    Carve<T> carve(part.template data<T>());
    T* gated = carve.take(call.keys);
    Row<T> work{gated, carve.take(call.keys)};
    for (int64_t head = begin; head < end; ++head) {
      for (int64_t i = 0; i < call.queries; ++i) {
        const int64_t row = head * call.queries + i, n = call.open(head, i);
        T* to = out + row * call.keys;
        std::fill_n(to, call.keys, T(0));
        if (n == 0) continue;
        work.make(call, head, i, n, call.previous(head, i, out));
        const T most = *std::max_element(work.turned, work.turned + n);
        if (call.sharp == nullptr || !(most > 0)) {
          std::copy_n(work.turned, n, to);
          continue;
        }
        T total = 0;
        for (int64_t j = 0; j < n; ++j) total += to[j] = std::pow(work.turned[j] / most, call.sharp[row]);
        for (int64_t j = 0; j < n; ++j) to[j] /= total;
      }
    }
  });
  Count::add(call.batch * call.heads * call.queries * call.keys * (2 * call.shifts + 8));
}

/// Where the gradients go; null where they are not wanted.
template <class T>
struct Slopes {
  T *content, *before, *gate, *shift, *sharp;
};

template <class T>
void backward(const Call<T>& call, const T* out, const T* dout, const Slopes<T>& to) {
  Scratch scratch(static_cast<int64_t>(sizeof(T)) * 5 * Carve<T>::rounded(call.keys));
  parallel_rows(call.batch * call.heads, call.grain() / 2 + 1, [&](int64_t begin, int64_t end) {
    const Scratch::Part part(scratch);
    Carve<T> carve(part.template data<T>());
    T* gated = carve.take(call.keys);
    Row<T> work{gated, carve.take(call.keys)};
    T *slope = carve.take(call.keys), *inner = carve.take(call.keys), *carried = carve.take(call.keys);
    for (int64_t head = begin; head < end; ++head) {
      std::fill_n(carried, call.keys, T(0));  // from later queries to the weights of this one
      for (int64_t i = call.queries - 1; i >= 0; --i) {
        const int64_t row = head * call.queries + i, n = call.open(head, i);
        const T *y = out + row * call.keys, *last = call.previous(head, i, out);
        T* dcontent = to.content + row * call.keys;
        std::fill_n(dcontent, call.keys, T(0));
        if (to.gate != nullptr) to.gate[row] = 0;
        if (to.sharp != nullptr) to.sharp[row] = 0;
        if (to.shift != nullptr) std::fill_n(to.shift + row * call.shifts, call.shifts, T(0));
        for (int64_t j = 0; j < n; ++j) slope[j] = dout[row * call.keys + j] + carried[j];
        std::fill_n(carried, call.keys, T(0));
        if (n == 0) continue;
        work.make(call, head, i, n, last);
        if (call.sharp != nullptr) {
          T mean = 0, bent = 0;
          for (int64_t j = 0; j < n; ++j) mean += y[j] * slope[j];
          for (int64_t j = 0; j < n; ++j) {
            const bool some = work.turned[j] > 0;
            const T dlog = y[j] * (slope[j] - mean);
            bent += some ? dlog * std::log(work.turned[j]) : T(0);
            slope[j] = some ? call.sharp[row] * (dlog / work.turned[j]) : T(0);
          }
          to.sharp[row] = bent;
        }
        const T* dgated = slope;
        if (call.shift != nullptr) {
          std::fill_n(inner, n, T(0));
          for (int64_t s = 0; s < call.shifts; ++s) {
            const int64_t by = s - call.shifts / 2;
            to.shift[row * call.shifts + s] = dot_turned(work.gated, by, n, slope);
            add_turned(slope, -by, n, call.shift[row * call.shifts + s], inner);
          }
          dgated = inner;
        }
        if (call.gate == nullptr || last == nullptr) {
          std::copy_n(dgated, n, dcontent);
          continue;
        }
        const T g = call.gate[row];
        const T* content = call.content + row * call.keys;
        T pull = 0;
        for (int64_t j = 0; j < n; ++j) {
          pull += dgated[j] * (content[j] - last[j]);
          dcontent[j] = g * dgated[j];
          carried[j] = (1 - g) * dgated[j];
        }
        to.gate[row] = pull;
      }
      if (to.before != nullptr) std::copy_n(carried, call.keys, to.before + head * call.keys);
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
void Addressing::cpu<here>(const Tensor& content, const Tensor& before, const Tensor& gate,
                           const Tensor& shift, const Tensor& sharp, const AddressingTerms& terms,
                           const Tensor& out) {
  visit_float("addressing", content.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    forward(Call<T>(content, before, gate, shift, sharp, terms), out.data<T>());
  });
}

template <>
void AddressingBack::cpu<here>(const Tensor& content, const Tensor& before, const Tensor& gate,
                               const Tensor& shift, const Tensor& sharp, const AddressingTerms& terms,
                               const Tensor& out, const Tensor& dout, const Tensor& dcontent,
                               const Tensor& dbefore, const Tensor& dgate, const Tensor& dshift,
                               const Tensor& dsharp) {
  visit_float("addressing", content.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    backward(Call<T>(content, before, gate, shift, sharp, terms), out.data<T>(), dout.data<T>(),
             Slopes<T>{target<T>(dcontent), target<T>(dbefore), target<T>(dgate), target<T>(dshift),
                       target<T>(dsharp)});
  });
}

}  // namespace heed::kernel
