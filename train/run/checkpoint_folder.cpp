// Writes, verifies, lists and removes checkpoints. A new one is written under a temporary name and renamed.
#include "heed/train/run/checkpoint_folder.h"

#include <algorithm>

#include "heed/core/io/ascii.h"
#include "heed/core/io/files.h"
#include "heed/core/io/hash.h"
#include "heed/core/io/json.h"
#include "heed/core/io/no_follow_files.h"
#include "heed/core/io/number_text.h"
#include "heed/core/io/safetensors.h"
#include "heed/core/settings_in_errors.h"
#include "heed/core/version.h"
#include "heed/train/run/format_version.h"
#include "heed/train/run/program_name.h"

namespace heed {
namespace {

constexpr std::string_view manifest_name = "MANIFEST.json";
constexpr std::string_view temporary_prefix = ".tmp-";
constexpr std::string_view step_prefix = "step_";
constexpr int64_t max_manifest_bytes = 1 << 20;
constexpr size_t max_file_name_size = 255;  // limit of Linux file systems

/// The name of a checkpoint's folder: "step_000400".
std::string step_name(int64_t step) {
  return text(step_prefix, formatted("%06lld", static_cast<long long>(step)));
}

Path checkpoints_of(const Path& run) { return run / "ckpt"; }

/// The folder of checkpoints, to write and remove there. Fails for a link, which would lead out of the run.
Path checked_checkpoints_of(const Path& run) {
  const Path folder = checkpoints_of(run);
  io::check_directory(folder);
  return folder;
}

/// A unique temporary name in the folder of checkpoints.
Path temporary_of(const Path& run, int64_t step) {
  return checked_checkpoints_of(run) / text(temporary_prefix, step_name(step), "-", io::random_name());
}

std::optional<int64_t> parse_step(std::string_view digits) {
  const std::optional<int64_t> step = parsed_integer(digits);
  return step && *step >= 0 ? step : std::nullopt;
}

/// Whether a name in a manifest is a plain file name. Others are illegal, since names become paths.
bool is_plain_name(std::string_view name) {
  return !name.empty() && name.size() <= max_file_name_size && name.front() != '.' &&
         std::all_of(name.begin(), name.end(), [](char letter) {
           return is_ascii_alphanumeric(letter) || letter == '.' || letter == '_' || letter == '-';
         });
}

/// The text of MANIFEST.json: format, version, step, and size and checksums of each file.
std::string manifest_of(int64_t step, const std::vector<NamedBytes>& files) {
  Json entries = Json::object();
  for (const NamedBytes& file : files) {
    entries.set(file.name, Json::object({{"size", Json(file.bytes.size())},
                                         {"crc32c", Json(crc32c_hex(file.bytes))},
                                         {"sha256", Json(sha256_hex(file.bytes))}}));
  }
  return Json::object({{"format", checkpoint_format},
                       {"heed", Json(HEED_VERSION)},
                       {"step", step},
                       {"files", std::move(entries)}})
             .dump(2) +
         "\n";
}

bool is_of_tensors(std::string_view name) { return name.ends_with(".safetensors"); }

/// Describes which bytes of a file differ from their checksum: a tensor's, where that can be told.
std::string describe_damage(const Path& folder, const std::string& name, int64_t size) {
  if (is_of_tensors(name)) {
    try {
      const SafeTensors tensors = SafeTensors::open(folder / name);
      if (const TensorEntry* bad = tensors.damaged()) {
        return text(name, ", tensor ", bad->name, ", bytes ", bad->offset, "-", bad->offset + bad->size - 1,
                    " do not match their checksum");
      }
    } catch (const Error&) {  // the header cannot be read
    }
    return text(name, ", its header (from byte 0) does not match its checksum");
  }
  return text(name, ", bytes 0-", size - 1, " do not match their checksum");
}

/// The entry of a file in a manifest.
struct ManifestEntry {
  std::string name;
  int64_t size = 0;            // bytes
  std::string crc32c, sha256;  // checksums, in hexadecimal digits
};

/// Reads the entries of the manifest of a checkpoint of `step`. An error's text is the reason alone, to which
/// open_checkpoint() adds the rest.
std::vector<ManifestEntry> read_manifest(const std::string& bytes, int64_t step) {
  const Json manifest = parse_json(bytes, manifest_name);
  std::vector<ManifestEntry> entries;
  try {
    format_of(manifest, checkpoint_format);  // there is only one format so far
    if (const int64_t found = manifest.at("step").integer(); found != step)
      fail(Fault::data, "it speaks of step ", found);
    for (const JsonMember& file : manifest.at("files").members()) {
      if (!is_plain_name(file.key)) fail(Fault::data, "'", shown(file.key), "' is no plain file name");
      entries.push_back({.name = file.key,
                         .size = file.value.at("size").integer(),
                         .crc32c = file.value.at("crc32c").text(),
                         .sha256 = file.value.at("sha256").text()});
    }
  } catch (const NewerFormat& error) {
    throw NewerFormat(text(error.what(), ": ", manifest_name, ", bytes 0-", bytes.size() - 1));
  } catch (const Error& error) {
    fail(Fault::data, manifest_name, ", bytes 0-", bytes.size() - 1, ": ", error.what());
  }
  return entries;
}

/// Reads a file piece by piece and compares it with its entry in the manifest. Returns its bytes, or nothing
/// where they are not to be held. An error's text is the reason alone.
std::string read_verified(const Path& folder, const ManifestEntry& entry, bool is_held) {
  const Path path = folder / entry.name;
  const std::string& name = entry.name;
  if (!io::exists(path)) fail(Fault::data, name, " is missing (all of its bytes 0-", entry.size - 1, ")");
  if (io::is_directory(path)) fail(Fault::data, name, " is a folder, not the bytes 0-", entry.size - 1);
  const int64_t size = io::size(path);
  if (size != entry.size)
    fail(Fault::data, name, " has ", size, " bytes, ", entry.size, " were written: it differs from byte ",
         std::max<int64_t>(0, std::min(size, entry.size)), " on");
  std::string held;
  if (is_held) held.reserve(static_cast<size_t>(size));
  uint32_t sum = 0;
  Sha256 digest;
  io::read_pieces(path, [&](std::string_view piece) {
    sum = crc32c(piece, sum);
    digest.update(piece);
    if (is_held) held += piece;
  });
  if (crc32c_text(sum) != entry.crc32c || digest.hex() != entry.sha256)
    fail(Fault::data, describe_damage(folder, name, size));
  return held;
}

/// An error's text without the full stops at its end.
std::string_view without_full_stop(const Error& error) {
  std::string_view reason = error.what();
  while (reason.ends_with('.')) reason.remove_suffix(1);
  return reason;
}

/// Reads and verifies a checkpoint. The text of an error with Fault::data is the reason alone.
Checkpoint read_checkpoint(const Path& run, int64_t step, HeldFiles held) {
  Checkpoint checkpoint{.folder = checkpoint_folder(run, step), .step = step, .files = {}};
  const Path manifest_path = checkpoint.folder / manifest_name;
  if (!io::exists(manifest_path)) fail(Fault::data, manifest_name, " is missing");
  try {
    for (const ManifestEntry& entry : read_manifest(io::read(manifest_path, max_manifest_bytes), step)) {
      const bool is_held = held == HeldFiles::all || !is_of_tensors(entry.name);
      std::string bytes = read_verified(checkpoint.folder, entry, is_held);
      if (is_held) checkpoint.files[entry.name] = std::move(bytes);
    }
  } catch (const NewerFormat&) {
    throw;
  } catch (const Error& error) {
    if (error.fault() != Fault::data) throw;
    fail(Fault::data, without_full_stop(error));
  }
  return checkpoint;
}

/// The step of the newest intact checkpoint, without reading that of `damaged`; none where all are damaged.
std::optional<int64_t> newest_intact(const Path& run, int64_t damaged) {
  std::vector<int64_t> steps = list_checkpoints(run);
  std::reverse(steps.begin(), steps.end());
  for (const int64_t step : steps) {
    if (step == damaged) continue;
    try {
      read_checkpoint(run, step, HeldFiles::all_but_tensors);
      return step;
    } catch (const Error&) {
      continue;
    }
  }
  return std::nullopt;
}

/// The step that `which` names: "last", "best" or a number. Fails where the run has no such checkpoint.
int64_t chosen_step(const Path& run, std::string_view which) {
  const std::vector<int64_t> steps = list_checkpoints(run);
  if (steps.empty())
    fail(Fault::data, run, " has no checkpoint in ", checkpoints_of(run),
         ". Is it the folder of a run that has saved?");
  if (which == "last") return steps.back();
  std::optional<int64_t> wanted;
  if (which == "best") {
    wanted = best_step(run);
    if (!wanted)
      fail(Fault::data, run, " has no record of its best checkpoint. Use last, which is ", steps.back(), ".");
  } else {
    wanted = parse_step(which);
    if (!wanted) fail("checkpoint '", which, "' is neither last, best nor a number of steps.");
  }
  if (std::find(steps.begin(), steps.end(), *wanted) != steps.end()) return *wanted;
  std::string known;
  for (const int64_t step : steps) known += text(known.empty() ? "" : ", ", step);
  fail(Fault::data, run, " has no checkpoint of step ", *wanted, ". It has: ", known, ".");
}

/// Removes a checkpoint. Its folder is renamed first, so that a folder named step_N is always complete.
void remove_checkpoint(const Path& run, int64_t step) {
  const Path doomed = temporary_of(run, step);
  io::rename_directory(checkpoint_folder(run, step), doomed);
  io::remove_all(doomed);
}

void make_checkpoints_folder(const Path& run) {
  io::make_directories(run);
  io::make_directory(checkpoints_of(run));
}

/// Fails unless the names of the files are plain, distinct and not that of the manifest.
void check_names(const std::vector<NamedBytes>& files) {
  for (size_t i = 0; i < files.size(); ++i) {
    if (!is_plain_name(files[i].name) || files[i].name == manifest_name)
      fail(Fault::internal, "checkpoint: '", files[i].name, "' cannot name a file of a checkpoint");
    for (size_t j = 0; j < i; ++j) {
      if (files[i].name == files[j].name)
        fail(Fault::internal, "checkpoint: two files named ", files[i].name);
    }
  }
}

}  // namespace

const std::string& Checkpoint::file(std::string_view name) const {
  const auto found = files.find(std::string(name));
  if (found != files.end()) return found->second;
  fail(Fault::data, "checkpoint ", folder, " has no file ", name,
       ". Was it written by another version of heed?");
}

Path checkpoint_folder(const Path& run, int64_t step) { return checkpoints_of(run) / step_name(step); }

Path write_checkpoint(const Path& run, int64_t step, const std::vector<NamedBytes>& files) {
  if (step < 0) fail(Fault::internal, "checkpoint: step ", step, " is negative");
  check_names(files);
  make_checkpoints_folder(run);
  const Path folder = checkpoint_folder(run, step);
  const Path temporary = temporary_of(run, step);
  try {
    io::make_directory(temporary);
    for (const NamedBytes& file : files) io::write_new(temporary / file.name, file.bytes);
    io::write_new(temporary / manifest_name, manifest_of(step, files));
    io::sync_directory(temporary);
    io::replace_directory(temporary, folder);
  } catch (const Error&) {
    try {
      io::remove_all(temporary);
    } catch (const Error&) {
      // A later start removes the temporary folder; report the first error.
    }
    throw;
  }
  return folder;
}

Checkpoint open_checkpoint(const Path& run, std::string_view which, HeldFiles held) {
  const int64_t step = chosen_step(run, which);
  try {
    return read_checkpoint(run, step, held);
  } catch (const NewerFormat& error) {
    const std::optional<int64_t> readable = newest_intact(run, step);
    fail(Fault::data, "checkpoint ", checkpoint_folder(run, step), " ", error.what(), ".\n",
         readable && settings_source() != SettingsSource::fit
             ? text("Use that version, or what this one can read: ", program_name(), " resume ", run,
                    " --checkpoint ", *readable)
             : "Go on with it by that version.");
  } catch (const Error& error) {
    if (error.fault() != Fault::data) throw;
    const std::string complaint =
        text("checkpoint ", checkpoint_folder(run, step), " is damaged: ", error.what(), ".");
    if (const std::optional<int64_t> intact = newest_intact(run, step)) {
      if (settings_source() == SettingsSource::fit)
        fail(Fault::data, complaint, "\n", step_name(*intact), " is intact. To go on from it, remove ",
             checkpoint_folder(run, step), ".");
      fail(Fault::data, complaint, "\n", step_name(*intact), " is intact: ", program_name(), " resume ", run,
           " --checkpoint ", *intact);
    }
    fail(Fault::data, complaint, "\nNo other checkpoint of this run is intact. Train again from the start.");
  }
}

std::vector<int64_t> list_checkpoints(const Path& run) {
  std::vector<int64_t> steps;
  for (const Path& name : io::list(checkpoints_of(run))) {
    const std::string folder = name.string();
    if (!folder.starts_with(step_prefix)) continue;
    const std::optional<int64_t> step = parse_step(std::string_view(folder).substr(step_prefix.size()));
    if (step && step_name(*step) == folder) steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

void drop_checkpoints_after(const Path& run, int64_t step) {
  std::vector<int64_t> steps = list_checkpoints(run);
  for (; !steps.empty() && steps.back() > step; steps.pop_back()) remove_checkpoint(run, steps.back());
}

void prune_checkpoints(const Path& run, int64_t keep_last, std::optional<int64_t> best) {
  const std::vector<int64_t> steps = list_checkpoints(run);
  const auto count = static_cast<int64_t>(steps.size());
  for (int64_t i = 0; i < count - std::max<int64_t>(keep_last, 1); ++i) {
    const int64_t step = steps[static_cast<size_t>(i)];
    if (best != step) remove_checkpoint(run, step);
  }
}

void mark_best(const Path& run, int64_t step) {
  make_checkpoints_folder(run);
  io::write_own(checkpoints_of(run) / "best.json", Json::object({{"step", step}}).dump() + "\n");
}

std::optional<int64_t> best_step(const Path& run) {
  const Path path = checkpoints_of(run) / "best.json";
  if (!io::exists(path)) return std::nullopt;
  const std::string bytes = io::read(path, max_manifest_bytes);
  try {
    const int64_t step = parse_json(bytes, "best.json").at("step").integer();
    if (step < 0) fail(Fault::data, "step is ", step, ". It must be 0 or more");
    return step;
  } catch (const Error& error) {
    if (error.fault() != Fault::data) throw;
    const std::string extent = bytes.empty() ? "it ends at byte 0" : text("bytes 0-", bytes.size() - 1);
    fail(Fault::data, path, ", the record of the best checkpoint, is damaged (", extent,
         "): ", without_full_stop(error),
         ".\nRemove it: then the last checkpoint is used, and the next validation that improves records the "
         "best again.",
         advice(" Commands that only read the run take a step instead: --checkpoint.", ""));
  }
}

void clean_checkpoints(const Path& run) {
  for (const Path& name : io::list(checked_checkpoints_of(run))) {
    const std::string entry = name.string();
    const bool is_temporary =
        entry.starts_with(temporary_prefix) || (entry.front() == '.' && entry.ends_with(".tmp"));
    if (is_temporary) io::remove_all(checkpoints_of(run) / name);
  }
}

}  // namespace heed
