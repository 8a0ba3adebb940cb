// States of one forward pass put into another.
#include "heed/attention/inspect/state_exchange.h"

#include "heed/attention/variant.h"
#include "heed/nn/transformer.h"
#include "heed/tests/catch.h"

using namespace heed;

namespace {

constexpr int64_t length = 5;

std::unique_ptr<DecoderOnly> model_with(const std::string& spec, int64_t taps = 0) {
  Rng rng(5);
  const TransformerConfig config{
      .d_model = 12, .heads = 2, .d_ff = 16, .layers = 2, .max_length = length, .short_convolution = taps};
  return std::make_unique<DecoderOnly>(config, 9, attention_factory(spec), rng);
}

const Tensor base_ids =
    Tensor::of<int32_t>(std::vector<int32_t>{1, 2, 3, 4, 5, 6, 7, 8, 1, 2}, Shape{2, length});
const Tensor other_ids =
    Tensor::of<int32_t>(std::vector<int32_t>{4, 4, 1, 2, 3, 3, 2, 1, 7, 8}, Shape{2, length});

std::vector<double> outputs(DecoderOnly& model, const Tensor& ids, HeadEditor* editor = nullptr) {
  const NoGrad no_grad;
  return model.hidden(ids, {.editor = editor}).to_doubles();
}

/// 1 at these places of both sequences.
Tensor mask_at(const std::vector<int64_t>& places) {
  std::vector<float> mask(2 * length);
  for (const int64_t place : places)
    mask[static_cast<size_t>(place)] = mask[static_cast<size_t>(place + length)] = 1;
  return Tensor::of<float>(mask, Shape{2, length});
}

/// A StateExchange that has recorded the other sequences.
StateExchange recorded(DecoderOnly& model) {
  StateExchange states;
  states.record();
  outputs(model, other_ids, &states);
  return states;
}

std::vector<double> row(const std::vector<double>& values, int64_t place) {
  const auto width = static_cast<std::ptrdiff_t>(values.size() / (2 * length));
  return {values.begin() + place * width, values.begin() + (place + 1) * width};
}

}  // namespace

TEST_CASE("state exchange: each site is recorded, and recording changes nothing") {
  for (const std::string spec : {"softmax", "linear", "gla", "mla"}) {
    CAPTURE(spec);
    const auto model = model_with(spec);
    StateExchange states;
    states.record();
    CHECK(outputs(*model, base_ids, &states) == outputs(*model, base_ids));
    std::map<StateKind, int64_t> layers;
    for (const StateSite& site : states.sites()) ++layers[site.kind];
    CHECK(layers[StateKind::stream] == 3);
    CHECK(layers[StateKind::input] == 2);
    CHECK(layers[StateKind::output] == 2);
    CHECK(layers[StateKind::keys] == (spec == "mla" ? 0 : 2));
    CHECK(layers[StateKind::values] == layers[StateKind::keys]);
  }
}

TEST_CASE("state exchange: the whole stream gives the other outputs, no place gives one's own") {
  for (const std::string spec : {"softmax", "gla"}) {
    CAPTURE(spec);
    const auto model = model_with(spec, 2);
    const auto own = outputs(*model, base_ids), other = outputs(*model, other_ids);
    StateExchange states = recorded(*model);
    for (const StateSite& site : states.sites()) {
      CAPTURE(to_string(site.kind), site.layer);
      states.replace(site, mask_at({}));
      CHECK(outputs(*model, base_ids, &states) == own);
      states.replace(site, mask_at({0, 1, 2, 3, 4}));
      const auto all = outputs(*model, base_ids, &states);
      if (site.kind == StateKind::stream)
        CHECK(all == other);
      else
        CHECK(all != own);
    }
  }
}

TEST_CASE("state exchange: a place decides about itself and later ones alone") {
  const auto model = model_with("softmax");
  const auto own = outputs(*model, base_ids), other = outputs(*model, other_ids);
  StateExchange states = recorded(*model);
  states.replace({StateKind::stream, 2}, mask_at({3}));  // behind the last block: only the norm follows
  const auto last = outputs(*model, base_ids, &states);
  for (int64_t place = 0; place < length; ++place)
    CHECK(row(last, place) == row(place == 3 ? other : own, place));
  for (const StateSite site : {StateSite{StateKind::stream, 0},
                               {StateKind::input, 1},
                               {StateKind::keys, 0},
                               {StateKind::values, 1},
                               {StateKind::output, 0}}) {
    CAPTURE(to_string(site.kind), site.layer);
    states.replace(site, mask_at({2}));
    const auto edited = outputs(*model, base_ids, &states);
    for (int64_t place = 0; place < 2; ++place) CHECK(row(edited, place) == row(own, place));
    CHECK(row(edited, 2) != row(own, 2));
  }
}

TEST_CASE("state exchange: what was not recorded, or has another shape, is refused") {
  const auto model = model_with("softmax");
  StateExchange states;
  CHECK_THROWS_WITH(states.replace({StateKind::stream, 0}, mask_at({})),
                    Catch::Contains("stream of layer 0 was not recorded"));
  states = recorded(*model);
  CHECK_THROWS_WITH(states.replace({StateKind::keys, 2}, mask_at({})),
                    Catch::Contains("keys of layer 2 was not recorded"));
  states.replace({StateKind::stream, 0}, mask_at({1}));
  CHECK_THROWS_WITH(outputs(*model, Tensor::of<int32_t>(std::vector<int32_t>{1, 2}, Shape{1, 2}), &states),
                    Catch::Contains("inputs of one shape"));
}
