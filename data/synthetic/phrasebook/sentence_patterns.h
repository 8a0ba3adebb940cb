// The sentence patterns of the phrasebook.
#pragma once

#include <span>

#include "heed/data/synthetic/phrasebook/word_choice.h"
#include "heed/data/text/parallel_text.h"

namespace heed::phrases {

/// Both sides as sentences with this mark.
inline Pair sentence_pair(const Phrase& words, char mark = '.') {
  return {sentence(words.english, mark), sentence(words.italian, mark)};
}

/// The clause as a sentence: a question or a statement.
inline Pair sentence_pair(const Clause& clause) {
  return sentence_pair(realize(clause), clause.question ? '?' : '.');
}

/// True for unidiomatic or ambiguous clauses: "did not buy some bread", "every man does not".
inline bool is_unidiomatic(const Clause& clause) {
  const bool no = clause.negated || clause.frequency.english == "never";
  const std::string& who = clause.subject.english;
  return no &&
         (clause.object.english.starts_with("some ") || who.starts_with("every ") || who.starts_with("all "));
}

/// True if the noun phrase contains the adjective, as in "the long language is long".
inline bool contains(const NounPhrase& phrase, const Adjective& word) {
  return (" " + phrase.english + " ").find(" " + word.word.english + " ") != std::string::npos;
}

/// A sentence pattern and its relative frequency.
struct Pattern {
  int64_t weight;              ///< share of the pattern among all, relative to the sum of weights
  Pair (*make)(WordChooser&);  ///< returns an empty pair when the choices do not fit
};

std::span<const Pattern> simple_patterns();  ///< patterns of one clause
std::span<const Pattern> joined_patterns();  ///< patterns of two clauses, and comparisons
std::span<const Pattern> asked_patterns();   ///< questions with where, what, who, which, how many

/// A random sentence of any pattern; a pure function of the random stream.
Pair compose(CounterRng& rng);

}  // namespace heed::phrases
