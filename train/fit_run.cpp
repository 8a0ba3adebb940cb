// Writes and compares data, options and sessions of runs of fit().
#include "heed/train/fit_run.h"

#include <algorithm>
#include <array>

#include "heed/core/io/files.h"
#include "heed/core/io/no_follow_files.h"
#include "heed/train/config/setting_name.h"
#include "heed/train/run/format_version.h"
#include "heed/train/run/resume_point.h"
#include "heed/train/run/session_history.h"

namespace heed {
namespace {

constexpr const char* batches_file = "loader.txt";
constexpr const char* data_file = "data.json";

/// Options that no step depends on, or that `heed resume` changes too.
constexpr std::array<std::string_view, 8> free_options{
    "train.max_steps",  "train.epochs", "train.patience",         "train.stop_score",
    "train.time_limit", "train.on_nan", "train.keep_checkpoints", "train.validate_every"};

std::vector<std::pair<const char*, const std::string*>> members_of(const FitData& data) {
  return {{"examples", &data.examples}, {"validation", &data.validation}, {"best_by", &data.best_by}};
}

/// The value of a key of data_file in the checkpoint; empty where the key is missing.
std::string kept(const Checkpoint& checkpoint, const char* key) {
  const auto found = checkpoint.files.find(data_file);
  if (found == checkpoint.files.end()) return "";
  const Json json = parse_json(found->second, (checkpoint.folder / data_file).string());
  const Json* value = json.find(key);
  return value == nullptr ? "" : value->text();
}

/// True if both are known and differ.
bool differ(const std::string& one, const std::string& other) {
  return !one.empty() && !other.empty() && one != other;
}

bool is_free(const ChangedOption& option) {
  return std::find(free_options.begin(), free_options.end(), option.key) != free_options.end();
}

}  // namespace

std::vector<NamedBytes> data_files(const FitData& data) {
  Json json = Json::object();
  for (const auto& [key, value] : members_of(data)) json.set(key, *value);
  return {{batches_file, data.batches + "\n"}, {data_file, json.dump(1) + "\n"}};
}

void check_fit_data(const FitData& now, const Checkpoint& checkpoint, const Path& run) {
  std::string batches = checkpoint.file(batches_file);
  if (batches.ends_with('\n')) batches.pop_back();
  if (batches != now.batches)
    fail("fit: the run ", run, " was trained on ", shown(batches, 200), ", and the loader has ", now.batches,
         ". Give it the same data and options, or name another folder.");
  const auto check = [&](const char* key, const char* done, const std::string& value) {
    const std::string before = kept(checkpoint, key);
    if (!differ(before, value)) return;
    fail(Fault::data, "fit: the run ", run, " was ", done, " other examples: ", shown(before, 100),
         ", and the loader has ", shown(value, 100),
         ". Give it the same data, or name another folder. Where get() of the same data draws at random, "
         "override Dataset::identity().");
  };
  check("examples", "trained on", now.examples);
  check("validation", "validated on", now.validation);
  if (const std::string before = kept(checkpoint, "best_by"); differ(before, now.best_by))
    fail("fit: the run ", run, " chooses its best checkpoint by ", shown(before, 100),
         ", the first of its metrics, and now that is ", now.best_by,
         ". Let FitOptions::metrics begin with the same, or name another folder.");
}

std::string fit_settings_text(TrainOptions train) {
  std::string out =
      "# A run of fit() by a program, which alone has its model and data, and resumes it.\ntask = \"fit\"\n"
      "\n[train]\n";
  for (const OptionText& option : options_of(train)) {
    out += text(option.name, " = ", is_bare_in_toml(option) ? option.value : '"' + option.value + '"', "\n");
  }
  return out;
}

std::vector<ChangedOption> changed_fit_options(TrainOptions now, const RunFolder& run) {
  TrainOptions before = now;  // has what config.toml of an earlier program does not name
  read_fit_options(before, io::read(run.config()), run.config().string());
  const std::vector<OptionText> old = options_of(before), current = options_of(now);
  std::vector<ChangedOption> changed;
  for (size_t i = 0; i < old.size(); ++i) {
    if (old[i].value != current[i].value)
      changed.push_back({"train." + old[i].name, old[i].value, current[i].value});
  }
  return changed;
}

void check_fit_options(const std::vector<ChangedOption>& changed, const Path& run) {
  std::string refused;
  for (const ChangedOption& one : changed) {
    if (!is_free(one)) refused += (refused.empty() ? "" : "; ") + to_string(one);
  }
  if (refused.empty()) return;
  fail("fit: the run ", run, " was trained with other options: ", refused,
       ". Give it the same, or name another folder, for a model that load()s the weights of this run. Only "
       "epochs, steps, patience, stop_score, time_limit, on_nan, validate_every and keep_checkpoints may "
       "change.");
}

std::string to_string(const ChangedOption& option) {
  return text(setting_name(option.key), " = ", option.now, ", before ", option.before);
}

void begin_fit_session(const RunFolder& run, const TrainOptions& train, const FitData& data,
                       const std::vector<ChangedOption>& changed, int64_t processes, int64_t step) {
  const std::optional<Json> before = run.read_manifest();
  Json session = session_metadata({}, processes, step);
  if (before) {
    const std::string warning = resume_warning(sessions_of(*before), session, step);
    if (!warning.empty()) io::print_error(warning + "\n");
  }
  if (!changed.empty()) {
    Json options = Json::object();
    for (const auto& [key, old, now] : changed)
      options.set(key, Json::object({{"value", Json(now)}, {"before", Json(old)}}));
    session.set("changed", std::move(options));
  }
  Json manifest = Json::object({{"format", run_format}});
  add_session(manifest, before ? &*before : nullptr, session);
  manifest.set("seed", train.seed);
  manifest.set("data", data.batches);
  for (const auto& [key, value] : members_of(data)) {
    if (!value->empty()) manifest.set(key, *value);
  }
  manifest.set(first_checkpoint_key, first_checkpoint(before, step));
  io::write_own(run.config(), fit_settings_text(train));
  run.write_manifest(manifest);
}

}  // namespace heed
