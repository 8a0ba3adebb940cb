// The words of the phrasebook: nouns, adjectives, verbs and set phrases in both languages, from the tables
// beside it.
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

/// The columns of persons.tsv: English pronouns, Italian pronouns and possessives, endings of Italian verbs.
enum class Form {
  subject,              // English: he
  object,               // English: him
  possessive,           // English: his
  stressed_subject,     // Italian: lui, io
  stressed_object,      // Italian: lui, me
  direct,               // the clitic lo
  indirect,             // the clitic gli
  reflexive,            // the clitic si
  possessive_singular,  // four columns: suo, sua, suoi, sue
  present_are = 12,     // ending of the present of comprare: compr-a
  present_ere,
  present_ire,
  imperfect,            // compra-va
  future,               // comprer-à
  imperfect_of_essere,  // era
  count
};

/// The form for a person; the gender matters for the third persons only. `offset` is added to the column.
const std::string& form(Form column, Person person, Gender gender = Gender::masculine, size_t offset = 0);

/// A set of topics of a noun, or of nouns that go with a word: one bit per tag of the tables.
using Tags = uint64_t;

/// A text in both languages, without capital and full stop.
struct Phrase {
  std::string english;  ///< the English text
  std::string italian;  ///< its translation
};

/// A noun in both languages.
struct Noun {
  Phrase singular;                           ///< without article
  Phrase plural;                             ///< without article
  Gender gender = Gender::masculine;         ///< gender of the Italian singular
  Gender plural_gender = Gender::masculine;  ///< differs for l'uovo, le uova
  Tags tags = 0;                             ///< topics, for verbs and adjectives that fit it
};

/// An adjective in both languages.
struct Adjective {
  Phrase word;              ///< the Italian masculine singular
  bool precedes = false;    ///< stands before its Italian noun
  bool invariable = false;  ///< has one Italian form
  bool gradable = true;     ///< has a comparative
  bool state = false;       ///< describes a state of a person; can be a reason
  Tags tags = 0;            ///< tags of nouns that it fits
};

/// An English verb.
struct EnglishVerb {
  std::string base;  ///< "buy"
  std::string past;  ///< "bought"
};

/// An Italian verb: its infinitive and irregular forms.
struct ItalianVerb {
  std::string infinitive;              ///< without -si
  std::string participle;              ///< masculine singular
  std::string future;                  ///< stem: `comprer`
  std::string stem;                    ///< stem of imperfect and gerund when irregular: `bev`
  std::string imperative;              ///< imperative for tu when irregular: `da'`
  std::array<std::string, 6> present;  ///< in the order of `people`
  bool inchoative = false;             ///< finisco
  bool with_essere = false;            ///< the passato prossimo takes essere: sono andato
  bool reflexive = false;              ///< takes a reflexive pronoun: si alza
};

/// A verb in both languages, its sentence frame, and tags of its subjects and objects.
struct Verb {
  std::string frame = {};     ///< what follows the verb: "act" an object, "go" a place, ...
  EnglishVerb english = {};   ///< its forms in English
  ItalianVerb italian = {};   ///< its forms in Italian
  bool stative = false;       ///< no progressive; its past is the imperfect
  bool starts_chain = false;  ///< can be the first of two actions
  bool involuntary = false;   ///< neither progressive nor imperative
  Tags subjects = 0;          ///< tags of nouns that can be its subject
  Tags objects = 0;           ///< tags of nouns that can be its object
};

/// A place with prepositions.
struct Place {
  Phrase to;    ///< "to the station"
  Phrase at;    ///< "at the station"
  Phrase from;  ///< "from the station"
};

/// A time phrase and the tenses it fits.
struct Time {
  Phrase words;        ///< "every day", "yesterday"
  std::string tenses;  ///< letters: h habitual, p past, u used to, f future, n now
};

/// A person's name, which is the same in both languages.
struct Name {
  std::string word;                   ///< "Anna"
  Gender gender = Gender::masculine;  ///< gender of the person, for pronouns and participles
};

/// The words of the phrasebook, each list in the order of its table.
struct Lexicon {
  std::vector<std::string> tags;  ///< names of the tags; tag i is bit i of Tags
  std::vector<Noun> nouns;
  std::vector<Adjective> adjectives;
  std::vector<Verb> verbs;
  std::vector<Place> places;
  std::vector<Time> times;
  std::vector<Phrase> adverbs;
  std::vector<Phrase> numbers;  ///< numerals from two on
  std::vector<Name> names;

  /// The bits of the tags in a blank-separated list.
  Tags mask(std::string_view list) const;
  /// The verbs of one frame, as pointers into this lexicon.
  std::vector<const Verb*> verbs_of(std::string_view frame) const;
  /// The only verb of a frame, or the one with this Italian infinitive.
  const Verb& verb(std::string_view frame, std::string_view infinitive = {}) const;
};

/// The lexicon, read from the tables at the first call.
const Lexicon& lexicon();

/// The pairs of a table of two columns in this folder: English, Italian.
std::vector<Phrase> phrase_table(const std::string& name);

/// True if one of the tags in a blank-separated list is in the set.
inline bool has_tag(Tags set, std::string_view list) { return (set & lexicon().mask(list)) != 0; }

}  // namespace heed::phrases
