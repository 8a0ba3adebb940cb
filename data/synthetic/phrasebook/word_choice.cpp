// The random choices of a phrasebook sentence.
#include "heed/data/synthetic/phrasebook/word_choice.h"

#include <array>
#include <span>

#include "heed/core/error.h"
#include "heed/data/synthetic/phrasebook/english.h"

namespace heed::phrases {
namespace {

using italian::Preposition;

/// A random word of those for which fits(word) is true; null where there is none.
template <class Word, class Fits>
const Word* pick_fitting(CounterRng& rng, const std::vector<Word>& words, Fits fits) {
  std::vector<const Word*> choices;
  for (const Word& word : words) {
    if (fits(word)) choices.push_back(&word);
  }
  return choices.empty() ? nullptr : rng.pick(choices);
}

/// Number of the nouns that a determiner goes with; nouns without a plural take only determiners for any.
enum class Countable { any, singular, plural };

/// A determiner, taken where the number drawn in 0 .. 99 is below `below` and no earlier entry fits.
struct DeterminerShare {
  int64_t below;
  Countable countable;
  Determiner determiner;
};

constexpr DeterminerShare subject_determiners[] = {
    {8, Countable::any, Determiner::these},           {12, Countable::any, Determiner::those},
    {16, Countable::plural, Determiner::counted},     {19, Countable::plural, Determiner::many},
    {22, Countable::plural, Determiner::all},         {14, Countable::singular, Determiner::every},
    {26, Countable::singular, Determiner::indefinite}};
constexpr DeterminerShare object_determiners[] = {
    {14, Countable::any, Determiner::possessive},      {20, Countable::any, Determiner::of_person},
    {25, Countable::any, Determiner::these},           {30, Countable::any, Determiner::those},
    {52, Countable::singular, Determiner::indefinite}, {42, Countable::plural, Determiner::counted},
    {48, Countable::plural, Determiner::many},         {54, Countable::plural, Determiner::some},
    {58, Countable::plural, Determiner::all}};

/// The first determiner of a table that fits the noun and whose share holds the number drawn; else
/// `definite`.
Determiner determiner_for(std::span<const DeterminerShare> shares, int64_t drawn, Countable countable) {
  for (const DeterminerShare& share : shares) {
    const bool fits = share.countable == Countable::any || share.countable == countable;
    if (fits && drawn < share.below) return share.determiner;
  }
  return Determiner::definite;
}

}  // namespace

const Noun& WordChooser::noun(Tags tags) {
  const Noun* found =
      pick_fitting(rng_, words_.nouns, [&](const Noun& word) { return (word.tags & tags) != 0; });
  if (found == nullptr) fail(Fault::internal, "phrasebook: no noun has a tag of the mask ", tags, ".");
  return *found;
}

const Adjective* WordChooser::adjective(const Noun& noun, bool before) {
  return pick_fitting(rng_, words_.adjectives, [&](const Adjective& word) {
    return word.precedes == before && (word.tags & noun.tags) != 0;
  });
}

const Adjective& WordChooser::predicate_adjective(Tags tags, Quality quality) {
  const Adjective* found = pick_fitting(rng_, words_.adjectives, [&](const Adjective& word) {
    return (word.tags & tags) != 0 && (word.gradable || quality != Quality::gradable) &&
           (word.state || quality != Quality::state);
  });
  if (found == nullptr) fail(Fault::internal, "phrasebook: no adjective has a tag of the mask ", tags, ".");
  return *found;
}

NounPhrase WordChooser::phrase(const Noun& noun, const NounModifiers& modifiers) {
  const bool plural = modifiers.number == Number::plural;
  const Gender gender = plural ? noun.plural_gender : noun.gender;
  Phrase core = plural ? noun.plural : noun.singular;  // the noun with its adjectives
  if (modifiers.after != nullptr) {
    core = {join(modifiers.after->word.english, core.english),
            join(core.italian, italian::adjective(*modifiers.after, gender, modifiers.number))};
  }
  if (modifiers.before != nullptr) {
    core = {join(modifiers.before->word.english, core.english),
            join(italian::adjective_before(*modifiers.before, gender, modifiers.number, core.italian),
                 core.italian)};
  }
  NounPhrase out{.person = third(modifiers.number), .gender = gender, .tags = noun.tags};
  const bool feminine = gender == Gender::feminine;
  Phrase determiner;
  switch (modifiers.determiner) {
    case Determiner::definite:
      determiner.english = "the";
      out.definite = true;
      break;
    case Determiner::indefinite:
      determiner = {english::indefinite(core.english), italian::indefinite(gender, core.italian)};
      break;
    case Determiner::possessive:
      determiner = {form(Form::possessive, modifiers.owner, modifiers.owner_gender),
                    italian::possessive(modifiers.owner, gender, modifiers.number)};
      // No article for one relative (mio padre), but il loro padre, i miei fratelli, il mio giovane zio.
      out.definite = !has_tag(noun.tags, "family") || plural || modifiers.before != nullptr ||
                     modifiers.after != nullptr || modifiers.owner == Person::third_plural;
      break;
    case Determiner::of_person: {
      const NounPhrase owner = chance(60) ? name() : phrase(this->noun("person"), {});
      out.english = join(owner.english + "'s", core.english);
      out.italian = join(core.italian, owner.after(Preposition::of));
      out.definite = true;
      return out;
    }
    case Determiner::these:
      determiner = {plural ? "these" : "this",
                    italian::demonstrative_this(gender, modifiers.number, core.italian)};
      break;
    case Determiner::those:
      determiner = {plural ? "those" : "that",
                    italian::demonstrative_that(gender, modifiers.number, core.italian)};
      break;
    case Determiner::counted:
      determiner = rng_.pick(words_.numbers);
      break;
    case Determiner::many:
      determiner = {"many", feminine ? "molte" : "molti"};
      break;
    case Determiner::some:
      determiner = {"some",
                    plural ? feminine ? "alcune" : "alcuni"
                           : italian::articulated(Preposition::of, gender, modifiers.number, core.italian)};
      break;
    case Determiner::all:
      determiner = {"all the", join(feminine ? "tutte" : "tutti",
                                    italian::definite(gender, modifiers.number, core.italian))};
      break;
    case Determiner::every:
      determiner = {"every", "ogni"};
      break;
  }
  out.english = join(determiner.english, core.english);
  out.italian = join(determiner.italian, core.italian);
  return out;
}

NounPhrase WordChooser::name() {
  const Name& chosen = rng_.pick(words_.names);
  return {.english = chosen.word, .italian = chosen.word, .gender = chosen.gender};
}

NounPhrase WordChooser::name(Gender gender) {
  while (true) {
    NounPhrase out = name();
    if (out.gender == gender) return out;
  }
}

NounPhrase WordChooser::pronoun() {
  static constexpr std::array<int64_t, 6> share = {22, 16, 30, 12, 6, 14};  // percent, by person
  int64_t drawn = rng_.below(100);
  size_t person = 0;
  while (drawn >= share[person]) drawn -= share[person++];
  NounPhrase out{.person = people[person]};
  if (out.person == Person::third && chance(50)) out.gender = Gender::feminine;
  out.english = form(Form::subject, out.person, out.gender);
  return out;
}

NounPhrase WordChooser::family() {
  const Noun& relative = noun("family");
  NounModifiers modifiers{.determiner = chance(70) ? Determiner::possessive : Determiner::of_person};
  const bool singular_only = has_tag(relative.tags, "single");
  if (!singular_only && chance(25)) modifiers.number = Number::plural;
  static constexpr std::array owners = {Person::first, Person::second, Person::third, Person::first_plural,
                                        Person::third_plural};
  modifiers.owner = rng_.pick(owners);
  const bool shared = modifiers.owner == Person::first_plural || modifiers.owner == Person::third_plural;
  if (shared && has_tag(relative.tags, "spouse")) modifiers.owner = Person::third;
  modifiers.owner_gender = chance(50) ? Gender::feminine : Gender::masculine;
  return phrase(relative, modifiers);
}

NounPhrase WordChooser::subject(Tags tags) {
  const int64_t drawn = rng_.below(100);
  const bool person = has_tag(tags, "person");
  if (person && drawn < 30) return pronoun();
  if (person && drawn < 52) return name();
  if (person && drawn < 58) {
    const NounPhrase left = name(), right = name();
    if (left.english != right.english) {
      const bool women = left.gender == Gender::feminine && right.gender == Gender::feminine;
      return {.english = left.english + " and " + right.english,
              .italian = left.italian + " " + italian::conjunction(right.italian) + " " + right.italian,
              .person = Person::third_plural,
              .gender = women ? Gender::feminine : Gender::masculine};
    }
  }
  if (person && drawn < 66) return family();
  const Noun& chosen = noun(tags);
  NounModifiers modifiers;
  const bool singular_only = has_tag(chosen.tags, "mass single");
  if (!singular_only && chance(28)) modifiers.number = Number::plural;
  const bool plural = modifiers.number == Number::plural;
  const Countable countable = plural          ? Countable::plural
                              : singular_only ? Countable::any
                                              : Countable::singular;
  modifiers.determiner = determiner_for(subject_determiners, rng_.below(100), countable);
  if (chance(24)) {
    const bool before = chance(40);
    (before ? modifiers.before : modifiers.after) = adjective(chosen, before);
  }
  return phrase(chosen, modifiers);
}

NounPhrase WordChooser::with_adjectives(const Noun& noun, NounModifiers modifiers,
                                        const NounPhrase& subject) {
  modifiers.owner = subject.person;
  modifiers.owner_gender = subject.gender;
  // "your" of several people and "its" would make the translation ambiguous.
  const bool is_ambiguous = subject.person == Person::second_plural || has_tag(subject.tags, "animal");
  if (modifiers.determiner == Determiner::possessive && is_ambiguous)
    modifiers.determiner = Determiner::definite;
  if (chance(44)) {
    const int64_t drawn =
        rng_.below(10);  // 0 to 3: after the noun, 4 and 5: on both sides, 6 to 9: before it
    if (drawn < 6) modifiers.after = adjective(noun, /*before=*/false);
    if (drawn > 3) modifiers.before = adjective(noun, /*before=*/true);
  }
  return phrase(noun, modifiers);
}

NounPhrase WordChooser::object(const Noun& noun, const NounPhrase& subject) {
  const int64_t drawn = rng_.below(100);
  NounModifiers modifiers;
  if (has_tag(noun.tags, "mass single")) {
    if (has_tag(noun.tags, "mass") && drawn < 35) modifiers.determiner = Determiner::some;
    return with_adjectives(noun, modifiers, subject);
  }
  if (chance(30)) modifiers.number = Number::plural;
  const bool plural = modifiers.number == Number::plural;
  modifiers.determiner =
      determiner_for(object_determiners, drawn, plural ? Countable::plural : Countable::singular);
  return with_adjectives(noun, modifiers, subject);
}

NounPhrase WordChooser::definite_or_possessive(const Noun& noun, const NounPhrase& subject) {
  NounModifiers modifiers;
  if (chance(25)) modifiers.determiner = Determiner::possessive;
  const bool singular_only = has_tag(noun.tags, "mass single");
  if (singular_only) modifiers.determiner = Determiner::definite;
  if (!singular_only && chance(28)) modifiers.number = Number::plural;
  return with_adjectives(noun, modifiers, subject);
}

Tense WordChooser::tense(const Verb& verb) {
  const int64_t drawn = rng_.below(100);
  if (drawn < 38) return Tense::present;
  if (drawn < 72) return Tense::past;
  if (drawn < 86) return Tense::future;
  if (drawn < 91) return Tense::used_to;
  return verb.stative || verb.involuntary ? Tense::present : Tense::progressive;
}

Phrase WordChooser::time(Tense tense, int64_t percent) {
  static constexpr std::array letters = {'h', 'n', 'p', 'p', 'u', 'f'};  // letters of Time::tenses, by Tense
  const char letter = letters[static_cast<size_t>(tense)];
  if (!chance(percent)) return {};
  if (chance(15) && letter != 'n' && letter != 'u') return clock();
  while (true) {
    const Time& chosen = rng_.pick(words_.times);
    if (chosen.tenses.find(letter) != std::string::npos) return chosen.words;
  }
}

Phrase WordChooser::clock() {
  constexpr int64_t noon = 13, midnight = 14;  // behind the hours 1 to 12
  const int64_t hour = rng_.between(1, midnight);
  if (hour == noon) return {"at noon", "a mezzogiorno"};
  if (hour == midnight) return {"at midnight", "a mezzanotte"};
  if (hour == 1) return {"at one o'clock", "all'una"};
  const Phrase& number = words_.numbers[static_cast<size_t>(hour - 2)];
  return {"at " + number.english + " o'clock", "alle " + number.italian};
}

const Place& WordChooser::town() {
  while (true) {
    const Place& chosen = place();
    const char initial =
        chosen.at.english[chosen.at.english.rfind(' ') + 1];  // first letter of the last word
    if (initial >= 'A' && initial <= 'Z') return chosen;
  }
}

Clause WordChooser::action(const Verb& verb) {
  Clause out{.subject = subject(verb.subjects), .verb = &verb, .tense = tense(verb)};
  if (verb.objects != 0) {
    const Noun& thing = noun(verb.objects);
    const bool takes_indefinite = verb.english.base == "have" || verb.english.base == "want";
    NounPhrase what = object(thing, out.subject);
    if (takes_indefinite && !has_tag(thing.tags, "mass single")) {
      NounModifiers modifiers{.determiner = chance(70) ? Determiner::indefinite : Determiner::counted};
      if (modifiers.determiner == Determiner::counted) modifiers.number = Number::plural;
      what = with_adjectives(thing, modifiers, out.subject);
    }
    out.object = what.phrase();
  }
  if (has_ambiguous_tense(out)) out.tense = Tense::present;
  return out;
}

}  // namespace heed::phrases
