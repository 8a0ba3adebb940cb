// Finds, reads and sorts the runs of a folder.
#include "heed/train/commands/run_list.h"

#include <algorithm>
#include <tuple>

#include "heed/core/io/files.h"
#include "heed/core/io/no_follow_files.h"
#include "heed/train/config/config.h"
#include "heed/train/run/checkpoint_folder.h"
#include "heed/train/run/run_folder.h"

namespace heed {
namespace {

constexpr int max_run_depth = 4;  // RUNS/compare-x/runs/NAME is three folders deep

/// Scores that a list shows rather than the first: what their tasks are compared by.
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

/// The name in `task = "NAME"`, of a run whose task only the program that made it has.
std::string task_word(const std::string& toml) {
  constexpr std::string_view key = "task = \"";
  const size_t at = toml.starts_with(key) ? 0 : toml.find("\n" + std::string(key));
  if (at == std::string::npos) return "";
  const size_t begin = toml.find('"', at) + 1;
  return toml.substr(begin, toml.find('"', begin) - begin);
}

void take_settings(ListedRun& out, const Path& file) {
  const std::string toml = io::read(file);
  try {
    const Config config = read_config(toml, file.string());
    out.task = config.task_name;
    out.attention = attention_of(config);
  } catch (const Error& error) {
    out.task = task_word(toml);
    if (out.task.empty() || error.fault() != Fault::usage) throw;
  }
}

/// The score to show of several: {name, value}.
void take_score(ListedRun& out, const std::vector<std::pair<std::string, double>>& scores) {
  if (scores.empty()) return;
  std::tie(out.score_name, out.score) = scores.front();
  for (const char* better : preferred_scores) {
    for (const auto& [name, value] : scores) {
      if (name != better) continue;
      std::tie(out.score_name, out.score) = std::tie(name, value);
      out.lower_is_better = false;
    }
  }
}

/// The best validation scores so far, which the newest checkpoint holds.
void take_validation(ListedRun& out, const Path& file) {
  const Json state = parse_json(io::read(file), file.string());
  const Json* best = state.find("best");
  if (best == nullptr) return;
  if (const Json* lower = state.find("lower_is_better")) out.lower_is_better = lower->boolean();
  std::vector<std::pair<std::string, double>> scores;
  for (const auto& [name, value] : best->members()) {
    if (value.is_number()) scores.emplace_back(name, value.real());  // null: it was not finite
  }
  take_score(out, scores);
}

/// Takes the test scores; gives the steps that the run had when it was scored.
int64_t take_test(ListedRun& out, const Path& file) {
  const Json read = parse_json(io::read(file), file.string());
  int64_t steps = 0;
  std::vector<std::pair<std::string, double>> scores;
  for (const auto& [name, value] : read.members()) {
    if (name == "of" && value.is_integer()) steps = value.integer();
    if (name != "step" && name != "of" && name != "examples" && value.is_number())
      scores.emplace_back(name, value.real());
  }
  out.on_test = !scores.empty();
  take_score(out, scores);
  return steps;
}

void take_all(ListedRun& out) {
  const RunFolder folder = RunFolder::elsewhere(out.path);
  take_settings(out, folder.config());
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
    best_step(out.path);  // what names the best must be readable, since other commands read it
    const Path newest = checkpoint_folder(out.path, out.step) / "state.json";
    if (io::exists(newest))
      take_validation(out, newest);
    else
      state = "imported";
  }
  const Path scores = out.path / "scores.json";
  if (io::exists(scores)) {
    const int64_t scored = take_test(out, scores);
    if (scored >= out.step && !is_lost) state = "done";  // else it was resumed after that
    out.step = std::max(out.step, scored);
  }
  out.state = run_holder(out.path) ? "running" : state;
}

ListedRun read_listed(const Path& run) {
  ListedRun out{.path = run};
  try {
    take_all(out);
  } catch (const Error& error) {
    out.problem = error.what();
  }
  return out;
}

/// Adds the runs below a folder, which is `depth` folders below the first.
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
  const std::vector<std::string> known{"name", "date", "score"};
  if (std::find(known.begin(), known.end(), by) == known.end())
    fail("--sort '", by, "' is unknown.", suggestion(by, known));
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

}  // namespace heed
