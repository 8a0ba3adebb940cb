// Downloads named corpora from their publishers: `heed data get NAME`.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/core/error.h"
#include "heed/data/download/curl.h"

namespace heed {

/// A file of a publisher.
struct RemoteFile {
  std::string url;     ///< address of the publisher's file, https
  std::string name;    ///< file name on disk
  std::string sha256;  ///< empty where the publisher has none
};

/// Target folder, source and log of a download.
struct DownloadOptions {
  Path folder = {};               ///< created when missing
  std::string url = {};           ///< when not empty: download the files from this folder instead
  TransferOptions transfer = {};  ///< size limit and retries of each file
  std::function<void(std::string_view line)> say = {};  ///< gets lines of progress and results; may be empty
};

/// The result of a download.
struct Downloaded {
  Path data = {};            ///< the argument for --data
  bool as_published = true;  ///< the contents match the published numbers
};

/// A corpus with a name for download.
struct RemoteCorpus {
  std::string name;               ///< what `heed data get` is given
  std::string title;              ///< one line for people
  std::string licence;            ///< the publisher's licence; shown before the download
  std::vector<RemoteFile> files;  ///< in the order of their download
  /// Downloads the files, unpacks them where the readers expect them, and compares them with published
  /// numbers.
  Downloaded (*unpack)(const RemoteCorpus& corpus, const DownloadOptions& options);
};

/// All corpora, ordered by name.
std::span<const RemoteCorpus> remote_corpora();

/// Downloads a corpus, or continues an interrupted download, and verifies it. A file with a wrong SHA-256
/// (expected: the publisher's, else the one recorded at the first download in NAME.sha256) causes Fault::data
/// and never gets its final name. Fault::usage for an unknown name.
Downloaded download(std::string_view name, const DownloadOptions& options);
/// Downloads the given corpus, like download() by name.
Downloaded download(const RemoteCorpus& corpus, const DownloadOptions& options);

/// Downloads one file in the same way; returns its bytes. `inspect` may reject the bytes by throwing, before
/// the file gets its name.
std::string fetch(const RemoteFile& file, const DownloadOptions& options,
                  const std::function<void(std::string_view bytes)>& inspect = {});

}  // namespace heed
