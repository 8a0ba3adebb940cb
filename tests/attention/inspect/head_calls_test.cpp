// What a recorder keeps of heads: attribution equals the gradient of the map itself, and factors explain
// weights.
#include "heed/attention/inspect/head_calls.h"

#include <cmath>

#include "heed/attention/base/multi_head_attention.h"
#include "heed/attention/inspect/page_data.h"
#include "heed/attention/variant.h"
#include "heed/tests/catch.h"

using namespace heed;

namespace {

constexpr int64_t length = 6, width = 12, num_heads = 4;

Tensor drawn_input(uint64_t seed) {
  Rng rng(seed);
  std::vector<float> values(static_cast<size_t>(length * width));
  for (float& x : values)
    x = static_cast<float>(std::sin(12.9898 * static_cast<double>(&x - values.data() + 7 * seed)));
  return Tensor::of<float>(values, Shape{1, length, width});
}

MapView empty_view() {
  MapView view;
  view.name = "attention";
  view.kind = "encoder self";
  view.heads = num_heads;
  view.queries = view.keys = length;
  view.query_tokens.assign(length, "a");
  view.key_tokens = view.query_tokens;
  return view;
}

struct Recorded {
  MapRecorder recorder;
  MapView view = empty_view();
  Tensor slopes;  // the gradient of the loss, which is the sum of output times slopes
};

Recorded recorded(Attention& attention, const Mask& mask) {
  Recorded out;
  out.recorder = recorder_for({.factors = true, .attribution = true});
  const Tensor x = drawn_input(1);
  out.slopes = drawn_input(2);
  const Tensor y =
      attention.forward({.queries = x, .keys = x, .mask = mask, .context = {.recorder = &out.recorder}});
  backward(sum(reshape(y * out.slopes, Shape{-1}), 0));
  out.view.weights = out.recorder.maps.at(0).weights.to_host();
  add_head_parts(out.view, out.recorder, 0);
  return out;
}

/// Weight times d loss / d weight, by the tape, with the recorded map as a leaf.
std::vector<float> by_autograd(const MultiHeadAttention& attention, const Recorded& found) {
  const Tensor map = leaf(contiguous(found.recorder.maps.at(0).weights));
  Tensor v =
      transpose(reshape(attention.value(drawn_input(1)), Shape{1, length, -1, width / num_heads}), 1, 2);
  const int64_t group = num_heads / v.extent(1);
  std::vector<Tensor> heads;
  for (int64_t head = 0; head < num_heads; ++head)
    heads.push_back(slice(v, 1, head / group, head / group + 1));
  const Tensor joined = reshape(transpose(matmul(map, concat(heads, 1)), 1, 2), Shape{1, length, width});
  backward(sum(reshape(attention.output(joined) * found.slopes, Shape{-1}), 0));
  return (map.detach() * grad_of(map)).to_host();
}

}  // namespace

TEST_CASE("head calls: attribution is weight times the gradient of the map") {
  for (const char* spec :
       {"softmax", "softmax causal", "softmax grouped", "additive", "linear", "fastmax", "hard"}) {
    INFO(spec);
    const std::string name = std::string(spec).substr(0, std::string(spec).find(' '));
    const bool is_causal = std::string(spec).ends_with("causal");
    Rng rng(5);
    const AttentionConfig config{.d_model = width,
                                 .heads = num_heads,
                                 .kv_heads = std::string(spec).ends_with("grouped") ? 2 : 0,
                                 .causal = is_causal,
                                 .max_length = length};
    const auto attention = make_attention(name, config, rng);
    const Recorded found = recorded(*attention, is_causal ? Mask::causal() : Mask::none());
    const std::vector<float> expected = by_autograd(dynamic_cast<MultiHeadAttention&>(*attention), found);
    REQUIRE(found.view.attribution.size() == expected.size());
    for (size_t i = 0; i < expected.size(); ++i)
      CHECK(found.view.attribution[i] == Approx(expected[i]).margin(2e-6));
  }
}

TEST_CASE("head calls: keeping heads changes no bit of an output") {
  for (const char* spec : {"softmax", "linear", "bigbird", "structured"}) {
    INFO(spec);
    Rng rng(5);
    const auto attention =
        make_attention(spec, {.d_model = width, .heads = num_heads, .max_length = length}, rng);
    MapRecorder recorder = recorder_for({.factors = true, .attribution = true});
    const Tensor x = drawn_input(1);
    const Tensor kept = attention->forward({.queries = x, .keys = x, .context = {.recorder = &recorder}});
    const Tensor plain = attention->forward({.queries = x, .keys = x});
    CHECK(kept.to_host() == plain.to_host());
    CHECK(recorder.calls.size() == 1);
  }
}

TEST_CASE("head calls: factors explain a softmax, with rope and grouped keys too, a feature map's do not") {
  for (const char* spec : {"softmax", "cosine", "window", "linear"}) {
    INFO(spec);
    Rng rng(5);
    AttentionConfig config{.d_model = width, .heads = num_heads, .max_length = length};
    if (std::string(spec) == "softmax") {
      config.kv_heads = 2;
      config.head_dim = 4;
      config.modifiers.position = PositionKind::rope;
    }
    const auto attention = make_attention(spec, config, rng);
    MapRecorder recorder = recorder_for({.factors = true});
    const NoGrad no_grad;
    const Tensor x = drawn_input(1);
    attention->forward({.queries = x, .keys = x, .context = {.recorder = &recorder}});
    MapView view = empty_view();
    view.weights = recorder.maps.at(0).weights.to_host();
    add_head_parts(view, recorder, 0);
    REQUIRE(view.factor_width > 0);
    CHECK(view.attribution.empty());
    const bool is_softmax = std::string(spec) != "linear";
    CHECK((picture::maps_json({view}, {}).find("\"softmax\":true") != std::string::npos) == is_softmax);
  }
}

TEST_CASE("head calls: a map that is not what the values are multiplied by gets no attribution") {
  for (const char* spec : {"hat", "longformer", "nystromformer"}) {
    Rng rng(5);
    const auto attention =
        make_attention(spec, {.d_model = width, .heads = num_heads, .max_length = length}, rng);
    const Recorded found = recorded(*attention, Mask::none());
    const bool is_product = variant_named(spec).traits.map == MapKind::exact ||
                            variant_named(spec).traits.map == MapKind::signed_;
    INFO(spec);
    CHECK(found.view.attribution.empty() != is_product);
  }
}

TEST_CASE("head calls: the likeliest class is explained, and a sum of chosen ones") {
  const Tensor scores = leaf(Tensor::of<float>(std::vector<float>{1, 3, 2, 5, 4, 4}, Shape{2, 3}));
  CHECK(likeliest(scores) == std::vector<int32_t>{1, 0});
  explain_choice(scores, {.attribution = true});
  const std::vector<float> grad = grad_of(scores).to_host();
  // d log p_chosen / d score is 1 - p for the chosen class and -p for the others.
  const double total = std::exp(1.0) + std::exp(3.0) + std::exp(2.0);
  CHECK(grad[1] == Approx(1 - std::exp(3.0) / total).margin(1e-6));
  CHECK(grad[0] == Approx(-std::exp(1.0) / total).margin(1e-6));
  const Tensor again = leaf(scores.detach());
  explain_choice(again, {.attribution = true}, {2, 2});
  CHECK(grad_of(again).to_host()[0] == Approx(-std::exp(1.0) / total).margin(1e-6));
  const Tensor untouched = leaf(scores.detach());
  explain_choice(untouched, {});
  CHECK_FALSE(grad_of(untouched));
}
