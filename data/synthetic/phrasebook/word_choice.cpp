// The random choices of a phrasebook sentence.
#include "heed/data/synthetic/phrasebook/word_choice.h"

#include <array>

#include "heed/core/error.h"
#include "heed/data/synthetic/phrasebook/english.h"

namespace heed::phrases {
namespace {

using italian::join;
using italian::Preposition;

std::string number_word(std::string_view masculine, std::string_view feminine, Gender gender) {
  return std::string(gender == Gender::feminine ? feminine : masculine);
}

}  // namespace

const Noun& Speaker::noun(Tags tags) {
  const auto choices = words_.nouns_of(tags);
  if (choices.empty()) fail(Fault::internal, "phrasebook: no noun has a tag of the mask ", tags, ".");
  return *random_.pick(choices);
}

const Adjective* Speaker::adjective(const Noun& noun, bool before) {
  std::vector<const Adjective*> choices;
  for (const Adjective& word : words_.adjectives) {
    if (word.before == before && (word.tags & noun.tags) != 0) choices.push_back(&word);
  }
  return choices.empty() ? nullptr : random_.pick(choices);
}

const Adjective& Speaker::predicate(Tags tags, Quality quality) {
  std::vector<const Adjective*> choices;
  for (const Adjective& word : words_.adjectives) {
    if ((word.tags & tags) != 0 && (word.graded || quality != Quality::graded) &&
        (word.state || quality != Quality::state)) {
      choices.push_back(&word);
    }
  }
  if (choices.empty()) fail(Fault::internal, "phrasebook: no adjective has a tag of the mask ", tags, ".");
  return *random_.pick(choices);
}

const Verb& Speaker::verb(std::string_view frame) { return *random_.pick(words_.verbs_of(frame)); }

NounPhrase Speaker::phrase(const Noun& noun, const Company& company) {
  const bool plural = company.number == Number::plural;
  const Gender gender = plural ? noun.plural_gender : noun.gender;
  const Phrase& word = plural ? noun.plural : noun.singular;
  Phrase core = word;
  if (company.after != nullptr) {
    core = {join(company.after->word.english, core.english),
            join(core.italian, italian::adjective(*company.after, gender, company.number))};
  }
  if (company.before != nullptr) {
    core = {
        join(company.before->word.english, core.english),
        join(italian::adjective_before(*company.before, gender, company.number, core.italian), core.italian)};
  }
  NounPhrase out{.person = third(company.number), .gender = gender, .tags = noun.tags};
  Phrase front;
  switch (company.determiner) {
    case Determiner::definite:
      front.english = "the";
      out.definite = true;
      break;
    case Determiner::indefinite:
      front = {english::indefinite(core.english), italian::indefinite(gender, core.italian)};
      break;
    case Determiner::possessive: {
      front = {std::string(english::possessive(company.owner, company.owner_gender)),
               italian::possessive(company.owner, gender, company.number)};
      // mio padre, but il loro padre, i miei fratelli, il mio giovane zio.
      const bool bare = (noun.tags & words_.mask("family")) != 0 && !plural && company.before == nullptr &&
                        company.after == nullptr && company.owner != Person::third_plural;
      out.definite = !bare;
      break;
    }
    case Determiner::of_person: {
      const NounPhrase owner = chance(60) ? name() : phrase(this->noun("person"), {});
      out.english = join(owner.english + "'s", core.english);
      out.italian = join(core.italian, owner.after(Preposition::of));
      out.definite = true;
      return out;
    }
    case Determiner::these:
      front = {plural ? "these" : "this", italian::this_one(gender, company.number, core.italian)};
      break;
    case Determiner::those:
      front = {plural ? "those" : "that", italian::that_one(gender, company.number, core.italian)};
      break;
    case Determiner::counted:
      front = random_.pick(words_.numbers);
      break;
    case Determiner::many:
      front = {"many", number_word("molti", "molte", gender)};
      break;
    case Determiner::some:
      if (plural)
        front = {"some", number_word("alcuni", "alcune", gender)};
      else
        front = {"some", italian::articulated(Preposition::of, gender, company.number, core.italian)};
      break;
    case Determiner::all:
      front = {"all the", join(number_word("tutti", "tutte", gender),
                               italian::definite(gender, company.number, core.italian))};
      break;
    case Determiner::every:
      front = {"every", "ogni"};
      break;
  }
  const Phrase whole = join(front, core);
  out.english = whole.english;
  out.italian = whole.italian;
  return out;
}

NounPhrase Speaker::name() {
  const Name& chosen = random_.pick(words_.names);
  return {.english = chosen.word, .italian = chosen.word, .gender = chosen.gender};
}

NounPhrase Speaker::name(Gender gender) {
  while (true) {
    NounPhrase out = name();
    if (out.gender == gender) return out;
  }
}

NounPhrase Speaker::pronoun() {
  static constexpr std::array<int64_t, 6> share = {22, 16, 30, 12, 6, 14};
  int64_t drawn = random_.below(100);
  size_t person = 0;
  while (drawn >= share[person]) drawn -= share[person++];
  NounPhrase out{.person = people[person]};
  if (out.person == Person::third && chance(50)) out.gender = Gender::feminine;
  out.english = english::subject(out.person, out.gender);
  return out;
}

NounPhrase Speaker::family() {
  const Noun& relative = noun("family");
  Company company{.determiner = chance(70) ? Determiner::possessive : Determiner::of_person};
  const bool single = (relative.tags & words_.mask("single")) != 0;
  if (!single && chance(25)) company.number = Number::plural;
  static constexpr std::array owners = {Person::first, Person::second, Person::third, Person::first_plural,
                                        Person::third_plural};
  company.owner = random_.pick(owners);
  const bool shared = company.owner == Person::first_plural || company.owner == Person::third_plural;
  if (shared && (relative.tags & words_.mask("spouse")) != 0) company.owner = Person::third;
  company.owner_gender = chance(50) ? Gender::feminine : Gender::masculine;
  return phrase(relative, company);
}

NounPhrase Speaker::subject(Tags tags) {
  const int64_t drawn = random_.below(100);
  const bool person = (tags & words_.mask("person")) != 0;
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
  Company company;
  const bool single = (chosen.tags & words_.mask("mass single")) != 0;
  if (!single && chance(28)) company.number = Number::plural;
  const bool plural = company.number == Number::plural;
  const int64_t kind = random_.below(100);
  if (kind < 8)
    company.determiner = Determiner::these;
  else if (kind < 12)
    company.determiner = Determiner::those;
  else if (kind < 16 && plural)
    company.determiner = Determiner::counted;
  else if (kind < 19 && plural)
    company.determiner = Determiner::many;
  else if (kind < 22 && plural)
    company.determiner = Determiner::all;
  else if (kind < 14 && !single)
    company.determiner = Determiner::every;
  else if (kind < 26 && !single && !plural)
    company.determiner = Determiner::indefinite;
  if (chance(24)) {
    const bool before = chance(40);
    (before ? company.before : company.after) = adjective(chosen, before);
  }
  return phrase(chosen, company);
}

NounPhrase Speaker::determined(const Noun& noun, Company company, const NounPhrase& subject) {
  company.owner = subject.person;
  company.owner_gender = subject.gender;
  const bool animal = (subject.tags & words_.mask("animal")) != 0;
  // "your" of several people and "its" would make the translation ambiguous.
  const bool unclear = subject.person == Person::second_plural || animal;
  if (company.determiner == Determiner::possessive && unclear) company.determiner = Determiner::definite;
  if (chance(44)) {
    const int64_t kind = random_.below(10);
    if (kind < 6) company.after = adjective(noun, false);
    if (kind > 3) company.before = adjective(noun, true);
  }
  return phrase(noun, company);
}

NounPhrase Speaker::object(const Noun& noun, const NounPhrase& subject) {
  const int64_t kind = random_.below(100);
  const bool mass = (noun.tags & words_.mask("mass")) != 0;
  const bool single = mass || (noun.tags & words_.mask("single")) != 0;
  Company company;
  if (single) {
    if (mass && kind < 35) company.determiner = Determiner::some;
    return determined(noun, company, subject);
  }
  if (chance(30)) company.number = Number::plural;
  const bool plural = company.number == Number::plural;
  if (kind < 14)
    company.determiner = Determiner::possessive;
  else if (kind < 20)
    company.determiner = Determiner::of_person;
  else if (kind < 25)
    company.determiner = Determiner::these;
  else if (kind < 30)
    company.determiner = Determiner::those;
  else if (kind < 52 && !plural)
    company.determiner = Determiner::indefinite;
  else if (kind < 42 && plural)
    company.determiner = Determiner::counted;
  else if (kind < 48 && plural)
    company.determiner = Determiner::many;
  else if (kind < 54 && plural)
    company.determiner = Determiner::some;
  else if (kind < 58 && plural)
    company.determiner = Determiner::all;
  return determined(noun, company, subject);
}

NounPhrase Speaker::known(const Noun& noun, const NounPhrase& subject) {
  Company company;
  if (chance(25)) company.determiner = Determiner::possessive;
  const bool single = (noun.tags & words_.mask("mass single")) != 0;
  if (single) company.determiner = Determiner::definite;
  if (!single && chance(28)) company.number = Number::plural;
  return determined(noun, company, subject);
}

Tense Speaker::tense(const Verb& verb) {
  const int64_t drawn = random_.below(100);
  if (drawn < 38) return Tense::present;
  if (drawn < 72) return Tense::past;
  if (drawn < 86) return Tense::future;
  if (drawn < 91) return Tense::used_to;
  return verb.stative || verb.unwilled ? Tense::present : Tense::progressive;
}

Phrase Speaker::time(Tense tense, int64_t percent) {
  static constexpr std::array letters = {'h', 'n', 'p', 'p', 'u', 'f'};
  const char letter = letters[static_cast<size_t>(tense)];
  if (!chance(percent)) return {};
  if (chance(15) && letter != 'n' && letter != 'u') return clock();
  while (true) {
    const Time& chosen = random_.pick(words_.times);
    if (chosen.tenses.find(letter) != std::string::npos) return chosen.words;
  }
}

Phrase Speaker::clock() {
  const int64_t hour = random_.between(1, 14);
  if (hour == 13) return {"at noon", "a mezzogiorno"};
  if (hour == 14) return {"at midnight", "a mezzanotte"};
  if (hour == 1) return {"at one o'clock", "all'una"};
  const Phrase& number = words_.numbers[static_cast<size_t>(hour - 2)];
  return {"at " + number.english + " o'clock", "alle " + number.italian};
}

const Place& Speaker::town() {
  while (true) {
    const Place& chosen = place();
    const char last_word = chosen.at.english[chosen.at.english.rfind(' ') + 1];
    if (last_word >= 'A' && last_word <= 'Z') return chosen;
  }
}

Clause Speaker::action(const Verb& verb) {
  Clause out{.subject = subject(verb.subjects), .verb = &verb, .tense = tense(verb)};
  if (verb.objects != 0) {
    const Noun& thing = noun(verb.objects);
    const bool wish = verb.english.base == "have" || verb.english.base == "want";
    NounPhrase what = object(thing, out.subject);
    if (wish && (thing.tags & words_.mask("mass single")) == 0) {
      Company company{.determiner = chance(70) ? Determiner::indefinite : Determiner::counted};
      if (company.determiner == Determiner::counted) company.number = Number::plural;
      what = determined(thing, company, out.subject);
    }
    out.object = {what.english, what.full()};
  }
  if (unclear_past(out)) out.tense = Tense::present;
  return out;
}

}  // namespace heed::phrases
