// Runs of a table that other calls and other machines have made, read back from their curves on file.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <stdexcept>

#include "heed/core/io/files.h"
#include "heed/core/io/number_text.h"
#include "heed/train/experiments/reproduction_parts.h"

namespace heed {
namespace {

constexpr int64_t max_filed_seeds = 100;  // seeds 1 to this are looked for

/// A fact of a file; empty where it has none of this name.
std::string fact_of(const Facts& facts, const std::string& name) {
  const auto found = facts.find(name);
  return found == facts.end() ? "" : found->second;
}

/// "accuracy=0.5, loss=1.25" of names and values, and back.
std::string pairs_text(const std::vector<std::pair<std::string, double>>& pairs) {
  std::string out;
  for (const auto& [name, value] : pairs)
    out += text(out.empty() ? "" : ", ", name, "=", exact_number(value));
  return out;
}

std::vector<std::pair<std::string, double>> pairs_in(const CurveFile& file, const char* name) {
  std::vector<std::pair<std::string, double>> out;
  const std::string fact = fact_of(file.facts, name);
  for (size_t at = 0; at < fact.size();) {
    const size_t end = std::min(fact.find(", ", at), fact.size());
    const std::string pair = fact.substr(at, end - at);
    const size_t equals = pair.rfind('=');
    try {
      if (equals == std::string::npos) throw std::invalid_argument(pair);
      out.emplace_back(pair.substr(0, equals), std::stod(pair.substr(equals + 1)));
    } catch (const std::logic_error&) {  // stod's
      fail(Fault::data, "in its fact '", name, "' '", pair, "' is not NAME=NUMBER.");
    }
    at = end + 2;
  }
  return out;
}

/// A curve on file as use(CurveFile) takes it. Errors name the file, and say what to do.
template <class Use>
auto with_curve(const Path& path, const Use& use) {
  try {
    return use(read_curve_csv(path));
  } catch (const Error& error) {
    const std::string why = error.what(), name = path.string();
    throw Error(error.fault(),
                text(why.starts_with(name) ? "" : name + ": ", why, " Remove or restore the file."));
  }
}

/// The run behind a curve on file; without scores where it had none yet.
FiledRun filed_run(const CurveFile& file, const std::string& label, int64_t seed) {
  ComparedRun out{.label = label, .folder = "", .failure = "", .seed = seed};
  out.data = fact_of(file.facts, "data");
  out.scores = pairs_in(file, "scores");
  if (out.scores.empty()) {  // how far it had come
    out.step = file.curve.points.empty() ? 0 : file.curve.points.back().step;
    const std::string steps = fact_of(file.facts, "steps");
    const auto [end, error] = std::from_chars(steps.data(), steps.data() + steps.size(), out.steps);
    if (!steps.empty() && (error != std::errc() || end != steps.data() + steps.size()))
      fail(Fault::data, "its fact 'steps' is '", steps, "', no whole number.");
  }
  for (const auto& [name, value] : pairs_in(file, "tested")) {
    if (name == "step") out.step = std::llround(value);
    if (name == "of") out.steps = std::llround(value);
    if (name == "examples") out.examples = std::llround(value);
    if (name == "steps_per_second") out.steps_per_second = value;
  }
  out.accuracy_baselines = pairs_in(file, "baselines");
  for (const auto& [name, value] : out.accuracy_baselines)
    out.baselines += text(out.baselines.empty() ? "" : ", ", name, " ", value);
  out.metrics = curve_series(file.curve, file.curve.points.size());
  return {std::move(out), file.facts};
}

bool is_planned(const Work& work, int64_t seed) {
  return std::any_of(work.plans.begin(), work.plans.end(),
                     [&](const PlannedRun& plan) { return plan.seed == seed; });
}

/// True if the run of a seed has ended in this call with scores.
bool has_ended(const Work& work, int64_t seed, const EndedRuns& ended) {
  return std::any_of(work.plans.begin(), work.plans.end(), [&](const PlannedRun& plan) {
    const auto found = ended.find(plan.name);
    return plan.seed == seed && found != ended.end() && found->second.failure.empty();
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
      out += (out.empty() ? "" : ", ") + part;
    at = end + 2;
  }
  return out.empty() ? "nothing" : out;
}

bool has_scores(const FiledRun& one) { return !one.run.scores.empty(); }

/// The runs on file of a cell, by ascending seeds; those without scores but for seeds that are planned here.
std::vector<FiledRun> on_file(const PublishedTable& table, const ReproductionOptions& options,
                              const Work& work) {
  std::vector<FiledRun> out;
  for (int64_t seed = 1; seed <= max_filed_seeds; ++seed) {
    const Path path = curve_file(table, options, work, seed);
    if (!io::exists(path)) continue;
    FiledRun one =
        with_curve(path, [&](const CurveFile& file) { return filed_run(file, work.row->name, seed); });
    if (has_scores(one) || !is_planned(work, seed)) out.push_back(std::move(one));
  }
  return out;
}

/// Gives a cell its runs on file, but for those that have ended here. Without plans the first finished one
/// decides which settings and data the cell is of, else the first.
void take_filed(const PublishedTable& table, const ReproductionOptions& options, const EndedRuns& ended,
                Work& work) {
  std::vector<FiledRun> all = on_file(table, options, work);
  if (all.empty()) return;
  Facts own;
  if (!work.plans.empty()) {
    own = setting_facts(options, work);
  } else {
    const auto finished = std::find_if(all.begin(), all.end(), has_scores);
    own = (finished != all.end() ? finished : all.begin())->facts;
    const std::string changed = fact_of(own, "changed");
    work.cell.changed = changed == "nothing" ? "" : changed;
    if (work.cell.code == 0) work.cell.remark.clear();
  }
  for (FiledRun& one : all) {
    const int64_t seed = one.run.seed;
    if (const std::string why = different_facts(one.facts, own); !why.empty())
      work.cell.left_out +=
          text(work.cell.left_out.empty() ? "" : "; ",
               curve_file(table, options, work, seed).filename().string(), " is left out (", why, ")");
    else if (!has_ended(work, seed, ended))
      (has_scores(one) ? work.filed : work.begun).push_back(std::move(one));
  }
}

}  // namespace

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
    const std::string there = with_recipe_named(fact_of(filed, name)),
                      here = with_recipe_named(fact_of(own, name));
    if (there == here) continue;
    out += text(out.empty() ? "" : "; ", name, ": on file ", only_in(there, here), ", here ",
                only_in(here, there));
  }
  return out;
}

bool is_kept(const Path& file, const Facts& own, int64_t step, bool scored) {
  if (!io::exists(file)) return false;
  return with_curve(file, [&](const CurveFile& filed) {
    const bool differs = !different_facts(filed.facts, own).empty();
    if (!fact_of(filed.facts, "scores").empty()) return !scored || differs;
    const int64_t there = filed.curve.points.empty() ? 0 : filed.curve.points.back().step;
    return !scored && (differs || there > step);
  });
}

std::string why_kept(const Path& file, const Facts& own) {
  if (!io::exists(file)) return "";
  return with_curve(file, [&](const CurveFile& filed) { return different_facts(filed.facts, own); });
}

void add_filed_runs(const PublishedTable& table, const ReproductionOptions& options, const EndedRuns& ended,
                    std::vector<Work>& all) {
  std::vector<Work> out;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    for (const PublishedRow& row : table.rows) {
      const PublishedColumn& column = table.columns[i];
      const auto found = std::find_if(all.begin(), all.end(), [&](const Work& work) {
        return work.row == &row && work.column == &column;
      });
      Work work = found != all.end() ? std::move(*found) : Work{&row, &column, i, false, {}, {}, {}, {}};
      if (found == all.end()) work.cell = {.name = row.name + "/" + column.name, .paper = row.values[i]};
      take_filed(table, options, ended, work);
      if (found != all.end() || !work.filed.empty() || !work.begun.empty()) out.push_back(std::move(work));
    }
  }
  all = std::move(out);
}

}  // namespace heed
