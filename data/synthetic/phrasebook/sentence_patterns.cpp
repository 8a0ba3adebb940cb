// Sentences of one clause.
#include <array>

#include "heed/data/synthetic/phrasebook/sentence_patterns.h"

namespace heed::phrases {
namespace {

using italian::Clitic;
using italian::join;
using italian::Preposition;

/// The clause with a time phrase at the end, or in front where both languages allow it.
Phrase timed(Speaker& speaker, const Clause& clause, int64_t percent) {
  const Phrase time = clause.verb->stative ? Phrase{} : speaker.time(clause.tense, percent);
  const bool front = speaker.chance(20);
  return front ? join(time, say(clause)) : join(say(clause), time);
}

Phrase frequency(Speaker& speaker) {
  static const std::array<Phrase, 3> words = {
      Phrase{"always", "sempre"}, {"often", "spesso"}, {"never", "mai"}};
  return speaker.random().pick(words);
}

Phrase under(const NounPhrase& thing, int64_t kind) {
  static const std::array<Phrase, 5> words = {Phrase{"under", "sotto"},
                                              {"behind", "dietro"},
                                              {"near", "vicino"},
                                              {"in front of", "davanti"},
                                              {"on", ""}};
  const Phrase& word = words[static_cast<size_t>(kind)];
  const Preposition merged = kind < 2 ? Preposition::none : kind < 4 ? Preposition::to : Preposition::on;
  const std::string rest = kind < 2 ? thing.full() : thing.after(merged);
  return {join(word.english, thing.english), join(word.italian, rest)};
}

/// The location of a thing: on the table, in the old box, near the bed.
Phrase spot(Speaker& speaker, const NounPhrase& whose, Tags what = 0) {
  const bool alive = (what & speaker.words().mask("person animal")) != 0;
  const int64_t kind = alive ? speaker.random().between(5, 9) : speaker.random().below(10);
  if (kind < 4) return under(speaker.known(speaker.noun("surface"), whose), 4);
  if (kind < 7) {
    const NounPhrase inside = speaker.known(speaker.noun(alive ? "room" : "holds room"), whose);
    return {join("in", inside.english), inside.after(Preposition::in)};
  }
  const int64_t relation = alive ? speaker.random().between(1, 3) : speaker.random().below(4);
  const char* tags = alive           ? "opens building land"
                     : relation == 0 ? "surface roof"
                                     : "surface opens building land";
  return under(speaker.known(speaker.noun(tags), whose), relation);
}

const NounPhrase& nobody() {
  static const NounPhrase none{.person = Person::second_plural};
  return none;
}

Pair statement(Speaker& speaker) {
  Clause clause = speaker.action(speaker.verb("act"));
  const bool habit = clause.tense == Tense::present || clause.tense == Tense::used_to;
  if (habit && !clause.verb->stative && speaker.chance(20)) clause.frequency = frequency(speaker);
  if (odd(clause)) return {};
  return finished(timed(speaker, clause, 22));
}

Pair negation(Speaker& speaker) {
  Clause clause = speaker.action(speaker.verb("act"));
  if (clause.tense == Tense::used_to) return {};
  clause.negated = true;
  if (odd(clause)) return {};
  return finished(timed(speaker, clause, 10));
}

Pair question(Speaker& speaker) {
  Clause clause = speaker.action(speaker.verb("act"));
  if (clause.tense == Tense::used_to) return {};
  clause.question = true;
  return finished(join(say(clause), clause.verb->stative ? Phrase{} : speaker.time(clause.tense, 12)), '?');
}

Pair modal(Speaker& speaker) {
  Clause clause = speaker.action(speaker.verb(speaker.chance(70) ? "act" : "do"));
  if (clause.verb->stative || clause.verb->unwilled) return {};
  static constexpr std::array moods = {Mood::can, Mood::want, Mood::must};
  clause.mood = speaker.random().pick(moods);
  clause.tense = speaker.chance(75) ? Tense::present : Tense::past;
  if (clause.tense == Tense::present || clause.mood != Mood::must) clause.negated = speaker.chance(20);
  if (odd(clause)) return {};
  const bool ask = clause.mood != Mood::must && !clause.negated && speaker.chance(20);
  clause.question = ask;
  return finished(say(clause), ask ? '?' : '.');
}

/// Anna sees me: in Italian the pronoun precedes the verb.
Pair pronoun_object(Speaker& speaker) {
  const Tags people_tags = speaker.words().mask("person");
  const Verb& verb = speaker.verb("act");
  if ((verb.objects & people_tags) == 0) return {};
  Clause clause{.subject = speaker.person(), .verb = &verb, .tense = speaker.tense(verb)};
  const NounPhrase whom = speaker.pronoun();
  const Person other = number_of(whom.person) == Number::plural ? Person::first : Person::first_plural;
  if (whom.person == clause.subject.person ||
      (whom.person != Person::third && clause.subject.person == other))
    return {};
  clause.direct = Clitic{whom.person, whom.gender};
  if (!verb.stative && speaker.chance(20)) {
    clause.tense = Tense::present;
    clause.mood = speaker.chance(50) ? Mood::want : Mood::can;
  }
  clause.negated = clause.tense != Tense::used_to && speaker.chance(20);
  clause.question = clause.tense != Tense::used_to && !clause.negated && speaker.chance(15);
  return finished(join(say(clause), verb.stative ? Phrase{} : speaker.time(clause.tense, 10)),
                  clause.question ? '?' : '.');
}

Pair doing(Speaker& speaker) {
  Clause clause = speaker.action(speaker.verb("do"));
  const int64_t kind = speaker.random().below(10);
  if (kind < 3)
    clause.rest = speaker.random().pick(speaker.words().manners);
  else if (kind < 7)
    clause.rest = speaker.place().at;
  if (clause.tense == Tense::present && speaker.chance(25)) clause.frequency = frequency(speaker);
  const bool fixed = clause.tense == Tense::used_to || clause.frequency.english == "never";
  clause.negated = !fixed && speaker.chance(15);
  if (odd(clause)) return {};
  return finished(timed(speaker, clause, 25));
}

Pair moving(Speaker& speaker) {
  Clause clause = speaker.action(speaker.verb("go"));
  clause.rest =
      clause.verb->english.base != "go" && speaker.chance(40) ? speaker.place().from : speaker.place().to;
  const bool fixed = clause.tense == Tense::used_to;
  clause.negated = !fixed && speaker.chance(12);
  if (odd(clause)) return {};
  clause.question = !fixed && !clause.negated && speaker.chance(15);
  const Phrase words =
      clause.question ? join(say(clause), speaker.time(clause.tense, 25)) : timed(speaker, clause, 40);
  return finished(words, clause.question ? '?' : '.');
}

Pair staying(Speaker& speaker) {
  const bool stays = speaker.chance(60);
  Clause clause = speaker.action(stays ? speaker.verb("stay") : speaker.verb("leave"));
  if (stays) clause.rest = clause.verb->stative ? speaker.town().at : speaker.place().at;
  clause.negated = clause.tense != Tense::used_to && speaker.chance(10);
  if (odd(clause)) return {};
  return finished(timed(speaker, clause, stays ? 30 : 70));
}

Pair rising(Speaker& speaker) {
  Clause clause = speaker.action(speaker.verb("self"));
  const bool want = clause.tense == Tense::present && !clause.verb->unwilled && speaker.chance(20);
  if (want) clause.mood = speaker.chance(50) ? Mood::must : Mood::want;
  clause.negated = clause.tense != Tense::used_to && speaker.chance(15);
  if (clause.tense == Tense::present && !want && speaker.chance(20)) clause.frequency = frequency(speaker);
  if (clause.frequency.english == "never") clause.negated = false;
  if (odd(clause)) return {};
  if (clause.tense == Tense::progressive) return finished(say(clause));
  return finished(speaker.chance(40) ? join(say(clause), speaker.clock()) : timed(speaker, clause, 45));
}

Clause being(Speaker& speaker, const NounPhrase& subject) {
  Clause clause{.subject = subject, .verb = &speaker.words().verb("be")};
  const int64_t drawn = speaker.random().below(100);
  if (drawn >= 60) clause.tense = drawn < 85 ? Tense::past : Tense::future;
  return clause;
}

Pair quality(Speaker& speaker) {
  const Lexicon& words = speaker.words();
  const bool person = speaker.chance(50);
  const Tags tags =
      words.mask(person ? "person" : "animal object food building town text song film nature room lesson");
  const Noun& noun = speaker.noun(tags);
  const NounPhrase subject = person ? speaker.person() : speaker.known(noun, speaker.pronoun());
  Clause clause = being(speaker, subject);
  const Tags fit =
      subject.tags == 0 || (subject.tags & words.mask("family")) != 0 ? words.mask("person") : subject.tags;
  const Adjective& how = speaker.predicate(fit);
  if (says(subject, how)) return {};
  clause.object = predicate(how, subject);
  clause.question = speaker.chance(18);
  clause.negated = !clause.question && speaker.chance(18);
  if (odd(clause)) return {};
  const Phrase very{"very", "molto"};
  if (!clause.question && how.graded && speaker.chance(18)) clause.object = join(very, clause.object);
  return finished(say(clause), clause.question ? '?' : '.');
}

Pair position(Speaker& speaker) {
  const NounPhrase owner = speaker.pronoun();
  const NounPhrase subject = speaker.known(speaker.noun("thing clothes text pet fruit"), owner);
  if (speaker.chance(25)) {
    const bool plural = subject.number() == Number::plural, past = speaker.chance(30);
    const char* are = past ? (plural ? "dove erano" : "dov'era") : plural ? "dove sono" : "dov'è";
    const char* be = past ? (plural ? "where were" : "where was") : plural ? "where are" : "where is";
    return finished({join(be, subject.english), join(are, subject.full())}, '?');
  }
  Clause clause = being(speaker, subject);
  clause.negated = speaker.chance(15);
  clause.question = !clause.negated && speaker.chance(15);
  clause.object = spot(speaker, nobody(), subject.tags);
  return finished(say(clause), clause.question ? '?' : '.');
}

Pair existence(Speaker& speaker) {
  const Noun& noun = speaker.noun("thing clothes text animal fruit person furniture");
  Company company{.determiner = Determiner::indefinite};
  if (speaker.chance(45)) company = {.determiner = Determiner::counted, .number = Number::plural};
  if (company.number == Number::plural && speaker.chance(40)) company.determiner = Determiner::many;
  if (speaker.chance(40)) company.after = speaker.adjective(noun, false);
  const NounPhrase what = speaker.phrase(noun, company);
  const bool plural = what.number() == Number::plural, past = speaker.chance(30);
  const Phrase be = past ? (plural ? Phrase{"there were", "c'erano"} : Phrase{"there was", "c'era"})
                         : (plural ? Phrase{"there are", "ci sono"} : Phrase{"there is", "c'è"});
  return finished(join(be, join(Phrase{what.english, what.full()}, spot(speaker, nobody(), noun.tags))));
}

Pair putting(Speaker& speaker) {
  Clause clause = speaker.action(speaker.verb("put"));
  clause.rest = spot(speaker, nobody());
  return finished(say(clause));
}

/// In Italian the person who likes is the indirect object, and the verb agrees with the thing.
Pair liking(Speaker& speaker) {
  const Verb& verb = speaker.words().verb("like");
  const NounPhrase who = speaker.person();
  const Noun& noun =
      speaker.noun("food drink town film song music text building clothes lesson animal picked");
  const NounPhrase what = speaker.known(noun, who);
  Clause english{.subject = who, .verb = &verb, .object = {what.english, ""}};
  const int64_t kind = speaker.random().below(10);
  if (kind > 6) english.tense = kind == 9 ? Tense::future : Tense::past;
  english.negated = speaker.chance(20);
  english.question = !english.negated && speaker.chance(20);
  Clause italian = english;
  italian.subject = what;
  italian.object = {};
  italian.subject_last = true;
  std::string front;
  const bool they = who.person == Person::third_plural;
  if (!who.italian.empty())
    front = who.after(Preposition::to);
  else if (they)
    front = "a loro";
  else
    italian.indirect = Clitic{who.person, who.gender};
  if (speaker.chance(22)) {
    const Verb& deed = speaker.verb("do");
    english.object = {"to " + deed.english.base, ""};
    italian.subject = {.italian = deed.italian.infinitive};
  }
  return finished({say(english).english, join(front, say(italian).italian)}, english.question ? '?' : '.');
}

Pair giving(Speaker& speaker) {
  Clause clause = speaker.action(speaker.verb("give"));
  const bool fixed = clause.tense == Tense::used_to;
  clause.negated = !fixed && speaker.chance(12);
  clause.question = !fixed && !clause.negated && speaker.chance(12);
  NounPhrase whom = speaker.person();
  if (whom.italian.empty()) {
    const bool same = whom.person == clause.subject.person && whom.person != Person::third;
    const bool we = whom.person == Person::first_plural || clause.subject.person == Person::first_plural;
    const bool me = whom.person == Person::first || clause.subject.person == Person::first;
    const bool second = number_of(whom.person) != number_of(clause.subject.person) &&
                        whom.person != Person::third && whom.person != Person::third_plural;
    if (same || (we && me) || second) return {};
    clause.indirect = Clitic{whom.person, whom.gender};
  } else {
    clause.rest = {join("to", whom.english), whom.after(Preposition::to)};
  }
  if (odd(clause) || whom.english == clause.subject.english) return {};
  if (whom.english == "you" && clause.object.english.starts_with("all ")) return {};
  return finished(join(say(clause), speaker.time(clause.tense, 10)), clause.question ? '?' : '.');
}

/// Commands and proposals.
Pair order(Speaker& speaker) {
  static constexpr std::array frames = {"act", "act", "act", "give", "do", "self"};
  const Verb& verb = speaker.verb(speaker.random().pick(frames));
  if (verb.stative || verb.unwilled) return {};
  Clause clause = speaker.action(verb);
  const bool us = verb.frame != "self" && speaker.chance(30);
  clause.subject = {.person = us ? Person::first_plural : Person::second};
  if (verb.objects != 0) {
    const NounPhrase what = speaker.object(speaker.noun(verb.objects), clause.subject);
    clause.object = {what.english, what.full()};
  }
  if (verb.frame == "do" && speaker.chance(50)) clause.rest = speaker.place().at;
  if (us) return finished(proposal(clause), '!');
  clause.negated = speaker.chance(30);
  if (odd(clause)) return {};
  if (verb.frame == "give") {
    const NounPhrase whom = speaker.pronoun();
    if (whom.person == Person::second || whom.person == Person::second_plural) return {};
    clause.indirect = Clitic{whom.person, whom.gender};
  }
  return finished(command(clause), '!');
}

/// Hunger, haste and age: Italian uses avere.
Pair having(Speaker& speaker) {
  static const std::array<Phrase, 7> states = {
      Phrase{"hungry", "fame"}, {"thirsty", "sete"},  {"sleepy", "sonno"}, {"afraid", "paura"},
      {"in a hurry", "fretta"}, {"right", "ragione"}, {"wrong", "torto"}};
  static const Verb be_or_have{
      .english = {"be", "was"}, .italian = speaker.words().verb("act", "avere").italian, .stative = true};
  Clause clause{.subject = speaker.person(), .verb = &be_or_have};
  const int64_t drawn = speaker.random().below(100);
  if (drawn >= 65) clause.tense = drawn < 90 ? Tense::past : Tense::future;
  if (speaker.chance(30)) {
    const Phrase& number = speaker.random().pick(speaker.words().numbers);
    // vent'anni, trent'anni, cent'anni; but sette anni, undici anni.
    std::string italian = number.italian;
    const bool round = italian == "venti" || italian.ends_with("ta") || italian == "cento";
    if (round) italian.back() = '\'';
    clause.object = {number.english + " years old", join(italian, "anni")};
    return finished(say(clause));
  }
  if (speaker.chance(25)) {
    const NounPhrase fear = speaker.known(speaker.noun("animal"), nobody());
    clause.object = {join("afraid of", fear.english), join("paura", fear.after(Preposition::of))};
  } else {
    clause.object = speaker.random().pick(states);
  }
  clause.question = speaker.chance(20);
  clause.negated = !clause.question && speaker.chance(20);
  return finished(say(clause), clause.question ? '?' : '.');
}

Pair profession(Speaker& speaker) {
  const Noun& job = speaker.noun("job");
  const NounPhrase who = speaker.name(job.gender);
  Clause clause = being(speaker, who);
  Company company{.determiner = Determiner::indefinite};
  if (speaker.chance(50)) company.after = speaker.adjective(job, false);
  const NounPhrase what = speaker.phrase(job, company);
  clause.object = {what.english, what.full()};
  clause.question = speaker.chance(20);
  return finished(say(clause), clause.question ? '?' : '.');
}

constexpr std::array patterns = {Pattern{22, statement}, Pattern{7, negation},       Pattern{7, question},
                                 Pattern{6, modal},      Pattern{6, pronoun_object}, Pattern{6, doing},
                                 Pattern{7, moving},     Pattern{4, staying},        Pattern{3, rising},
                                 Pattern{8, quality},    Pattern{6, position},       Pattern{4, existence},
                                 Pattern{3, putting},    Pattern{7, liking},         Pattern{7, giving},
                                 Pattern{5, order},      Pattern{3, having},         Pattern{2, profession}};

}  // namespace

std::span<const Pattern> simple_patterns() { return patterns; }

}  // namespace heed::phrases
