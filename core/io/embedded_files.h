// Files of the source tree that are inside the program: presets, published results, and what pages are made
// of.
#pragma once

#include <span>
#include <string_view>

namespace heed {

/// One file, by its path below the root of the source tree.
struct EmbeddedFile {
  std::string_view path;  ///< "train/presets/lm.toml"
  std::string_view
      text;  ///< of a script or a style: without its first line, the comment that says what it is for
};

/// All of them, by path. The build makes the list: see embedded_files.cmake.
std::span<const EmbeddedFile> embedded_files();

/// The text of one. Fails if the program has no such file.
std::string_view embedded_file(std::string_view path);

}  // namespace heed
