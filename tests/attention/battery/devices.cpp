// Battery: one seed gives the same bits for any number of threads, and devices agree with the CPU.
#include <algorithm>

#include "heed/tests/attention/battery/kit.h"

namespace heed::battery {
namespace {

/// The output of one forward pass and all gradients of the backward pass after it.
std::vector<Tensor> train_step(const Setting& setting, const Sizes& sizes, Dropout dropout,
                               DType dtype = DType::f32) {
  Host host = host_of(setting, sizes, dtype);
  if (setting.variant.traits.padding) {
    host.lengths = lengths_of({static_cast<int32_t>(host.keys.extent(1)), 5}, setting.device);
  }
  host.make_leaves();
  Rng rng(11, setting.device);
  const Tensor y = host.forward({.rng = dropout == Dropout::on ? &rng : nullptr});
  backward(y, numbers(y.shape(), 12, y.dtype(), y.device()));
  std::vector<Tensor> out{y.detach()};
  for (const auto& [name, tensor] : host.leaves()) out.push_back(grad_of(tensor));
  return out;
}

bool same_bits(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (!battery::same_bits(a[i], b[i])) return false;
  }
  return a.size() == b.size();
}

/// Compares a training step without dropout to that of the CPU: in f64 they agree closely. In f32 the error
/// against f64 may be 8 times the CPU's, since some formulas magnify rounding errors on any device.
void compare_to_cpu(Report& report, const Setting& setting, const Sizes& sizes) {
  Setting cpu = setting;
  cpu.device = Device::cpu;
  const std::vector<Tensor> cpu_f64 = train_step(cpu, sizes, Dropout::off, DType::f64),
                            device_f64 = train_step(setting, sizes, Dropout::off, DType::f64),
                            device_f32 = train_step(setting, sizes, Dropout::off),
                            cpu_f32 = train_step(cpu, sizes, Dropout::off);
  for (size_t i = 0; i < cpu_f64.size(); ++i) {
    const std::string name = i == 0 ? std::string("the output") : text("gradient ", i);
    const double difference = distance(device_f64[i], cpu_f64[i]);
    if (difference > 1e-8 * setting.variant.traits.tolerance)
      note(report, name, " differs by ", difference, " from the CPU's, both in f64");
    const double max_error = std::max(2e-4, 8 * distance(cpu_f32[i], cpu_f64[i])),
                 error = distance(device_f32[i], cpu_f64[i]);
    if (error > max_error)
      note(report, name, " in f32 differs by ", error, " from what it is in f64; at most ", max_error,
           " is due");
  }
}

}  // namespace

Report devices(const Setting& setting) {
  // The projections are wide enough to be cut into pieces for several threads as well.
  const Sizes sizes{.queries = 200, .keys = 170, .width = 132, .heads = 3, .dropout = 0.1};
  Report report;
  const std::vector<Tensor> expected = train_step(setting, sizes, Dropout::on);
  if (!same_bits(expected, train_step(setting, sizes, Dropout::on)))
    note(report, "the same seed gives other bits the second time");
  for (const int count : {1, 2, 3, 4, 8}) {
    const WithThreads with_threads(count);
    if (!same_bits(expected, train_step(setting, sizes, Dropout::on)))
      note(report, count, " threads give other bits");
  }
  if (setting.device != Device::cpu) compare_to_cpu(report, setting, sizes);
  return report;
}

}  // namespace heed::battery
