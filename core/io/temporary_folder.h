// A temporary folder of one's own.
#pragma once

#include <string_view>

#include "heed/core/error.h"
#include "heed/core/io/file_descriptor.h"

namespace heed::io {

/// A new folder with a random name in the folder that TMPDIR names, or in /tmp. Nobody else can have made it,
/// and only its owner may enter it. The destructor removes it with all that is in it, by the descriptor it
/// was opened with: links in it are removed and not followed, and a folder or link that somebody has put in
/// its place stays untouched. A warning names what cannot be removed.
class TemporaryFolder {
 public:
  /// Its name is heed-PURPOSE-XXXXXX. Fault::file that names TMPDIR where it cannot be made.
  explicit TemporaryFolder(std::string_view purpose);
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();

  const Path& path() const { return path_; }  ///< of the folder, for what is put into it

 private:
  TemporaryFolder(const Path& parent, std::string_view purpose);
  void remove() const;

  Descriptor parent_;
  Path path_;
  Descriptor folder_;
};

}  // namespace heed::io
