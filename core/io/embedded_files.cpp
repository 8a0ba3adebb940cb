// Finds an embedded file by its path.
#include "heed/core/io/embedded_files.h"

#include <algorithm>
#include <string>

#include "heed/core/error.h"

namespace heed {

std::string_view embedded_file(std::string_view path) {
  const auto all = embedded_files();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const EmbeddedFile& one) { return one.path == path; });
  if (found == all.end()) fail(Fault::internal, "the program has no file ", std::string(path), ".");
  return found->text;
}

}  // namespace heed
