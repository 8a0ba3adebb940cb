// Base of the six tasks of MAD.
#pragma once

#include "heed/data/synthetic/mad.h"
#include "heed/train/tasks/synthetic/synthetic_task.h"

namespace heed {

/// A task of MAD: its accuracy is averaged as there, and its test has 1,280 sequences.
class MadTask : public SyntheticTask {
 protected:
  /// `vocabulary`, `length` and `num_examples`: the basis of the task (athms/mad-lab, configs/tasks/).
  MadTask(int64_t vocabulary, int64_t length, int64_t num_examples)
      : SyntheticTask({.vocabulary = vocabulary,
                       .length = length,
                       .num_examples = num_examples,
                       .validation = 1280,
                       .test_size = 1280}) {}

  AccuracyKind accuracy_kind() const final { return AccuracyKind::tokens_of_batches; }
  /// The settings of a sequence of `length`.
  MadOptions mad_options(int64_t length) const {
    MadOptions out = mad_;
    out.vocabulary = options_.vocabulary;
    out.length = length;
    return out;
  }
  /// What a sequence of a split is for.
  static MadUse use_of(Split split) { return split == Split::training ? MadUse::training : MadUse::test; }
  /// A usage error unless data.length is even.
  void check_even_length() const {
    if (options_.length % 2 != 0)
      fail("data.length = ", options_.length, ". It must be even: a sequence consists of pairs.");
  }
  /// A usage error unless data.vocabulary is at least `min`, which leaves room for `needed`.
  void check_vocabulary(int64_t min, const std::string& needed) const {
    if (options_.vocabulary < min)
      fail("data.vocabulary = ", options_.vocabulary, ". It must be at least ", min, ", for ", needed, ".");
  }

  MadOptions mad_;  ///< vocabulary and length are those of options_
};

}  // namespace heed
