// An encoder-decoder learns to write digits backwards; where it looks becomes a picture: reversal_maps
// cross.svg
#include <heed/data/batching/shuffle.h>
#include <heed/heed.h>

#include <cstdio>

using namespace heed;

constexpr int32_t start = 10, end = 11;  // ids; 0 to 9 are digits

/// Example i: four to eight digits, the same backwards behind `start`, and backwards before `end`.
struct Reversals final : Dataset {
  int64_t size() const override { return 1024; }
  Example get(int64_t i) const override {
    const auto stream = static_cast<uint64_t>(i);
    std::vector<int32_t> digits;
    for (uint64_t n = 0; n < 4 + stream % 5; ++n)
      digits.push_back(static_cast<int32_t>(counter_below(1, stream, n, 10)));
    std::vector<int32_t> in{start}, out(digits.rbegin(), digits.rend());
    in.insert(in.end(), out.begin(), out.end());
    out.push_back(end);
    const auto tensor = [](const std::vector<int32_t>& ids) {
      return Tensor::of<int32_t>(ids, Shape{std::ssize(ids)});
    };
    return {tensor(digits), tensor(in), tensor(out)};
  }
};

int main(int, char** argv) {
  const Reversals data;
  // Lengths of the digits follow as tensor 3; targets of -1 do not count.
  DataLoader loader(data, {.batch_size = 32, .shuffle = true, .pad = {{0, 0}, {1, 0}, {2, -1}}});
  Rng rng(1);
  const TransformerConfig config{.d_model = 32, .heads = 2, .d_ff = 64, .max_length = 16, .dropout = 0};
  const AttentionFactory softmax = attention_factory("softmax");
  EncoderDecoder model(config, 10, 12, {softmax, softmax, softmax}, rng);
  const auto loss = [](const EncoderDecoder& m, const Batch& batch, const ForwardContext& context) {
    const Tensor encoded = m.encode(batch[0], batch[3], context);
    const Tensor logits = m.logits(m.decode(batch[1], encoded, batch[3], context));
    return LossOutput{cross_entropy(logits, batch[2]), logits, batch[2]};
  };
  FitOptions options{.epochs = 12};
  options.schedule.learning_rate = 5e-3;
  fit(model, loader, loss, options);
  std::printf("accuracy %.3f\n", evaluate(model, loader, loss, {accuracy()}).first());

  const NoGrad no_grad;
  MapRecorder recorder;
  const Tensor digits = Tensor::of<int32_t>(std::vector<int32_t>{3, 1, 4, 1, 5}, Shape{1, 5});
  const Tensor reversed = Tensor::of<int32_t>(std::vector<int32_t>{start, 5, 1, 4, 1, 3}, Shape{1, 6});
  const Tensor length = Tensor::of<int32_t>(std::vector<int32_t>{5}, Shape{1});
  const ForwardContext recording{.recorder = &recorder};
  model.decode(reversed, model.encode(digits, length, recording), length, recording);
  const MapView map = map_view(model, recorder.maps.back(),
                               {.kind = "cross",
                                .query_tokens = {"5", "1", "4", "1", "3", "end"},
                                .key_tokens = {"3", "1", "4", "1", "5"}});
  io::write(argv[1], map_svg(map, 0));
}
