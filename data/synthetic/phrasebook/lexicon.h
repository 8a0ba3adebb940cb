// The words of the phrasebook: nouns, adjectives, verbs and set phrases in both languages.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heed::phrases {

/// Grammatical gender.
enum class Gender { masculine, feminine };
/// Grammatical number.
enum class Number { singular, plural };

/// I, you, he or she or it, we, you all, they.
enum class Person { first, second, third, first_plural, second_plural, third_plural };

/// All persons.
inline constexpr std::array people = {Person::first,        Person::second,        Person::third,
                                      Person::first_plural, Person::second_plural, Person::third_plural};

/// The number of a person.
constexpr Number number_of(Person person) {
  return person < Person::first_plural ? Number::singular : Number::plural;
}
/// The third person of a number.
constexpr Person third(Number number) {
  return number == Number::singular ? Person::third : Person::third_plural;
}

/// A set of topics of a word, or of words that go with it: one bit per tag of the tables.
using Tags = uint64_t;

/// A text in both languages.
struct Phrase {
  std::string english;  ///< without capital and full stop
  std::string italian;  ///< of the same meaning, likewise
};

/// A noun in both languages.
struct Noun {
  Phrase singular;                           ///< in both languages, without article
  Phrase plural;                             ///< in both languages, without article
  Gender gender = Gender::masculine;         ///< of the Italian singular
  Gender plural_gender = Gender::masculine;  ///< differs for l'uovo, le uova
  Tags tags = 0;                             ///< topics of the noun, for verbs and adjectives that fit it
};

/// An adjective in both languages.
struct Adjective {
  Phrase word;          ///< the Italian masculine singular
  bool before = false;  ///< precedes its noun
  bool fixed = false;   ///< invariable
  bool graded = true;   ///< has a comparative
  bool state = false;   ///< of a person; can be a reason
  Tags tags = 0;        ///< of nouns that it fits
};

/// An English verb's base form and past.
struct EnglishVerb {
  std::string base;  ///< "buy"
  std::string past;  ///< "bought"
};

/// An Italian verb: its infinitive and irregular forms.
struct ItalianVerb {
  std::string infinitive;  ///< without -si
  std::string participle;  ///< masculine singular
  std::string future;      ///< stem: `comprer`
  std::string stem;        ///< of imperfect and gerund when irregular: `bev`
  std::string imperative;  ///< of tu, when irregular: `da'`
  /// Six forms in the order of `people`, when irregular; else empty strings.
  std::array<std::string, 6> present;
  bool inchoative = false;   ///< finisco
  bool with_essere = false;  ///< the passato prossimo takes essere: sono andato
  bool reflexive = false;    ///< takes a reflexive pronoun: si alza
};

/// A verb in both languages, its sentence frame, and tags of its subjects and objects.
struct Verb {
  /// What follows the verb: "do" an object, "go" a place, and so on; a line of the tables.
  std::string frame = {};
  EnglishVerb english = {};  ///< its forms in English
  ItalianVerb italian = {};  ///< its forms in Italian
  bool stative = false;      ///< no progressive; its past is the imperfect
  bool first = false;        ///< can start a chain of actions
  bool unwilled = false;     ///< neither progressive nor imperative
  Tags subjects = 0;         ///< tags of nouns that can be its subject
  Tags objects = 0;          ///< tags of nouns that can be its object
};

/// A place with prepositions: to, at and from it.
struct Place {
  Phrase to;    ///< "to the station"
  Phrase at;    ///< "at the station"
  Phrase from;  ///< "from the station"
};

/// A time phrase and the tenses it fits.
struct Time {
  Phrase words;        ///< "every day", "yesterday", without capital
  std::string tenses;  ///< letters: h habitual, p past, u used to, f future, n now
};

/// A person's name.
struct Name {
  std::string word;                   ///< the same in both languages
  Gender gender = Gender::masculine;  ///< of the person, for pronouns and participles
};

/// The words of the phrasebook.
struct Lexicon {
  std::vector<std::string> tags;      ///< names of the tags; tag i is bit i of Tags
  std::vector<Noun> nouns;            ///< in the order of the tables
  std::vector<Adjective> adjectives;  ///< in the order of the tables
  std::vector<Verb> verbs;            ///< in the order of the tables, all frames
  std::vector<Place> places;          ///< in the order of the tables
  std::vector<Time> times;            ///< in the order of the tables
  std::vector<Phrase> manners;        ///< adverbs such as "slowly"
  std::vector<Phrase> numbers;        ///< numerals from two on, for `counted`
  std::vector<Name> names;            ///< in the order of the tables

  /// The bits of the tags in a blank-separated list.
  Tags mask(std::string_view list) const;
  /// The nouns, or the verbs of a frame, as pointers into this lexicon.
  std::vector<const Noun*> nouns_of(Tags tags) const;
  /// The verbs of one frame; see Verb::frame.
  std::vector<const Verb*> verbs_of(std::string_view frame) const;
  /// The only verb of a frame, or the one with this infinitive.
  const Verb& verb(std::string_view frame, std::string_view infinitive = {}) const;
};

/// The lexicon, built from the tables at the first call.
const Lexicon& lexicon();

}  // namespace heed::phrases
