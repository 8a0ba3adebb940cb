// Checks registered names, and keeps the name of the program.
#include "heed/train/run/program_name.h"

#include <algorithm>

#include "heed/core/error.h"
#include "heed/core/io/ascii.h"
#include "heed/core/io/files.h"

namespace heed {
namespace {

bool has_registered = false;
std::string started_as = "heed";

bool is_name(const std::string& name) {
  const auto legal = [](char c) { return is_ascii_alphanumeric(c) || c == '-' || c == '_'; };
  return !name.empty() && name.size() <= 64 && is_ascii_alphanumeric(name[0]) &&
         std::all_of(name.begin(), name.end(), legal);
}

}  // namespace

void check_registration(const char* who, const char* name, const char* about,
                        const std::vector<std::string>& taken) {
  const std::string named = name == nullptr ? "" : name;
  if (!is_name(named))
    fail(who, ": '", shown(named),
         "' is no name. It takes 1 to 64 letters, digits, - and _, and begins with a letter or digit.");
  if (std::find(taken.begin(), taken.end(), named) != taken.end())
    fail(who, ": the name '", named, "' is taken. Choose another; '", named, "-2' would do.");
  if (about == nullptr) fail(who, ": '", named, "' has no line of help. Set `about`.");
  has_registered = true;
}

std::string program_name() { return has_registered ? started_as : "heed"; }

void set_program_path(const char* path) {
  if (path != nullptr && *path != '\0') started_as = Path(path).filename().string();
}

}  // namespace heed
