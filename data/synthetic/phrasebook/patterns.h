// The kinds of sentences the phrasebook is made of.
#pragma once

#include <span>

#include "data/parallel_text.h"
#include "data/phrasebook_speaker.h"

namespace heed::phrases {

/// Both sides as sentences that end in the mark.
inline Pair finished(const Phrase& words, char mark = '.') {
  return {sentence(words.english, mark), sentence(words.italian, mark)};
}

/// Whether this is said otherwise, or hard to understand: "did not buy some bread", "every man does not".
inline bool odd(const Clause& clause) {
  const bool no = clause.negated || clause.frequency.english == "never";
  const std::string& who = clause.subject.english;
  return no &&
         (clause.object.english.starts_with("some ") || who.starts_with("every ") || who.starts_with("all "));
}

/// Whether the noun phrase has the adjective already: "the long language is long".
inline bool says(const NounPhrase& phrase, const Adjective& word) {
  return (" " + phrase.english + " ").find(" " + word.word.english + " ") != std::string::npos;
}

/// One kind of sentence, and how often it comes beside the others.
struct Pattern {
  int64_t weight;
  Pair (*make)(Speaker&);  ///< an empty pair when the choices do not go together
};

std::span<const Pattern> simple_patterns();  ///< of one clause
std::span<const Pattern> joined_patterns();  ///< of two clauses, and comparisons
std::span<const Pattern> asked_patterns();   ///< questions with where, what, who, which, how many

/// A sentence of any kind; the same dice give the same pair.
Pair compose(Dice& dice);

}  // namespace heed::phrases
