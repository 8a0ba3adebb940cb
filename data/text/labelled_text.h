// Texts with labels: IMDb reviews, and pairs of papers of the ACL Anthology Network.
#pragma once

#include <array>
#include <string_view>

#include "data/sequences.h"

namespace heed {

/// Reviews, one a line: label (0 negative, 1 positive), rating, number, text, between tabs; the text is the
/// rest of the line, tabs included. Fault::data naming the line.
Sequences parse_reviews(std::string_view all, std::string_view name);

/// IMDb (Maas et al. 2011) out of a folder: train.tsv and test.tsv as above, with or without .gz, or the
/// publisher's train/{neg,pos}/*.txt and test/{neg,pos}/*.txt.
Sequences read_imdb(const Path& folder, bool test);

/// Pairs of documents, one a line: label (0 or 1, also as 0.0 or 1.0), two numbers, two texts, between tabs.
/// Only the first `longest` bytes of a text are kept. Fault::data naming the line.
Sequences parse_document_pairs(std::string_view all, std::string_view name, int64_t longest = 10000);

/// new_aan_pairs.PART.tsv of the Long Range Arena's release, PART being train, eval or test; or PART.tsv.
/// With or without .gz.
Sequences read_document_pairs(const Path& folder, std::string_view part);

/// Writes train.tsv and test.tsv as read_imdb() reads them. Texts must have no line ends.
void write_reviews(const Path& folder, const Sequences& train, const Sequences& test);

/// Writes new_aan_pairs.train.tsv, .eval.tsv and .test.tsv. Texts must have neither tabs nor line ends.
void write_document_pairs(const Path& folder, const std::array<Sequences, 3>& splits);

}  // namespace heed
