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

/// The specs of a list with commas between: "gla:rank=4,scale=1,softmax" has two, since options have
/// commas, too. A piece between two commas continues the options of the spec before it where it has a '='
/// that no ':' or ';' precedes; every other piece begins a spec. Commas within parentheses separate nothing.
std::vector<std::string> split_spec_list(std::string_view list);

/// The attention of each layer: one for all layers, or several in turn, and others for some layers:
/// "softmax;1-11=casinoformer:exponent=0.5", "gla*3,softmax" (layers 0 to 2 gla, 3 softmax, 4 to 6 gla, ...).
///
///     text   := turns (';' LAYERS '=' SPEC)*      a later part wins where both name a layer
///     turns  := turn (',' turn)*                  repeated over the layers, as split_spec_list() cuts them
///     turn   := SPEC ('*' N)?                     N layers in a row; N from 1 on
///
/// A '*' and digits at the end of a turn are its N, also behind an option: "gla:rank=4*3,softmax" is three
/// layers of rank 4. Blanks around words are left out. attention_factory() (attention/variant.h) takes the
/// text.
struct LayeredSpec {
  /// The attention of one range of layers.
  struct Part {
    LayerRange layers;  ///< the layers that use it
    std::string spec;   ///< name:key=value,...
  };
  std::string base;  ///< the turns as written: the layers that no part names
  std::vector<std::string>
      turns;                ///< spec of layer i is turns[i modulo their number], unless a part names it
  std::vector<Part> parts;  ///< in the order written

  /// The spec of a layer.
  const std::string& of(int64_t layer) const;
  /// All specs, those of the turns first, each of them once.
  std::vector<std::string> all() const;
  /// Fails for a model of `layers` layers where a part names a layer that it does not have, and where the
  /// turns are more than its layers.
  void check_layers(int64_t layers) const;
};

/// Parses such a text without checking the names of attentions. Fails for a part that has no effect, since
/// later ones name all of its layers.
LayeredSpec parse_layered_spec(std::string_view text);
/// Fails where a spec of such a text is not legal for its attention, or its attention is unknown.
void check_attention(const std::string& text);
/// `text`, but with `spec` in these layers ("1-11"); empty layers: in all. Parts that no layer uses any more
/// are left out.
std::string with_layers(const std::string& text, const std::string& spec, const std::string& layers);

}  // namespace heed
