// Counter-based random numbers: the same on every device and for any number of threads.
#pragma once

#include <cstdint>

#include "heed/core/launch.h"
#include "heed/core/tensor.h"

namespace heed {

/// Four 32-bit numbers from a 128-bit counter and a 64-bit key.
/// Philox-4x32: Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3".
struct Philox {
  uint32_t word[4];  ///< uniform over 32 bits each

  /// The block at counter (low, high) of the stream `key`. Fewer than the usual 10 rounds are faster; 7 are
  /// the fewest that pass BigCrush (table 2 of the paper).
  template <int rounds = 10>
  HEED_BOTH static Philox at(uint64_t key, uint64_t low, uint64_t high) {
    uint32_t c0 = static_cast<uint32_t>(low), c1 = static_cast<uint32_t>(low >> 32);
    uint32_t c2 = static_cast<uint32_t>(high), c3 = static_cast<uint32_t>(high >> 32);
    uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
    for (int round = 0; round < rounds; ++round) {
      const uint64_t p0 = uint64_t{0xD2511F53U} * c0;
      const uint64_t p1 = uint64_t{0xCD9E8D57U} * c2;
      c0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
      c2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
      c1 = static_cast<uint32_t>(p1);
      c3 = static_cast<uint32_t>(p0);
      k0 += 0x9E3779B9U;
      k1 += 0xBB67AE85U;
    }
    return {{c0, c1, c2, c3}};
  }
};

/// Maximum number of draws of one tick: the counter has 24 bits for them, as Draw::high() says.
inline constexpr int64_t max_draws = (int64_t{1} << 24) - 1;

/// The random numbers of one op: Philox with key `seed` at counters that depend on `stream` and the tick. The
/// tick is in device memory, so that a step replayed as a CUDA graph draws new numbers each time.
struct Draw {
  uint64_t seed = 0;    ///< the key of Philox
  uint64_t stream = 0;  ///< number of the op within its step
  Tensor tick;          ///< i64 [1], on the device

  /// The counter's high half. Kernels call it with the tick they have read.
  HEED_BOTH static uint64_t high(uint64_t stream, int64_t tick) {
    return (static_cast<uint64_t>(tick) << 24) ^ stream;
  }
};

/// A source of random numbers whose state is three integers: seed, tick, and the draws since the last tick.
/// Copies share the tick. Ops take a Draw from next(); a training loop calls advance() once a step.
class Rng {
 public:
  explicit Rng(uint64_t seed, Device device = default_device);  ///< at tick 0; `device` holds the tick

  Draw next();     ///< the random numbers of one op; each call returns others
  void advance();  ///< begins the next step: adds 1 to the tick on the device, counts draws from zero
  /// Uniform in [0, 1), drawn on the host; for decisions of the program, not for tensors.
  double uniform();
  /// Uniform in 0 <= i < count, on the host.
  int64_t below(int64_t count);

  uint64_t seed() const { return seed_; }  ///< as given
  /// The number of the step. Fails while a step is captured, since the graph would keep what depends on it.
  int64_t tick() const;
  /// True for all steps after number `tick`, also while one is captured.
  bool past(int64_t tick) const { return tick_host_ > tick || this->tick() > tick; }
  /// True when both are in the same step.
  bool at_tick_of(const Rng& other) const { return tick_host_ == other.tick_host_; }
  int64_t draws() const { return static_cast<int64_t>(draws_); }  ///< calls of next() since the last tick
  void restore(int64_t tick, int64_t draws);  ///< restores the state that tick() and draws() returned
  void skip_to(int64_t draws) { draws_ = static_cast<uint64_t>(draws); }  ///< sets draws() within the tick

 private:
  uint64_t seed_;
  uint64_t draws_ = 0;
  int64_t tick_host_ = 0;
  Tensor tick_;
};

/// Fills with normal numbers of the given mean and deviation.
void fill_normal(const Tensor& x, double mean, double deviation, Rng& rng);
/// Fills with numbers uniform in [low, high).
void fill_uniform(const Tensor& x, double low, double high, Rng& rng);

}  // namespace heed
