// Finds, reads, sorts and shows the runs of a folder.
#include "heed/train/commands/run_list.h"

#include <algorithm>
#include <charconv>
#include <tuple>

#include "heed/core/io/files.h"
#include "heed/core/io/no_follow_files.h"
#include "heed/core/io/table_text.h"
#include "heed/train/metrics/score_name.h"
#include "heed/train/program.h"
#include "heed/train/run/checkpoint_folder.h"
#include "heed/train/run/run_folder.h"

namespace heed {
namespace {

constexpr int max_run_depth = 4;  // RUNS/compare-x/runs/NAME is three folders deep

/// The scores that a list prefers to a run's first: those that tasks are compared by.
constexpr const char* preferred_scores[] = {"bleu", "accuracy"};

std::string attention_of(const Config& config) {
  const AttentionOptions& attention = config.attention;
  std::string out = attention.encoder == attention.decoder ? attention.decoder
                                                           : attention.encoder + " / " + attention.decoder;
  if (config.model.kind == ModelKind::seq2seq)
    out = config.model.recurrent.cell == CellKind::lstm ? "LSTM" : "GRU";
  if (attention.cross != AttentionOptions().cross && attention.cross != out)
    out += ", cross " + attention.cross;
  return out;
}

/// The name in `task = "NAME"`, without parsing the settings: this program may lack the task.
std::string task_name_in(const std::string& toml) {
  constexpr std::string_view key = "task = \"";
  const size_t line = toml.starts_with(key) ? 0 : toml.find("\n" + std::string(key));
  if (line == std::string::npos) return "";
  const size_t begin = toml.find('"', line) + 1;
  return toml.substr(begin, toml.find('"', begin) - begin);
}

/// Reads task and attention from config.toml; the task alone where this program lacks it.
void read_settings(ListedRun& out, const Path& file) {
  const std::string toml = io::read(file);
  try {
    const Config config = read_config(toml, file.string());
    out.task = config.task_name;
    out.attention = attention_of(config);
  } catch (const Error& error) {
    out.task = task_name_in(toml);
    if (out.task.empty() || error.fault() != Fault::usage) throw;
  }
}

/// Sets the score to show: a preferred one of the scores {name, value}, else the first.
void choose_score(ListedRun& out, const std::vector<std::pair<std::string, double>>& scores) {
  if (scores.empty()) return;
  std::tie(out.score_name, out.score) = scores.front();
  for (const char* preferred : preferred_scores) {
    for (const auto& [name, value] : scores) {
      if (name != preferred) continue;
      std::tie(out.score_name, out.score) = std::tie(name, value);
      out.lower_is_better = false;
    }
  }
}

/// Reads the scores of the best validation so far from the state.json of a checkpoint.
void read_validation_scores(ListedRun& out, const Path& file) {
  const Json state = parse_json(io::read(file), file.string());
  const Json* best = state.find("best");
  if (best == nullptr) return;
  if (const Json* lower = state.find("lower_is_better")) out.lower_is_better = lower->boolean();
  std::vector<std::pair<std::string, double>> scores;
  for (const auto& [name, value] : best->members()) {
    if (value.is_number()) scores.emplace_back(name, value.real());  // null where it was not finite
  }
  choose_score(out, scores);
}

/// Reads the test scores from scores.json, and returns the steps that the run had when it was scored.
int64_t read_test_scores(ListedRun& out, const Path& file) {
  const Json json = parse_json(io::read(file), file.string());
  int64_t steps = 0;
  std::vector<std::pair<std::string, double>> scores;
  for (const auto& [name, value] : json.members()) {
    if (name == "of" && value.is_integer()) steps = value.integer();
    if (name != "step" && name != "of" && name != "examples" && value.is_number())
      scores.emplace_back(name, value.real());
  }
  out.on_test = !scores.empty();
  choose_score(out, scores);
  return steps;
}

/// Reads everything about the run in the folder out.path.
void read_run(ListedRun& out) {
  const RunFolder folder = RunFolder::elsewhere(out.path);
  read_settings(out, folder.config());
  bool had_checkpoint = false;
  if (const std::optional<Json> manifest = folder.read_manifest()) {
    const Json* first = manifest->find(first_checkpoint_key);
    had_checkpoint = first != nullptr && !first->is_null();
    const Json* started = manifest->find("started");
    if (started != nullptr && started->is_text()) out.started = started->text();
    const Json* steps = manifest->find("steps");
    if (steps != nullptr && steps->is_integer()) out.steps = steps->integer();
  }
  const std::vector<int64_t> checkpoints = list_checkpoints(out.path);
  const bool is_lost = checkpoints.empty() && had_checkpoint;
  std::string state = is_lost               ? "lost"
                      : checkpoints.empty() ? "new"
                      : out.task == "fit"   ? "saved"
                                            : "stopped";
  if (!checkpoints.empty()) {
    out.step = checkpoints.back();
    best_step(out.path);  // fails where the file that names the best checkpoint cannot be read
    const Path newest = checkpoint_folder(out.path, out.step) / "state.json";
    if (io::exists(newest))
      read_validation_scores(out, newest);
    else
      state = "imported";
  }
  const Path scores = out.path / "scores.json";
  if (io::exists(scores)) {
    const int64_t scored_steps = read_test_scores(out, scores);
    if (scored_steps >= out.step && !is_lost) state = "done";  // else it was resumed after it was scored
    out.step = std::max(out.step, scored_steps);
  }
  out.state = run_holder(out.path) ? "running" : state;
}

ListedRun read_listed(const Path& run) {
  ListedRun out{.path = run};
  try {
    read_run(out);
  } catch (const Error& error) {
    out.problem = error.what();
  }
  return out;
}

/// Adds the runs in and below a folder. `depth`: 1 for the folder of all runs, one more for each folder
/// below.
void find_runs(const Path& folder, int depth, std::vector<ListedRun>& out) {
  for (const Path& name : io::list(folder)) {
    if (name.native().starts_with('.')) continue;
    const Path path = folder / name;
    try {
      if (io::is_there(path / "config.toml"))
        out.push_back(read_listed(path));
      else if (depth < max_run_depth && io::is_own_directory(path))
        find_runs(path, depth + 1, out);
    } catch (const Error& error) {
      out.push_back({.path = path, .problem = error.what()});
    }
  }
}

}  // namespace

std::vector<ListedRun> list_of_runs(const Path& folder) {
  std::vector<ListedRun> out;
  find_runs(folder, 1, out);
  sort_runs(out, "name");
  return out;
}

void sort_runs(std::vector<ListedRun>& runs, const std::string& by) {
  known_word("--sort", by, {"name", "date", "score"});
  const auto before = [&](const ListedRun& a, const ListedRun& b) {
    if (by == "date" && a.started != b.started) return a.started > b.started;
    if (by == "score") {
      const bool has_a = !std::isnan(a.score), has_b = !std::isnan(b.score);
      if (has_a != has_b) return has_a;
      const auto of = [](const ListedRun& run) { return std::tie(run.task, run.score_name); };
      if (of(a) != of(b)) return of(a) < of(b);
      if (has_a && a.score != b.score) return a.lower_is_better ? a.score < b.score : a.score > b.score;
    }
    return a.path < b.path;
  };
  std::stable_sort(runs.begin(), runs.end(), before);
}

Json runs_json(const std::vector<ListedRun>& runs) {
  Json out = Json::List();
  for (const ListedRun& run : runs) {
    Json one = Json::object({{"run", run.path.string()}, {"state", run.state}});
    if (!run.problem.empty()) {
      out.push(one.set("problem", run.problem));
      continue;
    }
    one.set("task", run.task);
    one.set("attention", run.attention);
    if (!run.score_name.empty()) {
      one.set("score", Json::object({{"name", run.score_name},
                                     {"value", run.score},
                                     {"data", run.on_test ? "test" : "validation"}}));
    }
    one.set("step", run.step);
    if (run.steps > 0) one.set("steps", run.steps);
    one.set("started", run.started);
    out.push(std::move(one));
  }
  return out;
}

namespace {

std::string four_digits(double value) {
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::general, 4).ptr;
  return {buffer, end};
}

TableRow cells_of(const ListedRun& run, bool wide) {
  constexpr size_t max_step_columns = 13;  // "100000/250000"; of longer ones only the steps that are taken
  std::string steps = run.step > 0 ? std::to_string(run.step) : "";
  const std::string planned = text("/", run.steps);
  const bool both = wide || steps.size() + planned.size() <= max_step_columns;
  if (run.state != "done" && run.steps > 0 && both) steps = text(run.step, planned);
  const std::string score = run.score_name.empty() ? ""
                                                   : text(four_digits(run.score), run.on_test ? " " : "* ",
                                                          score_name(run.score_name));
  std::string date = wide ? run.started : run.started.substr(0, 10);
  TableRow row{run.path.string(), run.task, run.attention, score, steps, date, run.state};
  for (std::string& cell : row) cell = terminal_word(cell);
  return row;
}

}  // namespace

std::string runs_text(const std::vector<ListedRun>& runs, bool wide) {
  const int64_t columns = wide ? unlimited_columns : output_columns();
  std::vector<TableRow> rows{{"run", "task", "attention", "score", "steps", "started", "state"}};
  for (const ListedRun& run : runs) {
    TableRow row = cells_of(run, wide);
    // A name that would leave no room for the other columns has a line of its own.
    if (!wide && 3 * display_width(row[0]) > columns) {
      rows.push_back({row[0]});
      row[0].clear();
    }
    rows.push_back(std::move(row));
  }
  std::string out = aligned_table(rows, {.columns = columns});
  const bool validation = std::any_of(
      runs.begin(), runs.end(), [](const ListedRun& run) { return !run.score_name.empty() && !run.on_test; });
  if (validation) out += "* on validation data: the run has not been scored on its test data\n";
  for (const ListedRun& run : runs) {
    if (!run.problem.empty())
      out += text("unreadable: ", terminal_word(run.path.string()), "\n") +
             folded_lines(text("  ", terminal_word(run.problem), "\n"), columns);
  }
  return out;
}

}  // namespace heed
