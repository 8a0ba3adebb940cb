// Linear attention by feature maps: full calls, decoding step by step, maps.
#include "heed/attention/base/kernelized.h"

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
  if (input.mask.bias())
    fail(
        "attention: a map that factors cannot take a bias on its scores. Leave the bias out, or use "
        "softmax.");
  if (input.mask.key_lengths() && input.mask.key_lengths().extent(0) != heads.q.extent(0)) {
    fail("attention: ", input.mask.key_lengths().extent(0), " key lengths for a batch of ", heads.q.extent(0),
         ". Give one length a sequence.");
  }
  const int64_t earlier = heads.k ? heads.k.extent(2) - heads.q.extent(2) : 0;
  if (input.mask.is_causal() && earlier < 0) {
    fail("attention: ", heads.q.extent(2), " causal queries for ", heads.k.extent(2),
         " keys. The last query belongs to the last key, so there must be as many keys.");
  }
}

Tensor KernelizedAttention::attend(Heads heads, const AttentionInput& input) {
  check(heads, input);
  const int64_t earlier = heads.k ? heads.k.extent(2) - heads.q.extent(2) : 0;
  Heads phi = features(std::move(heads), input);
  if (input.context.recorder != nullptr) show(phi, input);
  PolynomialParams params = params_;
  params.key_lengths = input.mask.key_lengths();
  if (input.context.training() && config().dropout > 0)
    phi = feature_dropout(std::move(phi), params, *input.context.rng);
  if (input.cache != nullptr) return step(phi, params, input);
  params.causal = input.mask.is_causal();
  if (!params.causal || earlier == 0) return polynomial_attention(phi.q, phi.k, phi.v, params);
  const auto part = [&](const Tensor& x, bool before) {
    return before ? slice(x, 2, 0, earlier) : slice(x, 2, earlier, x.extent(2));
  };
  PolynomialParams before = params;
  if (params.dropout > 0) before.draw = input.context.rng->next();  // keys of both parts count from 0
  const Tensor sums = polynomial_sums(part(phi.k, true), part(phi.v, true), before);
  params.first_key = earlier;
  return polynomial_attention(phi.q, part(phi.k, false), part(phi.v, false), params, sums);
}

Tensor KernelizedAttention::step(const Heads& phi, PolynomialParams params,
                                 const AttentionInput& input) const {
  auto* cache = cache_of<SumCache>(input);
  if (!phi.k && !cache->sums)
    fail("attention: no keys were given and none are remembered. Give keys in the first call.");
  const Tensor before = cache->sums;
  if (phi.k) {
    params.first_key = cache->length;
    const Tensor added = polynomial_sums(phi.k, phi.v, params);
    cache->sums = before ? before + added : added;
    cache->length += phi.k.extent(2);
  }
  // Several causal queries in one call must not attend to later keys of the call.
  if (input.mask.is_causal() && phi.k && phi.q.extent(2) > 1) {
    params.causal = true;
    return polynomial_attention(phi.q, phi.k, phi.v, params, before);
  }
  return polynomial_attention(phi.q, Tensor(), Tensor(), params, cache->sums);
}

void KernelizedAttention::show(const Heads& phi, const AttentionInput& input) const {
  if (input.cache != nullptr) {
    fail(
        "attention: sums do not tell single keys apart, so a step with a memory has no map. Look at a full "
        "call.");
  }
  const NoGrad no_grad;
  const int64_t first = input.mask.is_causal() ? phi.k.extent(2) - phi.q.extent(2) : 0;
  input.context.recorder->factors(*this, prepared(phi.q, params_), prepared(phi.k, params_), params_.scale);
  input.context.recorder->record(*this, polynomial_map(phi.q, phi.k, params_, input.mask, first));
}

Tensor prepared(const Tensor& x, const PolynomialParams& params) {
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

Tensor one_for_zero(const Tensor& x) {
  const NoGrad no_grad;
  const Tensor sizes = abs(contiguous(x.detach())), any(x.shape(), DType::u8, x.device());
  launch<kernel::Pick>(x.device(), sizes, Draw{}, any);
  return affine(cast(any, x.dtype()), -1, 1);
}

Tensor polynomial_map(const Tensor& q, const Tensor& k, const PolynomialParams& params, const Mask& mask,
                      int64_t first_query) {
  const Tensor s = matmul(prepared(q, params), transpose(prepared(k, params), 2, 3)) * params.scale;
  Tensor weights = Tensor::full(s.shape(), params.coefficients.back(), s.dtype(), s.device());
  for (size_t l = params.coefficients.size() - 1; l-- > 0;) weights = weights * s + params.coefficients[l];
  if (const Tensor hidden = mask.dense(s, first_query)) weights = weights * exp(hidden);
  return weights / divisor(sum(weights, 3), params);
}

Tensor divisor(const Tensor& total, const PolynomialParams& params) {
  const Tensor all = total + params.epsilon;
  if (params.guard == 0) return all + one_for_zero(all);
  const Tensor sizes = abs(all.detach());
  const Tensor signs =
      all.detach() / (sizes + one_for_zero(sizes)) + one_for_zero(sizes);  // the sign of 0 is 1
  return maximum(abs(all), params.guard) * signs;
}

}  // namespace heed
