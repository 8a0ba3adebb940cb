// Files of the source tree that are embedded in the program: presets, published results,
// scripts, modelling files and styles.
#pragma once

#include <span>
#include <string_view>

namespace heed {

/// One file, by its path below the root of the source tree.
struct EmbeddedFile {
  std::string_view path;  ///< "train/presets/lm.toml"
  std::string_view text;  ///< the content; of a script or a style without its first line, a comment
};

/// All embedded files, sorted by path; embedded_files.cmake writes the list.
std::span<const EmbeddedFile> embedded_files();

/// The content of an embedded file. Fails if there is none.
std::string_view embedded_file(std::string_view path);

}  // namespace heed
