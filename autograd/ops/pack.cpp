// Copies between padded rows and packed sequences, each the gradient of the other, sums of sequences, and
// positions added to them.
#include "heed/core/kernels/elementwise/pack.h"

#include "heed/autograd/ops.h"
#include "heed/autograd/ops/shape_checks.h"
#include "heed/core/launch.h"

namespace heed {
namespace {

void check_sequences(const char* op, const Tensor& x, const PackedSequences& sequences) {
  check_not_empty(op, x);
  if (x.rank() != 3)
    fail(op, ": x ", x.shape(), ". It must have rank 3: [1, N, W] packed, [B, T, W] padded.");
  if (!sequences) fail(op, ": the sequences have no starts. Give those of a Packing, Packing::sequences.");
}

/// The number of sequences that an op takes: `batch`, or all of them where it is 0. Fails where there are
/// fewer.
int64_t num_sequences(const char* op, const Tensor& x, const PackedSequences& sequences, int64_t batch) {
  const int64_t count = batch_of(op, x, sequences);
  if (batch < 0 || batch > count)
    fail(op, ": ", batch, " sequences of ", count, ". Give at most as many as there are, or 0 for all.");
  return batch == 0 ? count : batch;
}

Tensor padded_rows(const Tensor& x, const PackedSequences& sequences, int64_t batch) {
  const Tensor padded = empty_like(x, Shape{batch, sequences.longest, x.extent(2)});
  launch<kernel::PadPacked>(x.device(), contiguous(x.detach()), sequences, padded);
  return padded;
}

Tensor packed_rows(const Tensor& x, const PackedSequences& sequences, int64_t rows) {
  const Tensor packed = empty_like(x, Shape{1, rows, x.extent(2)});
  launch<kernel::PackPadded>(x.device(), contiguous(x.detach()), sequences, packed);
  return packed;
}

}  // namespace

Tensor pad_packed(const Tensor& x, const PackedSequences& sequences, int64_t batch) {
  check_sequences("pad_packed", x, sequences);
  const int64_t rows = x.extent(1), num_padded = num_sequences("pad_packed", x, sequences, batch);
  return record(
      "pad_packed", padded_rows(x, sequences, num_padded), {&x},
      [sequences, rows](const Tensor& dy) -> Gradients { return {packed_rows(dy, sequences, rows)}; });
}

Tensor sum_sequences(const Tensor& x, const PackedSequences& sequences, int64_t step) {
  constexpr const char* op = "sum_sequences";
  check_sequences(op, x, sequences);
  check_float(op, x);
  const int64_t count = batch_of(op, x, sequences), rows = x.extent(1), width = x.extent(2);
  if (step < 1 || count % step != 0)
    fail(op, ": every sequence of number n ", step, " out of ", count,
         ". The step must be at least 1 and divide the number of sequences.");
  const Tensor sums = empty_like(x, Shape{count / step, width});
  launch<kernel::SumSequences>(x.device(), contiguous(x.detach()), sequences, step, sums);
  return record(op, sums, {&x}, [sequences, step, rows, width](const Tensor& dy) -> Gradients {
    const Tensor dx = empty_like(dy, Shape{1, rows, width});
    launch<kernel::RepeatOverSequences>(dy.device(), contiguous(dy), sequences, step, dx);
    return {dx};
  });
}

Tensor pack_padded(const Tensor& x, const PackedSequences& sequences, int64_t rows) {
  check_sequences("pack_padded", x, sequences);
  const int64_t batch = x.extent(0);
  if (batch > sequences.count() || x.extent(1) != sequences.longest)
    fail("pack_padded: x ", x.shape(), " for ", sequences.count(), " sequences, the longest ",
         sequences.longest, "; it must be [B, T, W], of as many sequences at most, and of that length.");
  return record(
      "pack_padded", packed_rows(x, sequences, rows), {&x},
      [sequences, batch](const Tensor& dy) -> Gradients { return {padded_rows(dy, sequences, batch)}; });
}

Tensor add_positions(const Tensor& x, const Tensor& table, const PackedSequences& sequences) {
  constexpr const char* op = "add_positions";
  check_sequences(op, x, sequences);
  agree_as_activation(op, x, table);
  batch_of(op, x, sequences);
  if (table.rank() != 2 || table.extent(1) != x.extent(2) || table.extent(0) < sequences.longest)
    fail(op, ": a table ", table.shape(), " for x ", x.shape(), " whose longest sequence has ",
         sequences.longest, " rows. It must be [L, W], of the width of x and of at least as many rows.");
  const Tensor y = empty_like(x), positions = contiguous(table.detach());
  launch<kernel::AddPositions>(x.device(), contiguous(x.detach()), positions, sequences, y);
  return record(op, y, {&x, &table},
                [sequences, positions, wants_table = table.node() != nullptr](const Tensor& dy) -> Gradients {
                  if (!wants_table) return {dy, {}};
                  const Tensor dtable = gradient_target(1, positions);
                  launch<kernel::AddPositionsBack>(dy.device(), contiguous(dy), sequences, dtable);
                  return {dy, dtable};
                });
}

}  // namespace heed
