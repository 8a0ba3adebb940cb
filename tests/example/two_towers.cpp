// Two encoders that give a sentence and its translation nearby vectors (the loss of CLIP: Radford et al.
// 2021, arXiv 2103.00020): two_towers. It prints how often the nearest of 200 new Italian sentences is the
// translation.
#include <heed/data/synthetic/phrasebook/phrasebook.h>
#include <heed/heed.h>

#include <cmath>
#include <cstdio>
#include <numeric>

using namespace heed;

/// An encoder, and a linear layer on its first token: ids i32 [B, T], lengths i32 [B] -> [B, 64] of length 1.
struct Tower final : Module {
  Tower(int64_t vocabulary, const TransformerConfig& config, Rng& rng)
      : embedder(vocabulary, config, rng),
        encoder(config, {}, attention_factory("softmax"), {}, rng),
        out(config.d_model, 64, rng) {}
  Tensor operator()(const Tensor& ids, const Tensor& lengths, const ForwardContext& context) const {
    const Tensor x = encoder(embedder(ids, 0, context.rng), Mask::lengths(lengths), {}, {}, nullptr, context);
    const Tensor y = out(select(x, 1, 0));
    return y / sqrt(sum(y * y, 1));
  }
  void fields(Fields& f) override {
    f("embedder", embedder);
    f("encoder", encoder);
    f("out", out);
  }
  Embedder embedder;
  TransformerStack encoder;
  Linear out;
};

/// Similarities of all English to all Italian sentences of a batch, times a trained factor: [B, B].
struct TwoTowers final : Module {
  TwoTowers(int64_t english_words, int64_t italian_words, const TransformerConfig& config, Rng& rng)
      : english(english_words, config, rng),
        italian(italian_words, config, rng),
        log_scale(constant_parameter(Shape{}, std::log(10))) {}
  Tensor operator()(const Batch& batch, const ForwardContext& context) const {
    const Tensor a = english(batch[0], batch[2], context), b = italian(batch[1], batch[3], context);
    return matmul(a, transpose(b, 0, 1)) * exp(log_scale);
  }
  void fields(Fields& f) override {
    f("english", english);
    f("italian", italian);
    f("log_scale", log_scale);
  }
  Tower english, italian;
  Tensor log_scale;
};

/// Sentence pairs as ids, each behind a start token.
struct Pairs final : Dataset {
  Pairs(std::span<const Pair> all, const Tokenizer& english, const Tokenizer& italian)
      : pairs(all), source(english), target(italian) {}
  int64_t size() const override { return std::ssize(pairs); }
  Example get(int64_t i) const override {
    const Pair& pair = pairs[static_cast<size_t>(i)];
    return {ids(source, pair.source), ids(target, pair.target)};
  }
  static Tensor ids(const Tokenizer& tokenizer, const std::string& sentence) {
    std::vector<int32_t> out = tokenizer.encode(sentence);
    out.insert(out.begin(), tokenizer.start());
    return Tensor::of<int32_t>(out, Shape{std::ssize(out)});
  }
  std::span<const Pair> pairs;
  const Tokenizer &source, &target;
};

int main() {
  const std::vector<Pair> all = phrasebook({.count = 9200});
  std::vector<std::string_view> english, italian;
  for (const Pair& pair : all) {
    english.push_back(pair.source);
    italian.push_back(pair.target);
  }
  const auto source = make_word_tokenizer(Vocabulary::train(english)),
             target = make_word_tokenizer(Vocabulary::train(italian));
  const Pairs pairs(all, *source, *target);
  const auto [training, held_out] = random_split(pairs, 9000.0 / 9200);
  const std::vector<Padding> pad{{.tensor = 0, .value = 1},
                                 {.tensor = 1, .value = 1}};  // lengths follow: tensors 2 and 3
  DataLoader loader(training, {.batch_size = 100, .shuffle = true, .drop_last = true, .pad = pad});
  DataLoader validation(held_out, {.batch_size = 200, .pad = pad});

  Rng rng(1);
  TwoTowers model(source->size(), target->size(),
                  {.d_model = 64, .heads = 4, .d_ff = 128, .layers = 1, .max_length = 64}, rng);
  // Row i belongs to column i. The loss is the mean of both directions.
  const auto loss = [](const TwoTowers& towers, const Batch& batch, const ForwardContext& context) {
    const Tensor scores = towers(batch, context);
    std::vector<int32_t> diagonal(static_cast<size_t>(scores.extent(0)));
    std::iota(diagonal.begin(), diagonal.end(), 0);
    const Tensor right = Tensor::of<int32_t>(diagonal, Shape{scores.extent(0)});
    const Tensor both = (cross_entropy(scores, right) + cross_entropy(transpose(scores, 0, 1), right)) / 2;
    return LossOutput{both, scores, right};
  };
  FitOptions options{.epochs = 12, .validation = &validation, .metrics = {accuracy()}};
  options.schedule = {.kind = ScheduleKind::cosine, .learning_rate = 3e-3, .warmup_steps = 30};
  options.optimizer.groups = {{.match = "log_scale", .weight_decay = 0, .rate = 10}};
  const FitResult result = fit(model, loader, loss, options);
  std::printf("retrieved %.3f, factor %.1f\n", result.best.first(), std::exp(model.log_scale.item()));
}
