// Noun phrases and clauses that are said in English and Italian at once.
#pragma once

#include <optional>
#include <string>

#include "data/phrasebook_italian.h"
#include "data/phrasebook_lexicon.h"

namespace heed::phrases {

/// Somebody or something. The Italian definite article is kept apart, because prepositions merge with it.
struct NounPhrase {
  std::string english = {};
  std::string italian = {};  ///< without the definite article; empty for a pronoun, which Italian drops
  bool definite = false;     ///< takes the definite article
  Person person = Person::third;
  Gender gender = Gender::masculine;
  Tags tags = 0;  ///< of its noun; 0 for names and pronouns

  Number number() const { return number_of(person); }
  /// With its article, if it has one.
  std::string full() const;
  /// With a preposition: dell'uomo, a Marco, nel libro.
  std::string after(italian::Preposition preposition) const;
  /// The same again as a pronoun subject: he, she, it, they; Italian says nothing but agrees.
  NounPhrase again(bool animate) const;
};

/// With io, tu, lui, lei, noi, voi, loro said, where people are set against each other.
void stress(NounPhrase& pronoun);

enum class Tense { present, progressive, past, was_doing, used_to, future };
enum class Mood { plain, can, want, must };

/// One verb with its company. Words that are not set are not said.
struct Clause {
  NounPhrase subject = {};
  const Verb* verb = nullptr;
  Tense tense = Tense::present;
  Mood mood = Mood::plain;  ///< can, want to, must: present and past only
  bool negated = false;
  bool question = false;        ///< English inverts; Italian keeps the order
  bool subject_last = false;    ///< Italian: after the verb, as questions with a question word have it
  bool silent_subject = false;  ///< "... and reads it": neither language repeats the subject
  Phrase frequency = {};        ///< always, often; never makes the Italian negative
  std::optional<italian::Clitic> direct = {}, indirect = {};
  bool direct_is_thing = false;  ///< "it" rather than him or her
  Phrase object = {};            ///< after the verb
  Phrase rest = {};              ///< after the object
};

/// The clause in both languages, without capital and full stop.
Phrase say(const Clause& clause);

/// A command to one person: "open the window", "apri la finestra"; uses object, pronouns, rest and negated.
Phrase command(const Clause& clause);
/// A proposal: "let's open the window", "apriamo la finestra".
Phrase proposal(const Clause& clause);

/// Joined side by side in both languages.
Phrase join(const Phrase& left, const Phrase& right);
/// The adjective as it follows a form of to be.
Phrase predicate(const Adjective& adjective, const NounPhrase& subject);

/// Whether English leaves open if this is present or past: "they read".
bool unclear_past(const Clause& clause);

/// With a capital at the beginning and the mark at the end.
std::string sentence(std::string words, char mark);

}  // namespace heed::phrases
