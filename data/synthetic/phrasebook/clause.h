// Noun phrases and clauses in English and Italian at once.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>

#include "heed/data/synthetic/phrasebook/italian.h"
#include "heed/data/synthetic/phrasebook/lexicon.h"

namespace heed::phrases {

/// A noun phrase. The Italian definite article is separate, because prepositions merge with it.
struct NounPhrase {
  std::string english = {};       ///< with its determiner, but without a definite article
  std::string italian = {};       ///< without the definite article; empty for a pronoun, which Italian drops
  bool definite = false;          ///< takes the definite article
  Person person = Person::third;  ///< decides the form of the verb
  Gender gender = Gender::masculine;  ///< decides Italian articles, adjectives and participles
  Tags tags = 0;                      ///< tags of its noun; 0 for names and pronouns

  Number number() const { return number_of(person); }  ///< singular or plural, by its person
  /// The Italian with its definite article, if it takes one: "il libro".
  std::string full() const;
  /// The noun phrase in both languages, the Italian with its article.
  Phrase phrase() const { return {english, full()}; }
  /// The Italian pronoun in its place before a verb.
  italian::Clitic clitic() const { return {person, gender}; }
  /// The Italian with a preposition: dell'uomo, a Marco, nel libro.
  std::string after(italian::Preposition preposition) const;
  /// The pronoun that stands for it as a subject: he, she, it, they. Italian drops it, but the verb agrees.
  NounPhrase as_pronoun(bool animate) const;
};

/// Writes out the Italian pronoun (io, tu, lui, lei, noi, voi, loro) that a contrast needs; nouns stay.
void add_stressed_pronoun(NounPhrase& pronoun);

/// Tenses of both languages; past is the Italian passato prossimo, was_doing and used_to its imperfect.
enum class Tense { present, progressive, past, was_doing, used_to, future };
/// Modal verbs.
enum class Mood { plain, can, want, must };

/// One verb with its arguments. Empty parts are omitted.
struct Clause {
  NounPhrase subject = {};       ///< may be silent: see silent_subject
  const Verb* verb = nullptr;    ///< never null where the clause is realized
  Tense tense = Tense::present;  ///< tense of the verb in both languages
  Mood mood = Mood::plain;       ///< can, want to, must: present and past only
  bool negated = false;          ///< don't, doesn't; non
  bool question = false;         ///< English inverts; Italian keeps the order
  bool subject_last = false;     ///< the Italian subject follows the verb: in questions with a question word
  bool silent_subject = false;   ///< "... and reads it": neither language repeats the subject
  Phrase frequency = {};         ///< always, often; never makes the Italian negative
  std::optional<italian::Clitic> direct = {};    ///< Italian pronoun in place of a direct object
  std::optional<italian::Clitic> indirect = {};  ///< Italian pronoun in place of an indirect object
  bool direct_is_thing = false;                  ///< "it" rather than him or her
  Phrase object = {};                            ///< the object as words; follows the verb
  Phrase rest = {};                              ///< place, manner or recipient; follows the object
};

/// The clause in both languages, without capital and full stop.
Phrase realize(const Clause& clause);

/// An imperative for one person: "open the window", "apri la finestra"; uses object, pronouns, rest and
/// negated.
Phrase imperative(const Clause& clause);
/// A proposal: "let's open the window", "apriamo la finestra".
Phrase proposal(const Clause& clause);

/// Concatenates phrases in both languages; an empty one adds nothing.
Phrase join(std::initializer_list<Phrase> phrases);
/// Concatenates words of one language with blanks, but none after an apostrophe; an empty one adds nothing.
std::string join(std::initializer_list<std::string_view> words);
std::string join(std::string_view left, std::string_view right);  ///< join({left, right})
/// The adjective after a form of to be.
Phrase predicate_adjective(const Adjective& adjective, const NounPhrase& subject);

/// True if the English could be present or past: "they read".
bool has_ambiguous_tense(const Clause& clause);

/// Capitalises the first letter and appends the mark.
std::string sentence(std::string words, char mark);

}  // namespace heed::phrases
