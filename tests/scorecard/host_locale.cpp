// Row D5: the library in a program that has chosen a locale with decimal commas.
#include "heed/core/io/files.h"
#include "heed/tests/scorecard/rows.h"
#include "heed/tests/scorecard/tiny_runs.h"

namespace heed::scorecard {
namespace {

constexpr const char* comma_locale = "it_IT.UTF-8";

/// What a training leaves that does not depend on the clock.
struct Left {
  std::string wrong, weights, config, scores;
  std::vector<std::string> losses;
};

Command under(const Scene& scene, const std::string& locale, std::vector<std::string> words) {
  words.insert(words.begin(), (scene.build / "tests/locale_program").string());
  return {.words = std::move(words),
          .folder = scene.room.path(),
          .environment = {{"LOCPATH", (scene.room / "locales").string()}, {"LC_ALL", locale}},
          .seconds = 600};
}

Left trained(const Scene& scene, const std::string& locale, const Recipe& recipe) {
  std::vector<std::string> words{"train",   recipe.preset,      "--name",    "run", "--quiet",
                                 "--steps", text(recipe.steps), "--threads", "1"};
  words.insert(words.end(), recipe.less.begin(), recipe.less.end());
  const Ended end = run(under(scene, locale, words));
  Left out;
  if (!end.ok()) {
    out.wrong = end.said();
    return out;
  }
  const Path folder = run_of(scene, "run");
  out.weights = weights_hash(folder);
  out.config = io::read(folder / "config.toml");
  out.scores = io::read(folder / "scores.json");
  out.losses = loss_lines(folder);
  io::remove_all(folder);
  return out;
}

std::string difference_of(const Left& a, const Left& b) {
  if (!a.wrong.empty() || !b.wrong.empty()) return a.wrong + b.wrong;
  if (a.losses.empty()) return "no loss was logged";
  return a.weights != b.weights ? "other weights"
         : a.config != b.config ? "another config.toml"
         : a.scores != b.scores ? "another scores.json"
         : a.losses != b.losses ? "other losses in metrics.jsonl"
                                : "";
}

}  // namespace

Result host_locale(const Scene& scene) {
  if (!io::exists(scene.build / "tests/locale_program")) return skip("the tests are not built");
  if (!have("localedef")) return skip("there is no localedef to make a locale with");
  io::make_directories(scene.room / "locales");
  const Ended made = run({.words = {"localedef", "-c", "-i", "it_IT", "-f", "UTF-8",
                                    (scene.room / "locales" / comma_locale).string()}});
  if (!made.ok()) return skip("localedef makes no it_IT.UTF-8: " + made.said());
  Tally tally;
  const Recipes presets = recipes(scene, {"recall", "lm"}, 2);
  for (const Recipe& recipe : presets.all)
    tally.add(recipe.preset,
              difference_of(trained(scene, "C", recipe), trained(scene, comma_locale, recipe)));
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"list", "attention"}, {"list", "settings"}, {"list", "presets"}, {"attend", "--help"}}) {
    const Ended plain = run(under(scene, "C", words)), comma = run(under(scene, comma_locale, words));
    tally.add(words[0] + " " + words[1], !plain.ok()              ? plain.said()
                                         : plain.out == comma.out ? ""
                                                                  : "other words with decimal commas");
  }
  return tally.result(text(" trainings and lists (", presets.all.size(), " presets", presets.left_out,
                           ") are the same with decimal commas"));
}

}  // namespace heed::scorecard
