// Linear-time attention through features.
#include "attention/kernelized.h"

#include "core/kernels/pick.h"
#include "core/launch.h"

namespace heed {

using kernel::FastmaxTerms;
using kernel::Prepare;

KernelizedAttention::KernelizedAttention(const AttentionConfig& config, double epsilon, Rng& rng)
    : KernelizedAttention(config, FastmaxTerms{.coefficients = {0, 1}, .epsilon = epsilon}, rng) {
  if (!(epsilon > 0))
    fail("attention: epsilon = ", epsilon, ". It must be above 0, or a query without keys divides by zero.");
}

KernelizedAttention::KernelizedAttention(const AttentionConfig& config, const FastmaxTerms& terms, Rng& rng)
    : HeadedAttention(config, rng), terms_(terms) {}

Heads KernelizedAttention::features(Heads heads, const Attend&) const {
  heads.q = feature(heads.q);
  if (heads.k) heads.k = feature(heads.k);
  return heads;
}

Heads KernelizedAttention::noisy(Heads features, FastmaxTerms&, Rng&) const { return features; }

void KernelizedAttention::check(const Heads& heads, const Attend& call) {
  if (call.mask.bias())
    fail(
        "attention: a map that factors cannot take a bias on its scores. Leave the bias out, or use "
        "softmax.");
  if (call.mask.key_lengths() && call.mask.key_lengths().extent(0) != heads.q.extent(0)) {
    fail("attention: ", call.mask.key_lengths().extent(0), " key lengths for a batch of ", heads.q.extent(0),
         ". Give one length a sequence.");
  }
  const int64_t earlier = heads.k ? heads.k.extent(2) - heads.q.extent(2) : 0;
  if (call.mask.is_causal() && earlier < 0) {
    fail("attention: ", heads.q.extent(2), " causal queries for ", heads.k.extent(2),
         " keys. The last query belongs to the last key, so there must be as many keys.");
  }
}

Tensor KernelizedAttention::attend(Heads heads, const Attend& call) {
  check(heads, call);
  const int64_t earlier = heads.k ? heads.k.extent(2) - heads.q.extent(2) : 0;
  Heads phi = features(std::move(heads), call);
  if (call.pass.probe != nullptr) show(phi, call);
  FastmaxTerms terms = terms_;
  terms.key_lengths = call.mask.key_lengths();
  if (call.pass.noise != nullptr && config().dropout > 0)
    phi = noisy(std::move(phi), terms, *call.pass.noise);
  if (call.memory != nullptr) return step(phi, terms, call);
  terms.causal = call.mask.is_causal();
  if (!terms.causal || earlier == 0) return fastmax(phi.q, phi.k, phi.v, terms);
  const auto part = [&](const Tensor& x, bool before) {
    return before ? slice(x, 2, 0, earlier) : slice(x, 2, earlier, x.extent(2));
  };
  const Tensor sums = fastmax_sums(part(phi.k, true), part(phi.v, true), terms);
  terms.first_key = earlier;
  return fastmax(phi.q, part(phi.k, false), part(phi.v, false), terms, sums);
}

Tensor KernelizedAttention::step(const Heads& phi, FastmaxTerms terms, const Attend& call) const {
  auto* memory = memory_of<SumMemory>(call);
  if (!phi.k && !memory->sums)
    fail("attention: no keys were given and none are remembered. Give keys in the first call.");
  const Tensor before = memory->sums;
  if (phi.k) {
    terms.first_key = memory->length;
    const Tensor added = fastmax_sums(phi.k, phi.v, terms);
    memory->sums = before ? before + added : added;
    memory->length += phi.k.extent(2);
  }
  // Several causal queries at once see only their own past of the new keys.
  if (call.mask.is_causal() && phi.k && phi.q.extent(2) > 1) {
    terms.causal = true;
    return fastmax(phi.q, phi.k, phi.v, terms, before);
  }
  return fastmax(phi.q, Tensor(), Tensor(), terms, memory->sums);
}

void KernelizedAttention::show(const Heads& phi, const Attend& call) const {
  if (call.memory != nullptr) {
    fail(
        "attention: sums do not tell single keys apart, so a step with a memory has no map. Look at a full "
        "call.");
  }
  const NoTape looking;
  const int64_t first = call.mask.is_causal() ? phi.k.extent(2) - phi.q.extent(2) : 0;
  call.pass.probe->see(*this, polynomial_map(phi.q, phi.k, terms_, call.mask, first));
}

Tensor prepared(const Tensor& x, const FastmaxTerms& terms) {
  const double e = terms.prepare_epsilon;
  switch (terms.prepare) {
    case Prepare::none:
      return x;
    case Prepare::standard: {
      const Tensor centred = x - mean(x, -1);
      return centred / sqrt(mean(square(centred), -1) + e);
    }
    case Prepare::unit:
      return x / sqrt(sum(square(x), -1) + e * e);
    case Prepare::positive:
      return relu(x) + exp(-relu(-x));  // elu(x) + 1 would leave little of what is far below 0
  }
  return x;
}

Tensor one_for_zero(const Tensor& x) {
  const NoTape looking;
  const Tensor sizes = abs(contiguous(x.detach())), any(x.shape(), DType::u8, x.device());
  launch<kernel::Pick>(x.device(), sizes, Draw{}, any);
  return affine(cast(any, x.dtype()), -1, 1);
}

Tensor polynomial_map(const Tensor& q, const Tensor& k, const FastmaxTerms& terms, const Mask& mask,
                      int64_t first_query) {
  const Tensor s = matmul(prepared(q, terms), transpose(prepared(k, terms), 2, 3)) * terms.scale;
  Tensor weights = Tensor::full(s.shape(), terms.coefficients.back(), s.dtype(), s.device());
  for (size_t l = terms.coefficients.size() - 1; l-- > 0;) weights = weights * s + terms.coefficients[l];
  if (const Tensor hidden = mask.dense(s, first_query)) weights = weights * exp(hidden);
  return weights / divisor(sum(weights, 3), terms);
}

Tensor divisor(const Tensor& total, const FastmaxTerms& terms) {
  const Tensor all = total + terms.epsilon;
  if (terms.guard == 0) return all + one_for_zero(all);
  const Tensor sizes = abs(all.detach());
  const Tensor signs = all.detach() / (sizes + one_for_zero(sizes)) + one_for_zero(sizes);  // that of 0 is 1
  return maximum(abs(all), terms.guard) * signs;
}

}  // namespace heed
