// What the properties of the battery share: hosts, inputs, comparisons.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "core/parallel.h"
#include "tests/attention/battery.h"

namespace heed::battery {

/// Extents of one call.
struct Sizes {
  int64_t batch = 2, queries = 5, keys = 7, width = 8, heads = 2;
  double dropout = 0;
};

/// The host's side of a setting; keys are as many as queries unless queries cross.
AttentionConfig config_of(const Setting& setting, const Sizes& sizes);

/// Normal numbers that depend on the seed only.
Tensor numbers(const Shape& shape, uint64_t seed, DType dtype = DType::f32, Device device = Device::cpu);
/// i32 [B] on the device.
Tensor lengths_of(const std::vector<int32_t>& lengths, Device device);

/// An attention with inputs to call it on.
struct Host {
  Setting setting;
  std::unique_ptr<Attention> attention;
  Tensor queries;  ///< [B, Tq, width]
  Tensor keys;     ///< [B, Tk, width]; the same handle unless queries cross
  Tensor lengths;  ///< i32 [B] or empty

  bool crosses() const { return setting.mode == Mode::cross; }
  Mask mask() const;
  Attend call() const { return {.queries = queries, .keys = keys, .mask = mask()}; }
  Tensor forward(const Pass& pass = {}) const;
  /// Gives the inputs gradients.
  void make_leaves();
  /// The inputs (where they are leaves) and the parameters.
  std::vector<std::pair<std::string, Tensor>> leaves() const;
  void clear_gradients() const;
};

Host host_of(const Setting& setting, const Sizes& sizes, DType dtype = DType::f32, uint64_t seed = 1);

/// The largest difference, relative to max(1, |expected|); infinite where a value is not finite or shapes
/// differ.
double distance(const Tensor& found, const Tensor& expected);
/// The same numbers to the bit.
bool same_bits(const Tensor& a, const Tensor& b);
bool all_finite(const Tensor& x);
bool all_zero(const Tensor& x);
/// Rows begin <= t < end of axis 1, without history.
Tensor positions(const Tensor& x, int64_t begin, int64_t end);
/// x with its rows begin <= t of batch row b replaced by `value` times random signs and sizes.
Tensor with_garbage(const Tensor& x, int64_t b, int64_t begin, double value);

/// Runs with this many threads while it lives.
class WithThreads {
 public:
  explicit WithThreads(int count) : before_(threads()) { set_threads(count); }
  ~WithThreads() { set_threads(before_); }
  WithThreads(const WithThreads&) = delete;
  WithThreads& operator=(const WithThreads&) = delete;

 private:
  int before_;
};

/// Adds a finding to a report.
template <class... Parts>
void note(Report& report, const Parts&... parts) {
  report += (report.empty() ? "" : "\n") + text(parts...);
}

}  // namespace heed::battery
