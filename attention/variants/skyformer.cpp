// Skyformer: kernelized attention (kernelized.cpp) approximated from sampled tokens. Chen et al. 2021,
// "Skyformer: remodel self-attention with Gaussian kernel and Nystrom method", arXiv 2111.00035, section 4.
//
//   Y = K(Q, S) D Z D K(S, K) V,      K(x, y) = exp(-|x - y|^2 s / 2),  s = 1 / sqrt(d)
//   M = K(S, S) + gamma I,      D = diag(M 1)^(-1/2),      Z near (D M D)^-1
//
// S are m = `features` rows drawn uniformly with replacement: the first half from the queries, the rest from
// the keys. K over queries and keys together is positive definite, which the map alone is not; the Nystrom
// method approximates it from the columns of S. Z is computed by `iterations` rounds of Z <- Z (13 I - A Z
// (15 I - A Z (7 I - A Z))) / 4 for A = D M D from Z = A / (largest column sum of A, of each head; of all
// heads of the batch with init=original, as in the authors' code). Defaults are those of
// github.com/pkuzengqi/Skyformer, src/config.py and src/models/attention_skyformer.py. It draws at each call,
// evaluating too; here the draw is a buffer that checkpoints keep, with redraw a new one at each call while
// training. A sequence of fewer than m / 2 tokens has as many samples as tokens.
//
// Parameters: samples [m], fixed: positions between 0 and 1, times the length, of the queries' and the keys'
// samples, for all heads and sequences.
#include <numeric>

#include "heed/attention/base/multi_head_attention.h"
#include "heed/attention/support/gaussian_kernel.h"
#include "heed/attention/support/iterated_inverse.h"
#include "heed/attention/variant.h"
#include "heed/core/constant_table.h"

namespace heed {
namespace {

struct SkyformerOptions {
  int64_t features = 128, iterations = 6;
  double gamma = 0.1;
  InverseInit init = InverseInit::exact;
  bool redraw = false;
  double scale = 0;
  void fields(Fields& f) {
    f("features", features, {2, max_width},
      "m, samples: half of them queries, half keys; at most as many of each as there are");
    f("iterations", iterations, {0, max_rounds}, "rounds of the inverse");
    f("gamma", gamma, "added to the diagonal of the samples' kernel before it is inverted");
    f("init", Choice(init, {"exact", "original"}),
      "the inverse starts with the largest column sum of each map, or, as the authors' code does, with that "
      "of all maps: an output then depends on the other sequences of its batch");
    f("redraw", redraw, "new samples at each call while training");
    f("scale", scale, "s, above 0; half of it multiplies squared distances; 0: 1 / sqrt(d)");
  }
};

class SkyformerAttention final : public MultiHeadAttention {
 public:
  SkyformerAttention(const AttentionConfig& config, const SkyformerOptions& o, Rng& rng)
      : MultiHeadAttention(config, rng), options_(o), scale_(attention_scale(o.scale, head_dim())) {
    if (!(o.scale >= 0))
      fail("attention 'skyformer': scale = ", o.scale, ". It must be above 0, or 0 for 1 / sqrt(d).");
    if (!(o.gamma >= 0)) fail("attention 'skyformer': gamma = ", o.gamma, ". It must be at least 0.");
    samples_ = Tensor(Shape{o.features});
    fill_uniform(samples_, 0, 1, rng);
  }

  void fields(Fields& f) override {
    MultiHeadAttention::fields(f);
    f("samples", samples_);
  }

 private:
  /// Positions of samples in a sequence.
  struct Samples {
    Tensor ids;   ///< i32 [B or 1, 1, m], -1 for samples that a short sequence lacks
    Tensor real;  ///< [B, 1, m, 1]: 1 for samples that the sequence has, else 0; empty where all are real
  };

  Tensor attend(Heads heads, const AttentionInput& input) override {
    refuse_bias_and_cache("skyformer", input);
    const Tensor kept = input.mask.padding_mask(heads.k, 0);
    const Tensor centre = centre_of_keys(heads.k, input.mask);
    const Tensor q = heads.q - centre, k = heads.k - centre, v = kept ? heads.v * kept : heads.v;
    Tensor real;  // 1 for samples that a sequence has: [B, 1, m, 1]
    const Tensor s = sampled_rows(q, k, input, real);
    const Tensor real_columns = real ? transpose(real, 2, 3) : Tensor();
    const auto kernel = [&](const Tensor& x) {  // K(x, S): [B, H, T, d] -> [B, H, T, m]
      const Tensor y = exp(log_gaussian(x, s, scale_ / 2));
      return real_columns ? y * real_columns : y;
    };
    const Tensor query_kernel = kernel(q), key_kernel = kernel(k), sample_kernel = kernel(s);
    const Tensor inverse = regularised_inverse(real ? sample_kernel * real : sample_kernel, real);  // D Z D
    record_map(input, [&] {
      const Tensor map = matmul(matmul(query_kernel, inverse), transpose(key_kernel, 2, 3));
      return kept ? map * transpose(kept, 2, 3) : map;
    });
    return matmul(query_kernel, matmul(inverse, matmul(transpose(key_kernel, 2, 3), v)));
  }

  /// The rows S of q and k: [B, H, m, d]. `real` receives 1 for each row that its sequence has.
  Tensor sampled_rows(const Tensor& q, const Tensor& k, const AttentionInput& input, Tensor& real) const {
    Tensor draw = samples_;
    if (options_.redraw && input.context.training()) {
      draw = empty_like(samples_);
      fill_uniform(draw, 0, 1, *input.context.rng);
    }
    const int64_t half = options_.features / 2;
    const Tensor& lengths = input.mask.key_lengths();
    // In cross-attention all queries are real.
    const Samples of_queries =
        samples_of(slice(draw, 0, 0, std::min(half, q.extent(2))), config().cross ? Tensor() : lengths, q);
    const Samples of_keys =
        samples_of(slice(draw, 0, half, half + std::min(options_.features - half, k.extent(2))), lengths, k);
    if (of_keys.real) {
      const auto ones = [&](const Tensor& ids) {
        return Tensor::full(Shape{of_keys.real.extent(0), 1, ids.extent(2), 1}, 1, q.dtype(), q.device());
      };
      real = concat(
          std::vector<Tensor>{of_queries.real ? of_queries.real : ones(of_queries.ids), of_keys.real}, 2);
    }
    return concat(std::vector<Tensor>{gather_rows(q, of_queries.ids), gather_rows(k, of_keys.ids)}, 2);
  }

  /// The samples in x [B, H, T, d] of draws [m] between 0 and 1; computed in f32, which holds lengths
  /// exactly.
  static Samples samples_of(const Tensor& draws, const Tensor& lengths, const Tensor& x) {
    const NoGrad no_grad;
    const int64_t m = draws.extent(0);
    const Tensor u = reshape(cast(draws, DType::f32), Shape{1, 1, m});
    const Tensor length =
        lengths ? reshape(cast(lengths, DType::f32), Shape{lengths.extent(0), 1, 1})
                : Tensor::full(Shape{1, 1, 1}, static_cast<double>(x.extent(2)), DType::f32, x.device());
    // The product may round up to the length.
    const Tensor position = cast(minimum(u * length, length - 1.0), DType::i32);
    if (!lengths) return {.ids = position, .real = {}};
    std::vector<float> indices(static_cast<size_t>(m));
    std::iota(indices.begin(), indices.end(), 0.0f);
    const Tensor index = constant_table<float>(indices, Shape{1, 1, m}, x.device(), DType::f32);
    const Tensor real = minimum(relu(length - index), 1.0);  // 1 for the first `length` samples: [B, 1, m]
    const Tensor ids = cast((cast(position, DType::f32) + 1.0) * real - 1.0, DType::i32);
    return {.ids = ids, .real = cast(reshape(real, Shape{real.extent(0), 1, m, 1}), x.dtype())};
  }

  /// D Z D from the samples' kernel [B, H, m, m], whose rows and columns of samples that are not real are 0.
  Tensor regularised_inverse(const Tensor& kernel, const Tensor& real) const {
    const Tensor unit = identity(kernel.extent(2), kernel);
    // A sample that is not real gets 1 on the diagonal and 0 elsewhere. That does not change the largest
    // column sum, which is at least 1 because D M D has the eigenvalue 1.
    const Tensor m = kernel + (real ? unit * (affine(real, options_.gamma - 1, 1)) : unit * options_.gamma);
    const Tensor root = reciprocal(sqrt(sum(m, 3)));                 // the diagonal of D: [B, H, m, 1]
    const Tensor both = root * transpose(root, 2, 3), a = m * both;  // D M D
    return iterated_inverse(a, options_.init, options_.iterations) * both;
  }

  SkyformerOptions options_;
  double scale_;
  Tensor samples_;
};

}  // namespace

Variant variant::skyformer() {
  return describe<SkyformerAttention, SkyformerOptions>(
      {.name = "skyformer",
       .paper = "Chen et al. 2021",
       .summary = "Kernelized attention from sampled queries and keys, whose kernel is inverted.",
       .time = {.length = 1, .width = 1},
       .memory = {.length = 1, .width = 0.3},  // kernels of all tokens and samples, whatever the width
       .cross = true,
       .map = MapKind::signed_,
       .min_cost_length = 32768});
}

}  // namespace heed
