// The table of layer types as text, Markdown and JSON.
#include "heed/attention/layer_table.h"

#include <cmath>

#include "heed/attention/counted_cost.h"
#include "heed/core/io/json.h"
#include "heed/core/io/number_text.h"
#include "heed/core/io/table_text.h"

namespace heed {
namespace {

std::string two_decimals(double value) { return formatted("%.2f", value); }

/// The layers until all positions are connected: "5 to 6 layers", "1 layer", "not in n layers".
std::string num_layers_text(const LayerCounts& counts) {
  if (counts.layers[0] == 0 || counts.layers[1] == 0) return "not in n layers";
  if (counts.layers[0] == counts.layers[1])
    return text(counts.layers[0], counts.layers[0] == 1 ? " layer" : " layers");
  return text(counts.layers[0], " to ", counts.layers[1], " layers");
}

/// The table's cells, the names of columns first; `counts` has an element for each layer type, or none.
std::vector<TableRow> layer_cells(const std::vector<LayerCounts>& counts) {
  const bool counted = !counts.empty();
  std::vector<TableRow> out{
      {"layer", "complexity", "sequential operations", "maximum path", "attention", "from"}};
  if (counted) {
    out[0] = {"layer",   "complexity", "counted", "sequential operations", "counted", "maximum path",
              "counted", "attention",  "from"};
  }
  for (size_t i = 0; i < layer_types().size(); ++i) {
    const LayerType& type = layer_types()[i];
    if (!counted) {
      out.push_back({type.name, type.complexity, type.sequential, type.path, type.attention, type.paper});
      continue;
    }
    const LayerCounts& found = counts.at(i);
    out.push_back({type.name, type.complexity, counted_growth_text(found.time), type.sequential,
                   "n^" + two_decimals(found.sequential), type.path,
                   std::isfinite(found.path)
                       ? text("n^", two_decimals(found.path), ", ", num_layers_text(found))
                       : num_layers_text(found),
                   type.attention, type.paper});
  }
  return out;
}

}  // namespace

std::string layers_text(const std::vector<LayerCounts>& counts) { return aligned_table(layer_cells(counts)); }

std::string layers_markdown(const std::vector<LayerCounts>& counts) {
  std::string out =
      "# Layer types\n\nWhat mixes the positions of a sequence, and what it costs: the table of Vaswani et "
      "al. 2017 with more rows. Made by\n`heed list layers --markdown`; a test keeps it fresh. `--counted` "
      "adds the columns *counted*.\n\nn is the length, d the width, k the taps of a convolution, r the keys "
      "of a window, c a chunk or block, m the slots,\nlandmarks or features. **Complexity** is what one "
      "layer computes; *counted* are the exponents of its operations in a\ntraining step, by doubling n and "
      "d (attention without its projections). **Sequential operations** must follow each\nother; *counted* "
      "is the exponent of the longest chain of recorded operations; what goes on inside a kernel is not "
      "seen.\n**Maximum path** is the number of layers, or of steps within a recurrent one, between any two "
      "positions; *counted*\nis its exponent, and the layers until every output depends on every input";
  out += text(", at n = ", layer_lengths[0], " and ", layer_lengths[1],
              ".\nWindows are 8 keys to either side there, convolutions have 3 taps, dilated by 1, 3, 9, "
              "...\nbelow n and then anew; a recurrent layer reads both ways.\n\n");
  return out + markdown_table(layer_cells(counts));
}

std::string layers_json(const std::vector<LayerCounts>& counts) {
  Json out{Json::List{}};
  for (size_t i = 0; i < layer_types().size(); ++i) {
    const LayerType& type = layer_types()[i];
    Json row =
        Json::object({{"layer", type.name},
                      {"complexity", type.complexity},
                      {"sequential", type.sequential},
                      {"path", type.path},
                      {"attention", type.attention},
                      {"from", type.paper},
                      {"time", Json::object({{"length", type.time.length}, {"width", type.time.width}})}});
    if (!counts.empty()) {
      const LayerCounts& found = counts.at(i);
      Json lengths{Json::List{}}, chain{Json::List{}}, layers{Json::List{}};
      for (const int n : {0, 1}) {
        lengths.push(layer_lengths[n]);
        chain.push(found.chain[n]);
        layers.push(found.layers[n]);
      }
      row.set(
          "counted",
          Json::object({{"time", Json::object({{"length", found.time.length}, {"width", found.time.width}})},
                        {"lengths", lengths},
                        {"chain", chain},
                        {"layers", layers}}));
    }
    out.push(std::move(row));
  }
  return out.dump(1) + "\n";
}

}  // namespace heed
