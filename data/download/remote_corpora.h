// How each known corpus is unpacked and compared with what is published of it.
#pragma once

#include "data/download.h"

/// Each fetches the files of its corpus; Fault::data, before a file gets its name, when they are not what the
/// corpus is made of.
namespace heed::unpacked {

/// CIFAR-10's binary files, out of their archive: data_batch_1.bin to data_batch_5.bin, test_batch.bin.
Downloaded cifar10(const RemoteCorpus& corpus, const DownloadOptions& options);
/// IMDb's 50,000 labelled reviews, out of their archive of one file each: train.tsv and test.tsv, rows of
/// label, rating, number and text in the order of the numbers.
Downloaded imdb(const RemoteCorpus& corpus, const DownloadOptions& options);
/// The four idx files as they are.
Downloaded mnist(const RemoteCorpus& corpus, const DownloadOptions& options);
/// Both sides of the Moses pair.
Downloaded opus_books(const RemoteCorpus& corpus, const DownloadOptions& options);
/// The text as it is.
Downloaded tinyshakespeare(const RemoteCorpus& corpus, const DownloadOptions& options);
/// wiki.train.tokens, wiki.valid.tokens and wiki.test.tokens.
Downloaded wikitext2(const RemoteCorpus& corpus, const DownloadOptions& options);

}  // namespace heed::unpacked
