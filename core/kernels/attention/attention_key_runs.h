// The keys of each head in runs for the threads of a backward pass, and the sums that each run has of its
// own.
#pragma once

#include "heed/core/kernels/attention/attention_call.h"
#include "heed/core/kernels/attention/head_view.h"
#include "heed/core/memory/storage.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed::kernel {

/// What a backward pass reads and writes.
template <class T>
struct BackwardHeads {
  const AttentionBackTensors& t;
  HeadView<const T> q{t.q}, k{t.k}, v{t.v}, out{t.out}, dout{t.dout};
  HeadView<T> dq{t.dq}, dk{t.dk}, dv{t.dv};
  RowLogs<T> lse{t.lse, t.q.extent(0) * t.q.extent(1) * t.q.extent(2)};
  T* drelative = t.drelative ? t.drelative.template data<T>() : nullptr;  ///< null: not wanted
  int64_t kv_heads = t.k.extent(1);
};

/// The keys of each head in runs, several where heads are too few for all threads. A run has sums of its own
/// of dq [B, H, Tq, d] and of the diagonals of drelative [B, H, Tq + Tk - 1]; they are added in order, so the
/// number of threads changes no bit.
template <class T>
class KeyRuns {
 public:
  int64_t length, count;

  /// At most `most` runs of a head, of at least 256 keys each.
  KeyRuns(const Call<T>& call, const BackwardHeads<T>& x, int64_t most)
      : length(std::max(4 * tile, ceil_div(ceil_div(call.Tk, std::max<int64_t>(1, most)), tile) * tile)),
        count(std::max<int64_t>(1, ceil_div(call.Tk, length))),
        call_(call),
        x_(x),
        heads_(call.B * call.H),
        span_(call.Tq + call.Tk - 1),
        dq_(bytes(count > 1 ? count * heads_ * call.Tq * call.d : 0), Device::cpu),
        diagonals_(bytes(x.drelative != nullptr ? count * heads_ * span_ : 0), Device::cpu) {}

  /// Number of keys of the longest run, at least one.
  int64_t longest() const { return std::min(length, std::max<int64_t>(call_.Tk, 1)); }
  /// Where a run writes dq.
  HeadView<T> dq(int64_t run) const {
    if (count == 1) return x_.dq;
    HeadView<T> own;
    own.ld = call_.d;
    own.head = call_.Tq * own.ld;
    own.batch = call_.H * own.head;
    own.data = static_cast<T*>(dq_.data()) + run * call_.B * own.batch;
    return own;
  }
  /// Where a run adds up the diagonals of a head, which begin at zero; null: drelative is not wanted.
  T* diagonals(int64_t run, int64_t b, int64_t h) const {
    if (x_.drelative == nullptr) return nullptr;
    T* own = static_cast<T*>(diagonals_.data()) + (run * heads_ + b * call_.H + h) * span_;
    std::fill_n(own, span_, T(0));
    return own;
  }

  /// dq and drelative: the sums over the runs, in order.
  void add_up() const {
    if (x_.drelative != nullptr) std::fill_n(x_.drelative, call_.H * span_, T(0));
    for (int64_t row = 0; x_.drelative != nullptr && row < count * heads_; ++row) {
      const T* from = static_cast<const T*>(diagonals_.data()) + row * span_;
      T* to = x_.drelative + row % call_.H * span_;
      for (int64_t n = 0; n < span_; ++n) to[n] += from[n];
    }
    if (count == 1) return;
    const int64_t together = ceil_div(light_grain, std::max<int64_t>(call_.d, 1));
    parallel_rows(heads_ * call_.Tq, together, [&](int64_t begin, int64_t end) {
      const T* share = static_cast<const T*>(dq_.data());
      for (int64_t row = begin; row < end; ++row) {
        T* to = x_.dq.at(row / call_.Tq / call_.H, row / call_.Tq % call_.H, row % call_.Tq);
        std::copy_n(share + row * call_.d, call_.d, to);
        for (int64_t run = 1; run < count; ++run) {
          const T* more = share + (run * heads_ * call_.Tq + row) * call_.d;
          for (int64_t c = 0; c < call_.d; ++c) to[c] += more[c];
        }
      }
    });
  }

 private:
  static int64_t bytes(int64_t numbers) { return static_cast<int64_t>(sizeof(T)) * numbers; }

  const Call<T>& call_;
  const BackwardHeads<T>& x_;
  int64_t heads_, span_;
  Storage dq_, diagonals_;
};

}  // namespace heed::kernel
