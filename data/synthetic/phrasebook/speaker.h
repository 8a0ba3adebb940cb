// Chooses what the phrasebook's sentences are about: nouns with company, people, verbs, times and places.
#pragma once

#include <string_view>
#include <vector>

#include "data/dice.h"
#include "data/phrasebook_clause.h"
#include "data/phrasebook_lexicon.h"

namespace heed::phrases {

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

/// Which adjectives will do: any, those with a comparative, those that may be a reason.
enum class Quality { any, graded, state };

/// What stands around a noun.
struct Company {
  Determiner determiner = Determiner::definite;
  Number number = Number::singular;
  const Adjective* before = nullptr;
  const Adjective* after = nullptr;
  Person owner = Person::first;             ///< of `possessive`
  Gender owner_gender = Gender::masculine;  ///< his or her
};

/// All choices of one sentence; the same dice give the same sentence.
class Speaker {
 public:
  explicit Speaker(Dice& dice) : dice_(dice), words_(lexicon()) {}

  Dice& dice() { return dice_; }
  const Lexicon& words() const { return words_; }
  bool chance(int64_t percent) { return dice_.chance(percent); }

  const Noun& noun(Tags tags);
  const Noun& noun(std::string_view tags) { return noun(words_.mask(tags)); }
  /// An adjective that goes with the noun; nullptr when there is none.
  const Adjective* adjective(const Noun& noun, bool before);
  const Adjective& predicate(Tags tags, Quality quality = Quality::any);
  /// A verb of the frame.
  const Verb& verb(std::string_view frame);

  NounPhrase phrase(const Noun& noun, const Company& company);
  NounPhrase name();
  NounPhrase name(Gender gender);
  NounPhrase pronoun();  ///< I, you, he, she, we, you all, they
  NounPhrase family();   ///< my brother, Anna's aunt
  /// Somebody who may do what a verb with these subjects says.
  NounPhrase subject(Tags tags);
  NounPhrase person() { return subject(words_.mask("person")); }
  /// The noun as the object of somebody's action, with any determiner.
  NounPhrase object(const Noun& noun, const NounPhrase& subject);
  /// The noun with `the` or a possessive.
  NounPhrase known(const Noun& noun, const NounPhrase& subject);

  Tense tense(const Verb& verb);
  /// Words for when it happens, fit for the tense; often none.
  Phrase time(Tense tense, int64_t percent);
  Phrase clock();  ///< at three o'clock
  const Place& place() { return dice_.pick(words_.places); }
  const Place& town();  ///< a place to live in: Rome, Italy

  /// somebody + verb + object, in some tense; the object is chosen too.
  Clause action(const Verb& verb);

 private:
  NounPhrase determined(const Noun& noun, Company company, const NounPhrase& subject);

  Dice& dice_;
  const Lexicon& words_;
};

}  // namespace heed::phrases
