// Parsing of specs that differ by layer.
#include "heed/attention/layered_spec.h"

#include <algorithm>
#include <charconv>
#include <span>

#include "heed/core/error.h"
#include "heed/core/io/ascii.h"
#include "heed/core/io/number_text.h"
#include "heed/nn/options.h"

namespace heed {
namespace {

constexpr const char* layers_form = "Write layers, counted from 0, as 2, 1-11 or 0,4-6.";

/// The number of a layer, `given`, of the list `layers`.
int64_t layer_number(std::string_view given, std::string_view layers) {
  const std::string_view word = without_blanks(given);
  int64_t number = -1;
  const char* end = word.data() + word.size();
  const auto [parsed_end, fault] = std::from_chars(word.data(), end, number);
  if (word.empty() || fault != std::errc() || parsed_end != end || number < 0)
    fail("layers '", shown(std::string(layers)), "': '", shown(std::string(word)), "' is no layer. ",
         layers_form);
  return number;
}

/// The pieces of a text between separators, empty ones too, without blanks around them.
std::vector<std::string_view> pieces_of(std::string_view text, char separator) {
  std::vector<std::string_view> out;
  while (true) {
    const size_t end = text.find(separator);
    out.push_back(without_blanks(text.substr(0, end)));
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
  return turns[static_cast<size_t>(layer) % turns.size()];
}

std::vector<std::string> LayeredSpec::all() const {
  std::vector<std::string> out;
  for (const std::string& turn : turns) {
    if (std::find(out.begin(), out.end(), turn) == out.end()) out.push_back(turn);
  }
  for (const Part& part : parts) out.push_back(part.spec);
  return out;
}

void LayeredSpec::check_layers(int64_t layers) const {
  if (static_cast<int64_t>(turns.size()) > layers) {
    fail("attention '", shown(base), "' names ", turns.size(), " layers in turn, but the model has ", layers,
         ". Give model.layers at least ", turns.size(), ", or name fewer.");
  }
  for (const Part& part : parts) {
    if (part.layers.last < layers) continue;
    fail("attention '", part.spec, "' is for the layers ", part.layers.first, " to ", part.layers.last,
         ", but the model has ", layers, ": 0 to ", layers - 1, ". Name layers that it has.");
  }
}

std::vector<std::string> split_spec_list(std::string_view list) {
  std::vector<std::string> specs;
  int depth = 0;
  std::string piece;
  const auto end_piece = [&] {
    piece = without_blanks(piece);
    const size_t equals = piece.find('=');
    const bool is_option = equals != piece.npos && equals < piece.find_first_of(":;(");
    if (is_option && !specs.empty())
      specs.back() += "," + piece;
    else
      specs.push_back(piece);
    piece.clear();
  };
  for (const char c : list) {
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (c == ',' && depth <= 0)
      end_piece();
    else
      piece += c;
  }
  end_piece();
  return specs;
}

namespace {

/// Adds the layers of one turn, SPEC or SPEC*N, to `turns`; `text` is named in errors.
void add_turn(const std::string& turn, std::string_view text, std::vector<std::string>& turns) {
  size_t star = turn.rfind('*');
  if (star != turn.npos && turn.find_first_of(",:=", star) != turn.npos)
    star = turn.npos;  // within an option
  int64_t count = 1;
  if (star != turn.npos) {
    const std::optional<int64_t> given =
        parsed_integer(std::string(without_blanks(std::string_view(turn).substr(star + 1))));
    const int64_t max_count = max_layers - static_cast<int64_t>(turns.size());
    if (!given || *given < 1 || *given > max_count)
      fail("attention '", shown(std::string(text)), "': '", shown(turn.substr(star + 1)),
           "' behind '*' is no number of layers. Write SPEC*N with N from 1 to ", max_count,
           ", as in gla*3,softmax.");
    count = *given;
  }
  turns.insert(turns.end(), static_cast<size_t>(count),
               std::string(without_blanks(std::string_view(turn).substr(0, star))));
}

void refuse_parentheses(std::string_view text) {
  if (text.find_first_of("()") == text.npos) return;
  std::string plain(text);
  std::erase_if(plain, [](char c) { return c == '(' || c == ')'; });
  fail("attention '", shown(std::string(text)), "': parentheses are for lists, as in heed compare. Write ",
       shown(plain), ".");
}

/// True where one of `by` names each layer of a range.
bool are_named(const LayerRange& range, std::span<const LayeredSpec::Part> by) {
  int64_t first = range.first;  // the layers below are named
  while (true) {
    const auto part = std::ranges::find_if(
        by, [&](const auto& one) { return one.layers.first <= first && first <= one.layers.last; });
    if (part == by.end()) return false;
    if (part->layers.last >= range.last) return true;
    first = part->layers.last + 1;
  }
}

/// A range as parse_layers() reads it.
std::string layers_text(const LayerRange& range) {
  return range.first == range.last ? text(range.first) : text(range.first, "-", range.last);
}

/// Fails for a part that no layer uses, since later ones name all of its layers.
void refuse_replaced_parts(const LayeredSpec& spec, std::string_view words) {
  for (size_t i = 0; i < spec.parts.size(); ++i) {
    const LayeredSpec::Part& part = spec.parts[i];
    if (!are_named(part.layers, std::span(spec.parts).subspan(i + 1))) continue;
    const bool is_one = part.layers.first == part.layers.last;
    fail("attention '", shown(std::string(words)), "': '", shown(part.spec), "' of ",
         is_one ? text("layer ", part.layers.first)
                : text("the layers ", part.layers.first, " to ", part.layers.last),
         " has no effect, since later parts name ", is_one ? "that" : "those",
         ", too. Name each layer once.");
  }
}

}  // namespace

LayeredSpec parse_layered_spec(std::string_view text) {
  refuse_parentheses(text);
  LayeredSpec out;
  const std::vector<std::string_view> pieces = pieces_of(text, ';');
  out.base = std::string(pieces[0]);
  for (const std::string& turn : split_spec_list(pieces[0])) add_turn(turn, text, out.turns);
  for (size_t i = 1; i < pieces.size(); ++i) {
    const size_t equals = pieces[i].find('=');
    if (equals == std::string_view::npos || equals + 1 == pieces[i].size()) {
      fail("attention '", shown(std::string(text)), "': '", shown(std::string(pieces[i])),
           "' is not LAYERS=SPEC. Write it as in softmax;1-11=casinoformer:exponent=0.5.");
    }
    const std::string spec(without_blanks(pieces[i].substr(equals + 1)));
    if (split_spec_list(spec).size() > 1 || spec.find('*') != spec.npos) {
      fail("attention '", shown(std::string(text)), "': '", shown(spec),
           "' is more than one attention for the layers ", std::string(pieces[i].substr(0, equals)),
           ". Give one SPEC there; several in turn come first, as in gla*3,softmax;0=softmax.");
    }
    for (const LayerRange& range : parse_layers(pieces[i].substr(0, equals)))
      out.parts.push_back({range, spec});
  }
  refuse_replaced_parts(out, text);
  return out;
}

std::string with_layers(const std::string& text, const std::string& spec, const std::string& layers) {
  if (layers.empty()) return spec;
  std::vector<LayeredSpec::Part> changed;
  for (const LayerRange& range : parse_layers(layers)) changed.push_back({range, spec});
  if (spec.find(';') != std::string::npos || parse_layered_spec(spec).turns.size() > 1)
    fail("attention '", spec, "' names layers itself, and so does ", layers, ". Give layers in one place.");
  const LayeredSpec trained = parse_layered_spec(text);
  std::string out = trained.base;
  for (const LayeredSpec::Part& part : trained.parts)
    if (!are_named(part.layers, changed)) out += ";" + layers_text(part.layers) + "=" + part.spec;
  return out + ";" + layers + "=" + spec;
}

}  // namespace heed
