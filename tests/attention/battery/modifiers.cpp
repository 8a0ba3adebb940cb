// Battery: each modifier is rejected or has its effect.
#include "heed/attention/base/multi_head_attention.h"
#include "heed/tests/attention/battery/kit.h"

namespace heed::battery {
namespace {

/// One modifier, set in an attention that otherwise has none.
struct Modification {
  const char* name;
  int64_t kv_heads = 0, head_dim = 0;
  Modifiers modifiers = {};
};

std::vector<Modification> modifications() {
  return {
      {.name = "kv_heads", .kv_heads = 1},
      {.name = "head_dim", .head_dim = 6},
      {.name = "rope", .modifiers = {.position = PositionKind::rope}},
      {.name = "rope_interleaved", .modifiers = {.position = PositionKind::rope_interleaved}},
      {.name = "alibi", .modifiers = {.position = PositionKind::alibi}},
      {.name = "t5", .modifiers = {.position = PositionKind::t5, .position_buckets = 8, .position_span = 20}},
      {.name = "shaw", .modifiers = {.position = PositionKind::shaw, .position_span = 3}},
      {.name = "shaw_keys", .modifiers = {.position = PositionKind::shaw_keys, .position_span = 3}},
      {.name = "qk_norm rms", .modifiers = {.qk_norm = QkNorm::rms}},
      {.name = "qk_norm l2", .modifiers = {.qk_norm = QkNorm::l2}},
      {.name = "softcap", .modifiers = {.softcap = 0.5}},
      {.name = "sink zero", .modifiers = {.sink = Sink::zero}},
      {.name = "sink learned", .modifiers = {.sink = Sink::learned}}};
}

/// Lets `target` share those tensors of `source` that have equal names and shapes in both.
void share_tensors(Module& target, Module& source) {
  const std::vector<Named> shared = tensors(source);
  for (const Named& own : tensors(target)) {
    for (const Named& named : shared) {
      if (own.name == named.name && own.tensor->shape() == named.tensor->shape()) *own.tensor = *named.tensor;
    }
  }
}

/// Compares gradients of 6 elements of each input and parameter to central differences, on the CPU.
void check_gradient(Report& report, const Setting& setting) {
  if (setting.device != Device::cpu) return;
  Host host = host_of(setting, {.queries = 5, .keys = 7}, DType::f64);
  const auto keys = static_cast<int32_t>(host.keys.extent(1));
  if (setting.variant.traits.padding) host.lengths = lengths_of({keys, keys - 2}, setting.device);
  check_gradients(report, host, {.step = 1e-5, .samples = 6});
}

/// Checks that a modifier acts: head_dim and kv_heads on shapes, every other one on the output. Both
/// attentions share their parameters, so that only the modifier can change the output.
void check_obeyed(Report& report, const Setting& setting, const Setting& plain) {
  const NoGrad no_grad;
  const Host host = host_of(setting, {.queries = 9, .keys = 7}),
             plain_host = host_of(plain, {.queries = 9, .keys = 7});
  share_tensors(*host.attention, *plain_host.attention);
  if (setting.head_dim != 0) {
    const Tensor y = host.forward();
    if (y.shape() != host.queries.shape()) note(report, "the output is ", y.shape());
    for (const Named& named : tensors(*host.attention)) {
      const int64_t columns = named.tensor->extent(-1), joined_width = 2 * setting.head_dim;
      if (named.name == "output.weight" && columns != joined_width)
        note(report, "two heads of width ", setting.head_dim, " are joined from ", columns, " columns");
    }
    return;
  }
  if (setting.kv_heads == 0) {
    if (same_bits(host.forward(), plain_host.forward())) note(report, "it is neither refused nor obeyed");
    return;
  }
  const auto* layer = dynamic_cast<const MultiHeadAttention*>(host.attention.get());
  if (layer != nullptr && layer->value.weight.extent(0) != 4)
    note(report, "one key head of width 4 has values of width ", layer->value.weight.extent(0));
}

}  // namespace

Report modifiers(const Setting& plain) {
  Report report;
  for (const Modification& modification : modifications()) {
    Setting setting = plain;
    setting.kv_heads = modification.kv_heads;
    setting.head_dim = modification.head_dim;
    setting.modifiers = modification.modifiers;
    Report found;
    try {
      host_of(setting, {});
    } catch (const Error& error) {
      if (std::string(error.what()).size() < 50)
        note(report, modification.name, " is refused without saying why: ", error.what());
      continue;
    }
    try {
      check_obeyed(found, setting, plain);
      check_gradient(found, setting);
      found += steps(setting) + padding(setting) + packed(setting);
    } catch (const Error& error) {
      note(found, "an Error: ", error.what());
    }
    if (!found.empty()) note(report, modification.name, ": ", found);
  }
  return report;
}

}  // namespace heed::battery
