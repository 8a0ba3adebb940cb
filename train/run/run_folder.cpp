// Run folders: made locked under a temporary name, then renamed.
#include "heed/train/run/run_folder.h"

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <thread>

#include "heed/core/io/ascii.h"
#include "heed/core/io/files.h"
#include "heed/core/io/no_follow_files.h"
#include "heed/core/io/number_text.h"
#include "heed/core/settings_source.h"
#include "heed/core/version.h"
#include "heed/nn/set_option.h"
#include "heed/train/run/checkpoint_folder.h"
#include "heed/train/run/format_version.h"
#include "heed/train/run/program_name.h"
#include "heed/train/run/program_source.h"

namespace heed {
namespace {

constexpr std::string_view claim_suffix = ".claim";

constexpr std::string_view legal_names =
    "' cannot name a run: use letters, digits, '.', '_' and '-' (at most 100, the first a letter or digit).";

bool is_run_name(const std::string& name) {
  return !name.empty() && name.size() <= 100 && name.front() != '.' && name.front() != '-' &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return is_ascii_alphanumeric(c) || c == '.' || c == '_' || c == '-'; });
}

void check_name(const std::string& name) {
  if (is_run_name(name)) return;
  fail(advice("--name '", "run '", "FitOptions::folder: '"), name, legal_names,
       advice(" The folder that runs go into is --out.", ""));
}

/// One more than the largest number in use.
int64_t next_number(const Path& out, const std::string& base) {
  int64_t largest = 0;
  for (const Path& entry : io::list(out)) {
    const std::string name = entry.string();
    if (!name.starts_with(base + "-")) continue;
    largest = std::max(largest, parsed_integer(std::string_view(name).substr(base.size() + 1)).value_or(0));
  }
  return largest + 1;
}

std::string numbered(const std::string& base, int64_t number) {
  return text(base, "-", formatted("%03lld", static_cast<long long>(number)));
}

/// Temporary name of a folder that is locked before it gets its run's name: .NAME.RANDOM.claim.
Path claim_name(const Path& out, std::string_view wanted) {
  return out / text(".", wanted, ".", io::random_name(), claim_suffix);
}

/// Removes a claim whose lock this process holds; the lock goes last, since without one nobody may enter.
void remove_claim(const Path& claim) {
  for (const Path& entry : io::list(claim)) {
    if (entry != "lock") io::remove_all(claim / entry);
  }
  io::remove_all(claim);
}

/// Removes a claim whose lock is free: its process has ended, on whatever machine or process namespace. The
/// folder is renamed first and the lock held until it is gone, so a process that made the claim and is about
/// to lock it finds neither a free lock nor a half-removed folder, and makes a new claim (see claim_in). A
/// claim without a lock has just been made or is just being removed: it goes if it is empty, and no lock is
/// made in it, which would keep its owner from removing it.
void clean_claim(const Path& out, const Path& claim) {
  try {
    io::check_directory(claim);
    if (!io::is_there(claim / "lock")) {
      io::remove_empty(claim);
      return;
    }
    const std::optional<io::FileLock> lock = io::FileLock::try_lock(claim / "lock", false);
    if (!lock) return;
    const Path doomed = claim_name(out, "dead");
    io::rename_directory(claim, doomed);
    remove_claim(doomed);
  } catch (const Error&) {
    // It belongs to another user, or another process was faster. It does no harm.
  }
}

void clean_claims(const Path& out) {
  for (const Path& entry : io::list(out)) {
    const std::string& name = entry.native();
    if (name.starts_with('.') && name.ends_with(claim_suffix)) clean_claim(out, out / entry);
  }
}

struct Claim {
  Path path;
  RunLock lock;
};

/// A new locked folder. Another starting process may remove it until it is locked, hence the retries.
Claim claim_in(const Path& out, const std::string& wanted, std::string_view command) {
  constexpr int attempts = 100;
  for (int attempt = 1;; ++attempt) {
    const Path path = claim_name(out, wanted);
    if (!io::claim_directory(path)) continue;  // refuses even a link to a folder
    try {
      return {path, RunLock(path, command)};
    } catch (const Error& error) {
      const bool lost = error.fault() == Fault::busy || !io::is_there(path);
      if (!lost) io::remove_all(path);
      if (!lost || attempt >= attempts) throw;
    }
  }
}

/// Renames the locked folder; false when the name is taken.
bool put_in_place(const Path& claim, const Path& run) {
  try {
    io::rename_directory(claim, run);
    return true;
  } catch (const Error&) {
    if (io::is_there(claim) && io::is_there(run)) return false;
    throw;
  }
}

[[noreturn]] void name_is_taken(const Path& run, const std::string& name) {
  if (const std::optional<std::string> holder = run_holder(run))
    fail(Fault::busy, run, " is in use by ", *holder, ". Choose another ",
         advice("--name", "name", "FitOptions::folder"), ", or stop that one.");
  if (settings_source() == SettingsSource::fit)
    fail("the folder ", run, " exists already, and is no run that can be resumed. Choose another name.");
  fail("the run ", run, " exists already (--name ", name, "). Go on with it: ", program_name(), " resume ",
       run, ". Or choose another --name.");
}

/// Suggests an existing run with a similar name.
std::string near_run(const Path& run) {
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

/// Refuses a run if one of the files and folders that will be written is a link, a pipe or the like.
void check_entries(const RunFolder& run) {
  for (const Path& file : {run.config(), run.manifest(), run.metrics(), run.metrics_table(), run.report(),
                           run.samples(), run.path() / "lock", run.path() / "scores.json"}) {
    io::check_regular(file);
  }
  for (const Path& folder : {run.checkpoints(), run.tensorboard(), run.path() / "maps"})
    io::check_directory(folder);
  io::check_regular(run.checkpoints() / "best.json");
}

void clean_folder(const Path& folder) {
  for (const Path& entry : io::list(folder)) {
    const std::string& name = entry.native();
    if (name.starts_with('.') && name.ends_with(".tmp")) io::remove_all(folder / entry);
  }
}

std::string cpu_model() {
  try {
    const std::string metadata = io::read("/proc/cpuinfo");
    const size_t line = metadata.find("model name");
    const size_t colon = metadata.find(": ", line);
    if (line == std::string::npos || colon == std::string::npos) return "unknown";
    return metadata.substr(colon + 2, metadata.find('\n', colon) - colon - 2);
  } catch (const Error&) {
    return "unknown";
  }
}

std::string time_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char buffer[32];
  std::strftime(buffer, sizeof buffer, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return buffer;
}

}  // namespace

RunFolder RunFolder::create(const RunOptions& options) {
  check_name(options.name.empty() ? options.base : options.name);
  io::make_directories(options.out);
  clean_claims(options.out);
  if (const Path run = options.out / options.name; !options.name.empty() && io::is_there(run)) {
    if (!io::is_directory(run) || !io::list(run).empty()) name_is_taken(run, options.name);
  }
  const std::string wanted = options.name.empty() ? options.base : options.name;
  Claim claim = claim_in(options.out, wanted, options.command);
  try {
    options.contents(claim.path);
    if (!options.config.empty())
      io::write(claim.path / "config.toml", options.config);  // syncs the folder too
    for (;;) {
      const std::string name = options.name.empty()
                                   ? numbered(options.base, next_number(options.out, options.base))
                                   : options.name;
      RunFolder run(options.out / name);
      if (put_in_place(claim.path, run.path_)) {
        run.lock_ = std::move(claim.lock);
        return run;
      }
      if (!options.name.empty()) name_is_taken(run.path_, name);
    }
  } catch (...) {
    if (io::is_there(claim.path)) remove_claim(claim.path);
    throw;
  }
}

RunFolder RunFolder::look(const Path& run) {
  RunFolder made(run);
  if (!io::is_directory(run))
    fail(Fault::file, "there is no run ", run, ".", near_run(run), " See which there are: ", program_name(),
         " list runs");
  if (!io::exists(made.config()))
    fail(Fault::file, run,
         " is not the folder of a run: it has no config.toml. See which there are: ", program_name(),
         " list runs");
  try {
    made.read_manifest();  // before config.toml, whose keys a newer heed may have renamed
  } catch (const NewerFormat&) {
    throw;
  } catch (const Error&) {
    // Damaged or unreadable: commands that need the manifest report it.
  }
  return made;
}

RunFolder RunFolder::resume(const Path& run, std::string_view command) {
  RunFolder made(run);
  check_entries(made);  // first, since reading a pipe among them would block
  look(run);
  made.lock_.emplace(run, command);
  clean_folder(run);
  clean_folder(made.tensorboard());
  clean_checkpoints(run);
  return made;
}

RunFolder RunFolder::hold(const Path& run, std::string_view command) {
  const Path path = (run / "").lexically_normal().parent_path();  // without a slash at its end
  if (path.filename().empty() || path.filename() == "." || path.filename() == "..")
    fail("'", shown(run.native(), 200), "' does not end in the name of a run. Give its path: runs/NAME.");
  io::check_directory(path);
  if (!io::is_there(path / "config.toml")) look(path);  // says what is there instead
  if (const Path whole = path.parent_path(); io::is_there(whole / "config.toml"))
    fail(path, " is a part of the run that it lies in, which needs it. Name that run.");
  if (const std::optional<std::string> holder = run_holder(path))
    fail(Fault::busy, path, " is in use by ", *holder, ". Stop that one, or wait for its end.");
  RunFolder made(path);
  made.lock_.emplace(path, command);
  return made;
}

void RunFolder::rename(const std::string& name) {
  if (!is_run_name(name)) fail("'", shown(name, 200), legal_names);
  const Path to = path_.parent_path() / name;
  if (io::is_there(to)) fail("cannot rename ", path_, ": ", to, " exists already. Choose another name.");
  io::rename_directory(path_, to);
  path_ = to;
}

void RunFolder::remove() && {
  const Path doomed = claim_name(path_.parent_path(), path_.filename().native().substr(0, 100));
  io::rename_directory(path_, doomed);  // a kill from here on leaves what the next start clears away
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
  if (const Json* noted = metadata->find(first_checkpoint_key); noted != nullptr && !noted->is_null()) return;
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
                       {"started", Json(time_now())},
                       {"command", std::move(command)}});
}

}  // namespace heed
