// Run folders. A new one is made and locked under a temporary name, a claim, and then renamed.
#include "heed/train/run/run_folder.h"

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <thread>

#include "heed/core/io/ascii.h"
#include "heed/core/io/files.h"
#include "heed/core/io/no_follow_files.h"
#include "heed/core/io/number_text.h"
#include "heed/core/settings_in_errors.h"
#include "heed/core/version.h"
#include "heed/nn/set_option.h"
#include "heed/train/run/checkpoint_folder.h"
#include "heed/train/run/format_version.h"
#include "heed/train/run/program_name.h"
#include "heed/train/run/program_source.h"

namespace heed {
namespace {

constexpr std::string_view claim_suffix = ".claim";
constexpr size_t max_name_size = 100;

constexpr std::string_view legal_names =
    "' cannot name a run: use letters, digits, '.', '_' and '-' (at most 100, the first a letter or digit).";

bool is_run_name(const std::string& name) {
  return !name.empty() && name.size() <= max_name_size && name.front() != '.' && name.front() != '-' &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return is_ascii_alphanumeric(c) || c == '.' || c == '_' || c == '-'; });
}

void check_name(const std::string& name) {
  if (is_run_name(name)) return;
  fail(advice("--name '", "run '", "FitOptions::folder: '"), name, legal_names,
       advice(" The folder that runs go into is --out.", ""));
}

/// BASE-NUMBER with a number one above the largest in the folder of all runs: "translate-003".
std::string next_numbered_name(const Path& runs_folder, const std::string& base) {
  int64_t largest = 0;
  for (const Path& entry : io::list(runs_folder)) {
    const std::string name = entry.string();
    if (!name.starts_with(base + "-")) continue;
    largest = std::max(largest, parsed_integer(std::string_view(name).substr(base.size() + 1)).value_or(0));
  }
  return text(base, "-", formatted("%03lld", static_cast<long long>(largest + 1)));
}

/// A new temporary name for the folder of a run: .NAME.RANDOM.claim.
Path claim_name(const Path& runs_folder, std::string_view run_name) {
  return runs_folder / text(".", run_name, ".", io::random_name(), claim_suffix);
}

/// Removes a claim whose lock this process holds. The lock is removed last: it keeps others away until then.
void remove_claim(const Path& claim) {
  for (const Path& entry : io::list(claim)) {
    if (entry != "lock") io::remove_all(claim / entry);
  }
  io::remove_all(claim);
}

/// Removes a claim whose lock is free: its process has ended, on whatever machine or process namespace. The
/// folder is renamed first and its lock held until it is removed. So a process that has made the claim and is
/// about to lock it finds neither a free lock nor a half-removed folder, and makes a new claim
/// (make_claim()). A claim without a lock file has just been made or is being removed by another process: it
/// is removed if it is empty, and gets no lock file, which would keep its owner from removing it.
void remove_abandoned_claim(const Path& runs_folder, const Path& claim) {
  try {
    io::check_directory(claim);
    if (!io::is_there(claim / "lock")) {
      io::remove_empty(claim);
      return;
    }
    const std::optional<io::FileLock> lock = io::FileLock::try_lock(claim / "lock", /*create=*/false);
    if (!lock) return;
    const Path doomed = claim_name(runs_folder, "dead");
    io::rename_directory(claim, doomed);
    remove_claim(doomed);
  } catch (const Error&) {
    // The claim belongs to another user, or another process was faster. It does no harm.
  }
}

/// Removes the claims that killed processes have left in the folder of all runs.
void remove_abandoned_claims(const Path& runs_folder) {
  for (const Path& entry : io::list(runs_folder)) {
    const std::string& name = entry.native();
    if (name.starts_with('.') && name.ends_with(claim_suffix))
      remove_abandoned_claim(runs_folder, runs_folder / entry);
  }
}

/// A locked folder under a temporary name, which becomes the folder of a run.
struct Claim {
  Path path;
  RunLock lock;
};

/// Makes and locks a claim. Another starting process may remove it until it is locked, hence the retries.
Claim make_claim(const Path& runs_folder, const std::string& run_name, std::string_view command) {
  constexpr int max_attempts = 100;
  for (int attempt = 1;; ++attempt) {
    const Path path = claim_name(runs_folder, run_name);
    if (!io::claim_directory(path)) continue;  // the random name is taken, perhaps by a link
    try {
      return {path, RunLock(path, command)};
    } catch (const Error& error) {
      const bool removed_by_other = error.fault() == Fault::busy || !io::is_there(path);
      if (!removed_by_other) io::remove_all(path);
      if (!removed_by_other || attempt >= max_attempts) throw;
    }
  }
}

/// Gives a claim the name of its run. Returns false when the name is taken.
bool rename_claim(const Path& claim, const Path& run) {
  try {
    io::rename_directory(claim, run);
    return true;
  } catch (const Error&) {
    if (io::is_there(claim) && io::is_there(run)) return false;
    throw;
  }
}

/// Fails because a run, or another entry of the folder of all runs, has this name.
[[noreturn]] void refuse_taken_name(const Path& run, const std::string& name) {
  if (const std::optional<std::string> holder = run_holder(run))
    fail(Fault::busy, run, " is in use by ", *holder, ". Choose another ",
         advice("--name", "name", "FitOptions::folder"), ", or stop that one.");
  if (settings_source() == SettingsSource::fit)
    fail("the folder ", run, " exists already, and is no run that can be resumed. Choose another name.");
  fail("the run ", run, " exists already", advice(text(" (--name ", name, ")").c_str(), ""),
       ". Go on with it: ", program_name(), " resume ", run, ". Or choose another ",
       advice("--name.", "name."));
}

/// " Did you mean RUN?" with an existing run of a similar name; empty where there is none.
std::string suggested_run(const Path& run) {
  try {
    const Path folder = run.parent_path();
    std::vector<std::string> names;
    for (const Path& entry : io::list(folder.empty() ? "." : folder)) {
      const std::string name = entry.string();
      if (!name.starts_with('.') && io::exists(folder / entry / "config.toml")) names.push_back(name);
    }
    const std::string near = nearest(run.filename().string(), names);
    return near.empty() ? "" : text(" Did you mean ", folder / near, "?");
  } catch (const Error&) {
    return "";  // the folder cannot be listed: no suggestion
  }
}

/// Fails if one of the files and folders of a run that will be written is a link, a pipe or the like.
void refuse_special_files(const RunFolder& run) {
  for (const Path& file : {run.config(), run.manifest(), run.metrics(), run.metrics_table(), run.report(),
                           run.samples(), run.path() / "lock", run.path() / "scores.json"}) {
    io::check_regular(file);
  }
  for (const Path& folder : {run.checkpoints(), run.tensorboard(), run.path() / "maps"})
    io::check_directory(folder);
  io::check_regular(run.checkpoints() / "best.json");
}

/// Removes the temporary files that a killed process has left.
void remove_temporary_files(const Path& folder) {
  for (const Path& entry : io::list(folder)) {
    const std::string& name = entry.native();
    if (name.starts_with('.') && name.ends_with(".tmp")) io::remove_all(folder / entry);
  }
}

/// The processor's name by Linux's /proc/cpuinfo; "unknown" where that does not say.
std::string cpu_model() {
  try {
    const std::string cpuinfo = io::read("/proc/cpuinfo");
    const size_t line = cpuinfo.find("model name");
    const size_t colon = cpuinfo.find(": ", line);
    if (line == std::string::npos || colon == std::string::npos) return "unknown";
    return cpuinfo.substr(colon + 2, cpuinfo.find('\n', colon) - colon - 2);
  } catch (const Error&) {
    return "unknown";
  }
}

/// The present time in UTC, by ISO 8601: "2026-11-26T19:50:31Z".
std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm fields{};
  ::gmtime_r(&now, &fields);
  char buffer[32];
  std::strftime(buffer, sizeof buffer, "%Y-%m-%dT%H:%M:%SZ", &fields);
  return buffer;
}

}  // namespace

RunFolder RunFolder::create(const RunOptions& options) {
  const bool is_numbered = options.name.empty();
  check_name(is_numbered ? options.base : options.name);
  io::make_directories(options.out);
  remove_abandoned_claims(options.out);
  if (const Path run = options.out / options.name; !is_numbered && io::is_there(run)) {
    if (!io::is_directory(run) || !io::list(run).empty()) refuse_taken_name(run, options.name);
  }
  Claim claim = make_claim(options.out, is_numbered ? options.base : options.name, options.command);
  try {
    options.write_contents(claim.path);
    if (!options.config.empty())
      io::write(claim.path / "config.toml", options.config);  // syncs the folder too
    for (;;) {
      const std::string name = is_numbered ? next_numbered_name(options.out, options.base) : options.name;
      RunFolder run(options.out / name);
      if (rename_claim(claim.path, run.path_)) {
        run.lock_ = std::move(claim.lock);
        return run;
      }
      if (!is_numbered) refuse_taken_name(run.path_, name);
    }
  } catch (...) {
    if (io::is_there(claim.path)) remove_claim(claim.path);
    throw;
  }
}

RunFolder RunFolder::look(const Path& run) {
  RunFolder folder(run);
  if (!io::is_directory(run))
    fail(Fault::file, "there is no run ", run, ".", suggested_run(run),
         " See which there are: ", program_name(), " list runs");
  if (!io::exists(folder.config()))
    fail(Fault::file, run,
         " is not the folder of a run: it has no config.toml. See which there are: ", program_name(),
         " list runs");
  try {
    folder.read_manifest();  // fails for a newer format; config.toml is read later, since its keys may differ
  } catch (const NewerFormat&) {
    throw;
  } catch (const Error&) {
    // The manifest is damaged or unreadable: commands that need it report that.
  }
  return folder;
}

RunFolder RunFolder::resume(const Path& run, std::string_view command) {
  RunFolder folder(run);
  refuse_special_files(folder);  // before look(), since reading a pipe would block
  look(run);
  folder.lock_.emplace(run, command);
  remove_temporary_files(run);
  remove_temporary_files(folder.tensorboard());
  clean_checkpoints(run);
  return folder;
}

RunFolder RunFolder::hold(const Path& run, std::string_view command) {
  const Path path = (run / "").lexically_normal().parent_path();  // without a slash at its end
  if (path.filename().empty() || path.filename() == "." || path.filename() == "..")
    fail("'", shown(run.native(), 200), "' does not end in the name of a run. Give its path: runs/NAME.");
  io::check_directory(path);
  if (!io::is_there(path / "config.toml")) look(path);  // fails, with the reason
  if (const Path parent = path.parent_path(); io::is_there(parent / "config.toml"))
    fail(path, " is a part of the run that it lies in, which needs it. Name that run.");
  if (const std::optional<std::string> holder = run_holder(path))
    fail(Fault::busy, path, " is in use by ", *holder, ". Stop that one, or wait for its end.");
  RunFolder folder(path);
  folder.lock_.emplace(path, command);
  return folder;
}

void RunFolder::rename(const std::string& name) {
  if (!is_run_name(name)) fail("'", shown(name, 200), legal_names);
  const Path target = path_.parent_path() / name;
  if (io::is_there(target))
    fail("cannot rename ", path_, ": ", target, " exists already. Choose another name.");
  io::rename_directory(path_, target);
  path_ = target;
}

void RunFolder::remove() && {
  const Path doomed = claim_name(path_.parent_path(), path_.filename().native().substr(0, max_name_size));
  io::rename_directory(path_, doomed);  // a process killed after this leaves a claim, which create() removes
  remove_claim(doomed);
}

bool RunFolder::begun() const {
  return !list_checkpoints(path_).empty() || (io::exists(metrics()) && io::size(metrics()) > 0);
}

std::optional<Json> RunFolder::read_manifest() const {
  if (!io::exists(manifest())) return std::nullopt;
  Json metadata = parse_json(io::read(manifest()), manifest().string());
  try {
    format_of(metadata, run_format);
  } catch (const NewerFormat& error) {
    throw NewerFormat(text("the run ", path_, " ", error.what(), ". Go on with it by that version."));
  } catch (const Error& error) {
    fail(Fault::data, manifest(), ": ", error.what(), ".");
  }
  return metadata;
}

void RunFolder::write_manifest(const Json& metadata) const {
  io::write_own(manifest(), metadata.dump(2) + "\n");
}

void RunFolder::note_checkpoint(int64_t step) const {
  std::optional<Json> metadata = read_manifest();
  if (!metadata) return;
  if (const Json* first = metadata->find(first_checkpoint_key); first != nullptr && !first->is_null()) return;
  write_manifest(metadata->set(first_checkpoint_key, step));
}

Json manifest_basics(std::span<const std::string> arguments) {
  Json command = Json::List();
  for (const std::string& argument : arguments) command.push(Json(argument));
  const char* core = std::getenv("OPENBLAS_CORETYPE");
#ifdef __clang__
  const std::string compiler = __VERSION__;  // contains the compiler's name
#else
  const std::string compiler = text("g++ ", __VERSION__);
#endif
  return Json::object({{"heed", Json(HEED_VERSION)},
                       {"source", Json(source_hash)},
                       {"commit", Json(source_commit)},
                       {"compiler", Json(compiler)},
                       {"cpu", Json(cpu_model())},
                       {"cpu_threads", Json(std::thread::hardware_concurrency())},
                       {"openblas_coretype", core == nullptr ? Json() : Json(core)},
                       {"started", Json(utc_now())},
                       {"command", std::move(command)}});
}

}  // namespace heed
