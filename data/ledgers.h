// Long documents made by us whose label depends on words far apart: the embedded data of Text and Retrieval.
#pragma once

#include <cstdint>

#include "data/sequences.h"
#include "data/told.h"

namespace heed {

/// How long a document is, in bytes. Both at least 600.
struct LedgerLengths {
  int64_t shortest = 800, longest = 4000;
};

/// `count` documents. A first line names the person whose word counts; somewhere below, among lines of verse,
/// that person and seven others each call something good or poor, four of the eight calling it good. The
/// label is what the named person calls it (1: good), so counting words, or runs of bytes, tells nothing. The
/// same arguments give the same documents, for any number of threads. In all three `told` hears how many are
/// made.
Sequences ledgers(int64_t count, uint64_t seed, const LedgerLengths& lengths = {}, const Told& told = {});

/// `count` pairs of documents, each of which names its house once, anywhere among lines of verse. The label
/// is 1 when both name the same one; there are sixteen.
Sequences paired_ledgers(int64_t count, uint64_t seed, const LedgerLengths& lengths = {},
                         const Told& told = {});

/// `count` images of 32 x 32 grey pixels: a digit, bright or dark, on ground of another grey with a slope and
/// grain. The embedded data of Image.
Sequences grounded_digits(int64_t count, uint64_t seed, const Told& told = {});

}  // namespace heed
