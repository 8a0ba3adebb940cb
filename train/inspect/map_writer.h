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
///   manifest.json          metadata of the folder, then the examples: number, caption, token lists, and for
///                          each map its name, kind, layer, shape [heads, queries, keys], file, and the
///                          indices of the lists that name its rows (query_tokens) and columns (key_tokens)
///   000012.safetensors     the maps of example 12, named as in the manifest; or 000012-0.npy, one a map
/// Only one example is in memory. The whole manifest is written every few seconds and by finish(); the files
/// that it lists exist already.
class MapWriter {
 public:
  /// Makes the folder. A usage error where it holds a manifest already: maps of two runs would mix.
  MapWriter(Path folder, MapFormat format, Json metadata);
  /// Writes the maps of an example. Fault::file where writing fails; finish() then lists the earlier
  /// examples.
  void add(const MappedExample& example);
  /// Records the reason why an input has no maps: an entry of "left_out" in the manifest.
  void leave_out(const std::string& reason) { left_out_.push_back(reason); }
  /// Writes the manifest. Its key "complete" says whether all inputs were written.
  void finish(bool complete);
  int64_t count() const { return count_; }                                ///< number of examples written
  const std::vector<std::string>& left_out() const { return left_out_; }  ///< reasons of leave_out()

 private:
  void write_manifest(bool complete);

  Path folder_;
  MapFormat format_;
  Json metadata_;
  std::string examples_json_;  // objects, joined by commas
  std::vector<std::string> left_out_;
  int64_t count_ = 0;
  double manifest_time_;  // seconds_now() when the manifest was last written
};

}  // namespace heed
