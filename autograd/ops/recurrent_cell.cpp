// One step of a recurrent cell, and splitting a sequence into steps.
#include "heed/core/kernels/elementwise/recurrent_cell.h"

#include "heed/autograd/ops.h"
#include "heed/autograd/ops/shape_checks.h"
#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/launch.h"

namespace heed {
namespace {

/// Fails unless a and b are [N, gates D] for a state [parts, N, D].
void check_cell(const char* op, const Tensor& a, const Tensor& b, const Tensor& state, const Tensor& lengths,
                int64_t parts, int64_t gates) {
  if (state.rank() != 3 || state.extent(0) != parts) {
    fail(op, ": the state is ", state.shape(), "; it must be [", parts, ", batch, width].");
  }
  const Shape wanted{state.extent(1), gates * state.extent(2)};
  if (!(a.shape() == wanted) || !(b.shape() == wanted)) {
    fail(op, ": gates ", a.shape(), " and ", b.shape(), " for the state ", state.shape(), "; both must be ",
         wanted, ".");
  }
  check_lengths(op, lengths, state.extent(1));
  agree(op, a, state);
  agree(op, b, state);
}

}  // namespace

Tensor lstm_cell(const Tensor& from_input, const Tensor& from_state, const Tensor& state,
                 const Tensor& lengths, int64_t position) {
  check_cell("lstm_cell", from_input, from_state, state, lengths, 2, 4);
  const Tensor before = contiguous(state.detach());
  const Tensor gates = empty_like(from_input), next = empty_like(before);
  const kernel::CellTensors t{.a = contiguous(from_input.detach()),
                              .b = contiguous(from_state.detach()),
                              .state = before,
                              .lengths = lengths,
                              .gates = gates,
                              .next = next};
  launch<kernel::LstmCell>(state.device(), t, position);
  return record("lstm_cell", next, {&from_input, &from_state, &state},
                [gates, before, next, lengths, position](const Tensor& dy) -> Gradients {
                  const Tensor dgates = empty_like(gates), dstate = empty_like(before);
                  const kernel::LstmBackTensors back{.gates = gates,
                                                     .state = before,
                                                     .next = next,
                                                     .lengths = lengths,
                                                     .dnext = contiguous(dy),
                                                     .dgates = dgates,
                                                     .dstate = dstate};
                  launch<kernel::LstmCellBack>(dy.device(), back, position);
                  return {dgates, dgates, dstate};
                });
}

Tensor gru_cell(const Tensor& from_input, const Tensor& from_state, const Tensor& state,
                const Tensor& lengths, int64_t position) {
  check_cell("gru_cell", from_input, from_state, state, lengths, 1, 3);
  const Tensor before = contiguous(state.detach()), inner = contiguous(from_state.detach());
  const Tensor gates = empty_like(from_input), next = empty_like(before);
  const kernel::CellTensors t{.a = contiguous(from_input.detach()),
                              .b = inner,
                              .state = before,
                              .lengths = lengths,
                              .gates = gates,
                              .next = next};
  launch<kernel::GruCell>(state.device(), t, position);
  return record("gru_cell", next, {&from_input, &from_state, &state},
                [gates, inner, before, lengths, position](const Tensor& dy) -> Gradients {
                  const Tensor da = empty_like(gates), db = empty_like(gates), dstate = empty_like(before);
                  const kernel::GruBackTensors back{.gates = gates,
                                                    .b = inner,
                                                    .state = before,
                                                    .lengths = lengths,
                                                    .dnext = contiguous(dy),
                                                    .da = da,
                                                    .db = db,
                                                    .dstate = dstate};
                  launch<kernel::GruCellBack>(dy.device(), back, position);
                  return {da, db, dstate};
                });
}

std::vector<Tensor> unstack(const Tensor& x) {
  if (x.rank() < 1) fail("unstack: a scalar has no first axis. Give at least one axis.");
  // The gradients of all parts are written to one block: the first part allocates it and returns it as the
  // gradient of `whole`, the others only write. Parts are the only uses of `whole`, so all have written
  // before its gradient is used.
  const auto block = std::make_shared<Tensor>();
  const Tensor whole =
      record("unstack", x.detach(), {&x}, [](const Tensor& dy) -> Gradients { return {dy}; });
  const Shape rest(std::span(x.shape().begin() + 1, x.shape().end()));
  const Strides steps(std::span(x.strides().begin() + 1, x.strides().end()));
  std::vector<Tensor> parts;
  for (int64_t t = 0; t < x.extent(0); ++t) {
    const auto vjp = [block, shape = x.shape(), t](const Tensor& dy) -> Gradients {
      const bool first = !*block;
      if (first) *block = Tensor::zeros(shape, dy.dtype(), dy.device());
      const Tensor to = view::slice(*block, 0, t, t + 1);
      launch<kernel::Copy>(dy.device(), view::expand(dy, to.shape()), to);
      return {first ? *block : Tensor()};
    };
    parts.push_back(record("part", x.seen_as(rest, steps, x.offset() + t * x.strides()[0]), {&whole}, vjp));
  }
  return parts;
}

}  // namespace heed
