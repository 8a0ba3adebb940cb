// Packs the tokens of a batch, and pads them again.
#include "heed/nn/packing.h"

#include <algorithm>
#include <numeric>

#include "heed/autograd/ops.h"
#include "heed/core/ceil_div.h"

namespace heed {
namespace {

/// `lengths` raised by `padding` in all, the last ones first, each at most to `padded_length`.
std::vector<int32_t> with_padding(std::vector<int32_t> lengths, int64_t padded_length, int64_t padding) {
  for (auto length = lengths.rbegin(); length != lengths.rend(); ++length) {
    const int64_t more = std::min(padding, padded_length - *length);
    *length += static_cast<int32_t>(more);
    padding -= more;
  }
  return lengths;
}

}  // namespace

Packing Packing::of(const Tensor& lengths, int64_t padded_length, int64_t rows) {
  if (lengths.device() != Device::cpu)
    fail(Fault::internal, "packing: the lengths are on ", lengths.device(), ", but the host must read them.");
  const int64_t batch = lengths.size();
  const Tensor dense = contiguous(lengths.detach());
  const int32_t* given = dense.data<int32_t>();
  std::vector<int32_t> kept;
  for (int64_t b = 0; b < batch; ++b)
    kept.push_back(std::clamp(given[b], 0, static_cast<int32_t>(padded_length)));
  const int64_t tokens = std::accumulate(kept.begin(), kept.end(), int64_t{0});
  if (rows > 0 && (rows < tokens || rows > batch * padded_length))
    fail(Fault::internal, "packing: ", rows, " rows for ", tokens, " tokens of sequences padded to [", batch,
         ", ", padded_length, "]. There must be as many rows as tokens, or more, up to those padded.");
  const std::vector<int32_t> counts = rows > 0 ? with_padding(kept, padded_length, rows - tokens) : kept;
  std::vector<int32_t> starts{0}, places, positions, last_rows, sections{0};
  for (int64_t b = 0; b < batch; ++b) {
    const int32_t first = starts.back(), length = kept[static_cast<size_t>(b)],
                  count = counts[static_cast<size_t>(b)];
    last_rows.push_back(length > 0 ? first + length - 1 : -1);
    for (int32_t t = 0; t < count; ++t) {
      places.push_back(static_cast<int32_t>(b * padded_length) + t);
      positions.push_back(t);
    }
    starts.push_back(first + count);
    sections.insert(sections.end(), {first + length, first + count});
  }
  const int64_t all_rows = starts.back();
  const auto list = [](const std::vector<int32_t>& values, Shape shape) {
    return Tensor::of<int32_t>(values, shape, Device::cpu);
  };
  return {.sequences = {.starts = list(starts, Shape{batch + 1}), .longest = padded_length},
          .places = {.places = list(places, Shape{all_rows}), .padded_rows = batch * padded_length},
          .positions = list(positions, Shape{1, all_rows}),
          .lengths = list(kept, Shape{batch}),
          .last_rows = list(last_rows, Shape{batch}),
          .sections = rows > 0 ? list(sections, Shape{2 * batch + 1}) : Tensor()};
}

Tensor Packing::table() const {
  if (!sections) fail(Fault::internal, "packing: a table needs a packing whose number of rows was given.");
  const auto flat = [](const Tensor& x) { return reshape(x, Shape{x.size()}); };
  return concat(
      std::vector<Tensor>{sequences.starts, sections, lengths, last_rows, places.places, flat(positions)}, 0);
}

Packing Packing::of_table(const Tensor& table, int64_t batch, int64_t padded_length) {
  const int64_t rows = (table.size() - 5 * batch - 2) / 2;
  if (table.rank() != 1 || table.dtype() != DType::i32 || rows < 0 ||
      table.size() != 5 * batch + 2 + 2 * rows)
    fail(Fault::internal, "packing: a table ", table.dtype(), " ", table.shape(), " for ", batch,
         " sequences; it must be i32 [5 B + 2 + 2 N].");
  int64_t end = 0;
  const auto next = [&](int64_t count) {
    end += count;
    return view::slice(table, 0, end - count, end);
  };
  Packing out;
  out.sequences = {.starts = next(batch + 1), .longest = padded_length};
  out.sections = next(2 * batch + 1);
  out.lengths = next(batch);
  out.last_rows = next(batch);
  out.places = {.places = next(rows), .padded_rows = batch * padded_length};
  out.positions = view::reshape(next(rows), Shape{1, rows});
  return out;
}

std::shared_ptr<const Packing> Packing::where_padded(const Tensor& lengths, int64_t padded_length) {
  if (!lengths || lengths.device() != Device::cpu || lengths.dtype() != DType::i32 || lengths.rank() != 1)
    return nullptr;
  auto packing = std::make_shared<const Packing>(of(lengths, padded_length));
  const int64_t tokens = packing->num_tokens();
  return tokens > 0 && tokens < packing->batch() * padded_length ? packing : nullptr;
}

std::shared_ptr<const Packing> Packing::of_places(const Tensor& places, int64_t batch,
                                                  int64_t padded_length) {
  if (places.device() != Device::cpu) return nullptr;
  const Tensor given = contiguous(places.detach());
  std::vector<int32_t> counts(static_cast<size_t>(batch), 0);
  int64_t last = -1;
  for (int64_t n = 0; n < given.size(); ++n) {
    const int64_t place = given.data<int32_t>()[n];
    if (place <= last || place >= batch * padded_length) return nullptr;
    if (place % padded_length != counts[static_cast<size_t>(place / padded_length)]++) return nullptr;
    last = place;
  }
  return std::make_shared<const Packing>(
      of(Tensor::of<int32_t>(counts, Shape{batch}, Device::cpu), padded_length));
}

Packing Packing::to(Device device) const {
  Packing copy = *this;
  for (Tensor* each : {&copy.sequences.starts, &copy.places.places, &copy.positions, &copy.lengths,
                       &copy.last_rows, &copy.sections}) {
    if (*each) *each = each->to(device);
  }
  return copy;
}

int64_t packed_rows(int64_t tokens, int64_t padded_rows, int64_t row_step) {
  return std::min(ceil_div(std::max<int64_t>(tokens, 1), row_step) * row_step, padded_rows);
}

Tensor packing_table(const std::vector<int32_t>& lengths, int64_t padded_length, int64_t row_step) {
  const auto batch = static_cast<int64_t>(lengths.size());
  const int64_t tokens = std::accumulate(lengths.begin(), lengths.end(), int64_t{0}),
                rows = packed_rows(tokens, batch * padded_length, row_step);
  const Tensor on_host = Tensor::of<int32_t>(lengths, Shape{batch}, Device::cpu);
  return Packing::of(on_host, padded_length, rows).table().to(default_device);
}

Tensor Packing::packed(const Tensor& x) const { return pack_padded(x, sequences, num_tokens()); }

Tensor Packing::packed_ids(const Tensor& ids) const {
  return reshape(packed(reshape(ids, Shape{ids.extent(0), ids.extent(1), 1})), Shape{1, num_tokens()});
}

Tensor Packing::padded(const Tensor& x) const { return pad_packed(x, sequences); }

Tensor Packing::sum_of_tokens(const Tensor& x) const {
  if (!sections) return sum_sequences(x, sequences);
  // Every other section is padding.
  return sum_sequences(x, {.starts = sections, .longest = sequences.longest}, 2);
}

Tensor Packing::padded_heads(const Tensor& heads) const {
  if (!heads) return heads;
  const int64_t H = heads.extent(1), d = heads.extent(3);
  const Tensor rows = reshape(transpose(heads, 1, 2), Shape{1, heads.extent(2), H * d});
  return transpose(reshape(padded(rows), Shape{batch(), sequences.longest, H, d}), 1, 2);
}

Tensor Packing::packed_heads(const Tensor& heads) const {
  const int64_t H = heads.extent(1), d = heads.extent(3);
  const Tensor rows = reshape(transpose(heads, 1, 2), Shape{batch(), heads.extent(2), H * d});
  return transpose(reshape(packed(rows), Shape{1, num_tokens(), H, d}), 1, 2);
}

}  // namespace heed
