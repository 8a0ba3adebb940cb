// LayeredSpec: the attention of each layer, as one text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// Layers from `first` to `last`, both included, counted from 0.
struct LayerRange {
  int64_t first = 0;  ///< the lowest layer
  int64_t last = 0;   ///< the highest layer
};

/// Parses "2", "1-11" or "0,4-6". Fails on any other text and on a range that runs backwards.
std::vector<LayerRange> parse_layers(std::string_view text);

/// The attention of each layer: one for all layers, and others for some:
/// "softmax;1-11=casinoformer:exponent=0.5". A later part wins over an earlier one. attention_factory()
/// (attention/variant.h) takes the text.
struct LayeredSpec {
  /// The attention of one range of layers.
  struct Part {
    LayerRange layers;  ///< the layers that use it
    std::string spec;   ///< name:key=value,...
  };
  std::string base;         ///< spec of the layers that no part names
  std::vector<Part> parts;  ///< in the order written

  /// The spec of a layer.
  const std::string& of(int64_t layer) const;
  /// All specs, the base first.
  std::vector<std::string> all() const;
  /// Fails where a part names a layer that a model of `layers` layers does not have.
  void check_layers(int64_t layers) const;
};

/// Parses "SPEC" or "SPEC;LAYERS=SPEC;..." without checking the names of attentions.
LayeredSpec parse_layered_spec(std::string_view text);
/// Fails where a spec of such a text is not legal for its attention, or its attention is unknown.
void check_attention(const std::string& text);
/// `text`, but with `spec` in these layers ("1-11"); empty layers: in all.
std::string with_layers(const std::string& text, const std::string& spec, const std::string& layers);

}  // namespace heed
