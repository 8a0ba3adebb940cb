// Writes the attention maps of many examples into a folder, one example after the other, with a manifest.
#pragma once

#include <string>
#include <vector>

#include "heed/core/io/json.h"
#include "heed/train/inspect/map_source.h"

namespace heed {

/// Files of maps: one .safetensors file an example, or one .npy file a map.
enum class MapFormat { safetensors, npy };

/// A folder of maps:
///   manifest.json          the facts, then examples: number, caption, token lists, and for each map its
///                          name, kind, layer, shape [heads, queries, keys], file, and which list names its
///                          rows (query_tokens) and columns (key_tokens)
///   000012.safetensors     the maps of example 12, named as in the manifest; or 000012-0.npy, one a map
/// Only one example is in memory. The manifest is written anew every few seconds and by finish(), each time
/// as a whole, and lists files that are there.
class MapWriter {
 public:
  /// Makes the folder. A usage error where it holds a manifest already: maps of two runs would mix.
  MapWriter(Path folder, MapFormat format, Json facts);
  /// Writes the maps of an example. Fault::file where the disk is full; the manifest then lists the others.
  void add(const MappedExample& example);
  /// Notes an input that has no maps, and why: the list left_out of the manifest.
  void leave_out(const std::string& why) { left_out_.push_back(why); }
  /// Writes the manifest; `complete` is one of its facts.
  void finish(bool complete);
  int64_t count() const { return count_; }                                ///< examples written
  const std::vector<std::string>& left_out() const { return left_out_; }  ///< why others were not

 private:
  void write_manifest(bool complete);

  Path folder_;
  MapFormat format_;
  Json facts_;
  std::string entries_;  // the examples as JSON, joined by commas
  std::vector<std::string> left_out_;
  int64_t count_ = 0;
  double written_at_;
};

}  // namespace heed
