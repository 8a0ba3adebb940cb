// How a model recalls: which of its states decides about the answer, found by interchange interventions.
#pragma once

#include <string>
#include <vector>

#include "heed/attention/inspect/state_exchange.h"
#include "heed/core/io/json.h"
#include "heed/train/tasks/task.h"

namespace heed {

/// The places of a sequence at which a state is replaced.
enum class ExchangePlace {
  key,      ///< where the two keys stand
  value,    ///< where their values stand, one place behind
  question  ///< where the key is asked for, and its value must be predicted
};
/// The name of the enumerator: "key".
const char* to_string(ExchangePlace place);

/// The effect of replacing one state at one kind of place.
struct InterchangeEffect {
  StateSite site;                            ///< the state
  ExchangePlace place = ExchangePlace::key;  ///< where it was replaced
  double other = 0;                          ///< share of answers that became those of the other sequence
  double own = 0;                            ///< share of answers that stayed
};

/// How a model finds the value of a key (Arora et al. 2025, arXiv 2505.15105).
enum class RecallMechanism {
  induction,    ///< the pair is stored where the value stands, and the question finds it there
  convolution,  ///< as induction, but the short convolution of the answering block stores the pair
  lookup,       ///< the question finds the key where the key stands: key and value meet at the question
  neither       ///< the answer follows from none of these places alone
};
/// The name of the enumerator: "induction".
const char* to_string(RecallMechanism mechanism);

/// Results of interchange interventions on a model.
struct InterchangeReport {
  int64_t examples = 0;  ///< sequences with a swap
  int64_t used = 0;      ///< number of sequences that are answered right with and without the swap
  int64_t layers = 0;    ///< blocks of the model
  std::vector<InterchangeEffect> effects{};  ///< by site and place; empty where none was used
  int64_t answered_by = -1;                  ///< block that brings the answer to the question; -1: unknown
  RecallMechanism mechanism = RecallMechanism::neither;  ///< the verdict: see mechanism_of()

  /// The share of answers that became the other sequence's; 0 for a state that the model does not have.
  double other(StateKind kind, int64_t layer, ExchangePlace place) const;
};

/// The verdict on effects. The answering block is the last one whose stream does not decide yet at the
/// question
/// (`other` below 0.5). What it reads tells: the stream at the value's place and not at the key's, induction;
/// the other way round, lookup, unless its input behind the short convolution decides at the value's place
/// alone: convolution.
RecallMechanism mechanism_of(const InterchangeReport& report);

/// Replaces each state of the model at each kind of place by what it is on the sequence with swapped keys.
/// `examples`: how many test sequences. A usage error where the task has no keys with values. A WorkScope
/// shows its progress.
InterchangeReport interchange(const Task& task, Module& model, int64_t examples);

Json interchange_json(const InterchangeReport& report);         ///< every number, as JSON
std::string interchange_text(const InterchangeReport& report);  ///< tables for terminals

}  // namespace heed
