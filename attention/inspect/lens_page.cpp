// Checks a logit lens, and writes it as JSON and as a page.
#include "heed/attention/inspect/html_page.h"
#include "heed/attention/inspect/lens_text.h"
#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/error.h"
#include "heed/core/io/embedded_files.h"

namespace heed {
namespace {

using picture::joined;
using picture::json;
using picture::json_list;

std::string lens_cell_json(const LensCell& cell) {
  const std::string best = joined(cell.best, ",", [](const LensGuess& guess) {
    return text("{\"token\":", json(guess.token), ",\"probability\":", json(guess.probability), "}");
  });
  return text("{\"best\":[", best, "],\"final_probability\":", json(cell.final_probability),
              ",\"entropy\":", json(cell.entropy), "}");
}

void make_visible(std::string& word) {
  if (!word.empty()) word = picture::visible(word);
}

}  // namespace

void check(const LensView& lens) {
  const size_t layers = lens.layers.size(), positions = lens.tokens.size();
  if (layers < 1 || positions < 1)
    fail(Fault::data, "logit lens: it is empty: ", layers, " layers, ", positions, " positions.");
  if (lens.cells.size() != layers || lens.next.size() != positions)
    fail(Fault::data, "logit lens: ", layers, " layers need as many rows, not ", lens.cells.size(), ", and ",
         positions, " positions as many next tokens, not ", lens.next.size(), ".");
  for (const auto& row : lens.cells) {
    if (row.size() != positions)
      fail(Fault::data, "logit lens: a row has ", row.size(), " cells for ", positions, " positions.");
    for (const LensCell& cell : row) {
      if (cell.best.empty()) fail(Fault::data, "logit lens: a cell has no token. Give at least one.");
    }
  }
}

std::string lens_json(const LensView& lens) {
  check(lens);
  const std::string cells = joined(lens.cells, ",\n", [](const std::vector<LensCell>& row) {
    return "[" + joined(row, ",", lens_cell_json) + "]";
  });
  return text("{\"caption\":", json(lens.caption), ",\"layers\":", json_list(lens.layers),
              ",\"tokens\":", json_list(lens.tokens), ",\"next\":", json_list(lens.next), ",\"cells\":[",
              cells, "]}");
}

std::string lens_page(const LensView& lens, const std::string& title) {
  LensView shown = lens;
  for (std::string& word : shown.tokens) make_visible(word);
  for (std::string& word : shown.next) make_visible(word);
  for (auto& row : shown.cells) {
    for (LensCell& cell : row) {
      for (LensGuess& guess : cell.best) guess.token = picture::visible(guess.token);
    }
  }
  return picture::page(title + ": logit lens", lens.caption,
                       picture::script_section("lens", "Logit lens", "The table is drawn", lens_json(shown)),
                       {picture::tools_script, "attention/inspect/page_lens.js"},
                       embedded_file("attention/inspect/page_lens.css"));
}

}  // namespace heed
