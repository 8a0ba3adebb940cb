// Displays of a logit lens: the table, JSON, the page.
#include "heed/attention/inspect/lens_text.h"

#include <sstream>

#include "heed/core/error.h"
#include "heed/core/io/json.h"
#include "heed/tests/catch.h"

using namespace heed;

namespace {

LensView small_lens() {
  LensView lens{.caption = "Anna reads.", .layers = {"embedding", "layer 0"}, .tokens = {"[SOS]", "Anna"}};
  lens.next = {"Anna", "</script>"};
  lens.cells = {{{.best = {{"il", 0.25}, {"la", 0.2}}, .final_probability = 0.01, .entropy = 1.5},
                 {.best = {{"legge", 0.5}}, .final_probability = 0.5, .entropy = 1}},
                {{.best = {{"Anna", 0.987}}, .final_probability = 0.987, .entropy = 0.1},
                 {.best = {{"legge", 0.75}}, .final_probability = 0.75, .entropy = 0.5}}};
  return lens;
}

}  // namespace

TEST_CASE("lens: the table has a row for each position and marks what the last layer says too") {
  std::istringstream in(lens_text(small_lens()));
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  REQUIRE(lines.size() == 4);
  CHECK(lines[0] == "  read   embedding   layer 0");
  CHECK(lines[1] == "  [SOS]  il     25   Anna   99 =");
  CHECK(lines[2] == "  Anna   legge  50 = legge  75 =");
}

TEST_CASE("lens: a narrow terminal gets blocks of layers") {
  const std::string narrow = lens_text(small_lens(), {.width = 24});
  CHECK(narrow.find("embedding\n") != std::string::npos);
  CHECK(narrow.find("\n\n  read   layer 0\n") != std::string::npos);
}

TEST_CASE("lens: JSON has every number") {
  const Json json = parse_json(lens_json(small_lens()), "lens");
  CHECK(json.at("layers").list()[1].text() == "layer 0");
  CHECK(json.at("next").list()[1].text() == "</script>");
  const Json& cell = json.at("cells").list()[0].list()[0];
  CHECK(cell.at("best").list()[1].at("token").text() == "la");
  CHECK(cell.at("best").list()[1].at("probability").real() == 0.2);
  CHECK(cell.at("final_probability").real() == 0.01);
  CHECK(cell.at("entropy").real() == 1.5);
}

TEST_CASE("lens: the page is one file, and tokens cannot end its script") {
  const std::string page = lens_page(small_lens(), "run");
  CHECK(page.find("src=") == std::string::npos);
  CHECK(page.find("http://") == page.find("http://www.w3.org"));
  size_t ends = 0;
  for (size_t at = 0; (at = page.find("</script>", at)) != std::string::npos; ++at) ++ends;
  CHECK(ends == 2);
}

TEST_CASE("lens: sizes that disagree are refused") {
  LensView lens = small_lens();
  lens.cells[1].pop_back();
  CHECK_THROWS_WITH(lens_text(lens), containing("1 cells for 2 positions"));
  lens = small_lens();
  lens.next.pop_back();
  CHECK_THROWS_AS(lens_json(lens), Error);
  lens = small_lens();
  lens.cells[0][0].best.clear();
  CHECK_THROWS_AS(lens_page(lens, ""), Error);
  CHECK_THROWS_AS(check(LensView()), Error);
}
