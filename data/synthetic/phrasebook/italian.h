// Italian word forms for the phrasebook.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "data/phrasebook_lexicon.h"

namespace heed::phrases::italian {

enum class Tense { present, imperfect, future };
enum class Preposition { of, to, from, in, on, none };

/// A clitic pronoun: whom it stands for. The gender matters in the third person only.
struct Clitic {
  Person person = Person::third;
  Gender gender = Gender::masculine;
};

/// The pronouns of one verb.
struct Clitics {
  std::optional<Clitic> direct = {}, indirect = {};
  std::optional<Person> reflexive = {};
};

/// With a blank between, but none after an apostrophe; an empty part adds nothing.
std::string join(std::string_view left, std::string_view right);

std::string plural(std::string_view noun, Gender gender);  ///< libro: libri, amica: amiche

// What stands before a noun or an adjective takes its form from the beginning of the next word.
std::string definite(Gender gender, Number number, std::string_view next);  ///< il lo l' la i gli le
std::string indefinite(Gender gender, std::string_view next);               ///< un uno una un'
/// The preposition with the definite article: nel, sullo, dell', alle.
std::string articulated(Preposition preposition, Gender gender, Number number, std::string_view next);
/// Without an article: di, a (ad before a), da, in, su.
std::string plain(Preposition preposition, std::string_view next);
std::string conjunction(std::string_view next);                             ///< e, ed before e
std::string this_one(Gender gender, Number number, std::string_view next);  ///< questo, quest', questi
std::string that_one(Gender gender, Number number,
                     std::string_view next);                         ///< quel, quello, quell', quei, quegli
std::string possessive(Person owner, Gender gender, Number number);  ///< mio, tue, suoi, loro

/// After the noun or after a form of essere.
std::string adjective(const Adjective& adjective, Gender gender, Number number);
/// Before the noun, where bello and buono are shortened: bel, begli, buon.
std::string adjective_before(const Adjective& adjective, Gender gender, Number number, std::string_view next);

/// Fills the forms that follow from the infinitive; those that are set stay.
void complete(ItalianVerb& verb);
std::string finite(const ItalianVerb& verb, Tense tense, Person person);
std::string participle(const ItalianVerb& verb, Gender gender, Number number);
std::string gerund(const ItalianVerb& verb);
std::string imperative(const ItalianVerb& verb);  ///< of tu

/// Before a finite verb: "me lo", "gliel'" when the word `next` is a form of avere, "si".
std::string proclitics(const Clitics& clitics, std::string_view next);
/// The infinitive with what hangs on it: leggerlo, darmelo, alzarsi.
std::string infinitive(const ItalianVerb& verb, const Clitics& clitics = {});
/// The imperative with what hangs on it: leggilo, dammi, dagli.
std::string imperative(const ItalianVerb& verb, const Clitics& clitics);

}  // namespace heed::phrases::italian
