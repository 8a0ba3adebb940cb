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

std::pair<int, bool> Trainer::stop_now(bool late) const {
  const int signal = StopSignals::received();
  if (group_ == nullptr) return {signal, late};
  int first = 0;
  const std::vector<double> all = group_->gather(2 * signal + (late ? 1 : 0));
  for (const double one : all) {
    if (first == 0) first = static_cast<int>(one) / 2;
  }
  return {first, static_cast<int>(all[0]) % 2 != 0};
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

void Trainer::begin_shares(const std::vector<Batch>& batches) {
  double weight = 0;
  for (const Batch& batch : batches) weight += batch.whole;
  for (size_t i = 0; i < batches.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    launch<kernel::Fill>(factors_.device(), view::slice(factors_, 0, at, at + 1),
                         weight > 0 ? batches[i].weight / weight : 0.0);
  }
}

std::vector<Tensor> Trainer::sweep_shares(const std::vector<Batch>& batches, bool first, bool send) {
  // What is planted into a gradient comes after the sweep.
  const bool early = send && !plants(Plant::Where::gradient);
  if (send) exchange_->begin();
  for (size_t i = 0; i < batches.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    const Tensor mine = view::slice(tail_, 0, at, at + 1);
    begin_draws(i, batches.size());
    if (batches[i].weight == 0) {  // fewer rows than members
      launch<kernel::Fill>(mine.device(), mine, 0.0);
      continue;
    }
    const SharedRows rows(batches[i].rows);
    Terms terms;
    Tensor loss = config_.task->loss(*model_, batches[i], {.noise = &rng_, .terms = &terms});
    const Tensor factor = view::reshape(view::slice(factors_, 0, at, at + 1), loss.shape());
    launch<kernel::Copy>(mine.device(), view::reshape(loss.detach() * factor, Shape{1}), mine);
    if (const Tensor more = terms.sum()) loss = loss + more;
    if (first) check_listed(*model_, loss);
    loss = loss * factor;
    if (early && i + 1 == batches.size()) {
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

double Trainer::loss_of(const std::vector<Batch>& batches, const std::vector<double>& losses) const {
  double loss = 0, weight = 0;
  if (group_ != nullptr) {
    for (const double part : losses) loss += part;
    return loss;
  }
  for (const Batch& batch : batches) weight += batch.weight;
  for (size_t i = 0; i < batches.size(); ++i)
    loss += losses[i] * (weight > 0 ? batches[i].weight / weight : 0);
  return loss;
}

}  // namespace heed
