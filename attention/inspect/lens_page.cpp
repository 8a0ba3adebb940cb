// Writes a logit lens as JSON and as a page.
#include "heed/attention/inspect/lens_text.h"

#include "heed/attention/inspect/map_page.h"
#include "heed/attention/inspect/page_assets.h"
#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/error.h"
#include "heed/core/io/embedded_files.h"

namespace heed {
namespace {

using picture::json;

std::string lens_words_json(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += text(out.empty() ? "" : ",", json(word));
  return "[" + out + "]";
}

std::vector<std::string> visible_words(std::vector<std::string> words) {
  for (std::string& word : words) {
    if (!word.empty()) word = picture::visible(word);
  }
  return words;
}

std::string lens_cell_json(const LensCell& cell) {
  std::string best;
  for (const LensGuess& guess : cell.best)
    best += text(best.empty() ? "" : ",", "{\"token\":", json(guess.token),
                 ",\"probability\":", json(guess.probability), "}");
  return text("{\"best\":[", best, "],\"final_probability\":", json(cell.final_probability),
              ",\"entropy\":", json(cell.entropy), "}");
}

}  // namespace

std::string lens_json(const LensView& lens) {
  check(lens);
  std::string cells;
  for (const auto& row : lens.cells) {
    std::string list;
    for (const LensCell& cell : row) list += text(list.empty() ? "" : ",", lens_cell_json(cell));
    cells += text(cells.empty() ? "" : ",\n", "[", list, "]");
  }
  return text("{\"caption\":", json(lens.caption), ",\"layers\":", lens_words_json(lens.layers),
              ",\"tokens\":", lens_words_json(lens.tokens), ",\"next\":", lens_words_json(lens.next),
              ",\"cells\":[", cells, "]}");
}

std::string lens_section(const LensView& lens) {
  LensView shown = lens;
  shown.tokens = visible_words(shown.tokens);
  shown.next = visible_words(shown.next);
  for (auto& row : shown.cells) {
    for (LensCell& cell : row) {
      for (LensGuess& guess : cell.best) guess.token = picture::visible(guess.token);
    }
  }
  return text(
      "<section class=\"lens\" aria-label=\"Logit lens\">\n<noscript>The table is drawn by a script "
      "inside this page; please allow it to run.</noscript>\n<script type=\"application/json\">",
      lens_json(shown), "</script>\n</section>\n");
}

std::string_view lens_style() { return embedded_file("attention/inspect/page_lens.css"); }

std::string_view lens_script() { return embedded_file("attention/inspect/page_lens.js"); }

std::string lens_page(const LensView& lens, const std::string& title) {
  return picture::page(title + ": logit lens", lens.caption, lens_section(lens),
                       {picture::script_tools(), lens_script()}, lens_style());
}

}  // namespace heed
