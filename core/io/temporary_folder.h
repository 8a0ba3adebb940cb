// Temporary folders.
#pragma once

#include <string_view>

#include "heed/core/error.h"
#include "heed/core/io/file_descriptor.h"
#include "heed/core/scope.h"

namespace heed::io {

/// A new folder with a random name in the folder that TMPDIR names, or in /tmp, which only its owner may
/// enter. The destructor removes it and its content by the descriptor it was opened with: links in it are
/// removed and not followed, and a folder or link that another program has put in its place is left
/// unchanged. A warning names what cannot be removed.
class TemporaryFolder : NonCopyable {
 public:
  /// Its name is heed-PURPOSE-XXXXXX. Fault::file that names TMPDIR where it cannot be made.
  explicit TemporaryFolder(std::string_view purpose);
  ~TemporaryFolder();

  const Path& path() const { return path_; }  ///< path of the folder, for what is put into it

 private:
  TemporaryFolder(const Path& parent, std::string_view purpose);
  void remove() const;

  Descriptor parent_;
  Path path_;
  Descriptor folder_;
};

}  // namespace heed::io
