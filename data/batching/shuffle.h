// Reproducible shuffling: a pure function of (seed, stream), the same on every machine.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace heed {

/// 64 random bits of a counter: the finaliser of splitmix64 (Steele, Lea, Flood 2014) over seed, stream and
/// counter. Runs depend on its values: they must never change.
constexpr uint64_t counter_bits(uint64_t seed, uint64_t stream, uint64_t counter) {
  const auto mix = [](uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  };
  constexpr uint64_t golden = 0x9E3779B97F4A7C15u;
  return mix(mix(mix(seed + golden) ^ (stream * golden + 1)) + (counter + 1) * golden);
}

/// A random number in [0, below), from 32 of the bits; below must be in 1 .. 2^32.
constexpr int64_t counter_below(uint64_t seed, uint64_t stream, uint64_t counter, int64_t below) {
  return static_cast<int64_t>(((counter_bits(seed, stream, counter) >> 32) * static_cast<uint64_t>(below)) >>
                              32);
}

/// Shuffles the values by (seed, stream): Fisher and Yates, from the end.
template <class T>
void shuffle(std::span<T> values, uint64_t seed, uint64_t stream) {
  for (auto i = static_cast<int64_t>(values.size()) - 1; i > 0; --i) {
    const int64_t j = counter_below(seed, stream, static_cast<uint64_t>(i), i + 1);
    std::swap(values[static_cast<size_t>(i)], values[static_cast<size_t>(j)]);
  }
}

/// The numbers 0 .. count - 1, shuffled by (seed, stream).
inline std::vector<int64_t> shuffled(int64_t count, uint64_t seed, uint64_t stream) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) order[static_cast<size_t>(i)] = i;
  shuffle(std::span(order), seed, stream);
  return order;
}

}  // namespace heed
