// Labelled texts: IMDb reviews, and pairs of papers of the ACL Anthology Network.
#pragma once

#include <array>
#include <string_view>

#include "heed/data/text/labelled_sequences.h"

namespace heed {

/// Parses reviews, one a line: label (0 negative, 1 positive), rating, number, text, separated by tabs; the
/// text is the rest of the line, tabs included. Fault::data that names the line.
Sequences parse_reviews(std::string_view content, std::string_view name);

/// Reads IMDb (Maas et al. 2011) from a folder: train.tsv and test.tsv as above, also with .gz, or the
/// publisher's train/{neg,pos}/*.txt and test/{neg,pos}/*.txt, which are taken in turn: negative, positive.
Sequences read_imdb(const Path& folder, bool test);

/// Parses pairs of documents, one a line: label (0 or 1, also as 0.0 or 1.0), two numbers, two texts,
/// separated by tabs. Keeps the first `max_bytes` bytes of a text. Fault::data that names the line.
Sequences parse_document_pairs(std::string_view content, std::string_view name, int64_t max_bytes = 10000);

/// Reads new_aan_pairs.PART.tsv of the Long Range Arena's release (PART: train, eval or test), or PART.tsv,
/// also with .gz.
Sequences read_document_pairs(const Path& folder, std::string_view part);

/// Writes train.tsv and test.tsv for read_imdb(). Texts must not contain line ends.
void write_reviews(const Path& folder, const Sequences& train, const Sequences& test);

/// Writes new_aan_pairs.train.tsv, .eval.tsv and .test.tsv. Texts must not contain tabs or line ends.
void write_document_pairs(const Path& folder, const std::array<Sequences, 3>& splits);

}  // namespace heed
