// Renames a run and updates what names it.
#include "heed/train/run/run_renaming.h"

#include <filesystem>
#include <system_error>

#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/io/files.h"
#include "heed/core/io/no_follow_files.h"
#include "heed/train/run/initial_weights.h"
#include "heed/train/run/run_folder.h"

namespace heed {
namespace {

Path beside(const Path& run) { return run.parent_path().empty() ? Path(".") : run.parent_path(); }

/// A path without a slash at its end.
Path plain_path(const Path& path) { return (path / "").lexically_normal().parent_path(); }

/// The run whose weights a run began from, as its manifest has it; empty where there is none.
Path origin_in(const Path& run) {
  try {
    const std::optional<Json> manifest = RunFolder::elsewhere(run).read_manifest();
    const Json* from = manifest ? manifest->find(origin_key) : nullptr;
    return from != nullptr ? plain_path(from->at("run").text()) : Path();
  } catch (const Error&) {
    return {};  // no run, or one that cannot be read and names nothing
  }
}

/// The runs beside `run` that began from its weights, locked.
std::vector<RunFolder> successors_of(const Path& run, std::string_view command) {
  std::vector<RunFolder> out;
  for (const Path& name : io::list(beside(run))) {
    const Path other = run.parent_path() / name;
    if (name.native().starts_with('.') || name == run.filename()) continue;
    if (origin_in(other) == run) out.push_back(RunFolder::hold(other, command));
  }
  return out;
}

/// Gives the run whose weights a run began from another name in its manifest.
void name_origin(const RunFolder& run, const std::string& name) {
  Json manifest = run.read_manifest().value();
  Json from = manifest.at(origin_key);
  const Path recorded = plain_path(from.at("run").text());
  manifest.set(origin_key, from.set("run", (recorded.parent_path() / name).string()));
  run.write_manifest(manifest);
}

void replace_first(std::string& page, const std::string& old, const std::string& now) {
  if (const size_t at = page.find(old); at != std::string::npos) page.replace(at, old.size(), now);
}

/// The report's title is the name of the run.
void rename_report(const Path& report, const std::string& old, const std::string& now) {
  if (!io::exists(report)) return;
  std::string page = io::read(report);
  for (const auto& [open, close] : {std::pair{"<title>", "</title>"}, std::pair{"<h1>", "</h1>"}})
    replace_first(page, open + picture::escape(old) + close, open + picture::escape(now) + close);
  io::write_own(report, page);
}

}  // namespace

RenamedRun rename_run(const Path& run, const std::string& name, std::string_view command) {
  RunFolder folder = RunFolder::hold(run, command);
  const Path old = folder.path();
  std::error_code code;
  const Path whole = std::filesystem::weakly_canonical(old, code);  // wherever it is called from
  const Path group = whole.parent_path().parent_path();
  if (whole.parent_path().filename() == "runs" &&
      io::exists(group / "plans" / (whole.filename().string() + ".toml"))) {
    fail("cannot rename ", old, ": it belongs to ", group,
         ", where heed compare or heed reproduce finds it by its name, and would train it again.");
  }
  std::vector<RunFolder> successors = successors_of(old, command);
  const std::string old_name = old.filename().string();
  folder.rename(name);
  RenamedRun out{.path = folder.path(), .updated = {}};
  try {
    for (const RunFolder& other : successors) {
      name_origin(other, name);
      out.updated.push_back(other.path());
    }
    rename_report(folder.report(), old_name, name);
  } catch (...) {  // a full disk: all of it, or none
    folder.rename(old_name);
    for (size_t i = 0; i < out.updated.size(); ++i) name_origin(successors[i], old_name);
    throw;
  }
  return out;
}

}  // namespace heed
