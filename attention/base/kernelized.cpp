// Linear attention by feature maps: full calls, decoding step by step, maps.
#include "heed/attention/base/kernelized.h"

#include "heed/core/kernels/content/hard_choice.h"
#include "heed/core/launch.h"

namespace heed {

using kernel::FeatureMap;
using kernel::PolynomialTerms;

KernelizedAttention::KernelizedAttention(const AttentionConfig& config, double epsilon, Rng& rng)
    : KernelizedAttention(config, PolynomialTerms{.coefficients = {0, 1}, .epsilon = epsilon}, rng) {
  if (!(epsilon > 0))
    fail("attention: epsilon = ", epsilon, ". It must be above 0, or a query without keys divides by zero.");
}

KernelizedAttention::KernelizedAttention(const AttentionConfig& config, const PolynomialTerms& terms,
                                         Rng& rng)
    : HeadedAttention(config, rng), terms_(terms) {}

Heads KernelizedAttention::features(Heads heads, const AttentionInput&) const {
  heads.q = feature(heads.q);
  if (heads.k) heads.k = feature(heads.k);
  return heads;
}

Heads KernelizedAttention::noisy(Heads features, PolynomialTerms&, Rng&) const { return features; }

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
  PolynomialTerms terms = terms_;
  terms.key_lengths = input.mask.key_lengths();
  if (input.context.training() && config().dropout > 0)
    phi = noisy(std::move(phi), terms, *input.context.rng);
  if (input.cache != nullptr) return step(phi, terms, input);
  terms.causal = input.mask.is_causal();
  if (!terms.causal || earlier == 0) return polynomial_attention(phi.q, phi.k, phi.v, terms);
  const auto part = [&](const Tensor& x, bool before) {
    return before ? slice(x, 2, 0, earlier) : slice(x, 2, earlier, x.extent(2));
  };
  PolynomialTerms before = terms;
  if (terms.dropout > 0) before.draw = input.context.rng->next();  // keys of both parts count from 0
  const Tensor sums = polynomial_sums(part(phi.k, true), part(phi.v, true), before);
  terms.first_key = earlier;
  return polynomial_attention(phi.q, part(phi.k, false), part(phi.v, false), terms, sums);
}

Tensor KernelizedAttention::step(const Heads& phi, PolynomialTerms terms, const AttentionInput& input) const {
  auto* cache = cache_of<SumCache>(input);
  if (!phi.k && !cache->sums)
    fail("attention: no keys were given and none are remembered. Give keys in the first call.");
  const Tensor before = cache->sums;
  if (phi.k) {
    terms.first_key = cache->length;
    const Tensor added = polynomial_sums(phi.k, phi.v, terms);
    cache->sums = before ? before + added : added;
    cache->length += phi.k.extent(2);
  }
  // Several causal queries in one call must not attend to later keys of the call.
  if (input.mask.is_causal() && phi.k && phi.q.extent(2) > 1) {
    terms.causal = true;
    return polynomial_attention(phi.q, phi.k, phi.v, terms, before);
  }
  return polynomial_attention(phi.q, Tensor(), Tensor(), terms, cache->sums);
}

void KernelizedAttention::show(const Heads& phi, const AttentionInput& input) const {
  if (input.cache != nullptr) {
    fail(
        "attention: sums do not tell single keys apart, so a step with a memory has no map. Look at a full "
        "call.");
  }
  const NoGrad no_grad;
  const int64_t first = input.mask.is_causal() ? phi.k.extent(2) - phi.q.extent(2) : 0;
  input.context.recorder->factors(*this, prepared(phi.q, terms_), prepared(phi.k, terms_), terms_.scale);
  input.context.recorder->record(*this, polynomial_map(phi.q, phi.k, terms_, input.mask, first));
}

Tensor prepared(const Tensor& x, const PolynomialTerms& terms) {
  const double e = terms.prepare_epsilon;
  switch (terms.prepare) {
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

Tensor polynomial_map(const Tensor& q, const Tensor& k, const PolynomialTerms& terms, const Mask& mask,
                      int64_t first_query) {
  const Tensor s = matmul(prepared(q, terms), transpose(prepared(k, terms), 2, 3)) * terms.scale;
  Tensor weights = Tensor::full(s.shape(), terms.coefficients.back(), s.dtype(), s.device());
  for (size_t l = terms.coefficients.size() - 1; l-- > 0;) weights = weights * s + terms.coefficients[l];
  if (const Tensor hidden = mask.dense(s, first_query)) weights = weights * exp(hidden);
  return weights / divisor(sum(weights, 3), terms);
}

Tensor divisor(const Tensor& total, const PolynomialTerms& terms) {
  const Tensor all = total + terms.epsilon;
  if (terms.guard == 0) return all + one_for_zero(all);
  const Tensor sizes = abs(all.detach());
  const Tensor signs =
      all.detach() / (sizes + one_for_zero(sizes)) + one_for_zero(sizes);  // the sign of 0 is 1
  return maximum(abs(all), terms.guard) * signs;
}

}  // namespace heed
