// Formulas for the scores and the mask of attention, compiled into its tiles: own_scores. A language model of
// packed documents, whose tokens see their own document alone.
#include <heed/autograd/gradcheck.h>
#include <heed/heed.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace heed;

/// Attention to the earlier tokens of the same document. `documents` holds i32 [B, T], the number of each
/// token's document, for the next forward pass.
class DocumentAttention final : public ScaledDotProductAttention {
 public:
  DocumentAttention(const AttentionConfig& config, std::shared_ptr<const Tensor> documents, Rng& rng)
      : ScaledDotProductAttention(config, rng, 1 / std::sqrt(static_cast<double>(config.width_of_head()))),
        documents_(std::move(documents)) {}

 private:
  PairFormulas formulas(const AttentionInput&) const override {
    const Tensor all = *documents_;  // the formula keeps it until backward()
    const int32_t* number = all.data<int32_t>();
    const int64_t length = all.extent(1);
    return {.mask = mask_formula([all, number, length](int64_t b, int64_t, int64_t i, int64_t j) {
              return number[b * length + i] == number[b * length + j];
            })};
  }
  std::shared_ptr<const Tensor> documents_;
};

/// Rows of documents without padding. A document has 3 to 12 tokens: its name, 0 to 7, then noise, 8 to 15.
/// The target of each token is the name of its document.
struct PackedRows {
  PackedRows(int64_t rows, int64_t length, Rng& rng) {
    std::vector<int32_t> id, document, target;
    for (int64_t b = 0; b < rows; ++b) {
      int32_t name = 0, number = 0;
      for (int64_t t = 0, left = 0; t < length; ++t, --left) {
        const bool begins = left == 0;
        if (begins) left = 3 + rng.below(10), name = static_cast<int32_t>(rng.below(8)), ++number;
        id.push_back(begins ? name : static_cast<int32_t>(8 + rng.below(8)));
        document.push_back(number);
        target.push_back(name);
      }
    }
    const Shape shape{rows, length};
    ids = Tensor::of<int32_t>(id, shape);
    documents = Tensor::of<int32_t>(document, shape);
    targets = Tensor::of<int32_t>(target, shape);
  }
  Tensor ids, documents, targets;  // i32 [B, T]
};

int main() {
  Rng rng(1);
  // An op with a formula: a soft cap of 20 and the penalties for distance of ALiBi (arXiv 2108.12409).
  const auto score = score_formula([](int64_t, int64_t head, int64_t query, int64_t key, auto s) {
    const double penalty = std::exp2(-2.0 * static_cast<double>(head + 1));
    return 20 * tanh(s / 20) - penalty * static_cast<double>(std::abs(query - key));
  });
  // Each query sees itself and two keys before it: the bounds leave the condition nothing to hide.
  const auto window = mask_formula([](int64_t, int64_t, int64_t, int64_t) { return true; },
                                   [](int64_t, int64_t, int64_t query) {
                                     return KeyBounds{query - 2, query + 1};
                                   });
  std::vector<Tensor> heads;
  for (int i = 0; i < 3; ++i) fill_normal(heads.emplace_back(Shape{2, 4, 9, 3}), 0, 2, rng);
  const auto op = [&](auto x) {
    return attention(x[0], x[1], x[2], {.scale = 0.5, .formulas = {.score = score, .mask = window}});
  };
  std::printf("%s\n", to_string(gradcheck(op, heads)).c_str());

  // A model with a mask that changes with each batch.
  const auto documents = std::make_shared<Tensor>();
  const AttentionFactory attention_of = [documents](const AttentionConfig& config, Rng& random) {
    return std::make_unique<DocumentAttention>(config, documents, random);
  };
  DecoderOnly model({.d_model = 32,
                     .heads = 4,
                     .d_ff = 64,
                     .layers = 2,
                     .max_length = 64,
                     .dropout = 0,
                     .position = PositionKind::none},
                    16, attention_of, rng);
  Optimizer optimizer(model, {.grad_clip = 1});
  for (int step = 1; step <= 150; ++step) {
    const PackedRows batch(16, 64, rng);
    *documents = batch.documents;
    const Tensor loss = cross_entropy(model(batch.ids, {.rng = &rng}), batch.targets);
    backward(loss);
    optimizer.step(5e-3);
    rng.advance();
    if (step % 50 == 0) std::printf("step %d  loss %.3f\n", step, loss.item());
  }

  // Each document of a row gives what it gives alone.
  const NoGrad no_grad;
  const PackedRows row(1, 64, rng);
  *documents = row.documents;
  const std::vector<double> packed = model(row.ids, {}).to_doubles();
  const int32_t* number = row.documents.data<int32_t>();
  double difference = 0;
  for (int64_t begin = 0, end = 0; begin < 64; begin = end) {
    while (end < 64 && number[end] == number[begin]) ++end;
    *documents = slice(row.documents, 1, begin, end);
    const std::vector<double> alone = model(contiguous(slice(row.ids, 1, begin, end)), {}).to_doubles();
    for (size_t n = 0; n < alone.size(); ++n)
      difference = std::max(difference, std::abs(alone[n] - packed[static_cast<size_t>(16 * begin) + n]));
  }
  std::printf("documents: %d, packed and alone differ by %.1e\n", number[63], difference);
}
