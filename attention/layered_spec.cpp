// Parsing of specs that differ by layer.
#include "heed/attention/layered_spec.h"

#include <charconv>

#include "heed/core/error.h"

namespace heed {
namespace {

constexpr const char* layers_form = "Write layers, counted from 0, as 2, 1-11 or 0,4-6.";

/// The number of a layer, `word`, of the list `layers`.
int64_t layer_number(std::string_view word, std::string_view layers) {
  int64_t number = -1;
  const char* end = word.data() + word.size();
  const auto [parsed_end, fault] = std::from_chars(word.data(), end, number);
  if (word.empty() || fault != std::errc() || parsed_end != end || number < 0)
    fail("layers '", shown(std::string(layers)), "': '", shown(std::string(word)), "' is no layer. ",
         layers_form);
  return number;
}

/// The pieces of a text between separators, empty ones too.
std::vector<std::string_view> pieces_of(std::string_view text, char separator) {
  std::vector<std::string_view> out;
  while (true) {
    const size_t end = text.find(separator);
    out.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return out;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

std::vector<LayerRange> parse_layers(std::string_view text) {
  std::vector<LayerRange> out;
  for (const std::string_view piece : pieces_of(text, ',')) {
    const size_t dash = piece.find('-');
    const int64_t first = layer_number(piece.substr(0, dash), text);
    const int64_t last = dash == std::string_view::npos ? first : layer_number(piece.substr(dash + 1), text);
    if (last < first)
      fail("layers '", shown(std::string(text)), "': ", first, " is above ", last, ". ", layers_form);
    out.push_back({first, last});
  }
  return out;
}

const std::string& LayeredSpec::of(int64_t layer) const {
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    if (part->layers.first <= layer && layer <= part->layers.last) return part->spec;
  }
  return base;
}

std::vector<std::string> LayeredSpec::all() const {
  std::vector<std::string> out{base};
  for (const Part& part : parts) out.push_back(part.spec);
  return out;
}

void LayeredSpec::check_layers(int64_t layers) const {
  for (const Part& part : parts) {
    if (part.layers.last < layers) continue;
    fail("attention '", part.spec, "' is for the layers ", part.layers.first, " to ", part.layers.last,
         ", but the model has ", layers, ": 0 to ", layers - 1, ". Name layers that it has.");
  }
}

LayeredSpec parse_layered_spec(std::string_view text) {
  LayeredSpec out;
  const std::vector<std::string_view> pieces = pieces_of(text, ';');
  out.base = std::string(pieces[0]);
  for (size_t i = 1; i < pieces.size(); ++i) {
    const size_t equals = pieces[i].find('=');
    if (equals == std::string_view::npos || equals + 1 == pieces[i].size()) {
      fail("attention '", shown(std::string(text)), "': '", shown(std::string(pieces[i])),
           "' is not LAYERS=SPEC. Write it as in softmax;1-11=casinoformer:exponent=0.5.");
    }
    for (const LayerRange& range : parse_layers(pieces[i].substr(0, equals)))
      out.parts.push_back({range, std::string(pieces[i].substr(equals + 1))});
  }
  return out;
}

std::string with_layers(const std::string& text, const std::string& spec, const std::string& layers) {
  if (layers.empty()) return spec;
  parse_layers(layers);  // fails where `layers` is malformed
  if (spec.find(';') != std::string::npos)
    fail("attention '", spec, "' names layers itself, and so does ", layers, ". Give layers in one place.");
  return text + ";" + layers + "=" + spec;
}

}  // namespace heed
