// Ablation and patching of heads of a model of its own, against outputs that are projected by hand.
#include "heed/attention/base/multi_head_attention.h"
#include "heed/attention/inspect/head_effects.h"
#include "heed/attention/inspect/head_patch.h"
#include "heed/attention/variant.h"
#include "heed/core/settings_in_errors.h"
#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"

using namespace heed;

namespace {

constexpr int64_t width = 6, num_heads = 3;

/// Two attentions, each added to its input.
struct TwoAttentions final : Module {
  explicit TwoAttentions(const std::string& spec = "softmax") {
    Rng rng(3);
    const AttentionConfig config{.d_model = width, .heads = num_heads, .causal = true};
    for (int i = 0; i < 2; ++i) {
      attentions.push_back(attention_factory(spec)(config, rng));
      auto& heads = dynamic_cast<MultiHeadAttention&>(*attentions.back());
      for (Linear* linear : {&heads.query, &heads.key, &heads.value, &heads.output})
        fill_normal(linear->weight, 0, 0.5, rng);
    }
  }
  Tensor operator()(const Tensor& x, const ForwardContext& context) const {
    Tensor y = x;
    for (const auto& attention : attentions)
      y = y + attention->forward({.queries = y, .keys = y, .mask = Mask::causal(), .context = context});
    return y;
  }
  void fields(Fields& f) override { f("attentions", attentions); }
  std::vector<std::unique_ptr<Attention>> attentions;
};

Tensor random_input(uint64_t seed) {
  Rng rng(seed);
  const Tensor x = Tensor::zeros(Shape{2, 4, width});
  fill_normal(x, 0, 1, rng);
  return x;
}

std::vector<ModelHead> heads_of(TwoAttentions& model) {
  return heads_of_model(model, [&](const ForwardContext& context) { model(random_input(1), context); });
}

/// The outputs [2, H, 4, d] of the heads of each attention.
std::vector<Tensor> outputs_of(TwoAttentions& model, const Tensor& x, HeadEditor* editor = nullptr) {
  const NoGrad no_grad;
  MapRecorder recorder;
  recorder.keep_heads = true;
  model(x, {.recorder = &recorder, .editor = editor});
  return {recorder.calls.at(0).output, recorder.calls.at(1).output};
}

/// The output of the model when the heads of attention `layer` give `heads`, computed with plain loops up to
/// the next attention.
std::vector<double> with_outputs(TwoAttentions& model, const Tensor& x, size_t layer,
                                 const std::vector<double>& heads) {
  const NoGrad no_grad;
  const Tensor in =
      layer == 0 ? x : x + model.attentions[0]->forward({.queries = x, .keys = x, .mask = Mask::causal()});
  const std::vector<double> weight =
      dynamic_cast<MultiHeadAttention&>(*model.attentions[layer]).output.weight.to_doubles();
  std::vector<double> sums = in.to_doubles();  // [2, 4, width]
  constexpr int64_t d = width / num_heads;
  for (int64_t b = 0; b < 2; ++b)
    for (int64_t t = 0; t < 4; ++t)
      for (int64_t to = 0; to < width; ++to)
        for (int64_t h = 0; h < num_heads; ++h)
          for (int64_t i = 0; i < d; ++i)
            sums[static_cast<size_t>((b * 4 + t) * width + to)] +=
                weight[static_cast<size_t>(to * width + h * d + i)] *
                heads[static_cast<size_t>(((b * num_heads + h) * 4 + t) * d + i)];
  if (layer == 1) return sums;
  const std::vector<float> narrow(sums.begin(), sums.end());
  const Tensor y = Tensor::of<float>(narrow, x.shape());
  return (y + model.attentions[1]->forward({.queries = y, .keys = y, .mask = Mask::causal()})).to_doubles();
}

void check_close(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i) CHECK(a[i] == Approx(b[i]).epsilon(1e-4).margin(1e-4));
}

/// `outputs` [2, H, 4, d] with f(batch row, position, index) in place of a head's.
template <class F>
std::vector<double> with_head(const Tensor& outputs, int64_t head, const F& f) {
  std::vector<double> out = outputs.to_doubles();
  constexpr int64_t d = width / num_heads;
  for (int64_t b = 0; b < 2; ++b)
    for (int64_t t = 0; t < 4; ++t)
      for (int64_t i = 0; i < d; ++i)
        out[static_cast<size_t>(((b * num_heads + head) * 4 + t) * d + i)] = f(b, t, i);
  return out;
}

double at(const Tensor& outputs, int64_t b, int64_t head, int64_t t, int64_t i) {
  const int64_t d = width / num_heads;
  return outputs.to_doubles()[static_cast<size_t>(((b * num_heads + head) * 4 + t) * d + i)];
}

}  // namespace

TEST_CASE("head editors: the heads of a model of its own are named by its attentions") {
  TwoAttentions model;
  const std::vector<ModelHead> all = heads_of(model);
  REQUIRE(all.size() == 6);
  CHECK(all[4].name == "attentions.1.1");
  CHECK(all[4].layer == "attentions.1");
  CHECK(all[4].module == model.attentions[1].get());
  CHECK(all[4].head == 1);
  CHECK(named_heads(all, "attentions.0.2,attentions.1").size() == 4);
  CHECK(named_heads(all, " attentions.0.2, attentions.1 ").size() == 4);
  CHECK_THROWS_WITH(named_heads(all, "attentions.0.3"),
                    containing("named_heads: there is no head 'attentions.0.3'. There are: attentions.0.0 to "
                               "attentions.0.2, attentions.1.0 to attentions.1.2"));
  CHECK_THROWS_WITH(heads_of_model(model, [](const ForwardContext&) {}), containing("no heads"));
  TwoAttentions other;
  CHECK_THROWS_WITH(
      heads_of_model(model, [&](const ForwardContext& context) { other(random_input(1), context); }),
      containing("not part of the model. List it in fields()"));
}

TEST_CASE("head editors: an ablated head gives zeros, or its mean over batch and positions") {
  for (const char* spec : {"softmax", "linear"}) {
    TwoAttentions model(spec);
    const NoGrad no_grad;
    const Tensor x = random_input(2);
    const std::vector<Tensor> outputs = outputs_of(model, x);
    for (const ModelHead& head : heads_of(model)) {
      CAPTURE(spec, head.name);
      const size_t layer = head.module == model.attentions[0].get() ? 0 : 1;
      HeadAblation zero({}), mean({.kind = HeadReplacement::Kind::mean});
      zero.replace({head});
      mean.replace({head});
      check_close(
          model(x, {.editor = &zero}).to_doubles(),
          with_outputs(model, x, layer,
                       with_head(outputs[layer], head.head, [](int64_t, int64_t, int64_t) { return 0.0; })));
      const auto mean_of = [&](int64_t, int64_t, int64_t i) {
        double sum = 0;
        for (int64_t b = 0; b < 2; ++b)
          for (int64_t t = 0; t < 4; ++t) sum += at(outputs[layer], b, head.head, t, i) / 8;
        return sum;
      };
      const std::vector<double> plain =
          with_outputs(model, x, layer, with_head(outputs[layer], head.head, mean_of));
      check_close(model(x, {.editor = &mean}).to_doubles(), plain);
      // Means of other passes: those of this very input are the same.
      MeanOutputCollector collector;
      CHECK(model(x, {.editor = &collector}).to_doubles() == model(x, {}).to_doubles());
      const MeanOutputs means = collector.means();
      HeadAblation by_means({.kind = HeadReplacement::Kind::mean}, &means);
      by_means.replace({head});
      check_close(model(x, {.editor = &by_means}).to_doubles(), plain);
    }
  }
}

TEST_CASE("head editors: a patched head gives what it gave in the recorded pass") {
  TwoAttentions model;
  const NoGrad no_grad;
  const Tensor x = random_input(2), other = random_input(5);
  MapRecorder recorder;
  recorder.keep_heads = true;
  model(other, {.recorder = &recorder});
  HeadPatch patch(recorder);
  const std::vector<Tensor> outputs = outputs_of(model, x), recorded = outputs_of(model, other);
  for (const ModelHead& head : heads_of(model)) {
    CAPTURE(head.name);
    const size_t layer = head.module == model.attentions[0].get() ? 0 : 1;
    patch.replace({head});
    check_close(model(x, {.editor = &patch}).to_doubles(),
                with_outputs(model, x, layer,
                             with_head(outputs[layer], head.head, [&](int64_t b, int64_t t, int64_t i) {
                               return at(recorded[layer], b, head.head, t, i);
                             })));
  }
  patch.replace({});
  CHECK(model(x, {.editor = &patch}).to_doubles() == model(x, {}).to_doubles());
}

TEST_CASE("head editors: the effect of each head is the change of the loss without it") {
  TwoAttentions model;
  const Tensor x = random_input(2);
  const auto loss = [&](const ForwardContext& context) {
    double squares = 0;
    for (const double value : model(x, context).to_doubles()) squares += value * value;
    return squares;
  };
  const std::vector<ModelHead> all = heads_of(model);
  const std::vector<HeadEffect> effects = head_effects(model, loss);
  REQUIRE(effects.size() == all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    HeadAblation ablation({});
    ablation.replace({all[i]});
    CHECK(effects[i].head.name == all[i].name);
    CHECK(effects[i].loss == loss({.editor = &ablation}));
    CHECK(effects[i].change == effects[i].loss - loss({}));
    CHECK(effects[i].change != 0);
  }
  const std::vector<HeadEffect> some = head_effects(model, loss, {all[4]}, {HeadReplacement::Kind::uniform});
  REQUIRE(some.size() == 1);
  HeadAblation uniform({HeadReplacement::Kind::uniform});
  uniform.replace({all[4]});
  CHECK(some[0].loss == loss({.editor = &uniform}));
  ModelHead none = all[4];
  none.head = 3;
  CHECK_THROWS_WITH(head_effects(model, loss, {none}),
                    containing("the model has no head 'attentions.1.1', head 3"));
  TwoAttentions other;
  CHECK_THROWS_WITH(head_effects(model, loss, {heads_of(other)[0]}), containing("the model has no head"));
}

TEST_CASE("head editors: an ablation of heads of another model is refused when an attention is called") {
  TwoAttentions model, other;
  const NoGrad no_grad;
  const Tensor x = random_input(2);
  for (const auto kind : {HeadReplacement::Kind::zero, HeadReplacement::Kind::uniform}) {
    HeadAblation ablation({.kind = kind});
    ablation.replace({heads_of(other)[4]});
    CHECK_THROWS_WITH(model(x, {.editor = &ablation}),
                      containing("outside of the model that the head 'attentions.1.1' is of"));
    ablation.replace({heads_of(model)[0], heads_of(other)[4]});  // an ensemble of both
    CHECK_NOTHROW(model(x, {.editor = &ablation}));
    CHECK_NOTHROW(other(x, {.editor = &ablation}));
    ablation.replace({});
    CHECK_NOTHROW(model(x, {.editor = &ablation}));
  }
}

TEST_CASE("head editors: heads that do not exist and passes that do not fit are refused by name") {
  TwoAttentions model;
  const NoGrad no_grad;
  const Tensor x = random_input(2);
  std::vector<ModelHead> heads = heads_of(model);
  for (const int64_t number : {-1, 3}) {
    heads[0].head = number;
    for (const auto kind : {HeadReplacement::Kind::zero, HeadReplacement::Kind::mean}) {
      HeadAblation ablation({.kind = kind});
      ablation.replace({heads[0]});
      CHECK_THROWS_WITH(
          model(x, {.editor = &ablation}),
          containing(text("there is no head ", number, "; heads of this attention are 0 to 2")));
    }
  }
  HeadAblation ablation({});
  CHECK_THROWS_WITH(ablation.replace({ModelHead{}}), containing("has no attention"));
  const MeanOutputs no_means;
  HeadAblation without_means({.kind = HeadReplacement::Kind::mean}, &no_means);
  without_means.replace({heads[1]});
  CHECK_THROWS_WITH(model(x, {.editor = &without_means}), containing("there is no mean output"));

  MapRecorder recorder;
  model(x, {.recorder = &recorder});
  CHECK_THROWS_WITH(HeadPatch(recorder), containing("kept no outputs of heads. Set its keep_heads"));
  recorder.keep_heads = true;
  model(x, {.recorder = &recorder});
  HeadPatch patch(recorder);
  CHECK_THROWS_WITH(patch.replace({heads[0]}), containing("HeadPatch: there is no head 3; heads of this"));
  TwoAttentions other;
  CHECK_THROWS_WITH(patch.replace({heads_of(other)[0]}), containing("'attentions.0.0' was not recorded"));
  patch.replace({heads[1]});
  CHECK_THROWS_WITH(model(contiguous(view::slice(x, 1, 0, 3)), {.editor = &patch}),
                    containing("the heads of an attention give [2, 3, 3, 2], and [2, 3, 4, 2] was recorded"));
  model(x, {.recorder = &recorder});
  CHECK_THROWS_WITH(HeadPatch(recorder).replace({heads[1]}), containing("was recorded in 2 calls"));
  CHECK_THROWS_WITH(HeadReplacement::parse("zeros"), containing("HeadReplacement 'zeros' is unknown"));
  for (const char* width : {"-1", "x", "1000000"})
    CHECK_THROWS_WITH(HeadReplacement::parse(text("band:w=", width)),
                      containing(text("w = ", width, ". It must be 0 to 999999: band:w=3 keeps")));
  const SettingsSourceScope shell(SettingsSource::command_line);
  CHECK_THROWS_WITH(HeadReplacement::parse("zeros"), containing("--by 'zeros' is unknown"));
  CHECK_THROWS_WITH(named_heads(heads_of(model), "x"), containing("--heads: there is no head 'x'"));
}
