// Battery: what stands in padded keys changes neither outputs nor gradients.
#include <cmath>

#include "heed/tests/attention/battery/kit.h"

namespace heed::battery {
namespace {

/// A batch of three sequences: one without padding, one with three padded keys, and one of padding only.
class PaddedBatch {
 public:
  PaddedBatch(const Setting& setting, const Sizes& sizes)
      : tolerance_(setting.variant.traits.tolerance),
        num_keys_(sizes.keys),
        num_real_keys_(sizes.keys - 3),
        host_(host_of(setting, sizes)),
        clean_keys_(host_.keys.detach()),
        output_weights_(numbers(host_.queries.shape(), 7, DType::f32, setting.device)) {
    host_.lengths = lengths_of({static_cast<int32_t>(num_keys_), static_cast<int32_t>(num_real_keys_), 0},
                               setting.device);
    // A loss ignores the outputs of padded queries.
    if (!host_.crosses())
      output_weights_ = with_garbage(with_garbage(output_weights_, 1, num_real_keys_, 0), 2, 0, 0);
    clean_outputs_ = train_step();
    for (const auto& [name, tensor] : host_.leaves()) clean_gradients_.push_back(grad_of(tensor).detach());
  }

  /// Compares a step with numbers of this size in padded keys to the clean step.
  void check_garbage(Report& report, double size) {
    host_.keys = with_garbage(with_garbage(clean_keys_, 1, num_real_keys_, size), 2, 0, size);
    if (!host_.crosses()) host_.queries = host_.keys;
    const Tensor outputs = train_step();
    const std::string garbage = text("garbage of size ", size, " in padded keys");
    if (!all_finite(outputs)) note(report, garbage, " gives outputs that are not finite");
    for (const int64_t sequence : {0, 1}) {
      const double moved = distance(real_outputs(outputs, sequence), real_outputs(clean_outputs_, sequence));
      if (moved != 0) note(report, garbage, " moves outputs by ", moved);
    }
    if (!all_zero(real_outputs(outputs, 2)))
      note(report, garbage, " gives a row without keys more than zeros");
    const Tensor dkeys = grad_of(host_.keys);
    if (!all_zero(positions(view::slice(dkeys, 0, 1, 2), num_real_keys_, num_keys_)) ||
        !all_zero(view::slice(dkeys, 0, 2, 3)))
      note(report, garbage, " gets a gradient");
    const auto leaves = host_.leaves();
    for (size_t i = 0; i < leaves.size(); ++i) {
      const double moved = distance(grad_of(leaves[i].second), clean_gradients_[i]);
      if (!(moved <= 1e-5 * tolerance_))
        note(report, garbage, " moves the gradient of ", leaves[i].first, " by ", moved);
    }
  }

  /// Compares the second sequence to a batch of it alone, without its padding; the third must give zeros.
  void check_clean(Report& report, const Sizes& sizes) const {
    if (!all_zero(real_outputs(clean_outputs_, 2))) note(report, "a row without keys does not give zeros");
    const NoGrad no_grad;
    Host alone = host_of(host_.setting, sizes);
    alone.queries = view::slice(alone.queries, 0, 1, 2);
    alone.keys = positions(view::slice(alone.keys, 0, 1, 2), 0, num_real_keys_);
    if (!alone.crosses()) alone.queries = alone.keys;
    const double difference = distance(real_outputs(clean_outputs_, 1), alone.forward());
    if (difference > 2e-5 * tolerance_)
      note(report, "a padded row differs by ", difference, " from the row alone");
  }

 private:
  /// The outputs of a forward and backward pass.
  Tensor train_step() {
    host_.make_leaves();
    host_.clear_gradients();
    const Tensor outputs = host_.forward();
    backward(sum(outputs * output_weights_));
    return outputs;
  }

  /// The outputs of one sequence, without those of the second's padded queries.
  Tensor real_outputs(const Tensor& outputs, int64_t sequence) const {
    const Tensor row = view::slice(outputs.detach(), 0, sequence, sequence + 1);
    return sequence == 1 && !host_.crosses() ? positions(row, 0, num_real_keys_) : row;
  }

  double tolerance_;
  int64_t num_keys_, num_real_keys_;  // keys of the second sequence
  Host host_;
  Tensor clean_keys_, output_weights_, clean_outputs_;
  std::vector<Tensor> clean_gradients_;
};

}  // namespace

Report padding(const Setting& setting) {
  if (!setting.variant.traits.padding) return {};
  Report report;
  for (Sizes sizes : small_and_large) {
    sizes = with_keys_of_mode(sizes, setting);
    sizes.batch = 3;
    PaddedBatch batch(setting, sizes);
    batch.check_clean(report, sizes);
    for (const double size : {1e15, 1e30, HUGE_VAL, std::nan("")}) batch.check_garbage(report, size);
  }
  return report;
}

}  // namespace heed::battery
