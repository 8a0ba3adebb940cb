// Sentence pairs from files: tab-separated, a pair of text files, or JSON lines.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace heed {

/// A sentence and its translation, without white space at the ends.
struct Pair {
  std::string source, target;
  bool operator==(const Pair&) const = default;
};

/// The two languages, as file names and JSON keys spell them.
struct Languages {
  std::string source = "en";
  std::string target = "it";
};

/// A file that was read, so that a run can say exactly what it was trained on.
struct SourceFile {
  std::string path;
  int64_t bytes = 0;   ///< size on the disk, before inflating
  std::string sha256;  ///< of the bytes on the disk
};

/// What files of parallel text hold.
struct PairFile {
  std::vector<Pair> pairs;
  std::string format;  ///< "tsv", "text pair" or "json lines"
  std::vector<SourceFile> files;
  int64_t lines = 0;        ///< pairs, counting those with an empty side
  int64_t empty = 0;        ///< lines left out because one side or both are blank
  std::string first_empty;  ///< file:line of the first of them
};

/// Reads sentence pairs. The path is one of
/// - a file with `source<TAB>target` lines;
/// - a JSON-lines file with `{"translation": {"en": "...", "it": "..."}}` lines;
/// - a pair of files with one sentence a line: the common prefix `corpus` of `corpus.en` and `corpus.it`, or
/// a
///   folder that holds exactly one such pair.
/// Files may be gzip, may begin with a byte order mark, may end lines in CRLF. The format is found from the
/// names and the content. Fault::data with file:line for bad UTF-8, NUL, a missing or additional tab, bad
/// JSON, sides of different length, or no pair at all; Fault::file when there is nothing to read.
PairFile read_pairs(const Path& path, const Languages& languages = {});

/// All the files in turn, as one.
PairFile read_pairs(std::span<const Path> paths, const Languages& languages = {});

/// Views of one side of the pairs; they live as long as the pairs do.
std::vector<std::string_view> sources(std::span<const Pair> pairs);
std::vector<std::string_view> targets(std::span<const Pair> pairs);

}  // namespace heed
