// The words of the phrasebook: nouns, adjectives, verbs and set phrases in both languages.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heed::phrases {

enum class Gender { masculine, feminine };
enum class Number { singular, plural };

/// I, you, he or she or it, we, you all, they.
enum class Person { first, second, third, first_plural, second_plural, third_plural };

inline constexpr std::array people = {Person::first,        Person::second,        Person::third,
                                      Person::first_plural, Person::second_plural, Person::third_plural};

constexpr Number number_of(Person person) {
  return person < Person::first_plural ? Number::singular : Number::plural;
}
constexpr Person third(Number number) {
  return number == Number::singular ? Person::third : Person::third_plural;
}

/// What a word is about or may go with, one bit a tag of the tables.
using Tags = uint64_t;

/// A piece of text in both languages.
struct Phrase {
  std::string english, italian;
};

struct Noun {
  Phrase singular, plural;
  Gender gender = Gender::masculine;
  Gender plural_gender = Gender::masculine;  ///< differs for l'uovo, le uova
  Tags tags = 0;
};

struct Adjective {
  Phrase word;          ///< the Italian masculine singular
  bool before = false;  ///< stands before its noun
  bool fixed = false;   ///< has one form
  bool graded = true;   ///< has a comparative
  bool state = false;   ///< of a person, may be a reason
  Tags tags = 0;        ///< of the nouns it goes with
};

struct EnglishVerb {
  std::string base, past;
};

struct ItalianVerb {
  std::string infinitive;  ///< without -si
  std::string participle;  ///< masculine singular
  std::string future;      ///< stem: `comprer`
  std::string stem;        ///< of imperfect and gerund when irregular: `bev`
  std::string imperative;  ///< of tu, when irregular: `da'`
  std::array<std::string, 6> present;
  bool inchoative = false;  ///< finisco
  bool with_essere = false;
  bool reflexive = false;
};

struct Verb {
  std::string frame = {};
  EnglishVerb english = {};
  ItalianVerb italian = {};
  bool stative = false;   ///< no progressive; its past is the imperfect
  bool first = false;     ///< may open a chain of actions
  bool unwilled = false;  ///< neither progressive nor imperative
  Tags subjects = 0, objects = 0;
};

struct Place {
  Phrase to, at, from;
};

struct Time {
  Phrase words;
  std::string tenses;  ///< letters: h habit, p past, u used to, f future, n now
};

struct Name {
  std::string word;
  Gender gender = Gender::masculine;
};

struct Lexicon {
  std::vector<std::string> tags;
  std::vector<Noun> nouns;
  std::vector<Adjective> adjectives;
  std::vector<Verb> verbs;
  std::vector<Place> places;
  std::vector<Time> times;
  std::vector<Phrase> manners, numbers;
  std::vector<Name> names;

  /// The bits of the tags in a blank-separated list.
  Tags mask(std::string_view list) const;
  /// The nouns, verbs or adjectives that go with a mask, as pointers into this lexicon.
  std::vector<const Noun*> nouns_of(Tags tags) const;
  std::vector<const Verb*> verbs_of(std::string_view frame) const;
  /// The one verb of this frame, or the one with this infinitive.
  const Verb& verb(std::string_view frame, std::string_view infinitive = {}) const;
};

/// The one lexicon, built from the tables at the first call.
const Lexicon& lexicon();

}  // namespace heed::phrases
