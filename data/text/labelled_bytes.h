// Byte strings with labels: what the tasks over long sequences read.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace heed {

/// Examples of one or more byte strings each, one after another: a text, a pair of texts, the tokens of an
/// expression, the pixels of an image.
struct Sequences {
  int64_t parts = 1;            ///< byte strings an example has
  std::string bytes;            ///< all of them
  std::vector<int64_t> ends;    ///< where each ends in `bytes`, [examples * parts]
  std::vector<uint8_t> labels;  ///< [examples]

  int64_t count() const { return static_cast<int64_t>(labels.size()); }
  /// Byte string `part` of an example.
  std::string_view at(int64_t example, int64_t part = 0) const {
    const auto index = static_cast<size_t>(example * parts + part);
    const int64_t begin = index == 0 ? 0 : ends[index - 1];
    return std::string_view(bytes).substr(static_cast<size_t>(begin),
                                          static_cast<size_t>(ends[index] - begin));
  }
  /// Appends one byte string; labels are appended by the caller, one for `parts` of them.
  void add(std::string_view text) {
    bytes += text;
    ends.push_back(static_cast<int64_t>(bytes.size()));
  }
  /// Examples begin <= i < end.
  Sequences slice(int64_t begin, int64_t end) const;
  /// The examples with these numbers, in this order.
  Sequences pick(std::span<const int64_t> numbers) const;
  /// SHA-256 of labels, ends and bytes.
  std::string sha256() const;
};

/// As bytes that begin with their SHA-256, for a cache.
std::string encode(const Sequences& sequences);
/// What encode() wrote. Fault::data when a byte differs from what was written.
Sequences decode_sequences(std::string_view bytes, std::string_view name);

/// Where generated data are kept between runs: HEED_CACHE, or `heed` in XDG_CACHE_HOME or in ~/.cache; empty
/// when none of these is set, or HEED_CACHE is empty.
Path cache_folder();

/// What `make` gives, kept in cache_folder() under the SHA-256 of `recipe`, which says everything that
/// decides it. A file that is damaged, or a folder that cannot be written, only means that it is made anew.
/// `say` hears where it came from.
Sequences cached(const std::string& recipe, const std::function<Sequences()>& make,
                 const std::function<void(const std::string&)>& say);

}  // namespace heed
