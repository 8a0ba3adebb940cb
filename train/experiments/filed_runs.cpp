// Reads the runs that other calls and other machines have made of a table back from their curves on file.
#include <algorithm>
#include <cmath>
#include <optional>

#include "heed/core/io/files.h"
#include "heed/core/io/number_text.h"
#include "heed/train/experiments/reproduction_parts.h"

namespace heed {
namespace {

using NamedNumbers = std::vector<std::pair<std::string, double>>;

constexpr int64_t max_filed_seeds = 100;  // files of the seeds 1 to this are looked for
constexpr size_t max_shown_fact = 400;    // bytes of a difference
constexpr const char* remedy = "Remove or restore the file.";

/// "accuracy=0.5, loss=1.25" of names and numbers; those that are not finite are left out.
std::string numbers_text(const NamedNumbers& numbers) {
  std::string words;
  for (const auto& [name, number] : numbers) {
    if (std::isfinite(number)) picture::append_part(words, text(name, "=", exact_number(number)), ", ");
  }
  return words;
}

/// The parts of a list "A, B".
std::vector<std::string> parts_of(const std::string& list) {
  constexpr std::string_view separator = ", ";
  std::vector<std::string> parts;
  for (size_t begin = 0; begin < list.size();) {
    const size_t end = std::min(list.find(separator, begin), list.size());
    parts.push_back(list.substr(begin, end - begin));
    begin = end + separator.size();
  }
  return parts;
}

/// Fails with the place of a fact, the value found in it and the legal values.
[[noreturn]] void refuse_fact(const CurveFile& file, const std::string& name, std::string_view found,
                              std::string_view legal) {
  fail(Fault::data, file.name, ":", file.lines.at(name), ": '", shown(found, 40), "' in '", name,
       "': ", legal, ".");
}

/// The names and numbers that numbers_text() has written into a fact.
NamedNumbers numbers_in(const CurveFile& file, const std::string& fact) {
  NamedNumbers numbers;
  for (const std::string& pair : parts_of(fact_of(file.facts, fact))) {
    const size_t equals = std::min(pair.rfind('='), pair.size());
    const std::optional<double> number = parsed_number(pair.substr(std::min(equals + 1, pair.size())));
    if (equals == 0 || !number)
      refuse_fact(file, fact, pair, "it must be NAME=NUMBER, such as accuracy=0.35");
    const std::string name = pair.substr(0, equals);
    if ((name.ends_with("accuracy") || fact == "baselines") && (*number < 0 || *number > 1))
      refuse_fact(file, fact, pair, "an accuracy is from 0 to 1");
    if (std::ranges::any_of(numbers, [&](const auto& earlier) { return earlier.first == name; }))
      refuse_fact(file, fact, pair, "each name stands there once");
    numbers.emplace_back(name, *number);
  }
  return numbers;
}

/// The point of a grid that point_text() has written into a fact; empty where there is none.
GridPoint point_in(const CurveFile& file, const std::string& fact) {
  GridPoint point;
  for (const std::string& pair : parts_of(fact_of(file.facts, fact))) {
    const size_t equals = pair.find('=');
    if (equals == pair.npos || equals == 0 || equals + 1 == pair.size())
      refuse_fact(file, fact, pair, "it must be SETTING=VALUE, such as lr=0.001");
    point.emplace_back(pair.substr(0, equals), pair.substr(equals + 1));
  }
  return point;
}

/// A number of the fact "tested" as a count. Fails for a fraction and for one out of range.
int64_t count_of(const CurveFile& file, const std::string& name, double number) {
  if (!(number >= 0 && number <= static_cast<double>(max_curve_step)) || number != std::floor(number))
    refuse_fact(file, "tested", text(name, "=", number),
                text("it must be a whole number from 0 to ", max_curve_step));
  return static_cast<int64_t>(number);
}

/// A fact as earlier versions wrote it: they called a row's own value the recipe's.
std::string with_recipe_named(std::string fact) {
  constexpr std::string_view row = "(row: ";
  for (size_t place = fact.find(row); place != fact.npos; place = fact.find(row, place))
    fact.replace(place, row.size(), "(recipe: ");
  return fact;
}

/// The parts of a list "A, B" that another list lacks; "nothing" where it lacks none.
std::string only_in(const std::string& list, const std::string& other) {
  std::vector<std::string> parts = parts_of(list);
  const std::vector<std::string> known = parts_of(other);
  std::erase_if(parts, [&](const std::string& part) { return std::ranges::count(known, part) > 0; });
  return parts.empty() ? "nothing" : picture::joined(parts);
}

bool has_scores(const FiledRun& filed) { return !filed.run.scores.empty(); }

/// The runs on file of a cell, by ascending seeds. Unfinished runs of seeds that are planned here are left
/// out.
std::vector<FiledRun> runs_on_file(const PublishedTable& table, const ReproductionOptions& options,
                                   const PlannedCell& planned) {
  std::vector<FiledRun> runs;
  for (int64_t seed = 1; seed <= max_filed_seeds; ++seed) {
    const Path path = curve_file(table, options, planned, seed);
    if (!io::exists(path)) continue;
    FiledRun filed = with_advice(remedy, [&] { return read_filed_run(path, planned.row->name, seed); });
    const bool is_planned = std::ranges::count(planned.trainings(), seed, &PlannedRun::seed) > 0;
    if (has_scores(filed) || !is_planned) runs.push_back(std::move(filed));
  }
  return runs;
}

/// Adds its runs on file to a cell, except those that have ended in this call. In a cell without plans the
/// first finished run on file decides which settings and data count, else the first run.
void take_runs_on_file(const PublishedTable& table, const ReproductionOptions& options,
                       const EndedRuns& ended, PlannedCell& planned) {
  std::vector<FiledRun> runs = runs_on_file(table, options, planned);
  if (runs.empty()) return;
  Facts settings_of_cell;
  if (!planned.trainings().empty()) {
    settings_of_cell = setting_facts(table, options, planned);
  } else {
    const auto finished = std::ranges::find_if(runs, [](const FiledRun& run) { return has_scores(run); });
    settings_of_cell = (finished != runs.end() ? *finished : runs.front()).facts;
    const std::string changed = fact_of(settings_of_cell, "changed");
    planned.result.changed = changed == "nothing" ? "" : changed;
    if (planned.result.code == 0) planned.result.remark.clear();
  }
  for (FiledRun& filed : runs) {
    const int64_t seed = filed.run.seed;
    const bool has_ended = std::ranges::any_of(planned.plans, [&](const PlannedRun& plan) {
      return plan.seed == seed && finished_run(ended, plan) != nullptr;
    });
    if (const std::string why = different_facts(filed.facts, settings_of_cell); !why.empty())
      picture::append_part(
          planned.result.ignored_curves,
          text(curve_file(table, options, planned, seed).filename().string(), " is left out (", why, ")"));
    else if (!has_ended)
      (has_scores(filed) ? planned.finished_on_file : planned.unfinished_on_file).push_back(std::move(filed));
  }
}

}  // namespace

FiledRun read_filed_run(const Path& path, const std::string& label, int64_t seed) {
  const CurveFile file = read_curve_csv(path);
  ComparedRun run{.label = label, .folder = "", .failure = "", .seed = seed};
  if (const std::string written = fact_of(file.facts, "seed"); !written.empty() && written != text(seed))
    refuse_fact(file, "seed", written, text("the file's name says ", seed));
  run.data = fact_of(file.facts, "data");
  run.point = point_in(file, "best point");
  run.scores = numbers_in(file, "scores");
  if (run.scores.empty()) {  // unfinished: the last point says how far it has come
    run.step = file.curve.points.back().step;
    const std::string steps = fact_of(file.facts, "steps");
    run.steps = parsed_integer(steps.empty() ? "0" : steps).value_or(-1);
    if (run.steps < 0 || run.steps > max_curve_step)
      refuse_fact(file, "steps", steps, text("it must be a whole number from 0 to ", max_curve_step));
  }
  if (!run.scores.empty() && !file.facts.contains("tested"))
    refuse_fact(file, "scores", fact_of(file.facts, "scores"), "a run with scores has the fact 'tested' too");
  for (const auto& [name, number] : numbers_in(file, "tested")) {
    if (name == "step") run.step = count_of(file, name, number);
    if (name == "of") run.steps = count_of(file, name, number);
    if (name == "examples") run.examples = count_of(file, name, number);
    if (name == "steps_per_second") run.steps_per_second = std::max(number, 0.0);
  }
  if (run.steps > 0 && run.step > run.steps)
    refuse_fact(file, "tested", text("step=", run.step), text("its training had ", run.steps, " steps"));
  run.accuracy_baselines = numbers_in(file, "baselines");
  run.baselines = picture::joined(run.accuracy_baselines, ", ", [](const auto& baseline) {
    return text(baseline.first, " ", baseline.second);
  });
  run.metrics = curve_series(file.curve, file.curve.points.size());
  return {.run = std::move(run), .facts = file.facts};
}

FactList score_facts(const ComparedRun& run) {
  FactList facts{{"scores", numbers_text(run.scores)},
                 {"tested", numbers_text({{"step", static_cast<double>(run.step)},
                                          {"of", static_cast<double>(run.steps)},
                                          {"examples", static_cast<double>(run.examples)},
                                          {"steps_per_second", run.steps_per_second}})}};
  if (!run.accuracy_baselines.empty()) facts.emplace_back("baselines", numbers_text(run.accuracy_baselines));
  return facts;
}

std::string different_facts(const Facts& on_file, const Facts& here) {
  std::string differences;
  for (const char* name : {"recipe", "attention", "changed", "data", "grid"}) {
    const std::string filed = with_recipe_named(fact_of(on_file, name)),
                      wanted = with_recipe_named(fact_of(here, name));
    if (filed != wanted)
      picture::append_part(differences,
                           text(name, ": on file ", shown(only_in(filed, wanted), max_shown_fact), ", here ",
                                shown(only_in(wanted, filed), max_shown_fact)));
  }
  return differences;
}

bool keeps_curve_on_file(const Path& file, const Facts& here, int64_t step, bool has_scores) {
  if (!io::exists(file)) return false;
  const CurveFile filed = with_advice(remedy, [&] { return read_curve_csv(file); });
  const bool differs = !different_facts(filed.facts, here).empty();
  if (!fact_of(filed.facts, "scores").empty()) return !has_scores || differs;
  return !has_scores && (differs || filed.curve.points.back().step > step);
}

std::string differences_on_file(const Path& file, const Facts& here) {
  if (!io::exists(file)) return "";
  return different_facts(with_advice(remedy, [&] { return read_curve_csv(file); }).facts, here);
}

void add_filed_runs(const PublishedTable& table, const ReproductionOptions& options, const EndedRuns& ended,
                    std::vector<PlannedCell>& all) {
  std::vector<PlannedCell> cells;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    for (const PublishedRow& row : table.rows) {
      const auto found = std::ranges::find_if(all, [&](const PlannedCell& planned) {
        return planned.row == &row && planned.column == &table.columns[i];
      });
      const bool is_planned = found != all.end();
      PlannedCell planned = is_planned ? std::move(*found) : PlannedCell::of(table, row, i);
      take_runs_on_file(table, options, ended, planned);
      if (is_planned || !planned.finished_on_file.empty() || !planned.unfinished_on_file.empty())
        cells.push_back(std::move(planned));
    }
  }
  all = std::move(cells);
}

}  // namespace heed
