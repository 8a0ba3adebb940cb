// Labelled byte strings: the examples of tasks over long sequences.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/core/error.h"

namespace heed {

/// Examples of one or more byte strings each: a text, a pair of texts, the tokens of an expression, the
/// pixels of an image.
struct Sequences {
  int64_t parts = 1;            ///< byte strings per example
  std::string bytes;            ///< the byte strings of all examples, one after the other
  std::vector<int64_t> ends;    ///< end of each string in `bytes`, [examples * parts]
  std::vector<uint8_t> labels;  ///< [examples]

  int64_t count() const { return static_cast<int64_t>(labels.size()); }  ///< number of examples
  /// Byte string `part` of an example.
  std::string_view at(int64_t example, int64_t part = 0) const {
    const auto index = static_cast<size_t>(example * parts + part);
    const int64_t begin = index == 0 ? 0 : ends[index - 1];
    return std::string_view(bytes).substr(static_cast<size_t>(begin),
                                          static_cast<size_t>(ends[index] - begin));
  }
  /// Appends one byte string; the caller appends one label per `parts` strings.
  void add(std::string_view text) {
    bytes += text;
    ends.push_back(static_cast<int64_t>(bytes.size()));
  }
  /// A copy of the examples begin <= i < end.
  Sequences slice(int64_t begin, int64_t end) const;
  /// A copy of the examples with these indices, in this order.
  Sequences pick(std::span<const int64_t> indices) const;
  /// SHA-256 of labels, ends and bytes.
  std::string sha256() const;
};

/// Sequences with these labels and one string of `length` zero bytes each, to be filled in: images.
Sequences blank_sequences(std::vector<uint8_t> labels, int64_t length);

/// Serialises sequences after their SHA-256, for a cache.
std::string encode(const Sequences& sequences);
/// The inverse of encode(). Fault::data when a byte has changed.
Sequences decode_sequences(std::string_view bytes, std::string_view name);

/// The cache of generated data: HEED_CACHE, else `heed` in XDG_CACHE_HOME, else in ~/.cache; empty when none
/// of these is set, or HEED_CACHE is empty.
Path cache_folder();

/// The result of make(), read from cache_folder() or computed and written there. The name of its file is the
/// SHA-256 of `recipe`, so the recipe must determine the result. A damaged file is computed anew, and a
/// folder that cannot be written is no error; `log` is told which of these happened.
Sequences cached(const std::string& recipe, const std::function<Sequences()>& make,
                 const std::function<void(const std::string&)>& log);

}  // namespace heed
