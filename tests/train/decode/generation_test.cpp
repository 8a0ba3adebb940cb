// Generation with DecoderOnly and with a model of its own, against full recomputation without a cache.
#include <algorithm>
#include <cmath>

#include "heed/autograd/in_place.h"
#include "heed/core/settings_in_errors.h"
#include "heed/tests/any_device.h"
#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"
#include "heed/tests/train/decode/own_model.h"
#include "heed/train/decode/beam_search.h"
#include "heed/train/decode/greedy.h"
#include "heed/train/decode/sampling.h"

using namespace heed;

namespace {

using Ids = std::vector<int32_t>;

constexpr int64_t num_tokens = 7, context_length = 10;

/// A model that reads 10 tokens, and the logits that it computes at once.
struct Continued {
  std::unique_ptr<AutoregressiveModel> model;
  std::function<Tensor(const Tensor& ids)> all_logits;  // [1, T, V]

  /// Logits of the token behind `context`.
  std::vector<float> after(const Ids& context) const {
    const NoGrad no_grad;
    const auto count = static_cast<int64_t>(context.size());
    return slice(all_logits(Tensor::of<int32_t>(context, Shape{1, count})), 1, count - 1, count).to_host();
  }
  std::vector<double> log_after(const Ids& context) const {
    double total = 0;
    const std::vector<float> logits = after(context);
    for (const float x : logits) total += std::exp(static_cast<double>(x));
    std::vector<double> out;
    for (const float x : logits) out.push_back(x - std::log(total));
    return out;
  }
};

Continued own_model(uint64_t seed = 1) {
  Rng rng(seed);
  auto model = std::make_unique<OwnModel>(num_tokens, context_length, attention_factory("softmax"), rng);
  OwnModel& own = *model;
  return {std::move(model), [&own](const Tensor& ids) { return own(ids, {}); }};
}

Continued decoder_only(uint64_t seed = 1) {
  Rng rng(seed);
  auto model = std::make_unique<DecoderOnly>(
      TransformerConfig{.d_model = 8, .heads = 2, .d_ff = 8, .max_length = context_length, .dropout = 0},
      num_tokens, attention_factory("softmax"), rng);
  DecoderOnly& own = *model;
  fill_normal(own.output->weight, 0, 1.5, rng);
  return {std::move(model), [&own](const Tensor& ids) { return own(ids, {}); }};
}

/// Appends `count` tokens that `choose` takes, and returns them; a context that has grown past the model's
/// is cut to its newest half.
template <class Choose>
Ids plain(Ids context, int64_t count, const Choose& choose) {
  Ids made;
  if (std::ssize(context) > context_length) context.erase(context.begin(), context.end() - context_length);
  while (std::ssize(made) < count) {
    if (std::ssize(context) > context_length)
      context.erase(context.begin(), context.end() - context_length / 2);
    made.push_back(choose(context));
    context.push_back(made.back());
  }
  return made;
}

Ids plain_greedy(const Continued& to, const Ids& prompt, int64_t count) {
  return plain(prompt, count, [&](const Ids& context) {
    const std::vector<float> logits = to.after(context);
    return static_cast<int32_t>(std::ranges::max_element(logits) - logits.begin());
  });
}

Ids plain_sample(const Continued& to, const Ids& prompt, SampleOptions options) {
  Rng rng(options.seed);
  return plain(prompt, options.max_new_tokens, [&](const Ids& context) {
    std::vector<float> logits = to.after(context);
    return draw_token(logits, options, context, rng);
  });
}

/// The best of all outputs of at most `longest` tokens, which end at `stop`.
void search_all(const Continued& to, const Ids& prompt, int64_t longest, const Ids& stop,
                const Hypothesis& made, Hypothesis& best) {
  Ids context = prompt;
  context.insert(context.end(), made.ids.begin(), made.ids.end());
  const std::vector<double> scores = to.log_after(context);
  for (int32_t id = 0; id < num_tokens; ++id) {
    Hypothesis next{made.ids, made.score + scores[static_cast<size_t>(id)]};
    const bool ends = std::ranges::find(stop, id) != stop.end();
    if (!ends) next.ids.push_back(id);
    if (!ends && std::ssize(next.ids) < longest) {
      search_all(to, prompt, longest, stop, next, best);
      continue;
    }
    next.score /= (5.0 + static_cast<double>(made.ids.size() + 1)) / 6;
    if (next.score > best.score) best = next;
  }
}

/// The tokens before the first of `stop`.
Ids before(const Ids& ids, const Ids& stop) { return {ids.begin(), std::ranges::find_first_of(ids, stop)}; }

const std::vector<Ids> prompts{{4, 5, 1}, {2}, {0, 6, 6, 3, 1}, {3, 3}};

}  // namespace

TEST_CASE("generation: greedy continues any model as full recomputation does, alone and in a batch") {
  const DefaultDevice here(any_device());
  for (const auto& to : {decoder_only(), own_model()}) {
    for (const Ids& prompt : prompts)
      CHECK(greedy(*to.model, prompt, {.max_new_tokens = 6}) == plain_greedy(to, prompt, 6));
    const auto together = greedy_batch(*to.model, prompts, {.max_new_tokens_of_each = {6, 1, 4, 6}});
    for (const size_t row : {0, 1, 2, 3}) {
      CAPTURE(row);
      CHECK(together[row].ids == plain_greedy(to, prompts[row], std::vector<int64_t>{6, 1, 4, 6}[row]));
      double score = 0;
      Ids context = prompts[row];
      for (const int32_t id : together[row].ids) {
        score += to.log_after(context)[static_cast<size_t>(id)];
        context.push_back(id);
      }
      CHECK(together[row].score == Approx(score).epsilon(1e-4));
    }
  }
}

TEST_CASE("generation: sampling draws from the logits of full recomputation, with a seed for each prompt") {
  for (const auto& to : {decoder_only(), own_model()}) {
    SampleOptions options{
        .temperature = 0.9, .top_k = 5, .top_p = 0.95, .repetition_penalty = 1.2, .max_new_tokens = 25};
    const auto together = sample_batch(*to.model, prompts, options);
    for (size_t row = 0; row < prompts.size(); ++row) {
      CAPTURE(row);
      options.seed = 1 + row;
      CHECK(together[row] == plain_sample(to, prompts[row], options));
      CHECK(together[row] == sample(*to.model, prompts[row], options));
    }
    const Ids one = sample(*to.model, {4}, {.max_new_tokens = 30, .seed = 5});
    CHECK(one == sample(*to.model, {4}, {.max_new_tokens = 30, .seed = 5}));
    CHECK(one != sample(*to.model, {4}, {.max_new_tokens = 30, .seed = 6}));
  }
}

TEST_CASE("generation: a wide beam finds the best continuation of all, alone and in a batch") {
  const std::vector<Ids> some{{4, 5, 1}, {2}, {3, 3}};
  for (const uint64_t seed : {1, 2}) {
    for (const auto& to : {decoder_only(seed), own_model(seed)}) {
      for (const Ids& stop : {Ids{}, Ids{3}, Ids{3, 0, 5}}) {
        const auto together =
            beam_search_batch(*to.model, some, {.beam_size = 400, .max_new_tokens = 3, .stop_tokens = stop});
        for (size_t row = 0; row < some.size(); ++row) {
          CAPTURE(seed, row, stop.size());
          Hypothesis best{{}, -INFINITY};
          search_all(to, some[row], 3, stop, {}, best);
          CHECK(together[row].ids == best.ids);
          CHECK(together[row].score == Approx(best.score).epsilon(1e-4).margin(1e-6));
          CHECK(beam_search(*to.model, some[row],
                            {.beam_size = 400, .max_new_tokens = 3, .stop_tokens = stop}) == best.ids);
        }
      }
    }
  }
}

TEST_CASE(
    "generation: a narrow beam without stop tokens is as long as allowed, and a beam of one is greedy") {
  for (const auto& to : {decoder_only(), own_model()}) {
    for (const Ids& prompt : prompts) {
      CHECK(beam_search(*to.model, prompt, {.beam_size = 1, .max_new_tokens = 5}) ==
            plain_greedy(to, prompt, 5));
      CHECK(beam_search(*to.model, prompt, {.beam_size = 3, .max_new_tokens = 4}).size() == 4);
      // The prompt and all new tokens but the last are read.
      CHECK(std::ssize(beam_search(*to.model, prompt, {.beam_size = 3})) ==
            context_length - std::ssize(prompt) + 1);
    }
  }
}

TEST_CASE("generation: outputs end before a stop token, and a negative one is none") {
  for (const auto& to : {decoder_only(), own_model()}) {
    const Ids all = sample(*to.model, {4, 5}, {.temperature = 1, .max_new_tokens = 40});
    for (int32_t one = 0; one < num_tokens; ++one) {
      for (int32_t other = 0; other < num_tokens; ++other)
        CHECK(sample(*to.model, {4, 5},
                     {.temperature = 1, .max_new_tokens = 40, .stop_tokens = {one, other}}) ==
              before(all, {one, other}));
    }
    const Ids stop{all[7], all[20]};
    Ids streamed;
    CHECK(sample(*to.model, {4, 5},
                 {.temperature = 1, .max_new_tokens = 40, .stop_tokens = stop, .on_token = [&](int32_t id) {
                    streamed.push_back(id);
                    return true;
                  }}) == before(all, stop));
    CHECK(streamed == before(all, stop));
    CHECK(sample(*to.model, {4, 5}, {.temperature = 1, .max_new_tokens = 40, .stop_tokens = {-1}}) == all);
    const Ids greedy_all = plain_greedy(to, {1, 2}, 9), last{greedy_all.back()};
    CHECK(greedy(*to.model, {1, 2}, {.max_new_tokens = 9, .stop_tokens = last}) == before(greedy_all, last));
    CHECK(greedy(*to.model, {1, 2}, {.max_new_tokens = 0}).empty());
    CHECK(sample(*to.model, {1, 2}, {.max_new_tokens = 0}).empty());
    CHECK(beam_search(*to.model, {1, 2}, {.max_new_tokens = 0}).empty());
  }
}

TEST_CASE("generation: what outgrows the model is cut to its newest half, and beams end there") {
  const Ids long_prompt{1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 4, 5, 6};
  for (const auto& to : {decoder_only(), own_model()}) {
    for (const Ids& prompt : {long_prompt, Ids{4, 5}}) {
      CHECK(greedy(*to.model, prompt, {.max_new_tokens = 35}) == plain_greedy(to, prompt, 35));
      const SampleOptions options{.max_new_tokens = 35, .seed = 3};
      CHECK(sample(*to.model, prompt, options) == plain_sample(to, prompt, options));
    }
    CHECK(greedy_batch(*to.model, {{4, 5}, long_prompt}, {.max_new_tokens = 25})[1].ids ==
          plain_greedy(to, long_prompt, 25));
    CHECK_THROWS_WITH(
        beam_search(*to.model, long_prompt),
        containing("beam_search: the prompt has 13 tokens, and the model has room for 10. Shorten it."));
    // A given state cannot be made again: outputs end where the model is full.
    CHECK(std::ssize(greedy(*to.model, {4, 5}, {}, to.model->start())) == context_length - 1);
    CHECK_THROWS_WITH(sample(*to.model, long_prompt, {}, to.model->start()), containing("room for 10"));
  }
}

TEST_CASE("generation: a translator continues a prompt from the state of its sources") {
  Rng rng(2);
  const AttentionFactory softmax = attention_factory("softmax");
  const EncoderDecoder model({.d_model = 8, .heads = 2, .d_ff = 8, .max_length = 9, .dropout = 0}, 9,
                             num_tokens, {softmax, softmax, softmax}, rng);
  fill_normal(model.output->weight, 0, 1.5, rng);
  const NoGrad no_grad;
  const Tensor ids = Tensor::of<int32_t>(Ids{1, 2, 3, 4, 5, 6}, Shape{2, 3}),
               lengths = Tensor::of<int32_t>(Ids{3, 2}, Shape{2}), encoded = model.encode(ids, lengths, {});
  const std::vector<Ids> two{{2, 4, 4}, {1}};
  const auto together = greedy_batch(model, two, {.max_new_tokens = 5}, model.start(encoded, lengths));
  const auto drawn = sample_batch(model, two, {.max_new_tokens = 5}, model.start(encoded, lengths));
  const auto beams =
      beam_search_batch(model, two, {.beam_size = 1, .max_new_tokens = 5}, model.start(encoded, lengths));
  for (const int64_t row : {0, 1}) {
    const Continued alone{nullptr, [&](const Tensor& target) {
                            return model.logits(model.decode(target, view::slice(encoded, 0, row, row + 1),
                                                             view::slice(lengths, 0, row, row + 1), {}));
                          }};
    const auto at = static_cast<size_t>(row);
    CHECK(together[at].ids == plain_greedy(alone, two[at], 5));
    CHECK(beams[at].ids == plain_greedy(alone, two[at], 5));
    CHECK(drawn[at] == plain_sample(alone, two[at], {.max_new_tokens = 5, .seed = 1 + at}));
  }
  CHECK_THROWS_WITH(greedy_batch(model, {{2}}, {}, model.start(encoded, lengths)),
                    containing("there are 1 prompts, and the state is of 2 sources"));
  CHECK_THROWS_WITH(sample(model, {2}), containing("start(encoded, lengths)"));
}

TEST_CASE("generation: prompts, stop tokens and options that cannot be are refused by name") {
  for (const auto& to : {decoder_only(), own_model()}) {
    const AutoregressiveModel& model = *to.model;
    CHECK_THROWS_WITH(sample(model, {}), containing("sample: the prompt is empty"));
    CHECK_THROWS_WITH(greedy(model, {}), containing("greedy: the prompt is empty"));
    CHECK_THROWS_WITH(beam_search_batch(model, {{1}, {}}), containing("beam_search: prompt 1 is empty"));
    CHECK(greedy_batch(model, {}).empty());
    CHECK_THROWS_WITH(greedy(model, {-2}), containing("greedy: the prompt has the id -2"));
    CHECK_THROWS_WITH(sample(model, {1, 7}), containing("7"));
    CHECK_THROWS_WITH(greedy_batch(model, {{1}, {1, 2, 99}}, {.max_new_tokens = 5}), containing("the id 99"));
    CHECK_THROWS_WITH(
        beam_search(model, {1}, {.stop_tokens = {7}}),
        containing("beam_search: stop_tokens has the id 7, and the model has a vocabulary of 7"));
    CHECK_THROWS_WITH(greedy(model, {1}, {.max_new_tokens = -1}),
                      containing("greedy: max_new_tokens = -1. It must be at least 0"));
    CHECK_THROWS_WITH(greedy(model, {1}, {.max_new_tokens_of_each = {1, 2}}), containing("2 numbers for 1"));
    CHECK_THROWS_WITH(greedy(model, {1}, {.max_new_tokens_of_each = {0}}), containing("has 0. It must be"));
    CHECK_THROWS_WITH(beam_search(model, {1}, {.beam_size = 0}), containing("beam_size = 0. It must be 1"));
    CHECK_THROWS_WITH(beam_search(model, {1}, {.length_penalty = NAN}), containing("length_penalty = "));
    CHECK_THROWS_WITH(sample_batch(model, {{1}, {2}}, {.on_token = [](int32_t) { return true; }}),
                      containing("on_token is for one prompt, and there are 2"));
    CHECK_THROWS_WITH(sample(model, {1}, {.top_k = -3}), containing("sample: top_k = -3"));
    const SettingsSourceScope shell(SettingsSource::command_line);
    CHECK_THROWS_WITH(sample(model, {1}, {.top_k = -3}), containing("generate: --top-k = -3"));
  }
}

TEST_CASE("generation: forbidden tokens that the model lacks, and all of them, are refused") {
  for (const auto& to : {decoder_only(), own_model()}) {
    const AutoregressiveModel& model = *to.model;
    const char* outside = "forbidden_tokens has the id 7, and the model has a vocabulary of 7";
    CHECK_THROWS_WITH(greedy(model, {1}, {.forbidden_tokens = {7}}), containing(text("greedy: ", outside)));
    CHECK_THROWS_WITH(beam_search(model, {1}, {.forbidden_tokens = {7}}),
                      containing(text("beam_search: ", outside)));
    const Ids all{0, 1, 2, 3, 4, 5, 6}, but_last{0, 1, 2, 3, 4, 5};
    CHECK_THROWS_WITH(greedy(model, {1}, {.forbidden_tokens = all}),
                      containing("greedy: every token has a logit of -inf, or is forbidden. Allow one."));
    CHECK_THROWS_WITH(beam_search(model, {1}, {.forbidden_tokens = all}), containing("beam_search: every"));
    CHECK(greedy(model, {1}, {.max_new_tokens = 2, .forbidden_tokens = but_last}) == Ids{6, 6});
  }
}

TEST_CASE("generation: logits that are not finite give an error in place of tokens") {
  for (const float bad : {NAN, INFINITY}) {
    const Continued to = own_model();
    fill_(static_cast<OwnModel&>(*to.model).output.weight, bad);
    const AutoregressiveModel& model = *to.model;
    for (const auto& call : std::vector<std::function<void()>>{
             [&] { greedy(model, {1}); }, [&] { beam_search(model, {1}); }, [&] { sample(model, {1}); }})
      CHECK(fault_of(call) == Fault::numeric);
    CHECK_THROWS_WITH(greedy(model, {1}), containing("greedy: the model gave a logit of "));
  }
  std::vector<float> none(3, -INFINITY);
  Rng rng(1);
  CHECK_THROWS_WITH(draw_token(none, {}, {}, rng), containing("sample: every token has a logit of -inf"));
}

TEST_CASE("generation: a state of another number of sequences is refused by its part") {
  for (const auto& to : {decoder_only(), own_model()}) {
    const NoGrad no_grad;
    const auto used = [&] {
      Decoding state = to.model->start();
      to.model->next(Tensor::of<int32_t>(Ids{1, 2}, Shape{2, 1}), state);
      return state;
    };
    CHECK_THROWS_WITH(greedy(*to.model, {1}, {}, used()), containing("greedy: there are 1 prompts, and ") &&
                                                              containing("0 of the state is of 2"));
    CHECK(greedy_batch(*to.model, {{1}, {2}}, {.max_new_tokens = 1}, used()).size() == 2);
  }
}

TEST_CASE("generation: a model that cannot decode, or gives other logits, is refused by name") {
  Rng rng(1);
  struct WithoutCache final : Attention {
    Tensor forward(const AttentionInput& input) override { return input.queries; }
    void fields(Fields&) override {}
  };
  const AttentionFactory no_cache = [](const AttentionConfig&, Rng&) {
    return std::make_unique<WithoutCache>();
  };
  const OwnModel without_cache(num_tokens, context_length, no_cache, rng);
  CHECK_THROWS_WITH(greedy(without_cache, {1, 2}), containing("greedy: cache 0 of the state is null"));

  struct AllPositions final : AutoregressiveModel {
    explicit AllPositions(Rng& draws) : tokens(num_tokens, num_tokens, Init::normal, draws) {}
    Tensor next(const Tensor& ids, Decoding&) const override { return tokens(ids); }
    void fields(Fields& f) override { f("tokens", tokens); }
    Embedding tokens;
  };
  AllPositions model(rng);
  CHECK_THROWS_WITH(sample(model, {1, 2}, {}, Decoding{}),
                    containing("next() of the model gave [1, 2, 7], and it must be [1, vocabulary]"));
  CHECK_THROWS_WITH(sample(model, {1, 2}), containing("overrides start()"));
  Decoding empty;
  CHECK_THROWS_WITH(decoder_only().model->next(Tensor::of<int32_t>(Ids{1, 2}, Shape{1, 2}), empty),
                    containing("a state with 0 caches for a model of 1 blocks"));
}
