// Displays of attention maps: aligned text, well-formed SVG, a self-contained page.
#include <algorithm>
#include <cmath>
#include <sstream>

#include "heed/attention/inspect/html_page.h"
#include "heed/attention/inspect/map_page.h"
#include "heed/attention/inspect/map_svg.h"
#include "heed/attention/inspect/map_text.h"
#include "heed/attention/inspect/paper_svg.h"
#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/error.h"
#include "heed/core/io/embedded_files.h"
#include "heed/core/io/hash.h"
#include "heed/core/io/terminal.h"
#include "heed/tests/catch.h"

using namespace heed;

namespace {

MapView translated(int64_t heads = 2) {
  MapView map;
  map.name = "decoder.0.cross";
  map.kind = "cross";
  map.heads = heads;
  map.query_tokens = {"▁Il", "▁vecchio", "▁più", "citta\u0300", "日本"};
  map.key_tokens = {"▁The", "▁old", "▁man", "</s>"};
  map.queries = 5;
  map.keys = 4;
  for (int64_t head = 0; head < heads; ++head)
    for (int64_t query = 0; query < map.queries; ++query)
      for (int64_t key = 0; key < map.keys; ++key)
        map.weights.push_back(key == (query + head) % 4 ? 0.55F : 0.15F);
  return map;
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

int64_t count(const std::string& text, const std::string& what) {
  int64_t found = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

/// Columns before the first sign of a line.
int64_t column_of(const std::string& line, const std::string& sign) {
  const size_t at = line.find(sign);
  return at == std::string::npos ? -1 : display_width(line.substr(0, at));
}

/// True when every element of a piece of markup is closed in order.
bool balanced(const std::string& markup) {
  std::vector<std::string> open;
  for (size_t at = markup.find('<'); at != std::string::npos; at = markup.find('<', at + 1)) {
    const size_t end = markup.find('>', at);
    if (end == std::string::npos) return false;
    const std::string tag = markup.substr(at + 1, end - at - 1);
    const std::string name = tag.substr(0, tag.find_first_of(" \n/", 1));
    if (tag[0] == '/') {
      if (open.empty() || "/" + open.back() != tag) return false;
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(name);
    }
  }
  return open.empty();
}

std::string between(const std::string& text, const std::string& from, const std::string& to) {
  const size_t begin = text.find(from) + from.size();
  return text.substr(begin, text.find(to, begin) - begin);
}

}  // namespace

TEST_CASE("picture text: dark cells stand below their labels whatever the width of the letters") {
  const auto all = lines(map_text(translated(), 0));
  CHECK(all[0].find("layer 0 cross, head 0 (of 2)") != std::string::npos);
  CHECK(all[0].find("sharpest head: ") != std::string::npos);
  // Row r has its one strong weight at key r mod 4; rows with marks and wide letters line up with the others.
  REQUIRE(column_of(all[2], "▓▓") > 0);
  CHECK(column_of(all[2], "▓▓") == column_of(all[6], "▓▓"));
  CHECK(column_of(all[5], "▓▓") > column_of(all[4], "▓▓"));
  CHECK(column_of(all[2], "▓▓") >= column_of(all[1], "▁The"));
  CHECK(column_of(all[3], "▓▓") >= column_of(all[1], "▁old"));
  CHECK(column_of(all[3], "▓▓") < column_of(all[1], "▁man"));
  CHECK(all.back().find("rows are queries") != std::string::npos);
}

TEST_CASE("picture text: a narrow terminal gets upright labels, then blocks, long maps are cut with a note") {
  TextOptions options;
  options.width = 30;
  const auto upright = lines(map_text(translated(), 0, options));
  CHECK(std::all_of(upright.begin() + 1, upright.end() - 1,
                    [](const std::string& line) { return display_width(line) <= 30; }));
  options.width = 22;
  const std::string blocks = map_text(translated(), 0, options);
  CHECK(blocks.find("keys 0 to ") != std::string::npos);
  CHECK(blocks.find(" to 3 of 4") != std::string::npos);
  options.rows = 3;
  CHECK(map_text(translated(), 0, options).find("cut to the first 3 of 5 queries and 3 of 4 keys") !=
        std::string::npos);
  options.width = 0;
  CHECK_NOTHROW(map_text(translated(), 0, options));
}

TEST_CASE("picture text: colour is only used where it is asked for, and NO_COLOR turns it off") {
  TextOptions options;
  CHECK(map_text(translated(), 0, options).find('\033') == std::string::npos);
  options.colour = true;
  CHECK(map_text(translated(), 0, options).find("\033[") != std::string::npos);
  setenv("NO_COLOR", "1", 1);
  CHECK_FALSE(terminal_options().colour);
  unsetenv("NO_COLOR");
}

TEST_CASE("picture text: weights outside of a distribution are shown, and a wrong head is named") {
  MapView map = translated();
  map.weights[0] = NAN;
  map.weights[1] = -0.2F;
  const auto row = lines(map_text(map, 0))[2];
  CHECK(row.find('?') != std::string::npos);
  CHECK(row.find('-') != std::string::npos);
  CHECK_THROWS_WITH(map_text(map, 2), containing("head 2") && containing("0 to 1"));
}

TEST_CASE("picture svg: one cell a weight with its value, tokens escaped, elements closed") {
  MapView map = translated();
  map.query_tokens[0] = "<unk>";
  map.key_tokens[1] = "\"&'";
  map.weights[2] = NAN;
  const std::string svg = map_svg(map, 0);
  CHECK(svg.starts_with("<svg xmlns"));
  CHECK(balanced(svg));
  CHECK(count(svg, "</title></rect>") == 20);
  CHECK(svg.find("▁vecchio → &quot;&amp;&#39;  0.550") != std::string::npos);
  CHECK(svg.find("<unk>") == std::string::npos);
  CHECK(svg.find("&lt;unk&gt;") != std::string::npos);
  CHECK(svg.find("  nan<") != std::string::npos);
  CHECK(svg.find("cross attention, layer 0, head 0") != std::string::npos);
  CHECK_THROWS_AS(map_svg(map, -1), Error);
}

TEST_CASE("picture svg: colours go up to the largest weight where that is asked for") {
  MapView map = translated();
  map.weights[0] = INFINITY;  // is no scale
  const SvgOptions scaled{.title = "", .scale_to_largest = true};
  const std::string to_one = map_svg(map, 1), to_largest = map_svg(map, 1, scaled);
  const auto cell = [](float share) { return "fill=\"" + picture::colour(share) + "\"><title>"; };
  CHECK(count(to_one, cell(0.55F)) == 5);
  CHECK(count(to_largest, cell(1)) == 5);
  CHECK(count(to_largest, cell(0.15F / 0.55F)) == 15);
  CHECK(to_largest.find(">0.55</text>") != std::string::npos);
  CHECK(map_svg(map, 0, scaled).find(">0.55</text>") != std::string::npos);
  MapView nothing = translated();
  nothing.weights.assign(nothing.weights.size(), 0);
  CHECK(count(map_svg(nothing, 0, scaled), cell(0)) == 20);
}

TEST_CASE("picture svg: long maps are drawn in tiles that are named") {
  MapView map;
  map.kind = "encoder self";
  map.heads = 1;
  map.queries = map.keys = 300;
  map.weights.assign(300 * 300, 1.0F / 300);
  map.query_tokens.assign(300, "a");
  map.key_tokens = map.query_tokens;
  const std::string svg = map_svg(map, 0);
  CHECK(svg.find("each tile is 3 x 3 tokens") != std::string::npos);
  CHECK(count(svg, "</title></rect>") == 100 * 100);
}

TEST_CASE("picture svg: a figure for print is as wide as a column, grey, with tokens that can be read") {
  MapView map = translated();
  map.weights[2] = -0.4F;
  map.weights[3] = NAN;
  const std::string svg = paper_svg(map, 0);
  CHECK(balanced(svg));
  CHECK(svg.find("width=\"84mm\"") != std::string::npos);
  CHECK(svg.find("vecchio") != std::string::npos);
  CHECK(svg.find("\u2581") == std::string::npos);
  CHECK(count(svg, "url(#below)") == 1);
  CHECK(count(svg, "url(#bad)") == 1);
  CHECK(count(svg, "font-size=\"2.469\"") == 9);  // 7 points in millimetres, each token
  // Greys darken with the weight, black is 1.
  MapView ends = translated(1);
  ends.weights.assign(20, 0);
  ends.weights[0] = 1;
  CHECK(count(paper_svg(ends, 0), "fill=\"rgb(0,0,0)\"") == 1);
  MapView wide = translated(1);
  wide.keys = wide.queries = 300;
  wide.weights.assign(300 * 300, 1.0F / 300);
  wide.query_tokens.assign(300, "token");
  wide.key_tokens = wide.query_tokens;
  CHECK(paper_svg(wide, 0).find("keys, 1 to 300") != std::string::npos);
  CHECK_THROWS_AS(paper_svg(map, 2), Error);
}

TEST_CASE("picture text: the mean of the heads, and what numbers are that are no weights") {
  const MapView map = translated(3), mean = mean_of_heads(map);
  CHECK(mean.heads == 1);
  CHECK(mean.at(0, 2, 3) == Approx((map.at(0, 2, 3) + map.at(1, 2, 3) + map.at(2, 2, 3)) / 3));
  TextOptions options;
  options.note = "shares of the largest";
  const auto all = lines(map_text(mean, 0, options));
  CHECK(all[0].find("cross, mean of 3 heads") != std::string::npos);
  CHECK(all[1] == "  shares of the largest");
}

TEST_CASE("picture svg: a contact sheet has every head of every map") {
  const std::string sheet = contact_sheet_svg({translated(2), translated(3)}, "run <1>");
  CHECK(balanced(sheet));
  CHECK(count(sheet, "<g><title>") == 5);
  CHECK(sheet.find("run &lt;1&gt;") != std::string::npos);
  CHECK_THROWS_AS(contact_sheet_svg({}), Error);
}

TEST_CASE("picture svg: colours darken with the weight, below zero is another hue") {
  const auto lightness = [](double weight) {
    const std::string hex = picture::colour(weight);
    int sum = 0;
    for (size_t i = 1; i < 7; i += 2) sum += std::stoi(hex.substr(i, 2), nullptr, 16);
    return sum;
  };
  for (int i = 0; i < 20; ++i) CHECK(lightness(i / 20.0) > lightness((i + 1) / 20.0));
  CHECK(picture::colour(-1) != picture::colour(1));
  CHECK(picture::colour(7) == picture::colour(1));
  CHECK(picture::colour(NAN) == "#b8bcc2");
}

TEST_CASE("picture html: the page loads nothing and carries no token that could be markup") {
  MapView map = translated();
  map.name = "</script><b>";
  map.query_tokens[0] = "</script><script>alert(1)</script>";
  map.key_tokens[0] = "<!--";
  map.key_tokens[1] = "\"\\";
  const std::string page = maps_page({map}, {.title = "<Maps> & \"more\"", .subtitle = "a < b"});
  CHECK(page.starts_with("<!DOCTYPE html>"));
  CHECK(page.find("default-src 'none'") != std::string::npos);
  CHECK(page.find("alert(1)</") == std::string::npos);
  CHECK(page.find("<!--") == std::string::npos);
  CHECK(count(page, "<script") == 2);
  CHECK(count(page, "</script") == 2);
  CHECK(page.find("&lt;Maps&gt; &amp; &quot;more&quot;") != std::string::npos);
  for (const char* outside :
       {"http://", "https://", "@import", "url(", "<link", "<img", "<iframe", "fetch(", "eval("}) {
    std::string rest = page;
    const std::string space = "http://www.w3.org/2000/svg";  // a name, not an address
    for (size_t at = rest.find(space); at != std::string::npos; at = rest.find(space))
      rest.erase(at, space.size());
    INFO(outside);
    CHECK(rest.find(outside) == std::string::npos);
  }
  CHECK_THROWS_AS(maps_page({}), Error);
}

TEST_CASE("picture html: the content policy names style and script by their hashes, and nothing else") {
  const std::string page = maps_page({translated()});
  const auto hash = [](const std::string& inside) {
    std::string bytes;
    const std::string digits = sha256_hex(inside);
    for (size_t at = 0; at < digits.size(); at += 2)
      bytes += static_cast<char>(std::stoi(digits.substr(at, 2), nullptr, 16));
    return "'sha256-" + picture::base64(bytes) + "'";
  };
  CHECK(between(page, "style-src ", ";") == hash(between(page, "<style>", "</style>")));
  CHECK(between(page, "script-src ", ";") == hash(between(page, "<script>", "</script>")));
  CHECK(page.find("unsafe") == std::string::npos);
  CHECK(count(page, "<style") == 1);
  CHECK(page.find(" style=\"") == std::string::npos);  // refused by such a policy
  CHECK(page.find("setAttribute(\"style\"") == std::string::npos);
}

TEST_CASE("picture html: the scripts can stand inside a page") {
  for (const std::string_view name : picture::map_scripts()) {
    const std::string_view script = embedded_file(name);
    CHECK(script.find("</script") == std::string_view::npos);
    CHECK(script.find("<!--") == std::string_view::npos);
    CHECK(script.find("innerHTML") == std::string_view::npos);
  }
  CHECK(picture::style().find("prefers-color-scheme: dark") != std::string_view::npos);
  CHECK(picture::style().find("</style") == std::string_view::npos);
}
