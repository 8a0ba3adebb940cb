// Reports: all parts present, no external resource, all text escaped.
#include "heed/train/report/report.h"

#include "heed/core/error.h"
#include "heed/tests/catch.h"

using namespace heed;

namespace {

int64_t count(const std::string& text, const std::string& what) {
  int64_t found = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

ReportData full() {
  ReportData report;
  report.title = "run <1>";
  report.subtitle = "softmax & more";
  report.cards = {{"BLEU", "62.4", "greedy"}, {"seed", "1"}};
  report.charts = {
      {.title = "Loss", .series = {{"train", {1, 2, 3}, {3, 2, 1}}, {"validation", {1, 3}, {3.1, 1.1}}}},
      {.title = "Nothing yet"}};
  report.samples = {{"The <unk> smiled.", "\"Il\"", "</td></script>"}};
  MapView map;
  map.kind = "cross";
  map.heads = map.queries = 1;
  map.keys = 2;
  map.weights = {0.25F, 0.75F};
  map.query_tokens = {"</script>"};
  map.key_tokens = {"a", "b"};
  report.maps = {map};
  report.maps_caption = "a > b";
  report.confusion = Confusion{{"0", "<1>"}, {9, 1, 0, 0}};
  report.settings = {"preset <p>", {{"train.name", "<x>", ""}}, "[train]\nname = \"<x>\"\n"};
  return report;
}

}  // namespace

TEST_CASE("report: shows every part, escaped") {
  const std::string page = report_html(full());
  CHECK(page.starts_with("<!DOCTYPE html>"));
  CHECK(page.find("<title>run &lt;1&gt;</title>") != std::string::npos);
  CHECK(page.find("softmax &amp; more") != std::string::npos);
  CHECK(page.find("<dt>BLEU</dt><dd>62.4</dd><dd class=\"note\">greedy</dd>") != std::string::npos);
  CHECK(page.find(
            "<td>The &lt;unk&gt; smiled.</td><td>&quot;Il&quot;</td><td>&lt;/td&gt;&lt;/script&gt;</td>") !=
        std::string::npos);
  CHECK(page.find("name = &quot;&lt;x&gt;&quot;") != std::string::npos);
  CHECK(page.find("<figure class=\"chart\">") != std::string::npos);
  CHECK(page.find("Nothing yet") == std::string::npos);
  CHECK(page.find("section class=\"maps\"") != std::string::npos);
  CHECK(page.find("<th>90.0 %</th>") != std::string::npos);
  CHECK(page.find("<th>none</th>") != std::string::npos);
  CHECK(count(page, "<script") == 3);  // the numbers of one chart and of the maps, and the script
  CHECK(count(page, "</script") == 3);
}

TEST_CASE("report: settings that were changed stand before the curves, all of them folded") {
  const std::string page = report_html(full());
  CHECK(page.find("<th scope=\"row\">train.name</th><td>&lt;x&gt;</td><td>none</td>") != std::string::npos);
  CHECK(page.find("<th scope=\"col\">preset &lt;p&gt;</th>") < page.find("<details"));
  CHECK(page.find("<details") < page.find("<h2>Curves"));
  CHECK(page.find("<pre") > page.find("<details"));
  ReportData report = full();
  report.settings.changed.clear();
  CHECK(report_html(report).find("As in preset &lt;p&gt;: nothing was changed.") != std::string::npos);
}

TEST_CASE("report: a number stands beside what it is to be read beside, a line each, escaped") {
  ReportData report;
  report.cards = {{"accuracy", "0.136", "held out", {"majority 0.172", "root <operator> 0.257"}}};
  CHECK(report_html(report).find("<dd>0.136</dd><dd class=\"note\">held out</dd>"
                                 "<dd class=\"note\">majority 0.172</dd>"
                                 "<dd class=\"note\">root &lt;operator&gt; 0.257</dd></div>") !=
        std::string::npos);
}

TEST_CASE("report: empty parts leave no heading behind") {
  const std::string page = report_html({});
  for (const char* heading : {"<h2>Curves", "<h2>Samples", "<h2>Attention", "<h2>Confusion", "<h2>Settings"})
    CHECK(page.find(heading) == std::string::npos);
  ReportData report;
  report.samples = {{"a", "", "b"}};
  CHECK(report_html(report).find("reference") == std::string::npos);
}

TEST_CASE("report: loads nothing from elsewhere") {
  std::string page = report_html(full());
  const std::string space = "http://www.w3.org/2000/svg";  // a name, not an address
  for (size_t at = page.find(space); at != std::string::npos; at = page.find(space))
    page.erase(at, space.size());
  for (const char* outside : {"http:", "https:", "<link", "<img", "src=\"", "@import", "fetch(", "import("}) {
    INFO(outside);
    CHECK(page.find(outside) == std::string::npos);
  }
  CHECK(page.find("default-src 'none'") != std::string::npos);
}

TEST_CASE("report: the content policy needs nothing inline but what it names") {
  const std::string page = report_html(full());
  CHECK(page.find("unsafe") == std::string::npos);
  CHECK(page.find(" style=\"") == std::string::npos);
  CHECK(count(page, "<style") == 1);
  CHECK(page.find("<td class=\"good shade-40\">9</td>") != std::string::npos);
  CHECK(page.find(".shade-41 { --shade: 41%; }") != std::string::npos);
  CHECK(page.find("<i class=\"series-1\">") != std::string::npos);
}

TEST_CASE("report: a confusion matrix of the wrong size is refused with its numbers") {
  ReportData report = full();
  report.confusion->counts.pop_back();
  CHECK_THROWS_WITH(report_html(report), containing("3 counts") && containing("need 4"));
}
