// Kernel attention: a kernel smoother, with any of five kernels as the weight of a pair. Tsai et al. 2019,
// "Transformer dissection: a unified understanding of transformer's attention via the lens of kernel", arXiv
// 1908.11775.
//
//   a_ij = k(q_i, k_j) / sum over j of k(q_i, k_j)
//
//   linear  q . k                              poly    (q . k / sqrt(d) + offset)^degree
//   exp     exp(q . k / sqrt(d))               taylor  sum over n <= degree of (q . k / sqrt(d))^n / n!
//   rbf     exp(-|q - k|^2 / sqrt(d))
//
// Squared distances are expanded after subtracting a centre of the keys, so that a common offset costs no
// precision.
//
// The whole map is computed. linear, and poly and taylor of odd degree, may be negative: then weights can be
// outside [0, 1], and a row whose sum is near 0 gets very large ones. Nothing is clamped. symmetric=true
// projects keys as queries, so that k(x, y) = k(y, x).
#include "heed/attention/base/kernelized_attention.h"
#include "heed/attention/base/scored_attention.h"
#include "heed/attention/support/gaussian_kernel.h"
#include "heed/attention/variant.h"

namespace heed {
namespace {

enum class Kind { linear, poly, taylor, exp, rbf };

struct KernelOptions {
  Kind kernel = Kind::rbf;
  int64_t degree = 2;
  double offset = 1, scale = 0;
  bool symmetric = false;
  void fields(Fields& f) {
    f("kernel", Choice(kernel, {"linear", "poly", "taylor", "exp", "rbf"}), "k(q, k)");
    f("degree", degree, {1, 16}, "degree of poly and taylor");
    f("offset", offset, "constant that poly adds to the scaled q . k");
    f("scale", scale, "multiplies q . k, or the squared distance; 0: 1 / sqrt(d), for linear 1");
    f("symmetric", symmetric, "one projection for queries and keys");
  }
};

class KernelAttention final : public ScoredAttention {
 public:
  KernelAttention(const AttentionConfig& config, const KernelOptions& o, Rng& rng)
      : ScoredAttention(config, rng, o.symmetric ? Project::shared_qk : Project::qkv), options_(o) {
    if (options_.scale == 0) options_.scale = o.kernel == Kind::linear ? 1 : attention_scale(0, head_dim());
  }
  bool modifies_scores() const override {
    return options_.kernel == Kind::exp || options_.kernel == Kind::rbf;  // a softmax of log kernels
  }

 private:
  /// For exp and rbf the logarithm of the kernel, for the others the scaled q . k.
  Tensor score(const Tensor& q, const Tensor& k, const AttentionInput& input) const override {
    if (options_.kernel != Kind::rbf) return matmul(q, transpose(k, 2, 3)) * options_.scale;
    const Tensor centre = centre_of_keys(k, input.mask);
    return log_gaussian(q - centre, k - centre, options_.scale);
  }

  Tensor attend(Heads heads, const AttentionInput& input) override {
    if (modifies_scores()) return ScoredAttention::attend(std::move(heads), input);
    const int64_t first_query = read_cache(heads, input);
    Tensor scores = score(heads.q, heads.k, input);
    Mask without_bias = input.mask.is_causal() ? Mask::causal() : Mask::none();
    if (input.mask.key_lengths()) without_bias = without_bias & Mask::lengths(input.mask.key_lengths());
    Tensor visible = without_bias.dense(scores, first_query);
    if (visible) visible = exp(visible);  // 1 where a query may attend, else 0
    Tensor weights = kernel_of(scores, visible);
    if (const Tensor mask = input.mask.dense(scores, first_query)) weights = weights * exp(mask);
    const Tensor row_sum = sum(weights, 3);
    const Tensor map = weights / (row_sum + zero_indicator(row_sum));  // a row of zeros stays 0
    if (input.context.recorder != nullptr) input.context.recorder->record(*this, map);
    return matmul(dropout(map, config().dropout, input.context.rng), heads.v);
  }

  /// The largest absolute value of each row, at least `min_size`: [B, H, Tq, 1].
  static Tensor max_absolute_of_rows(const Tensor& x, double min_size) {
    const NoGrad no_grad;
    return maximum(max(abs(x.detach()), 3), min_size);
  }

  /// The kernel of each pair, with each row divided by a number of its own, which cancels in the map: so
  /// powers do not overflow. Masked scores may have any value and are set to 0 first.
  Tensor kernel_of(const Tensor& scores, const Tensor& visible) const {
    const auto masked = [&visible](const Tensor& x) { return visible ? x * visible : x; };
    if (options_.kernel == Kind::taylor) {
      // The sum over n of s^n / n!, divided by size^degree.
      const Tensor s = masked(scores), size = max_absolute_of_rows(s, 1), ratio = s / size,
                   inverse = reciprocal(size);
      Tensor total = inverse + ratio, power = ratio;
      for (int64_t n = 2; n <= options_.degree; ++n) {
        power = power * ratio * (1 / static_cast<double>(n));
        total = total * inverse + power;
      }
      return total;
    }
    const bool linear = options_.kernel == Kind::linear;
    const Tensor base = masked(linear ? scores : scores + options_.offset);
    const Tensor size = max_absolute_of_rows(base, 0), ratio = base / (size + zero_indicator(size));
    Tensor power = ratio;
    for (int64_t n = 2; n <= (linear ? 1 : options_.degree); ++n) power = power * ratio;
    return power;
  }

  KernelOptions options_;
};

}  // namespace

Variant variant::kernel() {
  return describe<KernelAttention, KernelOptions>(like(
      full_map_traits,
      {.name = "kernel",
       .alias = "tsai",
       .paper = "Tsai et al. 2019",
       .summary = "Any kernel of query and key, divided by its sum: rbf, exp, polynomial, Taylor, linear."}));
}

}  // namespace heed
