// Linear-time attention through features.
#include "attention/kernelized.h"

namespace heed {

KernelizedAttention::KernelizedAttention(const AttentionConfig& config, double epsilon, Rng& rng)
    : HeadedAttention(config, rng), epsilon_(epsilon) {
  if (!(epsilon > 0))
    fail("attention: epsilon = ", epsilon, ". It must be above 0, or a query without keys divides by zero.");
}

Tensor KernelizedAttention::attend(Heads heads, const Attend& call) {
  if (call.mask.bias())
    fail(
        "attention: a map that factors cannot take a bias on its scores. Leave the bias out, or use "
        "softmax.");
  const Tensor phi_q = feature(heads.q);
  Tensor phi_k, values;
  if (heads.k) {
    const int64_t first = call.memory != nullptr ? call.memory->length : 0;
    phi_k = feature(heads.k);
    if (const Tensor kept = call.mask.kept(phi_k, first)) phi_k = phi_k * kept;
    Shape column = heads.v.shape();
    column[-1] = 1;
    const Tensor ones = Tensor::full(column, 1, heads.v.dtype(), heads.v.device());
    values = concat(std::vector<Tensor>{heads.v, ones}, -1);  // [B, H, Tk, d + 1]
  }
  if (call.pass.probe != nullptr) show(phi_q, phi_k, call);
  Tensor y;
  if (call.memory != nullptr) {
    y = step(phi_q, phi_k, values, call);
  } else if (call.mask.is_causal()) {
    if (phi_q.extent(2) != phi_k.extent(2)) {
      fail("attention: ", phi_q.extent(2), " causal queries for ", phi_k.extent(2),
           " keys. Continue with a memory instead.");
    }
    y = linear_scan(phi_q, phi_k, values);
  } else {
    y = matmul(phi_q, matmul(transpose(phi_k, 2, 3), values));
  }
  const int64_t d = y.extent(-1) - 1;
  return slice(y, 3, 0, d) / (slice(y, 3, d, d + 1) + epsilon_);
}

Tensor KernelizedAttention::step(const Tensor& phi_q, const Tensor& phi_k, const Tensor& v,
                                 const Attend& call) const {
  auto* memory = dynamic_cast<SumMemory*>(call.memory);
  if (memory == nullptr) fail("attention: this memory is another attention's. Use the one from start().");
  if (!phi_k && !memory->sums)
    fail("attention: no keys were given and none are remembered. Give keys in the first call.");
  const Tensor before = memory->sums;
  if (phi_k) {
    const Tensor added = matmul(transpose(phi_k, 2, 3), v);  // [B, H, f, d + 1]
    memory->sums = before ? before + added : added;
    memory->length += phi_k.extent(2);
  }
  // Several causal queries at once see only their own past of the new keys.
  if (call.mask.is_causal() && phi_k && phi_q.extent(2) > 1) {
    const Tensor inside = linear_scan(phi_q, phi_k, v);
    return before ? inside + matmul(phi_q, before) : inside;
  }
  return matmul(phi_q, memory->sums);
}

void KernelizedAttention::show(const Tensor& phi_q, const Tensor& phi_k, const Attend& call) const {
  if (call.memory != nullptr) {
    fail(
        "attention: sums do not tell single keys apart, so a step with a memory has no map. Look at a full "
        "call.");
  }
  const NoTape looking;
  Tensor scores = matmul(phi_q, transpose(phi_k, 2, 3));  // [B, H, Tq, Tk]
  if (const Tensor mask = call.mask.dense(scores, 0)) scores = scores * exp(mask);
  call.pass.probe->see(*this, scores / (sum(scores, 3) + epsilon_));
}

}  // namespace heed
