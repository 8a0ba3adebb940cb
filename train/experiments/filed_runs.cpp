// Runs of a table that other calls and other machines have made, read back from their curves on file.
#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>

#include "heed/core/io/files.h"
#include "heed/core/io/number_text.h"
#include "heed/train/experiments/reproduction_parts.h"

namespace heed {
namespace {

constexpr int64_t max_filed_seeds = 100;  // seeds 1 to this are looked for

/// "accuracy=0.5, loss=1.25" of names and values, and back.
std::string pairs_text(const std::vector<std::pair<std::string, double>>& pairs) {
  std::string out;
  for (const auto& [name, value] : pairs)
    out += text(out.empty() ? "" : ", ", name, "=", exact_number(value));
  return out;
}

std::vector<std::pair<std::string, double>> pairs_in(const Path& file, const std::string& fact) {
  std::vector<std::pair<std::string, double>> out;
  for (size_t at = 0; at < fact.size();) {
    const size_t end = std::min(fact.find(", ", at), fact.size());
    const std::string pair = fact.substr(at, end - at);
    const size_t equals = pair.rfind('=');
    try {
      if (equals == std::string::npos) throw std::invalid_argument(pair);
      out.emplace_back(pair.substr(0, equals), std::stod(pair.substr(equals + 1)));
    } catch (const std::logic_error&) {  // stod's
      fail(Fault::data, file, ": '", pair, "' is not NAME=NUMBER.");
    }
    at = end + 2;
  }
  return out;
}

/// A fact of a file; empty where it has none of this name.
std::string fact_of(const CurveFile& file, const std::string& name) {
  const auto found = file.facts.find(name);
  return found == file.facts.end() ? "" : found->second;
}

/// The run behind a curve on file; nothing where it had no scores yet.
std::optional<ComparedRun> filed_run(const Path& path, const std::string& label, int64_t seed) {
  const CurveFile file = read_curve_csv(path);
  ComparedRun out{.label = label, .folder = "", .failure = "", .seed = seed};
  out.data = fact_of(file, "data");
  out.scores = pairs_in(path, fact_of(file, "scores"));
  if (out.scores.empty()) return std::nullopt;
  for (const auto& [name, value] : pairs_in(path, fact_of(file, "tested"))) {
    if (name == "step") out.step = std::llround(value);
    if (name == "of") out.steps = std::llround(value);
    if (name == "examples") out.examples = std::llround(value);
    if (name == "steps_per_second") out.steps_per_second = value;
  }
  out.accuracy_baselines = pairs_in(path, fact_of(file, "baselines"));
  for (const auto& [name, value] : out.accuracy_baselines)
    out.baselines += text(out.baselines.empty() ? "" : ", ", name, " ", value);
  out.metrics = curve_series(file.curve, file.curve.points.size());
  return out;
}

bool is_planned(const Work& work, int64_t seed) {
  return std::any_of(work.plans.begin(), work.plans.end(),
                     [&](const PlannedRun& plan) { return plan.seed == seed; });
}

/// The runs of a cell on file whose seeds are not planned here. Sets what the first of them has changed.
void take_filed(const PublishedTable& table, const ReproductionOptions& options, Work& work) {
  for (int64_t seed = 1; seed <= max_filed_seeds; ++seed) {
    const Path path = curve_file(table, options, work, seed);
    if (is_planned(work, seed) || !io::exists(path)) continue;
    std::optional<ComparedRun> run = filed_run(path, work.row->name, seed);
    if (!run) continue;
    if (work.plans.empty() && work.filed.empty()) {
      const std::string changed = fact_of(read_curve_csv(path), "changed");
      work.cell.changed = changed == "nothing" ? "" : changed;
      work.cell.remark.clear();
    }
    work.filed.push_back(std::move(*run));
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

void add_filed_runs(const PublishedTable& table, const ReproductionOptions& options, std::vector<Work>& all) {
  std::vector<Work> out;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    for (const PublishedRow& row : table.rows) {
      const PublishedColumn& column = table.columns[i];
      const auto found = std::find_if(all.begin(), all.end(), [&](const Work& work) {
        return work.row == &row && work.column == &column;
      });
      Work work = found != all.end() ? std::move(*found) : Work{&row, &column, i, false, {}, {}, {}, {}};
      if (found == all.end()) work.cell = {.name = row.name + "/" + column.name, .paper = row.values[i]};
      take_filed(table, options, work);
      if (found != all.end() || !work.filed.empty()) out.push_back(std::move(work));
    }
  }
  all = std::move(out);
}

}  // namespace heed
