// Causal sums of exponentials, as sums that fade.
#include "attention/exponential.h"

namespace heed {

Tensor ExponentialAttention::raised(ScaledMemory* memory, const Tensor& scale) {
  const Tensor given = scale.detach();
  if (memory == nullptr) return given;
  Tensor larger = given;
  if (memory->sums) {
    larger = maximum(given, memory->scale);
    memory->sums = memory->sums * transpose(exp(memory->scale - larger), 2, 3);
  }
  memory->scale = larger;
  return larger;
}

Tensor ExponentialAttention::running_max(const Tensor& x, const Tensor& before) {
  Tensor most = x.extent(3) == 1 ? x : max(x, 3);
  for (int64_t step = 1; step < most.extent(2); step *= 2) {
    const int64_t length = most.extent(2);
    most = concat(std::vector<Tensor>{slice(most, 2, 0, step), maximum(slice(most, 2, step, length),
                                                                       slice(most, 2, 0, length - step))},
                  2);
  }
  return before ? maximum(most, before) : most;
}

/// Weighted sums of values and, in a last column, of ones; the memory (which may be null) goes on.
Tensor ExponentialAttention::scan(const Scaled& x, const Tensor& values, ScaledMemory* memory) const {
  const int64_t keys = x.k.extent(2), queries = x.q.extent(2), f = x.k.extent(3);
  const bool goes_on = memory != nullptr && memory->sums;
  const Tensor first = goes_on ? memory->scale : slice(x.scale, 2, 0, 1);
  const Tensor before = concat(std::vector<Tensor>{first, slice(x.scale, 2, 0, keys - 1)}, 2);
  Tensor q = x.q;
  if (queries < keys) {  // nobody asks at the first keys
    const Tensor nobody =
        Tensor::zeros(Shape{q.extent(0), q.extent(1), keys - queries, f}, q.dtype(), q.device());
    q = concat(std::vector<Tensor>{nobody, q}, 2);
  }
  const Tensor ones =
      Tensor::full(Shape{values.extent(0), values.extent(1), keys, 1}, 1, values.dtype(), values.device());
  const Tensor y = decay_scan({.q = q,
                               .k = x.k,
                               .v = concat(std::vector<Tensor>{values, ones}, 3),
                               .log_decay = before - x.scale,
                               .beta = {},
                               .start = goes_on ? memory->sums : Tensor()},
                              memory != nullptr);
  if (memory != nullptr) {
    memory->sums = slice(y, 2, keys, keys + f);
    memory->scale = slice(x.scale, 2, keys - 1, keys);
    memory->length += keys;
  }
  return slice(y, 2, keys - queries, keys);
}

Tensor ExponentialAttention::attend(Heads heads, const Attend& call) {
  if (!call.mask.is_causal() || !heads.k || heads.k.extent(2) == 0)
    return KernelizedAttention::attend(std::move(heads), call);
  check(heads, call);
  auto* memory = memory_of<ScaledMemory>(call);
  Scaled x = scaled(heads, call);
  if (const Tensor kept = call.mask.kept(x.k, memory != nullptr ? memory->length : 0)) x.k = x.k * kept;
  const auto weighed = [&](const Tensor& values, ScaledMemory* state) {
    const Tensor sums = scan(x, values, state);
    const int64_t last = sums.extent(3) - 1;
    return slice(sums, 3, 0, last) / divisor(slice(sums, 3, last, last + 1), polynomial());
  };
  if (call.pass.probe != nullptr) {
    if (memory != nullptr) {
      fail(
          "attention: sums do not tell single keys apart, so a step with a memory has no map. Look at a full "
          "call.");
    }
    const NoTape looking;
    const int64_t keys = x.k.extent(2);
    const Shape each{x.k.extent(0), x.k.extent(1), keys, keys};
    call.pass.probe->see(*this, weighed(expand(identity(keys, x.k), each), nullptr));
  }
  return weighed(heads.v, memory);
}

}  // namespace heed
