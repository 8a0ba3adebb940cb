// Packs the tokens of a batch, and pads them again.
#include "heed/nn/packing.h"

#include <algorithm>

#include "heed/autograd/ops.h"

namespace heed {

Packing Packing::of(const Tensor& lengths, int64_t padded_length) {
  if (lengths.device() != Device::cpu)
    fail(Fault::internal, "packing: the lengths are on ", lengths.device(), ", but the host must read them.");
  const int64_t batch = lengths.size();
  const Tensor dense = contiguous(lengths.detach());
  const int32_t* given = dense.data<int32_t>();
  std::vector<int32_t> starts{0}, kept, places, positions, last_rows;
  for (int64_t b = 0; b < batch; ++b) {
    kept.push_back(std::clamp(given[b], 0, static_cast<int32_t>(padded_length)));
    starts.push_back(starts.back() + kept.back());
    last_rows.push_back(kept.back() > 0 ? starts.back() - 1 : -1);
    for (int32_t t = 0; t < kept.back(); ++t) {
      places.push_back(static_cast<int32_t>(b * padded_length) + t);
      positions.push_back(t);
    }
  }
  const int64_t rows = starts.back();
  const auto list = [](const std::vector<int32_t>& values, Shape shape) {
    return Tensor::of<int32_t>(values, shape, Device::cpu);
  };
  return {.sequences = {.starts = list(starts, Shape{batch + 1}), .longest = padded_length},
          .places = {.places = list(places, Shape{rows}), .padded_rows = batch * padded_length},
          .positions = list(positions, Shape{1, rows}),
          .lengths = list(kept, Shape{batch}),
          .last_rows = list(last_rows, Shape{batch})};
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
  for (Tensor* each :
       {&copy.sequences.starts, &copy.places.places, &copy.positions, &copy.lengths, &copy.last_rows})
    *each = each->to(device);
  return copy;
}

Tensor Packing::packed(const Tensor& x) const { return pack_padded(x, sequences, num_tokens()); }

Tensor Packing::packed_ids(const Tensor& ids) const {
  return reshape(packed(reshape(ids, Shape{ids.extent(0), ids.extent(1), 1})), Shape{1, num_tokens()});
}

Tensor Packing::padded(const Tensor& x) const { return pad_packed(x, sequences); }

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
