// Checks for all files of a set before reading, for a complete error message.
#include "heed/data/formats/expected_files.h"

#include "heed/core/io/files.h"

namespace heed {
namespace {

/// "a, b and c".
std::string list_of(const std::vector<std::string>& names) {
  std::string out;
  for (size_t i = 0; i < names.size(); ++i)
    out += (i == 0 ? "" : i + 1 < names.size() ? ", " : " and ") + names[i];
  return out;
}

}  // namespace

Path plain_or_gzip(const Path& plain) {
  const Path packed = plain.string() + ".gz";
  return !io::exists(plain) && io::exists(packed) ? packed : plain;
}

void expect_files(const Path& folder, const ExpectedFiles& wanted) {
  std::vector<std::string> missing;
  for (const std::string& name : wanted.names) {
    if (!io::exists(wanted.gzip ? plain_or_gzip(folder / name) : folder / name)) missing.push_back(name);
  }
  const bool is_folder = io::is_directory(folder);
  if (is_folder && missing.empty()) return;
  std::string needed;
  if (!wanted.names.empty()) {
    needed = text(wanted.what, " is a folder of ", list_of(wanted.names),
                  wanted.gzip ? ", each plain or with .gz. " : ". ");
  }
  const std::string wrong = !is_folder                             ? " is no folder. "
                            : missing.size() < wanted.names.size() ? text(" lacks ", list_of(missing), ". ")
                                                                   : text(" holds none of its files. ");
  fail(Fault::file, wanted.what, ": ", folder, wrong, needed, wanted.bring);
}

}  // namespace heed
