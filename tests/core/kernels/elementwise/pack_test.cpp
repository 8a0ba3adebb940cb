// Copies between padded rows and packed sequences, on every device, against plain loops.
#include "heed/core/kernels/elementwise/pack.h"

#include "heed/tests/core/kernels/packed_rows.h"
#include "heed/tests/core/numbers.h"

using namespace heed;

namespace {

/// What PadPacked makes of packed rows [1, N, W].
std::vector<double> plainly_padded(const Tensor& packed, const PackedSequences& sequences, int64_t batch) {
  const int64_t T = sequences.longest, W = packed.extent(2);
  const int32_t* starts = sequences.starts.data<int32_t>();
  const std::vector<double> from = packed.to_doubles();
  std::vector<double> to(static_cast<size_t>(batch * T * W), 0);
  for (int64_t b = 0; b < batch; ++b) {
    std::copy(from.begin() + starts[b] * W, from.begin() + starts[b + 1] * W, to.begin() + b * T * W);
  }
  return to;
}

/// Whole numbers that all types have, none zero.
Tensor numbered(const Shape& shape, DType dtype) {
  std::vector<double> values(static_cast<size_t>(shape.size()));
  for (size_t n = 0; n < values.size(); ++n) values[n] = static_cast<double>(1 + n % 120);
  const Tensor out(shape, dtype);
  launch<kernel::Copy>(Device::cpu, Tensor::of<double>(values, shape), out);
  return out;
}

}  // namespace

TEST_CASE("packed sequences: rows are padded and packed again, at any width and type") {
  const OnEachDevice here;
  const DType dtype = GENERATE(DType::f32, DType::f64, DType::bf16, DType::i32, DType::i64);
  const int64_t width = GENERATE(1, 3, 8, 130, 512);
  const PackedSequences sequences = test::packed_sequences({5, 0, 1, 17, 0, 2}, 17);
  const int64_t rows = 25 + 3;  // three belong to no sequence
  CAPTURE(to_string(dtype), width);
  const Tensor packed = numbered(Shape{1, rows, width}, dtype);
  for (const int64_t batch : {6, 4, 1}) {
    const Tensor padded = Tensor::full(Shape{batch, 17, width}, 7, dtype),
                 again = Tensor::full(packed.shape(), 7, dtype);
    launch_here<kernel::PadPacked>(packed, sequences, padded);
    CHECK(padded.to_doubles() == plainly_padded(packed, sequences, batch));
    launch_here<kernel::PackPadded>(padded, sequences, again);
    std::vector<double> wanted = packed.to_doubles();
    std::fill(wanted.begin() + sequences.starts.data<int32_t>()[batch] * width, wanted.end(), 0);
    CHECK(again.to_doubles() == wanted);
  }
}

TEST_CASE("packed sequences: rows whose memory is not aligned to 16 bytes") {
  const OnEachDevice here;
  const PackedSequences sequences = test::packed_sequences({2, 3}, 3);
  const Tensor packed = view::slice(numbered(Shape{41}, DType::f32), 0, 1, 41),
               rows = view::reshape(packed, Shape{1, 5, 8}), padded = Tensor::full(Shape{2, 3, 8}, 7);
  launch_here<kernel::PadPacked>(rows, sequences, padded);
  CHECK(padded.to_doubles() == plainly_padded(rows, sequences, 2));
}
