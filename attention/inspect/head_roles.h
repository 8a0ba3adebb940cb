// Names what an attention head does, by published criteria.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "heed/attention/inspect/corpus_head_measures.h"

namespace heed {

/// Agreement of a cross-attention head with a word alignment.
struct AlignmentAgreement {
  double hits = 0;  ///< number of linked target words with the largest weight on a source word linked to them
  double links = 0;     ///< number of linked target words
  double baseline = 0;  ///< share of links at the most frequent relative offset, 0 to 1
  /// The share hits / links; 0 without links.
  double accuracy() const { return links > 0 ? hits / links : 0; }
};

/// A role of a head, with the numbers that show it.
struct HeadRole {
  std::string name;      ///< "positional -1", "rare words", "alignment"
  std::string evidence;  ///< "largest weight there in 97 % of rows"
};

/// Evidence of roles other than sums over a corpus.
struct RoleEvidence {
  std::optional<RepeatScores> repeats{};          ///< scores of a causal model on repeated sequences
  std::optional<AlignmentAgreement> alignment{};  ///< agreement of cross-attention with the word alignment
};

/// The roles of a head, the clearest first; none where no criterion holds. Positional: the largest weight is
/// at one relative offset in at least 90 % of rows; rare words: on the rarest word in at least 50 %, on one
/// of the two rarest in at least 70 % of the rows in which one word is rarer than all others (Voita et al.
/// 2019, arXiv 1905.09418). Alignment: agrees with the word alignment at least 10 points more often than the
/// most frequent offset does (their criterion for relations). Induction and previous token: scores of at
/// least 0.4 on repeated sequences (Olsson et al. 2022, arXiv 2209.11895, name no limit). Special tokens,
/// punctuation: at least half of the weight (Clark et al. 2019, arXiv 1906.04341). Vertical: at least half of
/// the weight in one column (Conti et al.). Uniform: entropy of at least 95 % of that of equal weights. Two
/// conditions are ours: a role needs 8 rows (or links of an alignment), and half of the weight counts only
/// where it is 10 points above what equal weights put there, since one of few tokens has half of it anyway.
std::vector<HeadRole> roles_of(const HeadSums& sums, const RoleEvidence& evidence = {});

/// Name and value of every measure of a head, a mean per row or per map as HeadSums says, in the order of
/// tables. Measures of rare words are left out where no query sees a rarest word.
std::vector<std::pair<std::string, double>> measures_of(const HeadSums& sums);

/// The relative offset at which a head's largest weight is most often, and the share of rows.
std::pair<int64_t, double> favourite_offset(const HeadSums& sums);

}  // namespace heed
