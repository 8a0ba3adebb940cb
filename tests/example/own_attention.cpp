// A character language model with an attention of its own: own_attention RUN. Run it again, and it resumes.
#include <heed/data/synthetic/language_model_text.h>
#include <heed/heed.h>

#include <cmath>
#include <cstdio>

using namespace heed;

/// Keys near a query weigh more: the score of a pair is -|q - k|^2 / (2 width sqrt(d)); |q|^2 changes no row.
struct NearOptions {
  double width = 1;
  void fields(Fields& f) { f("width", width, "how far a key may be"); }
};
class NearAttention final : public ScoredAttention {
 public:
  NearAttention(const AttentionConfig& config, const NearOptions& options, Rng& rng)
      : ScoredAttention(config, rng), width_(options.width) {}

 private:
  Tensor score(const Tensor& q, const Tensor& k, const AttentionInput&) const override {
    const Tensor sizes = transpose(sum(k * k, 3), 2, 3);  // [B, H, 1, Tk]
    return (matmul(q, transpose(k, 2, 3)) - sizes * 0.5) * (1 / (width_ * std::sqrt(double(head_dim()))));
  }
  double width_;
};

/// Windows of 32 ids, with their targets one place later.
struct Windows final : Dataset {
  explicit Windows(std::vector<int32_t> all) : ids(std::move(all)) {}
  int64_t size() const override { return (std::ssize(ids) - 1) / 32; }
  Example get(int64_t i) const override {
    const auto window = [&](int64_t at) {
      return Tensor::of<int32_t>(std::span(ids).subspan(static_cast<size_t>(at), 32), Shape{32});
    };
    return {window(32 * i), window(32 * i + 1)};
  }
  std::vector<int32_t> ids;
};

int main(int, char** argv) {
  register_attention(describe<NearAttention, NearOptions>({.name = "near", .causal = true, .steps = true}));
  const std::string text = verse(40000, 1);  // or io::read_text("my.txt")
  const auto tokenizer = make_character_tokenizer(text);
  const Windows training(tokenizer->encode(text.substr(0, 36000))),
      held_out(tokenizer->encode(text.substr(36000)));
  DataLoader loader(training, {.batch_size = 16, .shuffle = true}), validation(held_out, {.batch_size = 64});

  Rng rng(1);
  const TransformerConfig config{.d_model = 32, .heads = 2, .d_ff = 64, .max_length = 32};
  DecoderOnly model(config, tokenizer->size(), attention_factory("near:width=0.5"), rng);
  const auto loss = [](const DecoderOnly& lm, const Batch& batch, const ForwardContext& context) {
    return cross_entropy(lm(batch[0], context), batch[1]);
  };
  FitOptions options{.epochs = 4, .validation = &validation, .metrics = {perplexity()}, .folder = argv[1]};
  options.schedule = {.kind = ScheduleKind::cosine, .learning_rate = 1e-2, .warmup_steps = 20};
  options.optimizer.grad_clip = 1;
  const FitResult result = fit(model, loader, loss, options);
  std::printf("perplexity %.2f after %d steps\n", result.best.first(), static_cast<int>(result.step));
}
