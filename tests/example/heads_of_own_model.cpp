// Which heads of a model of one's own are induction heads, and what does the model lose without them?
#include <heed/heed.h>

#include <cstdio>

using namespace heed;

constexpr int64_t vocabulary = 32, width = 64;

/// Two causal attentions, each added to its input.
struct TwoLayers final : Module {
  explicit TwoLayers(Rng& rng)
      : tokens(vocabulary, width, Init::normal, rng, 1), output(width, vocabulary, rng) {
    const AttentionConfig config{
        .d_model = width, .heads = 4, .causal = true, .modifiers = {.position = PositionKind::rope}};
    for (int layer = 0; layer < 2; ++layer) layers.push_back(attention_factory("softmax")(config, rng));
  }
  Tensor operator()(const Tensor& ids, const ForwardContext& context) const {
    Tensor x = tokens(ids);
    for (const auto& layer : layers)
      x = x + layer->forward({.queries = x, .keys = x, .mask = Mask::causal(), .context = context});
    return output(x);
  }
  void fields(Fields& f) override { f("tokens", tokens), f("layers", layers), f("output", output); }
  Embedding tokens;
  std::vector<std::unique_ptr<Attention>> layers;
  Linear output;
};

int main() {
  Rng rng(1);
  TwoLayers model(rng);
  const auto loss = [&](const Tensor& ids, const ForwardContext& context) {  // mean over the repetition
    const int64_t half = ids.extent(1) / 2;
    return cross_entropy(slice(model(ids, context), 1, half - 1, 2 * half - 1),
                         slice(ids, 1, half, 2 * half));
  };
  Optimizer optimizer(model, {.grad_clip = 1});
  for (int64_t step = 0; step < 600; ++step) {
    backward(loss(repeated_sequences({vocabulary, 4 + step % 13, 32, static_cast<uint64_t>(step)}), {}));
    optimizer.step(3e-3);
  }
  const NoGrad no_grad;
  const RepeatOptions test{.vocabulary = vocabulary, .period = 12, .seed = 1000};
  const Tensor ids = repeated_sequences(test), other = repeated_sequences({vocabulary, 12, 8, 2000});
  const Tensor not_repeated = concat(std::vector<Tensor>{slice(other, 1, 0, 12), slice(ids, 1, 12, 24)}, 1);
  const auto effects = head_effects(model, [&](const ForwardContext& c) { return loss(ids, c).item(); });
  const auto scores = induction_scores(
      model, [&](const Tensor& x, const ForwardContext& context) { model(x, context); }, test);
  std::vector<ModelHead> heads;  // induction heads
  for (size_t i = 0; i < scores.size(); ++i) {
    std::printf("%s  induction %.2f  previous %.2f  loss without it +%.2f\n", scores[i].head.name.c_str(),
                scores[i].scores.induction, scores[i].scores.previous, effects[i].change);
    if (scores[i].scores.induction > 0.3) heads.push_back(scores[i].head);
  }
  HeadAblation ablation({.kind = HeadReplacement::Kind::mean});
  ablation.replace(heads);
  MapRecorder recorder;
  recorder.keep_heads = true;
  model(ids, {.recorder = &recorder});
  HeadPatch patch(recorder);  // where nothing is repeated, the heads give what they gave where it was
  patch.replace(heads);
  const auto print = [&](const char* name, const Tensor& x, HeadEditor* editor) {
    std::printf("%s %.2f\n", name, loss(x, {.editor = editor}).item());
  };
  print("repeated", ids, nullptr), print("repeated, ablated", ids, &ablation);
  print("not repeated", not_repeated, nullptr), print("not repeated, patched", not_repeated, &patch);
}
