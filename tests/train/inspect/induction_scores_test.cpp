// Scores on repeated sequences, against plain sums over maps, and of an attention with a known map.
#include "heed/train/inspect/induction_scores.h"

#include "heed/attention/variant.h"
#include "heed/nn/embedding.h"
#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"

using namespace heed;

namespace {

/// An attention whose head 0 looks at the token behind the previous occurrence, and head 1 at the token
/// before.
struct KnownMap final : Attention {
  Tensor forward(const AttentionInput& input) override {
    const int64_t length = input.queries.extent(1);
    std::vector<float> map(static_cast<size_t>(2 * length * length));
    for (int64_t query = 0; query < length; ++query) {
      const int64_t induced = query >= period ? query - period + 1 : 0,
                    before = std::max<int64_t>(query - 1, 0);
      map[static_cast<size_t>(query * length + induced)] = 1;
      map[static_cast<size_t>((length + query) * length + before)] = 1;
    }
    const Tensor one = Tensor::of<float>(map, Shape{1, 2, length, length});
    if (input.context.recorder != nullptr && records)
      input.context.recorder->record(*this, expand(one, Shape{input.queries.extent(0), 2, length, length}));
    if (input.context.editor != nullptr)
      input.context.editor->edit_heads(*this, Tensor::zeros(Shape{1, 2, length, 1}), input);
    return input.queries;
  }
  void fields(Fields&) override {}
  int64_t period = 5;
  bool records = true;
};

struct Model final : Module {
  explicit Model(Rng& rng) : tokens(11, 8, Init::normal, rng, 1) {
    attentions.push_back(attention_factory("softmax")({.d_model = 8, .heads = 2, .causal = true}, rng));
    attentions.push_back(std::make_unique<KnownMap>());
  }
  Tensor operator()(const Tensor& ids, const ForwardContext& context) const {
    Tensor x = tokens(ids);
    for (const auto& attention : attentions)
      x = x + attention->forward({.queries = x, .keys = x, .mask = Mask::causal(), .context = context});
    return x;
  }
  void fields(Fields& f) override {
    f("tokens", tokens);
    f("attentions", attentions);
  }
  Embedding tokens;
  std::vector<std::unique_ptr<Attention>> attentions;
};

}  // namespace

TEST_CASE("induction scores: sequences repeat once, and their tokens depend on the seed") {
  const Tensor ids = repeated_sequences({.vocabulary = 11, .period = 5, .sequences = 3});
  REQUIRE(ids.shape() == Shape{3, 10});
  const std::vector<double> all = ids.to_doubles();
  for (size_t row = 0; row < 3; ++row)
    for (size_t i = 0; i < 5; ++i) {
      CHECK(all[row * 10 + i] == all[row * 10 + 5 + i]);
      CHECK((all[row * 10 + i] >= 0 && all[row * 10 + i] < 11));
    }
  CHECK(repeated_sequences({.vocabulary = 11, .period = 5, .sequences = 3, .seed = 2}).to_doubles() != all);
  CHECK(repeated_sequences({.vocabulary = 11, .period = 5, .sequences = 3, .seed = 1}).to_doubles() == all);
}

TEST_CASE("induction scores: means of weights over sequences, and 1 for heads that only do that") {
  Rng rng(1);
  Model model(rng);
  const RepeatOptions options{.vocabulary = 11, .period = 5, .sequences = 3};
  const auto scores = induction_scores(
      model, [&](const Tensor& ids, const ForwardContext& context) { model(ids, context); }, options);
  REQUIRE(scores.size() == 4);
  MapRecorder recorder;
  model(repeated_sequences(options), {.recorder = &recorder});
  const std::vector<double> map = recorder.maps[0].weights.to_doubles();  // [3, 2, 10, 10]
  for (size_t head = 0; head < 2; ++head) {
    double induction = 0, previous = 0;
    for (size_t row = 0; row < 3; ++row) {
      const auto weight = [&](size_t query, size_t key) {
        return map[((row * 2 + head) * 10 + query) * 10 + key];
      };
      for (size_t query = 5; query < 10; ++query) induction += weight(query, query - 4) / 15;
      for (size_t query = 1; query < 10; ++query) previous += weight(query, query - 1) / 27;
    }
    CHECK(scores[head].head.name == text("attentions.0.", head));
    CHECK(scores[head].scores.induction == Approx(induction));
    CHECK(scores[head].scores.previous == Approx(previous));
  }
  CHECK(scores[2].head.name == "attentions.1.0");
  CHECK(scores[2].scores.induction == 1);
  CHECK(scores[3].scores.previous == 1);
  CHECK(scores[3].scores.induction == 0);
}

TEST_CASE("induction scores: illegal options, and attentions without a map, are refused by name") {
  Rng rng(1);
  Model model(rng);
  const auto forward = [&](const Tensor& ids, const ForwardContext& context) { model(ids, context); };
  CHECK_THROWS_WITH(induction_scores(model, forward, {}),
                    containing("RepeatOptions::vocabulary = 0. It must be at least 2"));
  CHECK_THROWS_WITH(induction_scores(model, forward, {.vocabulary = 9, .period = 1}),
                    containing("period = 1"));
  CHECK_THROWS_WITH(induction_scores(model, forward, {.vocabulary = 9, .sequences = 0}),
                    containing("sequences = 0"));
  CHECK_THROWS_WITH(induction_scores(model, [&](const Tensor& ids, const ForwardContext&) { model(ids, {}); },
                                     {.vocabulary = 9}),
                    containing("no heads that can be edited"));
  dynamic_cast<KnownMap&>(*model.attentions[1]).records = false;
  CHECK_THROWS_WITH(induction_scores(model, forward, {.vocabulary = 9}),
                    containing("the attention attentions.1 recorded no map"));
  dynamic_cast<KnownMap&>(*model.attentions[1]).records = true;
  CHECK_THROWS_WITH(induction_scores(model,
                                     [&](const Tensor& ids, const ForwardContext& context) {
                                       model(slice(ids, 1, 0, 5), context);
                                     },
                                     {.vocabulary = 9, .period = 5}),
                    containing("a map of 5 x 5 is no repetition after 5 tokens"));
}
