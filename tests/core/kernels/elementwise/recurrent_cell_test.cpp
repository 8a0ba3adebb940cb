// LSTM and GRU cells: both float types, ended sequences, large gates, any number of threads. The op table
// compares values and gradients with plain loops.
#include "heed/core/kernels/elementwise/recurrent_cell.h"
#include "heed/core/launch.h"

#include "heed/tests/core/kernels/tensors_on_device.h"
#include "heed/tests/core/numbers.h"

using namespace heed;

namespace {

enum class Kind { lstm, gru };

struct Cell {
  Kind kind;
  int64_t rows, width;
  int64_t gates() const { return kind == Kind::lstm ? 4 : 3; }
  int64_t parts() const { return kind == Kind::lstm ? 2 : 1; }
};

/// Joins the new state and all gradients along a fixed direction, one after the other.
Tensor both_ways(const Cell& cell, DType dtype, const Tensor& lengths, double size = 1) {
  const Shape wide{cell.rows, cell.gates() * cell.width}, of_state{cell.parts(), cell.rows, cell.width};
  const Tensor a = random_tensor(wide, dtype, 1, -size, size), b = random_tensor(wide, dtype, 2, -size, size),
               state = random_tensor(of_state, dtype, 3), dnext = random_tensor(of_state, dtype, 4);
  constexpr int64_t position = 2;
  const int64_t count = wide.size(), small = of_state.size();
  const Tensor all = Tensor::zeros(Shape{2 * small + 3 * count}, dtype);
  const auto part = [&](const Shape& shape, int64_t at) {
    return all.seen_as(shape, Strides::contiguous(shape), at);
  };
  const Tensor next = part(of_state, 0), dstate = part(of_state, small), gates = part(wide, 2 * small),
               da = part(wide, 2 * small + count), db = part(wide, 2 * small + 2 * count);
  const kernel::CellTensors tensors{
      .a = a, .b = b, .state = state, .lengths = lengths, .gates = gates, .next = next};
  if (cell.kind == Kind::lstm) {
    launch_here<kernel::LstmCell>(tensors, position);
    launch_here<kernel::LstmCellBack>(kernel::LstmBackTensors{.gates = gates,
                                                              .state = state,
                                                              .next = next,
                                                              .lengths = lengths,
                                                              .dnext = dnext,
                                                              .dgates = da,
                                                              .dstate = dstate},
                                      position);
  } else {
    launch_here<kernel::GruCell>(tensors, position);
    launch_here<kernel::GruCellBack>(kernel::GruBackTensors{.gates = gates,
                                                            .b = b,
                                                            .state = state,
                                                            .lengths = lengths,
                                                            .dnext = dnext,
                                                            .da = da,
                                                            .db = db,
                                                            .dstate = dstate},
                                     position);
  }
  return all;
}

}  // namespace

TEST_CASE("recurrence: floats follow doubles, and the bits do not depend on threads") {
  const OnEachDevice here;
  const Kind kind = GENERATE(Kind::lstm, Kind::gru);
  const int64_t width = GENERATE(1, 7, 64, 130);
  const Cell cell{kind, 301, width};
  const Tensor lengths = random_ids(Shape{cell.rows}, 6);
  CHECK(distance(both_ways(cell, DType::f32, lengths), both_ways(cell, DType::f64, lengths)) < 1e-5);
  CHECK(same_for_any_threads([&] { return both_ways(cell, DType::f32, lengths); }));
}

TEST_CASE("recurrence: a sequence that has ended keeps its state and hands its gradient on, to the bit") {
  const OnEachDevice here;
  const Cell cell{GENERATE(Kind::lstm, Kind::gru), 3, 5};
  const std::vector<int32_t> long_as{2, 3, 0};  // position 2 is past the end of the first and the last
  const Tensor all = both_ways(cell, DType::f32, Tensor::of<int32_t>(long_as, Shape{3}));
  const Shape of_state{cell.parts(), 3, 5};
  const std::vector<float> found = all.to_host(), state = random_tensor(of_state, DType::f32, 3).to_host(),
                           slope = random_tensor(of_state, DType::f32, 4).to_host();
  const auto small = static_cast<size_t>(of_state.size());
  for (size_t i = 0; i < small; ++i) {
    const size_t row = i / 5 % 3;
    CHECK((found[i] == state[i]) == (row != 1));
    CHECK((found[small + i] == slope[i]) == (row != 1));
  }
  const size_t count = 3 * 5 * static_cast<size_t>(cell.gates());
  for (size_t i = 0; i < 2 * count; ++i) {
    if (i / (5 * static_cast<size_t>(cell.gates())) % 3 != 1) CHECK(found[2 * small + count + i] == 0);
  }
}

TEST_CASE("recurrence: large gates saturate without NaN") {
  const OnEachDevice here;
  const Cell cell{GENERATE(Kind::lstm, Kind::gru), 4, 9};
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const double value : both_ways(cell, dtype, {}, 1e15).to_doubles()) CHECK(std::isfinite(value));
  }
}
