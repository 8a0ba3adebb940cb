// Unpacks each known corpus and compares it with published numbers.
#pragma once

#include "heed/data/download/download.h"

namespace heed {

/// Logs a count and the published one; returns whether they are equal.
inline bool as_published(const DownloadOptions& options, std::string_view what, int64_t found,
                         int64_t known) {
  if (options.say)
    options.say(text(what, ": ", found, found == known ? ", as published" : text("; published: ", known)));
  return found == known;
}

}  // namespace heed

/// Each downloads the files of its corpus. Fault::data, before a file gets its name, when the contents are
/// wrong.
namespace heed::unpacked {

/// CIFAR-10's binary files from their archive: data_batch_1.bin to data_batch_5.bin, test_batch.bin.
Downloaded cifar10(const RemoteCorpus& corpus, const DownloadOptions& options);
/// IMDb's 50,000 labelled reviews from their archive of text files: train.tsv and test.tsv, rows of label,
/// rating, number and text, ordered by number.
Downloaded imdb(const RemoteCorpus& corpus, const DownloadOptions& options);
/// The four idx files, unchanged.
Downloaded mnist(const RemoteCorpus& corpus, const DownloadOptions& options);
/// Both sides of the Moses pair.
Downloaded opus_books(const RemoteCorpus& corpus, const DownloadOptions& options);
/// The text, unchanged.
Downloaded tinyshakespeare(const RemoteCorpus& corpus, const DownloadOptions& options);
/// wiki.train.tokens, wiki.valid.tokens and wiki.test.tokens.
Downloaded wikitext2(const RemoteCorpus& corpus, const DownloadOptions& options);

}  // namespace heed::unpacked
