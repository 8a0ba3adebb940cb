// Estimates, runs and judges the cells of a published table.
#include "heed/train/experiments/reproduction.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>

#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/io/files.h"
#include "heed/train/experiments/reproduction_parts.h"
#include "heed/train/loop/progress.h"
#include "heed/train/loop/stop_signals.h"
#include "heed/train/run/csv.h"
#include "heed/train/tasks/task.h"

namespace heed {
namespace {

std::string lower(std::string words) {
  for (char& c : words) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return words;
}

std::vector<Work> cells_of(const PublishedTable& table, const ReproductionOptions& options) {
  std::vector<Work> out;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    for (const PublishedRow& row : table.rows) {
      const bool asked =
          std::any_of(options.rows.begin(), options.rows.end(),
                      [&](const std::string& pattern) { return names_cell(pattern, row, table.columns[i]); });
      // The base row of a ratio runs too.
      const bool ratio = table.measure == Measure::sooner || table.measure == Measure::steps_per_second;
      const bool column_asked =
          std::any_of(table.rows.begin(), table.rows.end(), [&](const PublishedRow& one) {
            return std::any_of(options.rows.begin(), options.rows.end(), [&](const std::string& pattern) {
              return names_cell(pattern, one, table.columns[i]);
            });
          });
      const bool first = &row == &table.rows.front() && ratio && column_asked;
      if (!options.rows.empty() && !asked && !first) continue;
      Work work{&row, &table.columns[i], i, asked, {}, {}, {}};
      work.cell = {.name = row.name + "/" + table.columns[i].name, .paper = row.values[i]};
      if (row.attention.empty()) work.cell.remark = row.note;
      out.push_back(std::move(work));
    }
  }
  for (const std::string& pattern : options.rows) {
    const bool known = std::any_of(out.begin(), out.end(), [&](const Work& work) {
      return names_cell(pattern, *work.row, *work.column);
    });
    if (known) continue;
    std::string names;
    for (const PublishedRow& row : table.rows) names += (names.empty() ? "" : ", ") + row.name;
    for (const PublishedColumn& column : table.columns) names += ", " + column.name;
    fail("--rows ", pattern, ": ", table.name, " has no such row or column. It has: ", names,
         "; one cell is ROW/COLUMN.");
  }
  const auto runs = [](const Work& work) { return !work.row->attention.empty(); };
  const auto all = std::count_if(out.begin(), out.end(), runs);
  int64_t number = 0;
  for (Work& work : out) {
    if (runs(work)) work.place = text(++number, " of ", all);
  }
  return out;
}

/// Plans a cell's runs; none if it is predicted to take too long and was not named.
void plan_cell(Work& work, const ReproductionOptions& options, Progress& progress) {
  for (int64_t seed = 0; seed < options.seeds; ++seed)
    work.plans.push_back(plan_run(config_of(work, options, seed), work.row->attention));
  const Path& folder = options.place.folder;
  int64_t left = 0;
  for (const PlannedRun& plan : work.plans) left += is_trained(plan, folder) ? 0 : 1;
  if (left == 0 || work.asked) return;
  const Path plan = folder / "plans" / (work.plans[0].name + ".toml");
  io::make_directories(plan.parent_path());
  io::write(plan, work.plans[0].plan);
  std::vector<std::string> arguments{"train", plan.string(), "--dry-run", "--json"};
  arguments.insert(arguments.end(), options.place.machine.begin(), options.place.machine.end());
  const Path kept = folder / "estimates" / (work.plans[0].name + ".json");
  if (!io::exists(kept)) progress.say("estimate", text(work.place, ": ", work.cell.name));
  const Json metadata = kept_object(kept, arguments);
  const Json* whole = metadata.find("seconds");  // earlier versions cached only the time of steps
  const double seconds =
      (whole != nullptr ? *whole : metadata.at("seconds_of_steps")).real() * static_cast<double>(left);
  if (seconds <= options.limit) return;
  work.cell.remark = text("about ", clock_text(seconds), " here; ask for it: --rows ", work.cell.name);
  progress.say("put off", work.cell.name + ": " + work.cell.remark);
  work.plans.clear();
}

/// The first second at which the mean of the last tenth of logged losses is at most `level`; NaN: never.
double seconds_to(const ComparedRun& run, double level) {
  const MetricSeries *loss = nullptr, *seconds = nullptr;
  for (const MetricSeries& one : run.metrics) {
    if (one.name == "loss") loss = &one;
    if (one.name == "seconds") seconds = &one;
  }
  if (loss == nullptr || seconds == nullptr || loss->values.size() != seconds->values.size()) return NAN;
  const size_t window = std::max<size_t>(1, loss->values.size() / 10);
  double sum = 0;
  for (size_t i = 0; i < loss->values.size(); ++i) {
    sum += loss->values[i] - (i >= window ? loss->values[i - window] : 0);
    if (i + 1 >= window && sum / static_cast<double>(window) <= level * (1 + 1e-12))
      return seconds->values[i];
  }
  return NAN;
}

/// The mean of the last tenth of logged losses.
double last_loss(const ComparedRun& run) {
  for (const MetricSeries& one : run.metrics) {
    if (one.name != "loss" || one.values.empty()) continue;
    const size_t window = std::max<size_t>(1, one.values.size() / 10);
    double sum = 0;
    for (size_t i = one.values.size() - window; i < one.values.size(); ++i) sum += one.values[i];
    return sum / static_cast<double>(window);
  }
  return NAN;
}

/// A run's score in the unit of the table.
double score_in(const PublishedTable& table, const ComparedRun& run) {
  for (const auto& [name, value] : run.scores) {
    if (table.measure == Measure::accuracy && name == "accuracy") return 100 * value;
    if (table.measure == Measure::loss && name == "loss") return value;
  }
  return NAN;
}

/// A validation metric of the scored checkpoint.
double validated(const ComparedRun& run, const std::string& metric) {
  for (const MetricSeries& one : run.metrics) {
    if (one.name != "valid_" + metric) continue;
    const auto at = std::find(one.steps.begin(), one.steps.end(), run.step);
    if (at != one.steps.end()) return one.values[static_cast<size_t>(at - one.steps.begin())];
  }
  return NAN;
}

double value_of(const PublishedTable& table, const ComparedRun& run, const ComparedRun* first) {
  if (table.measure == Measure::sooner) {
    if (first == nullptr) return NAN;
    const double level = last_loss(*first);
    return seconds_to(*first, level) / seconds_to(run, level);
  }
  return table.metric.empty() ? score_in(table, run) : validated(run, table.metric);
}

void train_cells(const PublishedTable& table, const ReproductionOptions& options, std::vector<Work>& all) {
  const StopSignals signals;
  Progress progress;
  progress.quiet = options.place.quiet;
  std::vector<PlannedRun> plans;
  for (Work& work : all) {
    if (work.row->attention.empty()) continue;
    try {
      plan_cell(work, options, progress);
    } catch (const Error& error) {
      give_up(work, error);
    }
    plans.insert(plans.end(), work.plans.begin(), work.plans.end());
  }
  const std::vector<ComparedRun> runs = make_runs(plans, options.place);
  size_t next = 0;
  std::vector<ComparedRun> column;
  const ComparedRun* first = nullptr;
  for (size_t i = 0; i < all.size(); ++i) {
    Work& work = all[i];
    if (i == 0 || work.column != all[i - 1].column) {
      column.clear();
      first = nullptr;
    }
    std::vector<double> values, scores;
    for (size_t j = 0; j < work.plans.size(); ++j, ++next) {
      const ComparedRun& run = runs[next];
      if (!run.failure.empty()) {
        work.cell.remark = run.failure;
        if (work.cell.code == 0) work.cell.code = run.code;
      }
      if (run.failure.empty() && work.row == &table.rows.front() && first == nullptr) first = &run;
      if (run.failure.empty()) {
        values.push_back(value_of(table, run, first));
        scores.push_back(score_in(table, run));
        work.cell.baselines = run.baselines;
      }
      column.push_back(run);
    }
    if (!values.empty()) work.cell.ours = spread_of(values);
    if (!values.empty() && !table.metric.empty() && work.cell.remark.empty())
      work.cell.remark =
          text("over all of validation ", to_string(spread_of(scores)), "; ", work.column->note);
    const bool last = i + 1 == all.size() || all[i + 1].column != work.column;
    if (last && !column.empty())
      write_comparison(compare_runs(table.name + ", " + work.column->name, column),
                       options.place.folder / work.column->name);
  }
}

}  // namespace

void give_up(Work& work, const Error& why) {
  work.cell.remark = why.what();
  work.cell.code = static_cast<int>(why.fault());
  work.plans.clear();
}

Config config_of(const Work& work, const ReproductionOptions& options, int64_t seed) {
  Config config = make_config(work.column->preset);
  config.set("attention.encoder", work.row->attention, "published_results.json: ");
  config.set("attention.decoder", work.row->attention, "published_results.json: ");
  const auto data = options.data.find(work.column->name);
  if (data != options.data.end()) config.set("data.path", data->second, "--data: ", SetBy::command_line);
  config.train.seed += seed;
  config.check();
  return config;
}

bool names_cell(const std::string& pattern, const PublishedRow& row, const PublishedColumn& column) {
  const std::string wanted = lower(pattern);
  return wanted == lower(row.name) || wanted == lower(column.name) ||
         wanted == lower(row.name + "/" + column.name);
}

std::vector<Cell> reproduce(const PublishedTable& table, const ReproductionOptions& options) {
  for (const auto& [column, path] : options.data) {
    const bool known =
        std::any_of(table.columns.begin(), table.columns.end(),
                    [&, &wanted = column](const PublishedColumn& one) { return one.name == wanted; });
    if (!known) fail("--data ", column, "=", path, ": ", table.name, " has no column ", column, ".");
    find_data(path);
  }
  std::vector<Work> all = cells_of(table, options);
  if (table.measure == Measure::steps_per_second)
    time_cells(table, options, all);
  else if (table.measure == Measure::crossover)
    cross_cells(table, options, all);
  else
    train_cells(table, options, all);
  std::vector<Cell> out;
  for (Work& work : all) {
    Cell& cell = work.cell;
    if (cell.ours.count > 0) {
      cell.verdict = verdict_on(table, cell.paper, cell.ours.mean, cell.ours.deviation);
      const bool other_data = table.measure != Measure::steps_per_second && !work.column->real_data.empty() &&
                              !options.data.contains(work.column->name);
      if (other_data) {
        cell.verdict = Verdict::unknown;
        cell.remark = text("on generated data; for the paper's: --data ", work.column->name, "=PATH, ",
                           work.column->real_data, cell.remark.empty() ? "" : "; ", cell.remark);
      }
      if (!work.row->note.empty() && cell.remark.empty()) cell.remark = work.row->note;
    }
    out.push_back(cell);
  }
  return out;
}

std::string reproduction_text(const PublishedTable& table, const std::vector<Cell>& cells) {
  std::string out = text(table.name, ": ", table.about, "\n", table.source, "\n\n");
  const auto cell = [](const std::string& words, size_t columns) {
    const auto used = static_cast<size_t>(picture::display_width(words));
    return std::string(used < columns ? columns - used : 0, ' ') + words;
  };
  size_t label_width = 12;
  for (const Cell& one : cells) label_width = std::max(label_width, one.name.size() + 2);
  out += std::string(label_width, ' ') + cell("paper", 10) + cell("ours", 18) + "  verdict\n";
  for (const Cell& one : cells) {
    char paper[32] = "";
    if (std::isfinite(one.paper)) std::snprintf(paper, sizeof paper, "%.5g", one.paper);
    const std::string verdict = to_string(one.verdict);
    out += one.name + std::string(label_width - one.name.size(), ' ') + cell(paper, 10) +
           cell(to_string(one.ours), 18) + "  " + verdict +
           (verdict.empty() || one.remark.empty() ? "" : "; ") + one.remark + "\n";
  }
  std::map<std::string, std::string> anchored;  // by text
  for (const Cell& one : cells) {
    if (one.baselines.empty()) continue;
    std::string& names = anchored[one.baselines];
    names += (names.empty() ? "" : ", ") + one.name;
  }
  for (const auto& [words, names] : anchored) out += text("baselines of ", names, ": ", words, "\n");
  return out;
}

std::string reproduction_csv(const std::vector<Cell>& cells) {
  std::string out = "cell,paper,mean,deviation,seeds,verdict,remark,baselines\n";
  for (const Cell& one : cells) {
    out += csv_name(one.name) + ",";
    if (std::isfinite(one.paper)) out += text(one.paper);
    out += ",";
    if (one.ours.count > 0)
      out += text(one.ours.mean, ",", one.ours.deviation);
    else
      out += ",";
    out += text(",", one.ours.count, ",", to_string(one.verdict), ",", csv_text(one.remark), ",",
                csv_text(one.baselines), "\n");
  }
  return out;
}

}  // namespace heed
