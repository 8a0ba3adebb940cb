// Named corpora from their publishers: what `heed data get NAME` does.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "data/transfer.h"

namespace heed {

/// A file as its publisher offers it.
struct RemoteFile {
  std::string url;
  std::string name;    ///< under which it is kept
  std::string sha256;  ///< empty where the publisher's is not known
};

/// Where to, where from, and who is told.
struct DownloadOptions {
  Path folder = {};      ///< made when it is not there
  std::string url = {};  ///< when not empty: the folder that the files are fetched from instead
  TransferOptions transfer = {};
  std::function<void(std::string_view line)> say =
      {};  ///< progress and findings, a line a call; may be empty
};

/// What is there after a download.
struct Downloaded {
  Path data = {};            ///< what to give to --data
  bool as_published = true;  ///< the contents are those known of this corpus
};

/// A corpus that can be fetched by name.
struct RemoteCorpus {
  std::string name;
  std::string title;
  std::string licence;  ///< what the publisher allows; shown before anything is fetched
  std::vector<RemoteFile> files;
  /// Fetches the files, puts what is in them where the readers look for it, and compares it with what is
  /// known.
  Downloaded (*unpack)(const RemoteCorpus& corpus, const DownloadOptions& options);
};

/// All that are known, in the order of their names.
std::span<const RemoteCorpus> remote_corpora();

/// Fetches a corpus, or continues a fetch that broke, and checks it. A file whose SHA-256 is not the expected
/// one (the publisher's, else the one recorded beside it as NAME.sha256 the first time) is refused with
/// Fault::data and never gets its final name. Fault::usage for an unknown name.
Downloaded download(std::string_view name, const DownloadOptions& options);
/// The same for a corpus at hand.
Downloaded download(const RemoteCorpus& corpus, const DownloadOptions& options);

/// One file, likewise; `inspect` may refuse the bytes by throwing before they get their name. Returns the
/// bytes.
std::string fetch(const RemoteFile& file, const DownloadOptions& options,
                  const std::function<void(std::string_view bytes)>& inspect = {});

}  // namespace heed
