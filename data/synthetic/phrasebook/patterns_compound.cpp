// Sentences of two clauses, and comparisons.
#include <array>

#include "heed/data/synthetic/phrasebook/english.h"
#include "heed/data/synthetic/phrasebook/sentence_patterns.h"

namespace heed::phrases {
namespace {

using italian::Clitic;
using italian::join;
using italian::Preposition;

Phrase comma(const Phrase& words) { return {words.english + ",", words.italian + ","}; }

bool animate(Speaker& speaker, const NounPhrase& who) {
  return who.tags == 0 || (who.tags & speaker.words().mask("person family")) != 0;
}

/// A second action with the same thing, different from the first.
const Verb* second_action(Speaker& speaker, const Noun& thing, const Verb& first) {
  std::vector<const Verb*> fit;
  for (const Verb* verb : speaker.words().verbs_of("act")) {
    if (verb != &first && !verb->stative && (verb->objects & thing.tags) != 0) fit.push_back(verb);
  }
  return fit.empty() ? nullptr : speaker.random().pick(fit);
}

/// Anna buys the red book and reads it: the pronoun agrees with the noun.
Pair chain(Speaker& speaker) {
  const Verb& first = speaker.verb("act");
  if (!first.first) return {};
  Clause clause{.subject = speaker.subject(first.subjects), .verb = &first, .tense = speaker.tense(first)};
  if (clause.tense == Tense::progressive) clause.tense = Tense::past;
  const Noun& thing = speaker.noun(first.objects);
  const NounPhrase what = speaker.object(thing, clause.subject);
  clause.object = {what.english, what.full()};
  const bool gives = speaker.chance(25);
  const Verb* second = gives ? &speaker.verb("give") : second_action(speaker, thing, first);
  if (second == nullptr || (gives && (second->objects & thing.tags) == 0)) return {};
  const bool doable = (second->subjects & (clause.subject.tags != 0 ? clause.subject.tags : Tags{1})) != 0;
  if (!doable && !animate(speaker, clause.subject)) return {};
  Clause next{.subject = clause.subject, .verb = second, .tense = clause.tense, .silent_subject = true};
  const bool person = (thing.tags & speaker.words().mask("person")) != 0;
  next.direct = Clitic{what.person, what.gender};
  next.direct_is_thing = !person;
  if (gives) {
    const NounPhrase whom = speaker.pronoun();
    const bool other = whom.person == Person::third || whom.person == Person::third_plural;
    if (!other && clause.subject.person != Person::third && clause.subject.person != Person::third_plural)
      return {};
    if (speaker.chance(35)) {
      const NounPhrase named = speaker.chance(60) ? speaker.name() : speaker.family();
      next.rest = {join("to", named.english), named.after(Preposition::to)};
    } else {
      next.indirect = Clitic{whom.person, whom.gender};
    }
  }
  if (unclear_past(clause) || unclear_past(next)) clause.tense = next.tense = Tense::present;
  if (clause.tense == Tense::used_to) clause.tense = next.tense = Tense::present;
  const Phrase end = say(next);
  if (!gives && speaker.chance(18) && clause.tense != Tense::future) {
    next.negated = true;
    return finished(join(join(say(clause), {"but", "ma"}), say(next)));
  }
  const bool front = speaker.chance(15);
  const Phrase time = speaker.time(clause.tense, front ? 100 : 0);
  return finished(join(time, join(join(say(clause), {"and", italian::conjunction(end.italian)}), end)));
}

/// Buy the book and read it!
Pair command_chain(Speaker& speaker) {
  const Verb& first = speaker.verb("act");
  if (!first.first || first.unwilled) return {};
  const Noun& thing = speaker.noun(first.objects);
  const NounPhrase you{.person = Person::second};
  const NounPhrase what = speaker.object(thing, you);
  const Verb* second = second_action(speaker, thing, first);
  if (second == nullptr || second->unwilled) return {};
  const Clause left{.subject = you, .verb = &first, .object = {what.english, what.full()}};
  Clause right{.subject = you, .verb = second};
  right.direct = Clitic{what.person, what.gender};
  right.direct_is_thing = (thing.tags & speaker.words().mask("person")) == 0;
  const Phrase end = command(right);
  return finished(join(join(command(left), {"and", italian::conjunction(end.italian)}), end), '!');
}

/// than, as: in Italian di with a noun or a stressed pronoun.
Phrase measure(const NounPhrase& other, bool equal) {
  static constexpr std::array<std::string_view, 6> stressed = {"me", "te", "lui", "noi", "voi", "loro"};
  static constexpr std::array<std::string_view, 6> objects = {"me", "you", "him", "us", "you all", "them"};
  const auto place = static_cast<size_t>(other.person);
  const bool she = other.person == Person::third && other.gender == Gender::feminine;
  if (other.italian.empty()) {
    const std::string word(she ? "lei" : stressed[place]);
    return {std::string(she ? "her" : objects[place]), equal ? word : "di " + word};
  }
  return {other.english, equal ? other.full() : other.after(Preposition::of)};
}

Pair comparison(Speaker& speaker) {
  const Lexicon& words = speaker.words();
  const bool people_only = speaker.chance(50);
  const Tags tags =
      words.mask(people_only ? "person" : "animal object food building town text song film lesson");
  const Noun& left_noun = speaker.noun(tags);
  const NounPhrase left = people_only ? speaker.person() : speaker.known(left_noun, speaker.name());
  const Tags fit = people_only ? words.mask("person") : left_noun.tags;
  const NounPhrase right = people_only ? speaker.person() : speaker.known(speaker.noun(fit), speaker.name());
  const bool pronouns = left.italian.empty() && right.italian.empty();
  if (left.english == right.english || pronouns) return {};
  const Adjective& how = speaker.predicate(fit, Quality::graded);
  Clause clause{.subject = left, .verb = &words.verb("be")};
  if (speaker.chance(25)) clause.tense = Tense::past;
  clause.question = speaker.chance(12);
  clause.negated = !clause.question && speaker.chance(12);
  if (says(left, how) || says(right, how)) return {};
  const Phrase quality = predicate(how, left);
  const int64_t kind = speaker.random().below(10);
  if (kind < 6) {
    const Phrase than = measure(right, false);
    clause.object = {english::comparative(how.word.english) + " than " + than.english,
                     join(join("più", quality.italian), than.italian)};
  } else if (kind < 8) {
    const Phrase than = measure(right, false);
    clause.object = {"less " + how.word.english + " than " + than.english,
                     join(join("meno", quality.italian), than.italian)};
  } else {
    const Phrase as = measure(right, true);
    clause.object = {"as " + how.word.english + " as " + as.english, quality.italian + " come " + as.italian};
  }
  return finished(say(clause), clause.question ? '?' : '.');
}

/// The tallest boy in the school.
Pair superlative(Speaker& speaker) {
  const Lexicon& words = speaker.words();
  const Noun& noun = speaker.noun("person animal building town text song film nature vehicle");
  const Adjective& how = speaker.predicate(noun.tags, Quality::graded);
  const NounPhrase plain = speaker.phrase(noun, {});
  const NounPhrase whole = speaker.chance(50)
                               ? speaker.phrase(speaker.noun("inhabited"), {})
                               : NounPhrase{.english = "world", .italian = "mondo", .definite = true};
  const bool world = whole.italian == "mondo";
  const std::string adjective = italian::adjective(how, plain.gender, Number::singular);
  NounPhrase best = plain;
  best.english = join("the", join(english::superlative(how.word.english), noun.singular.english));
  best.english = join(best.english, join("in", world ? "the world" : whole.english));
  best.italian = join(plain.italian, join(join("più", adjective), whole.after(Preposition::of)));
  const bool person = (noun.tags & words.mask("person")) != 0;
  NounPhrase who = person ? speaker.name(noun.gender) : NounPhrase{.english = "this", .gender = noun.gender};
  if (!person) who.italian = italian::this_one(noun.gender, Number::singular, "");
  Clause clause{.subject = who, .verb = &words.verb("be"), .object = {best.english, best.full()}};
  clause.question = speaker.chance(20);
  return finished(say(clause), clause.question ? '?' : '.');
}

/// The man who sells the flowers is old. The book that Anna reads is new.
Pair relative(Speaker& speaker) {
  const Lexicon& words = speaker.words();
  const Verb& verb = speaker.verb(speaker.chance(75) ? "act" : "do");
  Clause clause = speaker.action(verb);
  if (clause.tense == Tense::used_to) clause.tense = Tense::past;
  Clause main{.verb = &words.verb("be"), .tense = speaker.chance(75) ? Tense::present : Tense::past};
  if (verb.objects == 0 || speaker.chance(45)) {
    const Noun& noun = speaker.noun("person");
    Company company;
    if (speaker.chance(30)) company.number = Number::plural;
    const NounPhrase who = speaker.phrase(noun, company);
    clause.subject = who;
    if (verb.objects != 0) {
      const NounPhrase what = speaker.object(speaker.noun(verb.objects), who);
      clause.object = {what.english, what.full()};
    }
    if (unclear_past(clause)) clause.tense = Tense::present;
    clause.silent_subject = true;
    if (clause.tense == Tense::future) return {};
    const Phrase inner = say(clause);
    main.subject = who;
    main.subject.english = join(join(who.english, "who"), inner.english);
    main.subject.italian = join(join(who.italian, "che"), inner.italian);
    main.object = predicate(speaker.predicate(noun.tags), who);
    if (speaker.chance(35)) {
      // The whole phrase as an object: I know the man who sells the flowers.
      const Verb& sees = speaker.verb("act");
      if ((sees.objects & words.mask("person")) == 0) return {};
      Clause outer{.subject = speaker.person(), .verb = &sees, .tense = speaker.tense(sees)};
      if (outer.tense == Tense::used_to) outer.tense = Tense::present;
      outer.object = {main.subject.english, main.subject.full()};
      if (unclear_past(outer)) return {};
      return finished(say(outer));
    }
    return finished(say(main));
  }
  const Noun& noun = speaker.noun(verb.objects);
  const bool mass = (noun.tags & words.mask("mass single")) != 0;
  Company company;
  if (!mass && speaker.chance(30)) company.number = Number::plural;
  const NounPhrase what = speaker.phrase(noun, company);
  clause.object = {};
  if (unclear_past(clause)) clause.tense = Tense::present;
  const Phrase inner = say(clause);
  main.subject = what;
  main.subject.english = join(join(what.english, "that"), inner.english);
  main.subject.italian = join(join(what.italian, "che"), inner.italian);
  main.object = predicate(speaker.predicate(noun.tags), what);
  return finished(say(main));
}

/// The second clause gives a reason, about the subject or object of the first.
Pair because(Speaker& speaker) {
  const Lexicon& words = speaker.words();
  const Verb& verb = speaker.verb(speaker.chance(60) ? "act" : "do");
  if (verb.objects != 0 && speaker.chance(50)) {
    Clause clause{.subject = speaker.person(), .verb = &verb};
    clause.tense = speaker.chance(50) ? Tense::present : Tense::past;
    clause.negated = speaker.chance(40);
    const Noun& noun = speaker.noun(verb.objects);
    const NounPhrase what = speaker.known(noun, clause.subject);
    clause.object = {what.english, what.full()};
    if (unclear_past(clause) || odd(clause)) return {};
    const bool person = (noun.tags & words.mask("person")) != 0;
    // With two women or two men the pronoun would be ambiguous.
    if (person && what.person == clause.subject.person) return {};
    Clause reason{.subject = what.again(person), .verb = &words.verb("be"), .tense = clause.tense};
    const Adjective& how = speaker.predicate(noun.tags);
    if (says(what, how)) return {};
    reason.object = predicate(how, reason.subject);
    return finished(join(join(say(clause), {"because", "perché"}), say(reason)));
  }
  Clause clause = speaker.action(verb);
  if (clause.tense != Tense::past) clause.tense = Tense::present;
  clause.negated = speaker.chance(30);
  if (unclear_past(clause) || odd(clause)) return {};
  Clause reason{.subject = clause.subject.again(animate(speaker, clause.subject)), .verb = &words.verb("be")};
  reason.tense = clause.tense;
  if (clause.subject.english == "every" || clause.subject.english.starts_with("every ")) return {};
  const bool person = animate(speaker, clause.subject);
  const Adjective& why = person ? speaker.predicate(words.mask("person"), Quality::state)
                                : speaker.predicate(clause.subject.tags, Quality::state);
  if (says(clause.subject, why)) return {};
  reason.object = predicate(why, reason.subject);
  return finished(join(join(say(clause), {"because", "perché"}), say(reason)));
}

/// When it rains; if the sun shines; while Anna was cooking; but.
Pair two_clauses(Speaker& speaker) {
  static const std::array<Phrase, 3> weather = {
      Phrase{"it rains", "piove"}, {"it snows", "nevica"}, {"it is cold", "fa freddo"}};
  const auto deed = [&](Tense tense) {
    Clause clause = speaker.action(speaker.verb(speaker.chance(50) ? "act" : "do"));
    clause.tense = tense;
    return clause;
  };
  const int64_t kind = speaker.random().below(10);
  if (kind < 2) {
    Clause stays = speaker.action(speaker.verb("stay"));
    stays.tense = Tense::future;
    stays.rest = speaker.place().at;
    if (stays.verb->stative || speaker.chance(40)) stays = deed(Tense::future);
    const Phrase first = join({"if", "se"}, speaker.random().pick(weather));
    return finished(join(comma(first), say(stays)));
  }
  if (kind < 4) {
    const Phrase first = join({"when", "quando"}, speaker.random().pick(weather));
    return finished(join(comma(first), say(deed(Tense::present))));
  }
  if (kind < 7) {
    Clause left = deed(Tense::was_doing), right = deed(Tense::was_doing);
    if (left.verb == right.verb) return {};
    if (left.subject.italian.empty() && right.subject.italian.empty()) {
      if (left.subject.english == right.subject.english) return {};
      stress(left.subject);
      stress(right.subject);
    }
    const bool unwilled = left.verb->unwilled || right.verb->unwilled;
    if (left.verb->stative || right.verb->stative || unwilled) return {};
    const Phrase first = join({"while", "mentre"}, say(left));
    return finished(join(comma(first), say(right)));
  }
  Clause left = speaker.action(speaker.verb("act"));
  if (left.tense == Tense::used_to) left.tense = Tense::present;
  if (unclear_past(left)) return {};
  Clause right = left;
  right.subject = left.subject.again(animate(speaker, left.subject));
  const NounPhrase other = speaker.object(speaker.noun(left.verb->objects), left.subject);
  right.object = {other.english, other.full()};
  if (left.object.english == right.object.english) return {};
  right.negated = true;
  if (odd(right)) return {};
  if (left.subject.english.starts_with("every ")) return {};
  const Phrase first = say(left);
  return finished(join(join(comma(first), {"but", "ma"}), say(right)));
}

/// I read and you write: in a contrast, Italian needs the pronouns.
Pair contrast(Speaker& speaker) {
  NounPhrase left = speaker.pronoun(), right = speaker.chance(70) ? speaker.pronoun() : speaker.name();
  if (left.person == right.person) return {};
  stress(left);
  stress(right);
  Clause first = speaker.action(speaker.verb(speaker.chance(60) ? "act" : "do"));
  if (first.tense == Tense::used_to) first.tense = Tense::present;
  Clause second = speaker.action(speaker.verb(first.verb->frame));
  second.tense = first.tense;
  first.subject = left;
  second.subject = right;
  const bool dull = first.tense == Tense::progressive && (first.verb->unwilled || second.verb->unwilled);
  if (first.verb->stative || second.verb->stative || dull || first.verb == second.verb) return {};
  for (Clause* clause : {&first, &second}) {
    if (clause->verb->objects == 0) continue;
    const NounPhrase what = speaker.object(speaker.noun(clause->verb->objects), clause->subject);
    clause->object = {what.english, what.full()};
  }
  if (unclear_past(first) || unclear_past(second)) return {};
  const Phrase end = say(second);
  const bool against = speaker.chance(40);
  const Phrase word = against ? Phrase{"but", "ma"} : Phrase{"and", italian::conjunction(end.italian)};
  const Phrase start = say(first);
  const Phrase opening = against ? comma(start) : start;
  return finished(join(join(opening, word), end));
}

/// Marco says that Anna is tired. I know that you sing.
Pair reported(Speaker& speaker) {
  const Verb& verb = speaker.words().verb(speaker.chance(50) ? "say" : "know");
  Clause outer{.subject = speaker.person(), .verb = &verb};
  if (outer.subject.english.starts_with("every ")) return {};
  Clause inner = speaker.action(speaker.verb(speaker.chance(70) ? "act" : "do"));
  if (inner.tense == Tense::used_to) inner.tense = Tense::present;
  outer.negated = verb.frame == "know" && speaker.chance(20);
  return finished(join(join(say(outer), {"that", "che"}), say(inner)));
}

constexpr std::array compound_patterns = {
    Pattern{22, chain},      Pattern{4, command_chain}, Pattern{6, comparison},
    Pattern{2, superlative}, Pattern{12, relative},     Pattern{10, because},
    Pattern{8, two_clauses}, Pattern{3, contrast},      Pattern{4, reported}};

}  // namespace

std::span<const Pattern> joined_patterns() { return compound_patterns; }

}  // namespace heed::phrases
