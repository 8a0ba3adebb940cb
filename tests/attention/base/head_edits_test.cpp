// HeadEditor in every attention: edited outputs and maps, and the bits of what is not edited.
#include "heed/attention/base/head_edits.h"

#include <algorithm>
#include <cmath>

#include "heed/attention/base/multi_head_attention.h"
#include "heed/attention/variant.h"
#include "heed/tests/catch.h"

using namespace heed;

namespace {

constexpr int64_t length = 16, width = 16, heads = 2;

std::unique_ptr<Attention> made(const Variant& variant, Rng& rng) {
  return make_attention(
      variant, {variant.traits.name, {}},
      {.d_model = width, .heads = heads, .causal = !variant.traits.bidirectional, .max_length = length}, rng);
}

AttentionInput input_of(const Tensor& x, const Variant& variant, HeadEditor* editor) {
  return {.queries = x,
          .keys = x,
          .mask = variant.traits.bidirectional ? Mask() : Mask::causal(),
          .context = {.editor = editor}};
}

Tensor random_input(Rng& rng) {
  Tensor x(Shape{2, length, width});
  fill_normal(x, 0, 1, rng);
  return x;
}

double worst(const Tensor& a, const Tensor& b) {
  const std::vector<double> x = contiguous(a).to_doubles(), y = contiguous(b).to_doubles();
  REQUIRE(x.size() == y.size());
  double out = 0;
  for (size_t i = 0; i < x.size(); ++i) out = std::max(out, std::abs(x[i] - y[i]));
  return out;
}

/// Zeroes the output of one head, and counts calls.
struct ZeroHead final : HeadEditor {
  Tensor edit_heads(const Module&, const Tensor& y, const AttentionInput&) override {
    ++calls;
    shape = y.shape();
    return concat(std::vector<Tensor>{slice(y, 1, 0, 1), slice(y, 1, 1, 2) * 0.0}, 1);
  }
  int calls = 0;
  Shape shape;
};

/// Gives maps back as they are, or doubled, for chosen heads.
struct MapOf final : HeadEditor {
  explicit MapOf(std::vector<int64_t> of, double by = 1) : chosen(std::move(of)), factor(by) {}
  std::vector<int64_t> mapped_heads(const Module&) const override { return chosen; }
  Tensor edit_map(const Module&, const Tensor& map, const AttentionInput&) override { return map * factor; }
  std::vector<int64_t> chosen;
  double factor;
};

}  // namespace

TEST_CASE("head edits: every attention with heads gives their outputs, and zeroing one changes the result") {
  for (const Variant& variant : variants()) {
    CAPTURE(variant.traits.name);
    Rng rng(7);
    const NoGrad no_grad;
    const auto attention = made(variant, rng);
    const Tensor x = random_input(rng);
    const Tensor plain = attention->forward(input_of(x, variant, nullptr));
    ZeroHead editor;
    const Tensor edited = attention->forward(input_of(x, variant, &editor));
    if (variant.traits.name == std::string("lstmn")) {
      CHECK(editor.calls == 0);  // it has a state, and no heads
      continue;
    }
    CHECK(editor.calls == 1);
    CHECK((editor.shape[0] == 2 && editor.shape[1] == heads && editor.shape[2] == length));
    CHECK(worst(plain, edited) > 1e-4);
    HeadEditor nothing;
    CHECK(worst(plain, attention->forward(input_of(x, variant, &nothing))) == 0);
  }
}

TEST_CASE("head edits: zeroing a head is what zeros in its columns of the output projection are") {
  Rng rng(3);
  const NoGrad no_grad;
  const auto attention = made(variant_named("softmax"), rng);
  const Tensor x = random_input(rng);
  ZeroHead editor;
  const Tensor edited = attention->forward(input_of(x, variant_named("softmax"), &editor));
  Tensor& weight = dynamic_cast<MultiHeadAttention&>(*attention).output.weight;
  std::vector<float> values = weight.to_host();  // [width, heads d]
  for (int64_t row = 0; row < width; ++row)
    std::fill_n(values.begin() + row * width + width / 2, width / 2, 0.0F);
  weight = Tensor::from(values, weight.shape());
  CHECK(worst(edited, attention->forward(input_of(x, variant_named("softmax"), nullptr))) < 1e-6);
}

TEST_CASE("head edits: the map times the values replaces a head's output where that is what it computes") {
  int edited_variants = 0;
  for (const Variant& variant : variants()) {
    CAPTURE(variant.traits.name);
    Rng rng(11);
    const NoGrad no_grad;
    const auto attention = made(variant, rng);
    if (variant.traits.name == std::string("lstmn")) continue;
    const Tensor x = random_input(rng);
    const MapKind kind = variant.traits.map;
    MapOf same({0, 1}), doubled({0, 1}, 2);
    if (kind == MapKind::none || kind == MapKind::stages) {
      CHECK_THROWS_WITH(attention->forward(input_of(x, variant, &same)),
                        containing("Edit the outputs of its heads"));
      continue;
    }
    const Tensor plain = attention->forward(input_of(x, variant, nullptr));
    Tensor unchanged;
    try {
      unchanged = attention->forward(input_of(x, variant, &same));
    } catch (const Error& error) {
      CHECK(kind == MapKind::inside);
      CHECK(std::string(error.what()).find("is not its output") != std::string::npos);
      continue;
    }
    ++edited_variants;
    CHECK(worst(plain, unchanged) < 2e-3 * variant.traits.tolerance);
    CHECK(worst(plain * 2.0, attention->forward(input_of(x, variant, &doubled))) <
          4e-3 * variant.traits.tolerance);
  }
  CHECK(edited_variants > 30);
}

TEST_CASE("head edits: heads that are not edited keep their bits, the recorder gets the map that was used") {
  Rng rng(5);
  const NoGrad no_grad;
  const Variant& variant = variant_named("softmax");
  const auto attention = made(variant, rng);
  const Tensor x = random_input(rng);
  struct Seen final : HeadEditor {
    std::vector<int64_t> mapped_heads(const Module&) const override { return chosen; }
    Tensor edit_map(const Module&, const Tensor& map, const AttentionInput&) override { return map * 0.0; }
    Tensor edit_heads(const Module&, const Tensor& y, const AttentionInput&) override {
      return heads_seen = y;
    }
    std::vector<int64_t> chosen;
    Tensor heads_seen;
  } plain, editor;
  attention->forward(input_of(x, variant, &plain));
  editor.chosen = {1};
  MapRecorder recorder;
  AttentionInput input = input_of(x, variant, &editor);
  input.context.recorder = &recorder;
  attention->forward(input);
  CHECK(worst(slice(plain.heads_seen, 1, 0, 1), slice(editor.heads_seen, 1, 0, 1)) < 1e-6);
  CHECK(worst(slice(editor.heads_seen, 1, 1, 2), slice(editor.heads_seen, 1, 1, 2) * 0.0) == 0);
  REQUIRE(recorder.maps.size() == 1);
  const Tensor used = recorder.maps[0].weights;
  CHECK(worst(slice(used, 1, 1, 2), slice(used, 1, 1, 2) * 0.0) == 0);
  CHECK(worst(sum(slice(used, 1, 0, 1), 3), sum(slice(used, 1, 0, 1), 3) * 0.0 + 1.0) < 1e-5);
  editor.chosen = {2};
  CHECK_THROWS_WITH(attention->forward(input_of(x, variant, &editor)), containing("there is no head 2"));
}

TEST_CASE("head edits: gradients flow through edited outputs") {
  Rng rng(9);
  const auto attention = made(variant_named("softmax"), rng);
  const Tensor x = random_input(rng);
  struct Gate final : HeadEditor {
    Tensor edit_heads(const Module&, const Tensor& y, const AttentionInput&) override { return y * gate; }
    Tensor gate;
  } editor;
  const auto loss = [&](float second) {
    const std::vector<float> values{1, second};
    editor.gate = leaf(Tensor::from(values, Shape{1, 2, 1, 1}));
    return sum(square(attention->forward(input_of(x, variant_named("softmax"), &editor))));
  };
  backward(loss(0.5F));
  const double slope = grad_of(editor.gate).to_doubles()[1];
  const double numeric = (loss(0.51F).item() - loss(0.49F).item()) / 0.02;
  CHECK(slope == Approx(numeric).epsilon(1e-2));
  CHECK(std::abs(slope) > 1e-3);
}
