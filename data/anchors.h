// What little knowledge scores on labelled sequences: the numbers that an accuracy stands beside.
#pragma once

#include <string>
#include <vector>

#include "data/sequences.h"

namespace heed {

/// Something that may be known of an example, and how often that gives the label.
struct Anchor {
  std::string knowledge;
  double accuracy = 0;
};

/// Always the commonest label of `known`, scored on `asked`.
double majority(const Sequences& known, const Sequences& asked);

/// A linear model of which runs of `length` bytes occur (naive Bayes with one added to each count, runs put
/// into 2^18 buckets by a hash where there are more), counted on `known`, scored on `asked`. With `times`,
/// how often a run occurs counts too: of length 1, the histogram of the bytes.
double byte_runs(const Sequences& known, const Sequences& asked, int64_t length, bool times);

/// Pairs only: a threshold on the cosine of both histograms of bytes, chosen on `known`, scored on `asked`.
double histogram_cosine(const Sequences& known, const Sequences& asked);

/// "majority 0.5, 4-byte runs 0.83".
std::string to_string(const std::vector<Anchor>& anchors);

}  // namespace heed
