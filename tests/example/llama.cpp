// A language model with a block of its own, as LLaMA has it, trained by a loop of one's own: llama. It prints
// text that it samples.
#include <heed/data/synthetic/language_model_text.h>
#include <heed/heed.h>

#include <cstdio>

using namespace heed;

/// y = x + attention(norm(x)), y + down(silu(gate(norm(y))) * up(norm(y))).
struct LlamaBlock final : Module {
  LlamaBlock(const AttentionConfig& config, int64_t hidden, Rng& rng)
      : attention(attention_factory("softmax")(config, rng)),
        attention_norm(config.d_model),
        forward_norm(config.d_model),
        gate(config.d_model, hidden, rng, {.bias = false}),
        up(config.d_model, hidden, rng, {.bias = false}),
        down(hidden, config.d_model, rng, {.bias = false}) {}
  Tensor operator()(const Tensor& x, AttentionCache* cache, const ForwardContext& context) const {
    const Tensor h = attention_norm(x);
    const Tensor y = x + attention->forward({h, h, Mask::causal(), cache, context});
    const Tensor n = forward_norm(y);
    return y + down(silu(gate(n)) * up(n));
  }
  void fields(Fields& f) override {
    f("attention", attention);
    f("attention_norm", attention_norm);
    f("forward_norm", forward_norm);
    f("gate", gate);
    f("up", up);
    f("down", down);
  }
  std::unique_ptr<Attention> attention;
  RMSNorm attention_norm, forward_norm;
  Linear gate, up, down;
};

struct Llama final : AutoregressiveModel {
  Llama(const AttentionConfig& config, int64_t vocabulary, int64_t hidden, Rng& rng)
      : tokens(vocabulary, config.d_model, Init::normal, rng),
        norm(config.d_model),
        output(config.d_model, vocabulary, rng, {.bias = false, .init = Init::normal}) {
    for (int64_t i = 0; i < config.layers; ++i)
      blocks.push_back(std::make_unique<LlamaBlock>(config, hidden, rng));
  }
  Tensor operator()(const Tensor& ids, Decoding* state, const ForwardContext& context) const {
    Tensor x = tokens(ids);  // [B, T, width]
    for (size_t i = 0; i < blocks.size(); ++i)
      x = (*blocks[i])(x, state != nullptr ? state->cache[i].self.get() : nullptr, context);
    return output(norm(x));  // logits [B, T, vocabulary]
  }
  Decoding start() const override {
    Decoding state;
    for (const auto& block : blocks) state.cache.push_back({block->attention->new_cache(), nullptr});
    return state;
  }
  Tensor next(const Tensor& ids, Decoding& state) const override {
    state.length += ids.extent(1);
    return select((*this)(ids, &state, {}), 1, -1);
  }
  void fields(Fields& f) override {
    f("tokens", tokens);
    f("blocks", blocks);
    f("norm", norm);
    f("output", output);
  }
  Embedding tokens;
  std::vector<std::unique_ptr<LlamaBlock>> blocks;
  RMSNorm norm;
  Linear output;
};

int main() {
  constexpr int64_t block = 64, steps = 400;
  const std::string text = verse(200000, 1);  // or io::read_text("my.txt")
  const auto tokenizer = make_character_tokenizer(text);
  const TextWindows windows(tokenizer->encode(text), {.block = block, .batch = 16});

  Rng rng(1);
  const AttentionConfig config{.d_model = 64,
                               .heads = 4,
                               .kv_heads = 2,
                               .causal = true,
                               .layers = 2,
                               .modifiers = {.position = PositionKind::rope}};
  Llama model(config, tokenizer->size(), 160, rng);
  Optimizer optimizer(model, {.beta2 = 0.95, .weight_decay = 0.1, .grad_clip = 1});
  const Schedule schedule{
      .kind = ScheduleKind::cosine, .learning_rate = 6e-3, .warmup_steps = 40, .min_lr_ratio = 0.1};
  for (int64_t step = 1; step <= steps; ++step) {
    const WindowBatch batch = windows.random(step);
    const Shape shape{batch.input.rows, batch.input.columns};
    const Tensor logits = model(Tensor::of<int32_t>(batch.input.ids, shape), nullptr, {.rng = &rng});
    const Tensor loss = cross_entropy(logits, Tensor::of<int32_t>(batch.target.ids, shape));
    backward(loss);
    optimizer.step(schedule.at(step, steps, config.d_model));
    rng.advance();
    if (step % 100 == 0) std::printf("step %d  loss %.3f\n", static_cast<int>(step), loss.item());
  }

  const SampleOptions options{
      .temperature = 0.8, .top_k = 20, .top_p = 0.95, .max_new_tokens = 80, .seed = 1};
  const std::vector<int32_t> written = sample(model, tokenizer->encode("The "), options);
  std::printf("The %s\n", tokenizer->decode(written).c_str());
}
