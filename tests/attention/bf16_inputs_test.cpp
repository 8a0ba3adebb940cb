// Attentions of every kind take activations in bf16: they give the output of the same numbers in f32, rounded
// once.
#include "heed/autograd/autocast.h"
#include "heed/tests/attention/battery/kit.h"
#include "heed/tests/catch.h"

using namespace heed;
using namespace heed::battery;

namespace {

/// The output of an attention, and the gradients of its inputs and parameters.
struct Call {
  Tensor y;
  std::vector<Tensor> gradients;
};

/// A call with inputs that are rounded to bf16, and stay so with `narrow`, else become f32 again. `packs`: the
/// sequences are packed, and have different lengths.
Call call(const Setting& setting, bool narrow, bool packs) {
  Sizes sizes = with_keys_of_mode({.queries = 9, .keys = 11}, setting);
  Host host = host_of(setting, sizes);
  host.make_leaves();
  AttentionInput input = host.input();
  const auto given = [&](const Tensor& x) {
    const Tensor rounded = cast(x, DType::bf16);
    return narrow ? rounded : cast(rounded, DType::f32);
  };
  input.queries = given(host.queries);
  input.keys = host.crosses() ? given(host.keys) : input.queries;
  if (packs) {
    const auto sequences = [&](int64_t length) {
      const auto longest = static_cast<int32_t>(length);
      return std::make_shared<const Packing>(
          Packing::of(lengths_of({longest, longest - 3}, Device::cpu), length).to(setting.device));
    };
    const auto keys = sequences(sizes.keys), queries = host.crosses() ? sequences(sizes.queries) : keys;
    input.queries = queries->packed(input.queries);
    input.keys = host.crosses() ? keys->packed(input.keys) : input.queries;
    input.mask = Mask::packed(queries, keys);
    if (setting.mode == Mode::causal) input.mask = input.mask & Mask::causal();
  }
  const Tensor y = attend(*host.attention, input);
  CHECK(y.dtype() == (narrow ? DType::bf16 : DType::f32));
  const Tensor wide = widened(y);
  backward(sum(wide * numbers(wide.shape(), 7, DType::f32, setting.device)));
  Call made{y.detach(), {}};
  for (const auto& [name, tensor] : host.leaves()) {
    made.gradients.push_back(grad_of(tensor) ? grad_of(tensor)
                                             : Tensor::zeros(tensor.shape(), DType::f32, setting.device));
    CHECK(made.gradients.back().dtype() == DType::f32);
  }
  return made;
}

}  // namespace

TEST_CASE("bf16 inputs: an attention gives what it gives for the same numbers in f32, rounded") {
  for (const Variant& variant : variants()) {
    for (const Setting& setting : settings(variant)) {
      for (const bool packs : {false, true}) {
        if (packs && !variant.traits.padding) continue;
        CAPTURE(variant.traits.name, to_string(setting.mode), to_string(setting.device), packs);
        const Call narrow = call(setting, true, packs), wide = call(setting, false, packs);
        CHECK(same_bits(narrow.y, cast(wide.y, DType::bf16)));
        for (size_t i = 0; i < wide.gradients.size(); ++i) {
          CAPTURE(i);
          // The gradients of the output and of the inputs are rounded.
          const double size = std::max(1e-3, distance(wide.gradients[i], wide.gradients[i] * 0.0));
          CHECK(distance(narrow.gradients[i], wide.gradients[i]) < 0.05 * std::max(1.0, size));
        }
      }
    }
  }
}
