// Italian word forms for the phrasebook.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "heed/data/synthetic/phrasebook/lexicon.h"

namespace heed::phrases::italian {

/// The finite tenses that finite() forms.
enum class Tense { present, imperfect, future };
/// Prepositions that merge with articles: di, a, da, in, su.
enum class Preposition { of, to, from, in, on, none };

/// A clitic pronoun. Its gender matters in the third person only.
struct Clitic {
  Person person = Person::third;      ///< mi, ti, lo or la, ci, vi, li or le
  Gender gender = Gender::masculine;  ///< tells lo from la, li from le
};

/// The pronouns of one verb.
struct Clitics {
  std::optional<Clitic> direct = {};     ///< pronoun of the direct object: lo
  std::optional<Clitic> indirect = {};   ///< pronoun of the indirect object: gli
  std::optional<Person> reflexive = {};  ///< person of the reflexive pronoun: si
};

std::string plural(std::string_view noun, Gender gender);  ///< libro: libri, amica: amiche

// Articles and demonstratives depend on the beginning of the next word.
std::string definite(Gender gender, Number number, std::string_view next);  ///< il lo l' la i gli le
std::string indefinite(Gender gender, std::string_view next);               ///< un uno una un'
/// A preposition joined with the definite article: nel, sullo, dell', alle. `next` is the word that follows.
std::string articulated(Preposition preposition, Gender gender, Number number, std::string_view next);
/// A preposition without an article: di, a (ad before a), da, in, su.
std::string plain(Preposition preposition, std::string_view next);
std::string conjunction(std::string_view next);  ///< e, ed before e
std::string demonstrative_this(Gender gender, Number number,
                               std::string_view next);  ///< questo, quest', questi
/// The demonstrative "that": quel, quello, quell', quei, quegli.
std::string demonstrative_that(Gender gender, Number number, std::string_view next);
std::string possessive(Person owner, Gender gender, Number number);  ///< mio, tue, suoi, loro

/// An adjective behind its noun or after essere, agreeing with the noun.
std::string adjective(const Adjective& adjective, Gender gender, Number number);
/// An adjective before its noun, where bello and buono are shortened: bel, begli, buon.
std::string adjective_before(const Adjective& adjective, Gender gender, Number number, std::string_view next);

/// Fills in the empty forms of a verb by the rules for its infinitive.
void complete(ItalianVerb& verb);
/// A finite form: compro, compravi, comprerà.
std::string finite(const ItalianVerb& verb, Tense tense, Person person);
/// The participle, agreeing with a noun.
std::string participle(const ItalianVerb& verb, Gender gender, Number number);
/// The gerund: comprando.
std::string gerund(const ItalianVerb& verb);
std::string imperative(const ItalianVerb& verb);  ///< the imperative for tu: compra

/// The pronouns before a finite verb: "me lo", "gliel'" when `next` is a form of avere, "si".
std::string proclitics(const Clitics& clitics, std::string_view next);
/// The infinitive with its pronouns: leggerlo, darmelo, alzarsi.
std::string infinitive(const ItalianVerb& verb, const Clitics& clitics = {});
/// The imperative with its pronouns: leggilo, dammi, dagli.
std::string imperative(const ItalianVerb& verb, const Clitics& clitics);

}  // namespace heed::phrases::italian
