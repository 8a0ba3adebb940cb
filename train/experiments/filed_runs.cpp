// Runs of a table that other calls and other machines have made, read back from their curves on file.
#include <algorithm>
#include <cmath>
#include <optional>

#include "heed/core/io/files.h"
#include "heed/core/io/number_text.h"
#include "heed/train/experiments/reproduction_parts.h"

namespace heed {
namespace {

constexpr int64_t max_filed_seeds = 100;  // seeds 1 to this are looked for
constexpr size_t max_shown_fact = 400;    // bytes of a difference

/// "accuracy=0.5, loss=1.25" of names and values, those that are not finite left out.
std::string pairs_text(const std::vector<std::pair<std::string, double>>& pairs) {
  std::string out;
  for (const auto& [name, value] : pairs) {
    if (std::isfinite(value)) picture::append_part(out, text(name, "=", exact_number(value)), ", ");
  }
  return out;
}

/// Fails with the place of a fact that cannot be used, its value and the legal ones.
[[noreturn]] void refuse_fact(const CurveFile& file, const std::string& name, std::string_view found,
                              std::string_view legal) {
  fail(Fault::data, file.name, ":", file.lines.at(name), ": '", shown(found, 40), "' in '", name,
       "': ", legal, ".");
}

/// The names and values that pairs_text() has written into a fact.
std::vector<std::pair<std::string, double>> pairs_in(const CurveFile& file, const std::string& name) {
  std::vector<std::pair<std::string, double>> out;
  const std::string fact = fact_of(file.facts, name);
  for (size_t at = 0; at < fact.size();) {
    const size_t end = std::min(fact.find(", ", at), fact.size());
    const std::string pair = fact.substr(at, end - at);
    const size_t equals = std::min(pair.rfind('='), pair.size());
    const std::optional<double> value = parsed_number(pair.substr(std::min(equals + 1, pair.size())));
    if (equals == 0 || !value) refuse_fact(file, name, pair, "it must be NAME=NUMBER, such as accuracy=0.35");
    const std::string key = pair.substr(0, equals);
    if ((key.ends_with("accuracy") || name == "baselines") && (*value < 0 || *value > 1))
      refuse_fact(file, name, pair, "an accuracy is from 0 to 1");
    if (std::any_of(out.begin(), out.end(), [&](const auto& one) { return one.first == key; }))
      refuse_fact(file, name, pair, "each name stands there once");
    out.emplace_back(key, *value);
    at = end + 2;
  }
  return out;
}

/// A value of the fact "tested" that counts something.
int64_t count_of(const CurveFile& file, const std::string& name, double value) {
  if (!(value >= 0 && value <= static_cast<double>(max_curve_step)) || value != std::floor(value))
    refuse_fact(file, "tested", text(name, "=", value),
                text("it must be a whole number from 0 to ", max_curve_step));
  return static_cast<int64_t>(value);
}

constexpr const char* remedy = "Remove or restore the file.";

bool is_planned(const PlannedCell& planned, int64_t seed) {
  return std::any_of(planned.plans.begin(), planned.plans.end(),
                     [&](const PlannedRun& plan) { return plan.seed == seed; });
}

/// True if the run of a seed has ended in this call with scores.
bool has_ended(const PlannedCell& planned, int64_t seed, const EndedRuns& ended) {
  return std::any_of(planned.plans.begin(), planned.plans.end(), [&](const PlannedRun& plan) {
    return plan.seed == seed && finished_run(ended, plan) != nullptr;
  });
}

/// A fact as earlier versions wrote it: they called a row's own value the recipe's.
std::string with_recipe_named(std::string fact) {
  constexpr std::string_view row = "(row: ";
  for (size_t at = fact.find(row); at != std::string::npos; at = fact.find(row, at))
    fact.replace(at, row.size(), "(recipe: ");
  return fact;
}

/// The parts of a list "A, B" that another has not; "nothing" where there are none.
std::string only_in(const std::string& list, const std::string& other) {
  std::string out;
  for (size_t at = 0; at < list.size();) {
    const size_t end = std::min(list.find(", ", at), list.size());
    const std::string part = list.substr(at, end - at);
    if ((", " + other + ", ").find(", " + part + ", ") == std::string::npos)
      picture::append_part(out, part, ", ");
    at = end + 2;
  }
  return out.empty() ? "nothing" : out;
}

bool has_scores(const FiledRun& one) { return !one.run.scores.empty(); }

/// The runs on file of a cell, by ascending seeds; those without scores but for seeds that are planned here.
std::vector<FiledRun> on_file(const PublishedTable& table, const ReproductionOptions& options,
                              const PlannedCell& planned) {
  std::vector<FiledRun> out;
  for (int64_t seed = 1; seed <= max_filed_seeds; ++seed) {
    const Path path = curve_file(table, options, planned, seed);
    if (!io::exists(path)) continue;
    FiledRun one = with_advice(remedy, [&] { return read_filed_run(path, planned.row->name, seed); });
    if (has_scores(one) || !is_planned(planned, seed)) out.push_back(std::move(one));
  }
  return out;
}

/// Gives a cell its runs on file, but for those that have ended here. Without plans the first finished one
/// decides which settings and data the cell is of, else the first.
void take_filed(const PublishedTable& table, const ReproductionOptions& options, const EndedRuns& ended,
                PlannedCell& planned) {
  std::vector<FiledRun> all = on_file(table, options, planned);
  if (all.empty()) return;
  Facts own;
  if (!planned.plans.empty()) {
    own = setting_facts(options, planned);
  } else {
    const auto finished = std::find_if(all.begin(), all.end(), has_scores);
    own = (finished != all.end() ? finished : all.begin())->facts;
    const std::string changed = fact_of(own, "changed");
    planned.cell.changed = changed == "nothing" ? "" : changed;
    if (planned.cell.code == 0) planned.cell.remark.clear();
  }
  for (FiledRun& one : all) {
    const int64_t seed = one.run.seed;
    if (const std::string why = different_facts(one.facts, own); !why.empty())
      picture::append_part(
          planned.cell.left_out,
          text(curve_file(table, options, planned, seed).filename().string(), " is left out (", why, ")"));
    else if (!has_ended(planned, seed, ended))
      (has_scores(one) ? planned.filed : planned.begun).push_back(std::move(one));
  }
}

}  // namespace

FiledRun read_filed_run(const Path& path, const std::string& label, int64_t seed) {
  const CurveFile file = read_curve_csv(path);
  ComparedRun out{.label = label, .folder = "", .failure = "", .seed = seed};
  if (const std::string written = fact_of(file.facts, "seed"); !written.empty() && written != text(seed))
    refuse_fact(file, "seed", written, text("the file's name says ", seed));
  out.data = fact_of(file.facts, "data");
  out.scores = pairs_in(file, "scores");
  if (out.scores.empty()) {  // how far it had come
    out.step = file.curve.points.back().step;
    const std::string steps = fact_of(file.facts, "steps");
    out.steps = parsed_integer(steps.empty() ? "0" : steps).value_or(-1);
    if (out.steps < 0 || out.steps > max_curve_step)
      refuse_fact(file, "steps", steps, text("it must be a whole number from 0 to ", max_curve_step));
  }
  if (!out.scores.empty() && !file.facts.contains("tested"))
    refuse_fact(file, "scores", fact_of(file.facts, "scores"), "a run with scores has the fact 'tested' too");
  for (const auto& [name, value] : pairs_in(file, "tested")) {
    if (name == "step") out.step = count_of(file, name, value);
    if (name == "of") out.steps = count_of(file, name, value);
    if (name == "examples") out.examples = count_of(file, name, value);
    if (name == "steps_per_second") out.steps_per_second = std::max(value, 0.0);
  }
  if (out.steps > 0 && out.step > out.steps)
    refuse_fact(file, "tested", text("step=", out.step), text("its training had ", out.steps, " steps"));
  out.accuracy_baselines = pairs_in(file, "baselines");
  out.baselines = picture::joined(out.accuracy_baselines, ", ",
                                  [](const auto& one) { return text(one.first, " ", one.second); });
  out.metrics = curve_series(file.curve, file.curve.points.size());
  return {std::move(out), file.facts};
}

std::vector<std::pair<std::string, std::string>> score_facts(const ComparedRun& run) {
  std::vector<std::pair<std::string, std::string>> out{
      {"scores", pairs_text(run.scores)},
      {"tested", pairs_text({{"step", static_cast<double>(run.step)},
                             {"of", static_cast<double>(run.steps)},
                             {"examples", static_cast<double>(run.examples)},
                             {"steps_per_second", run.steps_per_second}})}};
  if (!run.accuracy_baselines.empty()) out.emplace_back("baselines", pairs_text(run.accuracy_baselines));
  return out;
}

std::string different_facts(const Facts& filed, const Facts& own) {
  std::string out;
  for (const char* name : {"recipe", "attention", "changed", "data"}) {
    const std::string on_file = with_recipe_named(fact_of(filed, name)),
                      of_call = with_recipe_named(fact_of(own, name));
    if (on_file != of_call)
      picture::append_part(out, text(name, ": on file ", shown(only_in(on_file, of_call), max_shown_fact),
                                     ", here ", shown(only_in(of_call, on_file), max_shown_fact)));
  }
  return out;
}

bool keeps_curve_on_file(const Path& file, const Facts& own, int64_t step, bool scored) {
  if (!io::exists(file)) return false;
  const CurveFile filed = with_advice(remedy, [&] { return read_curve_csv(file); });
  const bool differs = !different_facts(filed.facts, own).empty();
  if (!fact_of(filed.facts, "scores").empty()) return !scored || differs;
  return !scored && (differs || filed.curve.points.back().step > step);
}

std::string differences_on_file(const Path& file, const Facts& own) {
  if (!io::exists(file)) return "";
  return different_facts(with_advice(remedy, [&] { return read_curve_csv(file); }).facts, own);
}

void add_filed_runs(const PublishedTable& table, const ReproductionOptions& options, const EndedRuns& ended,
                    std::vector<PlannedCell>& all) {
  std::vector<PlannedCell> out;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    for (const PublishedRow& row : table.rows) {
      const auto found = std::find_if(all.begin(), all.end(), [&](const PlannedCell& planned) {
        return planned.row == &row && planned.column == &table.columns[i];
      });
      PlannedCell planned = found != all.end() ? std::move(*found) : PlannedCell::of(table, row, i);
      take_filed(table, options, ended, planned);
      if (found != all.end() || !planned.filed.empty() || !planned.begun.empty())
        out.push_back(std::move(planned));
    }
  }
  all = std::move(out);
}

}  // namespace heed
