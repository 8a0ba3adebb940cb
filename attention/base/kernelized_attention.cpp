// Linear attention by feature maps: full calls, decoding step by step, maps.
#include "heed/attention/base/kernelized_attention.h"

#include "heed/core/kernels/content/hard_choice.h"
#include "heed/core/launch.h"

namespace heed {

using kernel::FeatureMap;
using kernel::PolynomialParams;

KernelizedAttention::KernelizedAttention(const AttentionConfig& config, double epsilon, Rng& rng)
    : KernelizedAttention(config, PolynomialParams{.coefficients = {0, 1}, .epsilon = epsilon}, rng) {
  if (!(epsilon > 0))
    fail("attention: epsilon = ", epsilon, ". It must be above 0, or a query without keys divides by zero.");
}

KernelizedAttention::KernelizedAttention(const AttentionConfig& config, const PolynomialParams& params,
                                         Rng& rng)
    : MultiHeadAttention(config, rng), params_(params) {}

Heads KernelizedAttention::features(Heads heads, const AttentionInput&) const {
  heads.q = feature(heads.q);
  if (heads.k) heads.k = feature(heads.k);
  return heads;
}

Heads KernelizedAttention::feature_dropout(Heads features, PolynomialParams&, Rng&) const { return features; }

void KernelizedAttention::check(const Heads& heads, const AttentionInput& input) {
  refuse_bias(input, "a map that factors");
  const auto& packing = input.mask.query_packing();
  const int64_t batch = packing ? packing->batch() : heads.q.extent(0);
  if (input.mask.key_lengths() && input.mask.key_lengths().extent(0) != batch) {
    fail("attention: ", input.mask.key_lengths().extent(0), " key lengths for a batch of ", batch,
         ". Give one length a sequence.");
  }
  if (input.mask.is_causal() && heads.k && heads.k.extent(2) < heads.q.extent(2)) {
    fail("attention: ", heads.q.extent(2), " causal queries for ", heads.k.extent(2),
         " keys. The last query belongs to the last key, so there must be as many keys.");
  }
  refuse_map_of_cached_call(input);
}

Tensor KernelizedAttention::attend(Heads heads, const AttentionInput& input) {
  check(heads, input);
  const int64_t num_earlier = heads.k ? heads.k.extent(2) - heads.q.extent(2) : 0;
  Heads phi = features(std::move(heads), input);
  record_map(input, [&] {
    input.context.recorder->factors(*this, feature_map(phi.q, params_), feature_map(phi.k, params_),
                                    params_.scale);
    return polynomial_map(phi.q, phi.k, params_, input.mask, input.mask.is_causal() ? num_earlier : 0);
  });
  PolynomialParams params = params_;
  params.key_lengths = input.mask.key_lengths();
  if (input.mask.query_packing()) params.queries = input.mask.query_packing()->sequences;
  if (const auto& packing = input.mask.key_packing()) {
    params.keys = packing->sequences;
    params.key_lengths = packing->key_lengths();
  }
  if (input.context.training() && config().dropout > 0)
    phi = feature_dropout(std::move(phi), params, *input.context.rng);
  if (input.cache != nullptr) return attend_to_cache(phi, params, input);
  params.causal = input.mask.is_causal();
  if (!params.causal || num_earlier == 0) return polynomial_attention(phi.q, phi.k, phi.v, params);
  // Keys before the first query are summed, and the others attended to causally.
  const auto earlier = [&](const Tensor& x) { return slice(x, 2, 0, num_earlier); };
  const auto later = [&](const Tensor& x) { return slice(x, 2, num_earlier, x.extent(2)); };
  PolynomialParams params_of_earlier = params;
  if (params.dropout > 0)  // the keys of both parts count from 0, so each needs a draw of its own
    params_of_earlier.draw = input.context.rng->next();
  const Tensor sums = polynomial_sums(earlier(phi.k), earlier(phi.v), params_of_earlier);
  params.first_key = num_earlier;
  return polynomial_attention(phi.q, later(phi.k), later(phi.v), params, sums);
}

Tensor KernelizedAttention::attend_to_cache(const Heads& phi, PolynomialParams params,
                                            const AttentionInput& input) const {
  auto* cache = cache_of<SumCache>(input);
  if (!phi.k && !cache->sums) fail_without_keys();
  const Tensor sums_of_earlier = cache->sums;
  if (phi.k) {
    params.first_key = cache->length;
    const Tensor sums_of_call = polynomial_sums(phi.k, phi.v, params);
    cache->sums = sums_of_earlier ? sums_of_earlier + sums_of_call : sums_of_call;
    cache->length += phi.k.extent(2);
  }
  // Several causal queries in one call must not attend to later keys of the call.
  if (input.mask.is_causal() && phi.k && phi.q.extent(2) > 1) {
    params.causal = true;
    return polynomial_attention(phi.q, phi.k, phi.v, params, sums_of_earlier);
  }
  return polynomial_attention(phi.q, Tensor(), Tensor(), params, cache->sums);
}

Tensor feature_map(const Tensor& x, const PolynomialParams& params) {
  const double e = params.prepare_epsilon;
  switch (params.prepare) {
    case FeatureMap::none:
      return x;
    case FeatureMap::standard: {
      const Tensor centred = x - mean(x, -1);
      return centred / sqrt(mean(square(centred), -1) + e);
    }
    case FeatureMap::unit:
      return x / sqrt(sum(square(x), -1) + e * e);
    case FeatureMap::positive:
      return relu(x) + exp(-relu(-x));  // elu(x) + 1 would cancel for x far below 0
  }
  return x;
}

Tensor zero_indicator(const Tensor& x) {
  const NoGrad no_grad;
  // kernel::HardChoice marks the largest element of each row unless it is 0; the rows here have one element.
  const Tensor sizes = abs(contiguous(x.detach())), is_nonzero(x.shape(), DType::u8, x.device());
  launch<kernel::HardChoice>(x.device(), sizes, Draw{}, is_nonzero);
  return affine(cast(is_nonzero, x.dtype()), -1, 1);
}

Tensor polynomial_map(const Tensor& q, const Tensor& k, const PolynomialParams& params, const Mask& mask,
                      int64_t first_query) {
  const Tensor s = matmul(feature_map(q, params), transpose(feature_map(k, params), 2, 3)) * params.scale;
  Tensor weights = Tensor::full(s.shape(), params.coefficients.back(), s.dtype(), s.device());
  for (size_t l = params.coefficients.size() - 1; l-- > 0;)
    weights = weights * s + params.coefficients[l];  // Horner's method
  if (const Tensor bias = mask.dense(s, first_query)) weights = weights * exp(bias);
  return weights / row_divisor(sum(weights, 3), params);
}

Tensor row_divisor(const Tensor& weight_sum, const PolynomialParams& params) {
  const Tensor shifted = weight_sum + params.epsilon;
  if (params.guard == 0) return shifted + zero_indicator(shifted);
  const Tensor sizes = abs(shifted.detach()), is_zero = zero_indicator(sizes);
  const Tensor signs = shifted.detach() / (sizes + is_zero) + is_zero;  // the sign of 0 is 1
  return maximum(abs(shifted), params.guard) * signs;
}

}  // namespace heed
