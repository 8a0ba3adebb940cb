// A character language model with linear attention, trained by a loop of one's own.
#include <cstdio>

#include "heed/attention/inspect/map_svg.h"
#include "heed/attention/variant.h"
#include "heed/core/io/files.h"
#include "heed/data/batching/text_windows.h"
#include "heed/data/synthetic/language_model_text.h"
#include "heed/data/tokenizers/vocabulary.h"
#include "heed/nn/transformer.h"
#include "heed/train/optim/optimizer.h"
#include "heed/train/tasks/map_provider.h"

using namespace heed;

int main() {
  const std::string text = verse(100000, 1);  // or io::read_text("my.txt")
  const auto tokenizer = make_character_tokenizer(text);
  const TextWindows windows(tokenizer->encode(text), {.block = 32, .batch = 16});
  Rng rng(1);
  TransformerConfig config{.d_model = 64, .heads = 4, .d_ff = 256, .layers = 1, .max_length = 32};
  DecoderOnly model(config, tokenizer->size(), attention_factory("linear:epsilon=1e-5"), rng);
  Optimizer optimizer(model, {.weight_decay = 0.1, .grad_clip = 1});
  for (int step = 0; step < 200; ++step) {
    const WindowBatch batch = windows.random(step);
    const Shape shape{batch.input.rows, batch.input.columns};  // [B, T]
    const Tensor logits = model(Tensor::of<int32_t>(batch.input.ids, shape), {.rng = &rng});
    const Tensor loss = cross_entropy(logits, Tensor::of<int32_t>(batch.target.ids, shape));
    backward(loss);
    optimizer.step(3e-3);  // clips, updates, clears
    rng.advance();         // new random numbers for dropout
    if (step % 50 == 49) std::printf("step %d  loss %.3f\n", step + 1, loss.item());
  }

  const std::vector<int32_t> line = tokenizer->encode(text.substr(0, 32));
  std::vector<std::string> tokens;
  for (const int32_t id : line) tokens.push_back(tokenizer->piece(id));
  MapRecorder recorder;  // the attention maps [B, H, Tq, Tk] of a forward pass
  model(Tensor::of<int32_t>(line, Shape{1, 32}), {.recorder = &recorder});
  const MapView map = map_view(model, recorder.maps[0], {.query_tokens = tokens, .key_tokens = tokens});
  io::write("map.svg", map_svg(map, 0));
}
