// Chooses the words of the phrasebook's sentences: nouns, people, verbs, times and places.
#pragma once

#include <string_view>
#include <vector>

#include "heed/data/synthetic/phrasebook/clause.h"
#include "heed/data/synthetic/phrasebook/lexicon.h"
#include "heed/data/synthetic/random_stream.h"

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
enum class Quality { any, graded, state };

/// Determiner, number and adjectives of a noun.
struct Company {
  Determiner determiner = Determiner::definite;  ///< the English and Italian word before the noun
  Number number = Number::singular;              ///< of the noun
  const Adjective* before = nullptr;             ///< an adjective between determiner and noun; null: none
  const Adjective* after = nullptr;              ///< an adjective behind the Italian noun; null: none
  Person owner = Person::first;                  ///< of `possessive`
  Gender owner_gender = Gender::masculine;       ///< his or her
};

/// All choices of one sentence; a pure function of the random stream.
class Speaker {
 public:
  /// Both must outlive it; choices continue the stream.
  explicit Speaker(RandomStream& random) : random_(random), words_(lexicon()) {}

  RandomStream& random() { return random_; }       ///< the stream, for choices of other kinds
  const Lexicon& words() const { return words_; }  ///< all words to choose from
  bool chance(int64_t percent) { return random_.chance(percent); }  ///< true in `percent` of 100 calls

  const Noun& noun(Tags tags);  ///< a noun that has all of these tags
  /// A noun that has all tags of a blank-separated list.
  const Noun& noun(std::string_view tags) { return noun(words_.mask(tags)); }
  /// An adjective that fits the noun; nullptr when there is none.
  const Adjective* adjective(const Noun& noun, bool before);
  /// An adjective for "... is tall", of nouns with these tags.
  const Adjective& predicate(Tags tags, Quality quality = Quality::any);
  /// A verb of this frame.
  const Verb& verb(std::string_view frame);

  /// The noun in both languages, with what `company` says.
  NounPhrase phrase(const Noun& noun, const Company& company);
  NounPhrase name();               ///< a person's name, of either gender
  NounPhrase name(Gender gender);  ///< a person's name of this gender
  NounPhrase pronoun();            ///< I, you, he, she, we, you all, they
  NounPhrase family();             ///< my brother, Anna's aunt
  /// A possible subject of a verb with these subject tags.
  NounPhrase subject(Tags tags);
  NounPhrase person() { return subject(words_.mask("person")); }  ///< a noun phrase for a person
  /// The noun as an object, with any determiner.
  NounPhrase object(const Noun& noun, const NounPhrase& subject);
  /// The noun with `the` or a possessive.
  NounPhrase known(const Noun& noun, const NounPhrase& subject);

  Tense tense(const Verb& verb);  ///< a tense that the verb allows
  /// A time phrase for the tense; often empty.
  Phrase time(Tense tense, int64_t percent);
  Phrase clock();                                               ///< at three o'clock
  const Place& place() { return random_.pick(words_.places); }  ///< any place of the lexicon
  const Place& town();                                          ///< a place to live in: Rome, Italy

  /// A clause of subject, verb and object in some tense; chooses all three.
  Clause action(const Verb& verb);

 private:
  NounPhrase determined(const Noun& noun, Company company, const NounPhrase& subject);

  RandomStream& random_;
  const Lexicon& words_;
};

}  // namespace heed::phrases
