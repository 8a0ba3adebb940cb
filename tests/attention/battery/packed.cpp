// Battery: packed sequences give the outputs and gradients of padded ones.
#include "heed/tests/attention/battery/kit.h"

namespace heed::battery {
namespace {

/// Calls with the same numbers: padded, and packed, with or without some of the padding.
class TwoCalls {
 public:
  TwoCalls(const Setting& setting, const Sizes& sizes, bool keeps_padding)
      : setting_(setting), sizes_(sizes), keeps_padding_(keeps_padding) {
    const bool crosses = setting.mode == Mode::cross;
    keys_ = packing(sizes.keys, keeps_padding);
    queries_ = crosses ? packing(sizes.queries, keeps_padding) : keys_;
    tokens_ = packing(crosses ? sizes.queries : sizes.keys, false);
  }

  /// Compares both calls with equal draws of dropout, or without one.
  void compare(Report& report, Dropout dropout) const {
    const Call padded = call(
        dropout, [](Attention& attention, const AttentionInput& input) { return attention.forward(input); });
    const Call packed = call(dropout, [&](Attention& attention, AttentionInput input) {
      input.queries = queries_->packed(input.queries);
      input.keys = setting_.mode == Mode::cross ? keys_->packed(input.keys) : input.queries;
      input.mask = Mask::packed(queries_, keys_);
      if (setting_.mode == Mode::causal) input.mask = input.mask & Mask::causal();
      return queries_->padded(attend(attention, input));
    });
    const std::string name = text(dropout == Dropout::on ? "with dropout " : "",
                                  keeps_padding_ ? "with some of the padding " : "");
    const double moved = distance(packed.outputs, padded.outputs);
    const double tolerance = setting_.variant.traits.tolerance;
    if (!(moved <= 1e-11 * tolerance)) note(report, name, "packed outputs differ by ", moved);
    for (size_t i = 0; i < padded.gradients.size(); ++i) {
      const auto& [leaf_name, gradient] = padded.gradients[i];
      const double difference = distance(packed.gradients[i].second, gradient);
      if (!(difference <= 1e-10 * tolerance))
        note(report, name, "the packed gradient of ", leaf_name, " differs by ", difference);
    }
  }

 private:
  /// The outputs [B, Tq, width], zeros behind the sequences of queries, and the gradients of all leaves.
  struct Call {
    Tensor outputs;
    std::vector<std::pair<std::string, Tensor>> gradients;
  };

  /// Sequences of the full length, of three tokens less, and of one.
  std::shared_ptr<const Packing> packing(int64_t length, bool keeps_padding) const {
    const auto longest = static_cast<int32_t>(length);
    const int64_t rows = keeps_padding ? 3 * length - 1 : 0;  // all padding but one row
    const Packing on_host = Packing::of(lengths_of({longest, longest - 3, 1}, Device::cpu), length, rows);
    return std::make_shared<const Packing>(on_host.to(setting_.device));
  }

  /// x with zeros in the padding of queries.
  Tensor without_padding(const Tensor& x) const { return tokens_->padded(tokens_->packed(x)); }

  template <class Attend>
  Call call(Dropout dropout, const Attend& attend_to) const {
    Host host = host_of(setting_, sizes_, DType::f64);  // a new one: some attentions change in training
    if (host.crosses()) host.queries = without_padding(host.queries);  // their lengths are not in the mask
    host.lengths = keys_->lengths;
    host.make_leaves();
    Rng rng(9, setting_.device);
    AttentionInput input = host.input();
    input.context.rng = dropout == Dropout::on ? &rng : nullptr;
    const Tensor outputs = attend_to(*host.attention, input);
    // The loss ignores the outputs of padded queries.
    backward(sum(outputs * without_padding(numbers(outputs.shape(), 7, DType::f64, setting_.device))));
    Call out{.outputs = without_padding(outputs.detach()), .gradients = {}};
    for (const auto& [name, tensor] : host.leaves()) {
      const Tensor gradient = grad_of(tensor) ? grad_of(tensor).detach()  // a sampled choice gives none
                                              : Tensor::zeros(tensor.shape(), DType::f64, setting_.device);
      out.gradients.emplace_back(name, name == "the queries" ? without_padding(gradient) : gradient);
    }
    return out;
  }

  Setting setting_;
  Sizes sizes_;
  bool keeps_padding_;
  std::shared_ptr<const Packing> queries_, keys_, tokens_;  // tokens_: of the queries without any padding
};

}  // namespace

Report packed(const Setting& setting) {
  if (!setting.variant.traits.padding) return {};
  Report report;
  for (Sizes sizes : small_and_large) {
    sizes = with_keys_of_mode(sizes, setting);
    sizes.batch = 3;
    sizes.dropout = 0.25;
    for (const bool keeps_padding : {false, true}) {
      const TwoCalls calls(setting, sizes, keeps_padding);
      for (const Dropout dropout : {Dropout::off, Dropout::on}) calls.compare(report, dropout);
    }
  }
  return report;
}

}  // namespace heed::battery
