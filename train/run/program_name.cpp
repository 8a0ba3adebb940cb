// Checks registered names, and keeps the name of the program.
#include "heed/train/run/program_name.h"

#include <algorithm>

#include "heed/core/error.h"
#include "heed/core/io/ascii.h"
#include "heed/core/io/files.h"

namespace heed {
namespace {

bool has_registered = false;
std::string file_name_of_program = "heed";

bool is_legal_name(const std::string& name) {
  const auto is_legal = [](char c) { return is_ascii_alphanumeric(c) || c == '-' || c == '_'; };
  return !name.empty() && name.size() <= 64 && is_ascii_alphanumeric(name[0]) &&
         std::all_of(name.begin(), name.end(), is_legal);
}

}  // namespace

void check_registration(const char* caller, const char* name, const char* help,
                        const std::vector<std::string>& taken) {
  const std::string given = name == nullptr ? "" : name;
  if (!is_legal_name(given))
    fail(caller, ": '", shown(given),
         "' is no name. It takes 1 to 64 letters, digits, - and _, and begins with a letter or digit.");
  if (std::find(taken.begin(), taken.end(), given) != taken.end())
    fail(caller, ": the name '", given, "' is taken. Choose another; '", given, "-2' would do.");
  if (help == nullptr) fail(caller, ": '", given, "' has no line of help. Set `about`.");
  has_registered = true;
}

std::string program_name() { return has_registered ? file_name_of_program : "heed"; }

void set_program_path(const char* path) {
  if (path != nullptr && *path != '\0') file_name_of_program = Path(path).filename().string();
}

}  // namespace heed
