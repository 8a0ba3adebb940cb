// What the members of a group tell each other, so that all take the same steps.
#include <cmath>
#include <cstring>

#include "core/hash.h"
#include "core/kernels/copy.h"
#include "core/kernels/map.h"
#include "core/launch.h"
#include "train/stop_signals.h"
#include "train/trainer.h"

namespace heed {

void Trainer::meet() {
  if (group_ == nullptr) return;
  compare_weights();
  const Tensor& values = optimizer_->values();
  factors_ = Tensor::zeros(Shape{config_.train.accumulate}, values.dtype(), values.device());
  tail_ = Tensor::zeros(factors_.shape(), values.dtype(), values.device());
  exchange_ = std::make_unique<Exchange>(
      *optimizer_,
      sums_over(*group_, values.device(), [&](const std::string& why) { progress_.say("processes", why); }));
}

void Trainer::compare_weights() {
  if (group_ == nullptr) return;
  const Tensor here = optimizer_->values().to(Device::cpu);
  const uint32_t sum =
      crc32c(std::string_view(static_cast<const char*>(here.raw()), static_cast<size_t>(here.bytes())));
  const std::vector<double> sums = group_->gather(static_cast<double>(sum));
  for (size_t i = 1; i < sums.size(); ++i) {
    if (sums[i] == sums[0]) continue;
    throw Agreed(Fault::device,
                 text("train: at step ", step_, " the weights of process ", i + 1, " of ", sums.size(),
                      " are not those of process 1.", last_good(),
                      " Processors that differ add up differently: give all processes the same HEED_ISA "
                      "(portable always works), the same heed and the same OpenBLAS."));
  }
}

void Trainer::spread_buffers() {
  for (const Named& one : buffers()) {  // asked for each time: a step may have put another in its place
    const Tensor& buffer = *one.tensor;
    const Tensor here = contiguous(buffer.to(Device::cpu).detach());
    group_->spread(here.raw(), here.bytes());
    if (here.storage() != buffer.storage())
      launch<kernel::Copy>(buffer.device(), here.to(buffer.device()), buffer);
  }
}

Scores Trainer::scores() const {
  if (group_ == nullptr) return config_.task->validate(*model_);
  Scores scores;
  std::string bytes;
  group_->together([&] {
    if (!group_->leads()) return;
    scores = config_.task->validate(*model_);
    bytes = scores.lower_is_better ? "<" : ">";
    for (const auto& [name, value] : scores.list)
      bytes += name + '\0' + std::string(reinterpret_cast<const char*>(&value), sizeof value);
  });
  bytes = group_->spread(bytes);
  scores = {.list = {}, .lower_is_better = bytes[0] == '<'};
  for (size_t at = 1; at < bytes.size();) {
    const size_t end = bytes.find('\0', at);
    double value = 0;
    std::memcpy(&value, bytes.data() + end + 1, sizeof value);
    scores.list.emplace_back(bytes.substr(at, end - at), value);
    at = end + 1 + sizeof value;
  }
  return scores;
}

Trainer::Told Trainer::told(bool late) const {
  Told out{.signal = StopSignals::received(), .late = late, .save = SaveSignal::take()};
  if (group_ == nullptr) return out;
  const std::vector<double> all = group_->gather(4 * out.signal + (out.late ? 2 : 0) + (out.save ? 1 : 0));
  out = {.signal = 0, .late = (static_cast<int>(all[0]) & 2) != 0, .save = false};
  for (const double one : all) {
    const int said = static_cast<int>(one);
    if (out.signal == 0) out.signal = said / 4;
    out.save |= (said & 1) != 0;
  }
  return out;
}

std::string Trainer::agreed(const std::string& bad) const {
  if (group_ == nullptr) return bad;
  const std::vector<std::string> all = group_->gather(bad), names = group_->gather(name_of_member(*group_));
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].starts_with("first bad value")) return text(names[i], ": ", all[i]);
  }
  return all[0];
}

std::string Trainer::first_said(const std::string& words) const {
  const std::vector<std::string> all = group_->gather(words), names = group_->gather(name_of_member(*group_));
  for (size_t i = 0; i < all.size(); ++i) {
    if (!all[i].empty()) return text(names[i], ": ", all[i]);
  }
  return {};
}

void Trainer::begin_share(int64_t i, double part, double whole) {
  launch<kernel::Fill>(factors_.device(), view::slice(factors_, 0, i, i + 1), whole > 0 ? part / whole : 0.0);
}

void Trainer::begin_shares(StepBatches& batches) {
  const double weight = batches.weight();
  for (int64_t i = 0; i < batches.count(); ++i) begin_share(i, batches.at(i).weight, weight);
}

std::vector<Tensor> Trainer::sweep_shares(StepBatches& batches, bool first, bool send) {
  // What is planted into a gradient comes after the sweep.
  const bool early = send && !plants(Plant::Where::gradient);
  const double weight = batches.weight();
  if (send) exchange_->begin();
  for (int64_t i = 0; i < batches.count(); ++i) {
    const Tensor mine = view::slice(tail_, 0, i, i + 1);
    const Batch batch = batches.at(i);
    // Held ones may be those of a recorded step, which reads what was written before it.
    if (!batches.is_held()) begin_share(i, batch.weight, weight);
    begin_draws(i, batches.count());
    if (batch.weight == 0) {  // fewer rows than members
      launch<kernel::Fill>(mine.device(), mine, 0.0);
      continue;
    }
    const SharedRows rows(batch.rows);
    Terms terms;
    Tensor loss = config_.task->loss(*model_, batch, {.noise = &rng_, .terms = &terms});
    const Tensor factor = view::reshape(view::slice(factors_, 0, i, i + 1), loss.shape());
    launch<kernel::Copy>(mine.device(), view::reshape(loss.detach() * factor, Shape{1}), mine);
    if (const Tensor more = terms.sum()) loss = loss + more;
    if (first) check_listed(*model_, loss);
    loss = loss * factor;
    if (early && i + 1 == batches.count()) {
      const Arrivals watching = exchange_->watch();
      backward(loss);
    } else {
      backward(loss);
    }
  }
  if (plants(Plant::Where::gradient)) plant_gradient(plant_, *model_);
  if (send) exchange_->finish(tail_);
  return {tail_};
}

double Trainer::loss_of(const StepBatches& batches, const std::vector<double>& losses) const {
  double loss = 0;
  if (group_ != nullptr) {
    for (const double part : losses) loss += part;
    return loss;
  }
  const double weight = batches.weight();
  for (int64_t i = 0; i < batches.count(); ++i)
    loss += losses[static_cast<size_t>(i)] * (weight > 0 ? batches.weight(i) / weight : 0);
  return loss;
}

}  // namespace heed
