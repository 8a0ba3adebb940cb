// Fastmax forward on the CPU: a running state of monomial sums carries what lies before a chunk, and the
// polynomial of the scores themselves does the rest. Few long heads are cut into segments whose states are
// summed first.
#include "core/kernels/fastmax.h"
#include "core/kernels/here.h"

#include "core/count.h"
#include "core/kernels/fastmax_drop.h"
#include "core/kernels/fastmax_map.h"
#include "core/kernels/fastmax_state.h"

namespace heed::kernel {
namespace {

template <class T>
class Forward {
 public:
  static int64_t scratch(const FastmaxPlan<T>& plan) {
    const int64_t C = plan.chunk;
    return 2 * Carve<T>::rounded(FastmaxSide<T>::scratch(plan)) + C * C + 2 * plan.block_rows * C +
           2 * C * plan.wide + 2 * C;
  }
  Forward(const FastmaxPlan<T>& plan, const FastmaxDrop<T>& drop, T* memory)
      : plan_(plan),
        drop_(drop),
        carve_(memory),
        queries_(plan, true, carve_.take(FastmaxSide<T>::scratch(plan))),
        keys_(plan, false, carve_.take(FastmaxSide<T>::scratch(plan))) {
    const int64_t C = plan.chunk;
    map_ = carve_.take(C * C);
    room_ = carve_.take(plan.block_rows * C);
    other_room_ = carve_.take(plan.block_rows * C);
    out_ = carve_.take(C * plan.wide);
    v_copy_ = carve_.take(C * plan.wide);
    sums_ = carve_.take(C);
    last_ = carve_.take(C);
  }

  /// Queries t <= i < t + count, which see the state and, in a causal call, `seen` keys of their own chunk;
  /// those are added to the state where it goes on.
  void chunk(const FastmaxHead<T>& x, int64_t t, int64_t count, int64_t seen, T* state, bool known,
             bool goes_on) {
    queries_.load(x.q.from(t).data, x.q.ld, count);
    if (goes_on) {
      fetch_rows(x.q.from(t + count).data, x.q.ld, count, plan_.d);
      if (x.k.data != nullptr) fetch_rows(x.k.from(t + count).data, x.k.ld, count, plan_.d);
      if (x.k.data != nullptr) fetch_rows(x.v.from(t + count).data, x.v.ld, count, plan_.dv);
    }
    const int64_t width = queries_.width();
    std::fill_n(sums_, width, T(0));
    std::fill_n(out_, count * plan_.wide, T(0));
    Rows<T> v{nullptr, 0};
    const FastmaxMap<T> map{plan_, true, seen, count, width};
    if (seen > 0) {
      keys_.load(x.k.from(t).data, x.k.ld, seen);
      v = whole_rows(x.v.from(t).data, x.v.ld, seen, plan_.dv, v_copy_);
      fill_fastmax_ones(seen, keys_.width(), last_);
      if (drop_) {
        std::fill_n(map_, plan_.chunk * plan_.chunk, T(0));
      } else {
        flops_ += map.product(keys_.rows(), queries_.rows(), plan_.d, map_);
        map.weigh(map_);
        pairs(map, v);
      }
    }
    const bool adds = seen > 0 && goes_on;
    if (known || (drop_ && seen > 0)) {
      queries_.begin(nullptr);
      if (drop_) keys_.begin(nullptr);
      for (const FeatureBlock& block : plan_.blocks) {
        T* at = state + block.feature * plan_.ld;
        const T* phi = queries_.make(block, room_);
        if (drop_) phi = drop_.apply(block, drop_.query(x.index, t), count, phi, room_);
        if (known) {
          flops_ += small_gemm(Left::turned, count, plan_.wide, block.count, phi, plan_.chunk, at, plan_.ld,
                               out_, plan_.wide, true);
          flops_ += small_gemm(Left::turned, 1, width, block.count, at + plan_.dv, plan_.ld, phi, plan_.chunk,
                               sums_, plan_.chunk, true);
        }
        if (!drop_ || seen == 0) continue;
        const T* of_keys = keys_.make(block, other_room_);
        of_keys = drop_.apply(block, drop_.key(x.index, t), seen, of_keys, other_room_);
        flops_ += small_gemm(Left::turned, seen, width, block.count, of_keys, plan_.chunk, phi, plan_.chunk,
                             map_, plan_.chunk, true);
      }
      if (drop_ && seen > 0) {
        map.cut(map_);
        pairs(map, v);
      }
    }
    if (adds) flops_ += add_fastmax_keys(plan_, drop_, keys_, x.index, t, v, last_, room_, state);
    finish(x, t, count);
  }

  /// All queries of a tile against keys 0 <= j < seen, pair by pair.
  void dense(const FastmaxHead<T>& x, int64_t t, int64_t count, int64_t seen) {
    queries_.load(x.q.from(t).data, x.q.ld, count);
    const int64_t width = queries_.width();
    std::fill_n(sums_, width, T(0));
    std::fill_n(out_, count * plan_.wide, T(0));
    const bool causal = plan_.terms.causal;
    for (int64_t j = 0; j < (causal ? std::min(seen, t + count) : seen); j += plan_.chunk) {
      const int64_t keys = std::min({plan_.chunk, seen - j, causal && j == t ? count : plan_.chunk});
      keys_.load(x.k.from(j).data, x.k.ld, keys);
      const Rows<T> v = whole_rows(x.v.from(j).data, x.v.ld, keys, plan_.dv, v_copy_);
      const FastmaxMap<T> map{plan_, causal && j == t, keys, count, width};
      flops_ += map.product(keys_.rows(), queries_.rows(), plan_.d, map_);
      map.weigh(map_);
      pairs(map, v);
    }
    finish(x, t, count);
  }

  int64_t flops() const { return flops_; }

 private:
  void pairs(const FastmaxMap<T>& map, Rows<T> v) {
    map.add_sums(map_, sums_);
    flops_ += map.gather(map_, v, plan_.wide, out_);
  }
  void finish(const FastmaxHead<T>& x, int64_t t, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      simd::scaled(out_ + i * plan_.wide, plan_.dv, fastmax_inverse(plan_.terms, sums_[i]),
                   x.out + (t + i) * x.ld_out);
      x.sums[t + i] = sums_[i];
    }
  }

  const FastmaxPlan<T>& plan_;
  const FastmaxDrop<T>& drop_;
  Carve<T> carve_;
  FastmaxSide<T> queries_, keys_;
  T *map_, *room_, *other_room_, *out_, *v_copy_, *sums_, *last_;
  int64_t flops_ = 0;
};

template <class T>
void factored(const FastmaxCall<T>& call) {
  const FastmaxPlan<T> plan(call.terms, call.d, call.dv, true);
  const FastmaxDrop<T> drop(plan, call);
  const int64_t heads = call.B * call.H, T_q = call.queries;
  const int64_t segments = call.has_keys ? fastmax_segments(plan, heads, T_q) : pieces_of(T_q, 1024);
  const int64_t length = pieces_of(pieces_of(T_q, plan.chunk), std::max<int64_t>(segments, 1)) * plan.chunk;
  Tensor prefixes;
  if (call.has_keys && segments > 1) prefixes = fastmax_prefixes(plan, drop, call, segments, length);
  Scratch scratch(static_cast<int64_t>(sizeof(T)) *
                  (Forward<T>::scratch(plan) + Carve<T>::rounded(plan.state())));
  const int64_t grain = fastmax_grain(2 * plan.pass_flops(std::min(length, T_q)));
  parallel_rows(heads * segments, grain, [&](int64_t begin, int64_t end) {
    const Scratch::Part part(scratch);
    Forward<T> work(plan, drop, part.template data<T>());
    T* state = part.template data<T>() + Forward<T>::scratch(plan);
    for (int64_t at = begin; at < end; ++at) {
      const int64_t head = at / segments, segment = at % segments, first = segment * length;
      const FastmaxHead<T> x = call.head(head);
      const T* before = call.start_of(head);
      bool known = before != nullptr;
      if (prefixes && segment > 0) {
        std::copy_n(prefixes.data<T>() + at * plan.state(), plan.state(), state);
        known = true;
      } else {
        load_fastmax_state(plan, before, state);
      }
      const int64_t upto = std::min(first + length, T_q);
      for (int64_t t = first; t < upto; t += plan.chunk) {
        const int64_t count = std::min(plan.chunk, upto - t);
        const int64_t seen = call.has_keys ? plan.seen(call.lengths, x.batch, t, count) : 0;
        work.chunk(x, t, count, seen, state, known, t + plan.chunk < upto);
        known = known || seen > 0;
      }
    }
    Count::add(work.flops());
  });
}

template <class T>
void dense(const FastmaxCall<T>& call) {
  const FastmaxPlan<T> plan(call.terms, call.d, call.dv, false);
  const FastmaxDrop<T> none;
  const int64_t tiles = pieces_of(call.queries, plan.chunk);
  Scratch scratch(static_cast<int64_t>(sizeof(T)) * Forward<T>::scratch(plan));
  const int64_t grain = fastmax_grain(2 * plan.chunk * call.keys * (call.d + call.dv));
  parallel_rows(call.B * call.H * tiles, grain, [&](int64_t begin, int64_t end) {
    const Scratch::Part part(scratch);
    Forward<T> work(plan, none, part.template data<T>());
    for (int64_t at = begin; at < end; ++at) {
      const FastmaxHead<T> x = call.head(at / tiles);
      const int64_t t = at % tiles * plan.chunk;
      work.dense(x, t, std::min(plan.chunk, call.queries - t),
                 plan.seen(call.lengths, x.batch, 0, call.keys));
    }
    Count::add(work.flops());
  });
}

}  // namespace

template <>
void Fastmax::cpu<here>(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& start,
                        const FastmaxTerms& terms, const Tensor& out, const Tensor& sums) {
  visit_float("fastmax", q.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const FastmaxCall<T> call(q, k, v, start, terms, out, sums);
    if (k && fastmax_dense(call.keys, call.d, terms)) {
      dense<T>(call);
    } else {
      factored<T>(call);
    }
  });
}

}  // namespace heed::kernel
