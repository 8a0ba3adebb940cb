// Which head carries a digit from the input to the output? Causal tracing in a model that writes digits
// backwards.
#include <heed/data/batching/shuffle.h>
#include <heed/heed.h>

#include <cstdio>

using namespace heed;

constexpr int32_t start = 10, end = 11;  // ids; 0 to 9 are digits

Tensor ids(const std::vector<int32_t>& list) { return Tensor::of<int32_t>(list, Shape{std::ssize(list)}); }

/// Example i: five digits, the same backwards behind `start`, and backwards before `end`.
struct FiveDigits final : Dataset {
  int64_t size() const override { return 1024; }
  Example get(int64_t i) const override {
    std::vector<int32_t> digits;
    for (uint64_t n = 0; n < 5; ++n)
      digits.push_back(static_cast<int32_t>(counter_below(1, static_cast<uint64_t>(i), n, 10)));
    std::vector<int32_t> in{start}, out(digits.rbegin(), digits.rend());
    in.insert(in.end(), out.begin(), out.end());
    out.push_back(end);
    return {ids(digits), ids(in), ids(out)};
  }
};

int main() {
  const FiveDigits data;
  DataLoader loader(data, {.batch_size = 32, .shuffle = true});
  Rng rng(1);
  const TransformerConfig config{.d_model = 32, .heads = 4, .d_ff = 64, .max_length = 16, .dropout = 0};
  const AttentionFactory softmax = attention_factory("softmax");
  EncoderDecoder model(config, 10, 12, {softmax, softmax, softmax}, rng);
  const auto logits = [&](const Tensor& source, const Tensor& target, const ForwardContext& context) {
    const Tensor lengths = Tensor::of<int32_t>(std::vector<int32_t>(static_cast<size_t>(source.extent(0)), 5),
                                               {source.extent(0)});
    return model.logits(model.decode(target, model.encode(source, lengths, context), lengths, context));
  };
  FitOptions options{.epochs = 12};
  options.schedule.learning_rate = 5e-3;
  fit(
      model, loader,
      [&](const EncoderDecoder&, const Batch& batch, const ForwardContext& context) {
        const Tensor y = logits(batch[0], batch[1], context);
        return LossOutput{cross_entropy(y, batch[2]), y, batch[2]};
      },
      options);

  const NoGrad no_grad;
  const Tensor clean = reshape(ids({3, 1, 4, 1, 5}), {1, 5}), other = reshape(ids({3, 1, 9, 1, 5}), {1, 5}),
               written =
                   reshape(ids({start, 5, 1}), {1, 3});  // the digit that follows is 4 in one, 9 in the other
  const auto prefers_4 = [&](const Tensor& source, HeadEditor* editor) {
    const std::vector<double> last = logits(source, written, {.editor = editor}).to_doubles();
    return last[2 * 12 + 4] - last[2 * 12 + 9];
  };
  MapRecorder recorder;
  recorder.keep_heads = true;
  logits(clean, written, {.recorder = &recorder});
  HeadPatch patch(recorder);
  const double with_4 = prefers_4(clean, nullptr), with_9 = prefers_4(other, nullptr);
  std::printf("4 before 9: %.1f where 4 was read, %.1f where 9 was\n", with_4, with_9);
  const ForwardPass read = [&](const ForwardContext& context) { logits(clean, written, context); };
  for (const ModelHead& head : heads_of_model(model, read)) {
    patch.replace({head});
    std::printf("%4.0f %%  %s, head %d\n", 100 * (prefers_4(other, &patch) - with_9) / (with_4 - with_9),
                head.layer.c_str(), static_cast<int>(head.head));
  }
}
