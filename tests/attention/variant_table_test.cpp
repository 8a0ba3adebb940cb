// tests the tables of attention/variant.h: text, Markdown and JSON
#include <sstream>

#include "heed/attention/variant.h"
#include "heed/core/io/json.h"
#include "heed/tests/catch.h"
#include "heed/tests/columns.h"

namespace heed {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

int64_t cells(const std::string& row) {
  int64_t count = -1;
  for (const char c : row) count += c == '|' ? 1 : 0;
  return count;
}

}  // namespace

TEST_CASE("listing: the text has a line for each variant, in columns") {
  const Columns columns("500");
  const auto lines = lines_of(variants_text());
  REQUIRE(lines.size() == variants().size() + 3);  // the heading, and a legend after a blank line
  CHECK(lines[0].starts_with("name "));
  const size_t paper = lines[0].find("paper");
  for (size_t i = 0; i < variants().size(); ++i) {
    const Traits& t = variants()[i].traits;
    CHECK(lines[i + 1].starts_with(std::string(t.name) + " "));
    CHECK(lines[i + 1].substr(paper) == t.paper);
    CHECK(lines[i + 1].back() != ' ');
  }
}

TEST_CASE("listing: the text has costs, abilities and paper, and with wide every column") {
  const Columns columns("500");
  const auto lines = lines_of(variants_text()), wide = lines_of(variants_text({.wide = true}));
  CHECK_THAT(lines[0], !containing("parameters") && !containing("options"));
  CHECK_THAT(lines[1], containing("  cxps  exact  "));
  CHECK_THAT(wide[0], containing("parameters") && containing("options") && containing("padding"));
}

TEST_CASE("listing: one by its name, with every option and tensor") {
  const Columns columns("500");
  const Variant& fastmax = variant_named("fastmax");
  const std::string one = variants_text({.only = &fastmax});
  CHECK(one.starts_with("fastmax: " + std::string(fastmax.traits.summary) + "\n"));
  for (const OptionText& option : fastmax.options({"fastmax", {}})) {
    CHECK_THAT(one, containing("\n" + option.name + " "));
    CHECK_THAT(one, containing(option.help));
  }
  CHECK_THAT(one, containing(fastmax.traits.paper));
  CHECK_THAT(one, !containing("softmax:"));
  CHECK_THAT(variants_text({.only = &variant_named("additive")}), containing("units [2, 8]"));
  CHECK(parse_json(variants_json({.only = &fastmax}), "one").list().size() == 1);
  CHECK_THAT(variants_markdown({.only = &fastmax}), containing("## fastmax") && !containing("## linear"));
}

TEST_CASE("listing: the Markdown tables are whole") {
  const std::string page = variants_markdown();
  const auto lines = lines_of(page);
  int64_t columns = 0;
  for (const std::string& line : lines) {
    columns = line.starts_with("|") ? (columns == 0 ? cells(line) : columns) : 0;
    if (columns > 0) CHECK(cells(line) == columns);
  }
  for (const Variant& variant : variants()) {
    const Traits& t = variant.traits;
    CHECK_THAT(page, containing("| " + std::string(t.name) + " | "));
    CHECK_THAT(page, containing("\n## " + std::string(t.name) + "\n\n" + t.summary + "\n"));
    CHECK_THAT(page, containing(t.paper));
    for (const OptionText& option : variant.options({t.name, {}})) {
      CHECK_THAT(page, containing("| " + option.name + " | " + option.value + " | "));
      CHECK_THAT(page, containing(option.help));
    }
  }
  CHECK_THAT(page, containing("| softmax | n^2 d | n d | yes | yes | yes | yes | exact |"));
}

TEST_CASE("listing: the JSON reads back with every promise") {
  const Json all = parse_json(variants_json(), "variants");
  REQUIRE(all.list().size() == variants().size());
  for (size_t i = 0; i < variants().size(); ++i) {
    const Json& one = all.list()[i];
    const Variant& variant = variants()[i];
    CHECK(one.at("name").text() == variant.traits.name);
    CHECK(one.at("summary").text() == variant.traits.summary);
    CHECK(one.at("time").at("length").real() == variant.traits.time.length);
    CHECK(one.at("memory").at("width").real() == variant.traits.memory.width);
    CHECK(one.at("causal").boolean() == variant.traits.causal);
    CHECK(one.at("steps").boolean() == variant.traits.steps);
    const auto options = variant.options({variant.traits.name, {}});
    REQUIRE(one.at("options").list().size() == options.size());
    for (size_t o = 0; o < options.size(); ++o) {
      CHECK(one.at("options").list()[o].at("name").text() == options[o].name);
      CHECK(one.at("options").list()[o].at("default").text() == options[o].value);
    }
  }
}

}  // namespace heed
