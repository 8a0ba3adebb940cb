// Renames a run, and updates its report and the manifests that name it.
#include "heed/train/run/run_renaming.h"

#include <filesystem>
#include <system_error>

#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/io/files.h"
#include "heed/core/io/no_follow_files.h"
#include "heed/train/run/run_folder.h"
#include "heed/train/run/weights_from_run.h"

namespace heed {
namespace {

Path without_trailing_slash(const Path& path) { return (path / "").lexically_normal().parent_path(); }

/// The path, by the manifest of `run`, of the run whose weights it began from; empty where there is none.
Path origin_of(const Path& run) {
  try {
    const std::optional<Json> manifest = RunFolder::elsewhere(run).read_manifest();
    const Json* origin = manifest ? manifest->find(origin_key) : nullptr;
    return origin != nullptr ? without_trailing_slash(origin->at("run").text()) : Path();
  } catch (const Error&) {
    return {};  // the path is no run, or one that cannot be read and names no origin
  }
}

/// Locks the runs in the same folder as `run` that began from its weights.
std::vector<RunFolder> lock_successors(const Path& run, std::string_view command) {
  std::vector<RunFolder> out;
  const Path parent = run.parent_path();
  for (const Path& name : io::list(parent.empty() ? Path(".") : parent)) {
    if (name.native().starts_with('.') || name == run.filename()) continue;
    if (origin_of(parent / name) == run) out.push_back(RunFolder::hold(parent / name, command));
  }
  return out;
}

/// Replaces, in the manifest of a run, the name of the run whose weights it began from.
void rename_origin(const RunFolder& run, const std::string& name) {
  Json manifest = run.read_manifest().value();
  Json origin = manifest.at(origin_key);
  const Path old_path = without_trailing_slash(origin.at("run").text());
  manifest.set(origin_key, origin.set("run", (old_path.parent_path() / name).string()));
  run.write_manifest(manifest);
}

/// Replaces the run's name in title and heading of its report.
void rename_report(const Path& report, const std::string& old_name, const std::string& name) {
  if (!io::exists(report)) return;
  std::string page = io::read(report);
  for (const auto& [open, close] : {std::pair{"<title>", "</title>"}, std::pair{"<h1>", "</h1>"}}) {
    const std::string old_element = open + picture::escape(old_name) + close;
    if (const size_t begin = page.find(old_element); begin != std::string::npos)
      page.replace(begin, old_element.size(), open + picture::escape(name) + close);
  }
  io::write_own(report, page);
}

}  // namespace

RenamedRun rename_run(const Path& run, const std::string& name, std::string_view command) {
  RunFolder folder = RunFolder::hold(run, command);
  const Path old_path = folder.path();
  std::error_code code;
  const Path absolute = std::filesystem::weakly_canonical(old_path, code);
  const Path comparison = absolute.parent_path().parent_path();
  if (absolute.parent_path().filename() == "runs" &&
      io::exists(comparison / "plans" / (absolute.filename().string() + ".toml"))) {
    fail("cannot rename ", old_path, ": it belongs to ", comparison,
         ", where heed compare or heed reproduce finds it by its name, and would train it again.");
  }
  std::vector<RunFolder> successors = lock_successors(old_path, command);
  const std::string old_name = old_path.filename().string();
  folder.rename(name);
  RenamedRun out{.path = folder.path(), .updated = {}};
  try {
    for (const RunFolder& successor : successors) {
      rename_origin(successor, name);
      out.updated.push_back(successor.path());
    }
    rename_report(folder.report(), old_name, name);
  } catch (...) {  // undoes the renaming: the disk may be full
    folder.rename(old_name);
    for (size_t i = 0; i < out.updated.size(); ++i) rename_origin(successors[i], old_name);
    throw;
  }
  return out;
}

}  // namespace heed
