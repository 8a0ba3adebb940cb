// Chooses the words of the phrasebook's sentences: nouns, people, verbs, times and places.
#pragma once

#include <string_view>
#include <vector>

#include "heed/data/synthetic/counter_rng.h"
#include "heed/data/synthetic/phrasebook/clause.h"
#include "heed/data/synthetic/phrasebook/lexicon.h"

namespace heed::phrases {

/// What precedes a noun: an article, possessive, demonstrative or quantity.
enum class Determiner {
  definite,
  indefinite,
  possessive,
  of_person,
  these,
  those,
  counted,
  many,
  some,
  all,
  every
};

/// Which adjectives fit: any, those with a comparative, those that can be a reason.
enum class Quality { any, gradable, state };

/// Determiner, number and adjectives of a noun.
struct NounModifiers {
  Determiner determiner = Determiner::definite;  ///< the English and Italian word before the noun
  Number number = Number::singular;              ///< whether the noun is singular or plural
  const Adjective* before = nullptr;             ///< an adjective between determiner and noun; null: none
  const Adjective* after = nullptr;              ///< an adjective behind the Italian noun; null: none
  Person owner = Person::first;                  ///< the owner, where the determiner is `possessive`
  Gender owner_gender = Gender::masculine;       ///< tells his from her
};

/// Makes all random choices of one sentence, which the random numbers alone determine.
class WordChooser {
 public:
  /// `rng` must outlive it; choices continue its sequence.
  explicit WordChooser(CounterRng& rng) : rng_(rng), words_(lexicon()) {}

  CounterRng& rng() { return rng_; }                             ///< for choices of other kinds
  bool chance(int64_t percent) { return rng_.chance(percent); }  ///< true in `percent` of 100 calls

  const Noun& noun(Tags tags);  ///< a noun that has one of these tags
  /// A noun that has one of the tags of a blank-separated list.
  const Noun& noun(std::string_view tags) { return noun(words_.mask(tags)); }
  /// An adjective for before or after the noun; null where none fits.
  const Adjective* adjective(const Noun& noun, bool before);
  /// An adjective for "... is tall", of nouns with one of these tags.
  const Adjective& predicate_adjective(Tags tags, Quality quality = Quality::any);
  /// A verb of this frame.
  const Verb& verb(std::string_view frame) { return *rng_.pick(words_.verbs_of(frame)); }

  /// The noun in both languages, with its modifiers.
  NounPhrase phrase(const Noun& noun, const NounModifiers& modifiers);
  NounPhrase name();               ///< a person's name, of either gender
  NounPhrase name(Gender gender);  ///< a person's name of this gender
  NounPhrase pronoun();            ///< I, you, he, she, we, you all, they
  NounPhrase family();             ///< my brother, Anna's aunt
  /// A possible subject of a verb with these subject tags.
  NounPhrase subject(Tags tags);
  NounPhrase person() { return subject(words_.mask("person")); }  ///< a subject that is a person
  /// The noun as the object of a clause with this subject, with any determiner.
  NounPhrase object(const Noun& noun, const NounPhrase& subject);
  /// The noun as an object, with `the` or the possessive of the subject.
  NounPhrase definite_or_possessive(const Noun& noun, const NounPhrase& subject);

  Tense tense(const Verb& verb);  ///< a tense that the verb allows
  /// A time phrase for the tense in `percent` of 100 calls, else an empty one.
  Phrase time(Tense tense, int64_t percent);
  Phrase clock();                                            ///< at three o'clock
  const Place& place() { return rng_.pick(words_.places); }  ///< any place of the lexicon
  const Place& town();                                       ///< a place to live in: Rome, Italy

  /// A clause of subject, verb and object in some tense; chooses all three.
  Clause action(const Verb& verb);

 private:
  /// The noun as an object, with the subject as owner and with random adjectives.
  NounPhrase with_adjectives(const Noun& noun, NounModifiers modifiers, const NounPhrase& subject);

  CounterRng& rng_;
  const Lexicon& words_;
};

}  // namespace heed::phrases
