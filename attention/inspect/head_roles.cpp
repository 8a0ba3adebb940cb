// Applies the criteria of roles to sums over a corpus.
#include "heed/attention/inspect/head_roles.h"

#include <algorithm>
#include <cmath>

#include "heed/core/error.h"

namespace heed {
namespace {

// Limits of the criteria, as roles_of() documents them.
constexpr double positional_share = 0.9, rare_share = 0.5, two_rare_share = 0.7, repeat_score = 0.4,
                 clear_margin = 0.1, majority = 0.5, uniform_share = 0.95, min_rows = 8;

double share_of(double part, double whole) { return whole > 0 ? part / whole : 0; }

std::string percent(double share) { return text(std::lround(100 * share), " %"); }

/// A role that a head has if most of its weight is on some keys: at least half of it, and clearly more than
/// equal weights put there, since of few keys one or two have half of it whatever a head does.
struct MajorityRole {
  const char* name;
  const char* where;           ///< end of the evidence: " on it"
  double share;                ///< share of the weight on these keys
  double equal_weights_share;  ///< share on these keys with equal weights
  bool holds() const { return share >= majority && share >= equal_weights_share + clear_margin; }
};

double sum_of(const std::map<std::string, double>& masses) {
  double sum = 0;
  for (const auto& [token, mass] : masses) sum += mass;
  return sum;
}

}  // namespace

std::pair<int64_t, double> favourite_offset(const HeadSums& sums) {
  const auto found = std::max_element(sums.at_offset.begin(), sums.at_offset.end());
  return {found - sums.at_offset.begin() - HeadSums::max_offset, share_of(*found, sums.rows)};
}

std::vector<HeadRole> roles_of(const HeadSums& sums, const RoleEvidence& evidence) {
  std::vector<HeadRole> out;
  if (evidence.alignment && evidence.alignment->links >= min_rows) {
    const AlignmentAgreement& found = *evidence.alignment;
    if (found.accuracy() >= found.baseline + clear_margin)
      out.push_back(
          {"alignment", text("agrees with ", percent(found.accuracy()), " of the word alignment; one ",
                             "offset does with ", percent(found.baseline))});
  }
  if (evidence.repeats && evidence.repeats->induction >= repeat_score)
    out.push_back({"induction", text("weight ", percent(evidence.repeats->induction),
                                     " on what followed the token before, in repeated sequences")});
  if (evidence.repeats && evidence.repeats->previous >= repeat_score)
    out.push_back({"previous token",
                   text("weight ", percent(evidence.repeats->previous), " there in repeated sequences")});
  if (sums.rows < min_rows) return out;  // any head has its largest weights somewhere
  if (const auto [offset, share] = favourite_offset(sums); share >= positional_share)
    out.push_back({text("positional ", offset > 0 ? "+" : "", offset),
                   text("largest weight there in ", percent(share), " of rows")});
  const double rarest = share_of(sums.rarest, sums.rare_rows),
               two_rarest = share_of(sums.two_rarest, sums.rare_rows);
  if (sums.rare_rows >= min_rows && rarest >= rare_share && two_rarest >= two_rare_share)
    out.push_back({"rare words", text("largest weight on the rarest word in ", percent(rarest),
                                      " of rows, on one of two in ", percent(two_rarest))});
  const MajorityRole by_majority[] = {
      {"special tokens", " on them", share_of(sum_of(sums.special), sums.rows),
       share_of(sums.uniform_special, sums.rows)},
      {"punctuation", " on it", share_of(sums.punctuation, sums.rows),
       share_of(sums.uniform_punctuation, sums.rows)},
      {"vertical", " in one column of each map", share_of(sums.column, sums.examples),
       share_of(sums.uniform_column, sums.examples)}};
  for (const MajorityRole& role : by_majority) {
    if (role.holds()) out.push_back({role.name, text("weight ", percent(role.share), role.where)});
  }
  if (sums.uniform_entropy > 0 && sums.entropy >= uniform_share * sums.uniform_entropy)
    out.push_back({"uniform", text("entropy ", percent(share_of(sums.entropy, sums.uniform_entropy)),
                                   " of that of equal weights")});
  return out;
}

std::vector<std::pair<std::string, double>> measures_of(const HeadSums& sums) {
  const auto per_row = [&](double sum) { return share_of(sum, sums.rows); };
  const auto [offset, share] = favourite_offset(sums);
  std::vector<std::pair<std::string, double>> out{
      {"entropy", per_row(sums.entropy)},
      {"uniform_entropy", per_row(sums.uniform_entropy)},
      {"information", per_row(sums.information)},
      {"confidence", per_row(sums.confidence)},
      {"distance", per_row(sums.distance)},
      {"offset", per_row(sums.offset)},
      {"self", share_of(sums.self, sums.self_rows)},
      {"previous", share_of(sums.previous, sums.previous_rows)},
      {"next", share_of(sums.next, sums.next_rows)},
      {"first", per_row(sums.first)},
      {"special", per_row(sum_of(sums.special))},
      {"end_from_end", share_of(sums.end_from_end, sums.end_rows)},
      {"end_from_rest", share_of(sums.end_from_rest, sums.rows - sums.end_rows)},
      {"punctuation", per_row(sums.punctuation)},
      {"same_word", per_row(sums.same_word)},
      {"column", share_of(sums.column, sums.examples)},
      {"effective_rank", share_of(sums.rank, sums.rank_maps)},
      {"favourite_offset", static_cast<double>(offset)},
      {"favourite_offset_rows", share},
      {"row_sum", per_row(sums.total)}};
  if (sums.rare_rows > 0) {
    out.emplace_back("rarest_word_rows", share_of(sums.rarest, sums.rare_rows));
    out.emplace_back("two_rarest_words_rows", share_of(sums.two_rarest, sums.rare_rows));
  }
  for (size_t width = 0; width < sums.band.size(); ++width)
    out.emplace_back(text("band_", width), per_row(sums.band[width]));
  return out;
}

}  // namespace heed
