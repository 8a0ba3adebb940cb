// Sentence pairs from files: tab-separated, a pair of text files, or JSON lines.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/core/error.h"

namespace heed {

/// A sentence and its translation, without white space at the ends.
struct Pair {
  std::string source;                            ///< UTF-8, one line
  std::string target;                            ///< its translation, UTF-8, one line
  bool operator==(const Pair&) const = default;  ///< both sides are equal, byte by byte
};

/// The two languages, as in file names and JSON keys.
struct Languages {
  std::string source = "en";  ///< language of the sentences to translate
  std::string target = "it";  ///< language of the translations
};

/// A file that was read, for the run's manifest.
struct SourceFile {
  std::string path;    ///< path given by the user, with the language's ending where that was added
  int64_t bytes = 0;   ///< size on disk, before decompression
  std::string sha256;  ///< SHA-256 of the bytes on disk
};

/// The contents of files of parallel text.
struct PairFile {
  std::vector<Pair> pairs;        ///< in the order of the files
  std::string format;             ///< "tsv", "text pair" or "json lines"
  std::vector<SourceFile> files;  ///< one, or one for each language
  int64_t lines = 0;              ///< pairs, including those with an empty side
  int64_t empty = 0;              ///< pairs skipped because a side is blank
  std::string first_empty;        ///< file:line of the first of these
};

/// Reads sentence pairs. The path is one of
/// - a file with `source<TAB>target` lines;
/// - a JSON-lines file with `{"translation": {"en": "...", "it": "..."}}` lines;
/// - a pair of files with one sentence a line: the common prefix `corpus` of `corpus.en` and `corpus.it`, or
/// a folder with exactly one such pair.
/// Files may be gzip, may have a byte order mark and CRLF line ends. The format is detected by names and
/// content. Fault::data with file:line for bad UTF-8, NUL, a missing or additional tab, bad JSON, sides of
/// different length, or no pair at all; Fault::file when there is nothing to read.
PairFile read_pairs(const Path& path, const Languages& languages = {});

/// Reads several files as one.
PairFile read_pairs(std::span<const Path> paths, const Languages& languages = {});

/// The source sentences of pairs; the views are valid as long as the pairs.
std::vector<std::string_view> sources(std::span<const Pair> pairs);
/// The translations of pairs; the views are valid as long as the pairs.
std::vector<std::string_view> targets(std::span<const Pair> pairs);

}  // namespace heed
