// Shared by the properties of the battery: an attention with its inputs, random numbers, comparisons.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "heed/autograd/gradcheck.h"
#include "heed/core/parallel/thread_pool.h"
#include "heed/tests/attention/battery/battery.h"

namespace heed::battery {

/// Sizes of one call, and the dropout rate of the attention.
struct Sizes {
  int64_t batch = 2, queries = 5, keys = 7, width = 8, heads = 2;
  double dropout = 0;
};
/// Lengths within one tile of the kernels, and lengths of several.
inline const std::vector<Sizes> small_and_large{{.queries = 5, .keys = 7}, {.queries = 70, .keys = 131}};
/// `sizes` with as many keys as queries, unless in cross mode.
Sizes with_keys_of_mode(Sizes sizes, const Setting& setting);

/// The attention's config in a setting, with the longer of both lengths as max_length.
AttentionConfig config_of(const Setting& setting, const Sizes& sizes);

/// Normally distributed numbers, a pure function of the seed.
Tensor numbers(const Shape& shape, uint64_t seed, DType dtype = DType::f32, Device device = Device::cpu);
/// A tensor i32 [B] on the device, such as the key lengths of a batch.
Tensor lengths_of(const std::vector<int32_t>& lengths, Device device);

/// An attention and its inputs.
struct Host {
  Setting setting;
  std::unique_ptr<Attention> attention;
  Tensor queries{};  ///< [B, Tq, width]
  Tensor keys{};     ///< [B, Tk, width]; the same tensor unless in cross mode
  Tensor lengths{};  ///< i32 [B] or empty

  bool crosses() const { return setting.mode == Mode::cross; }
  Mask mask() const;  ///< causal in causal mode; without padding where `lengths` is given
  AttentionInput input() const { return {.queries = queries, .keys = keys, .mask = mask()}; }
  Tensor forward(const ForwardContext& context = {}) const;
  /// Makes the inputs leaves, so that they get gradients.
  void make_leaves();
  /// The inputs (where they are leaves) and the parameters, with their names for messages.
  std::vector<std::pair<std::string, Tensor>> leaves() const;
  void clear_gradients() const;
};

/// An attention with random parameters and inputs, both from `seed`, in one dtype on the setting's device.
Host host_of(const Setting& setting, const Sizes& sizes, DType dtype = DType::f32, uint64_t seed = 1);

enum class Dropout { off, on };
/// Compares gradients of the host's inputs and parameters to central differences, within the variant's
/// tolerance; each forward pass draws the same dropout. Every parameter must be listed by fields() and used.
void check_gradients(Report& report, Host& host, GradcheckOptions options, Dropout dropout = Dropout::off);

/// The maximum difference relative to max(1, |expected|); infinite if a value is not finite or shapes differ.
double distance(const Tensor& found, const Tensor& expected);
/// True if both are bit-identical.
bool same_bits(const Tensor& a, const Tensor& b);
bool all_finite(const Tensor& x);
bool all_zero(const Tensor& x);
/// Rows begin <= t < end of axis 1, detached.
Tensor positions(const Tensor& x, int64_t begin, int64_t end);
/// x with rows t >= begin of sequence b replaced by `size` times normally distributed numbers.
Tensor with_garbage(const Tensor& x, int64_t b, int64_t begin, double size);

/// Sets the number of threads while it lives.
class WithThreads {
 public:
  explicit WithThreads(int count) : previous_count_(threads()) { set_threads(count); }
  ~WithThreads() { set_threads(previous_count_); }
  WithThreads(const WithThreads&) = delete;
  WithThreads& operator=(const WithThreads&) = delete;

 private:
  int previous_count_;
};

/// Appends a finding to a report.
template <class... Parts>
void note(Report& report, const Parts&... parts) {
  report += (report.empty() ? "" : "\n") + text(parts...);
}

}  // namespace heed::battery
