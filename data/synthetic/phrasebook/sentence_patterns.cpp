// Sentences of one clause.
#include <array>

#include "heed/data/synthetic/phrasebook/sentence_patterns.h"

namespace heed::phrases {
namespace {

using italian::Preposition;

/// The clause with a time phrase in `percent` of 100 calls, at the end or, more rarely, in front.
Phrase timed(WordChooser& choose, const Clause& clause, int64_t percent) {
  const Phrase time = clause.verb->stative ? Phrase{} : choose.time(clause.tense, percent);
  const bool front = choose.chance(20);
  return front ? join({time, realize(clause)}) : join({realize(clause), time});
}

/// An adverb of frequency: "always", "often", "never".
Phrase frequency(WordChooser& choose) {
  static const std::vector<Phrase> words = phrase_table("frequencies");
  return choose.rng().pick(words);
}

/// The rows of relations.tsv. Italian takes the article after the first two, `a` after the next two, `su`
/// after the last.
enum Relation : int64_t { under, behind, near, in_front_of, on };

/// A position relative to a thing: "under the chair", "sotto la sedia".
Phrase relative_to(const NounPhrase& thing, int64_t relation) {
  static const std::vector<Phrase> words = phrase_table("relations");
  const Phrase& word = words[static_cast<size_t>(relation)];
  const std::string italian = relation < near ? thing.full()
                              : relation < on ? thing.after(Preposition::to)
                                              : thing.after(Preposition::on);
  return {join(word.english, thing.english), join(word.italian, italian)};
}

/// The location of something with these tags: "on the table", "in the old box", "near the bed". People and
/// animals are never on or under a thing.
Phrase location(WordChooser& choose, const NounPhrase& owner, Tags what = 0) {
  const bool alive = has_tag(what, "person animal");
  const int64_t drawn = alive ? choose.rng().between(5, 9) : choose.rng().below(10);
  if (drawn < 4) return relative_to(choose.definite_or_possessive(choose.noun("surface"), owner), on);
  if (drawn < 7) {
    const NounPhrase inside =
        choose.definite_or_possessive(choose.noun(alive ? "room" : "holds room"), owner);
    return {join("in", inside.english), inside.after(Preposition::in)};
  }
  const int64_t relation = alive ? choose.rng().between(behind, in_front_of) : choose.rng().below(on);
  const char* tags = alive               ? "opens building land"
                     : relation == under ? "surface roof"
                                         : "surface opens building land";
  return relative_to(choose.definite_or_possessive(choose.noun(tags), owner), relation);
}

/// An owner that no possessive refers to, since "your" of several people is avoided.
const NounPhrase& nobody() {
  static const NounPhrase none{.person = Person::second_plural};
  return none;
}

/// A statement: "Anna often reads the book in the evening."
Pair statement(WordChooser& choose) {
  Clause clause = choose.action(choose.verb("act"));
  const bool habit = clause.tense == Tense::present || clause.tense == Tense::used_to;
  if (habit && !clause.verb->stative && choose.chance(20)) clause.frequency = frequency(choose);
  if (is_unidiomatic(clause)) return {};
  return sentence_pair(timed(choose, clause, 22));
}

/// A negated statement: "Anna does not read the book."
Pair negation(WordChooser& choose) {
  Clause clause = choose.action(choose.verb("act"));
  if (clause.tense == Tense::used_to) return {};
  clause.negated = true;
  if (is_unidiomatic(clause)) return {};
  return sentence_pair(timed(choose, clause, 10));
}

/// A question without a question word: "Did Anna read the book yesterday?"
Pair question(WordChooser& choose) {
  Clause clause = choose.action(choose.verb("act"));
  if (clause.tense == Tense::used_to) return {};
  clause.question = true;
  const Phrase time = clause.verb->stative ? Phrase{} : choose.time(clause.tense, 12);
  return sentence_pair(join({realize(clause), time}), '?');
}

/// A clause with can, want or must: "Can Anna read the book?"
Pair modal(WordChooser& choose) {
  Clause clause = choose.action(choose.verb(choose.chance(70) ? "act" : "do"));
  if (clause.verb->stative || clause.verb->involuntary) return {};
  static constexpr std::array moods = {Mood::can, Mood::want, Mood::must};
  clause.mood = choose.rng().pick(moods);
  clause.tense = choose.chance(75) ? Tense::present : Tense::past;
  if (clause.tense == Tense::present || clause.mood != Mood::must) clause.negated = choose.chance(20);
  if (is_unidiomatic(clause)) return {};
  clause.question = clause.mood != Mood::must && !clause.negated && choose.chance(20);
  return sentence_pair(clause);
}

/// A pronoun as the object, which precedes the verb in Italian: "Anna sees me", "Anna mi vede". No pairs such
/// as "I see us" and "you see you".
Pair pronoun_object(WordChooser& choose) {
  const Verb& verb = choose.verb("act");
  if (!has_tag(verb.objects, "person")) return {};
  Clause clause{.subject = choose.person(), .verb = &verb, .tense = choose.tense(verb)};
  const NounPhrase whom = choose.pronoun();
  const Person overlapping = number_of(whom.person) == Number::plural ? Person::first : Person::first_plural;
  if (whom.person == clause.subject.person ||
      (whom.person != Person::third && clause.subject.person == overlapping))
    return {};
  clause.direct = whom.clitic();
  if (!verb.stative && choose.chance(20)) {
    clause.tense = Tense::present;
    clause.mood = choose.chance(50) ? Mood::want : Mood::can;
  }
  clause.negated = clause.tense != Tense::used_to && choose.chance(20);
  clause.question = clause.tense != Tense::used_to && !clause.negated && choose.chance(15);
  return sentence_pair(join({realize(clause), verb.stative ? Phrase{} : choose.time(clause.tense, 10)}),
                       clause.question ? '?' : '.');
}

/// A verb without an object: "The child always sleeps at school."
Pair doing(WordChooser& choose) {
  Clause clause = choose.action(choose.verb("do"));
  const int64_t drawn = choose.rng().below(10);
  if (drawn < 3)
    clause.rest = choose.rng().pick(lexicon().adverbs);
  else if (drawn < 7)
    clause.rest = choose.place().at;
  if (clause.tense == Tense::present && choose.chance(25)) clause.frequency = frequency(choose);
  const bool affirmative_only = clause.tense == Tense::used_to || clause.frequency.english == "never";
  clause.negated = !affirmative_only && choose.chance(15);
  if (is_unidiomatic(clause)) return {};
  return sentence_pair(timed(choose, clause, 25));
}

/// A verb of motion and a place: "We went to the market yesterday."
Pair moving(WordChooser& choose) {
  Clause clause = choose.action(choose.verb("go"));
  clause.rest =
      clause.verb->english.base != "go" && choose.chance(40) ? choose.place().from : choose.place().to;
  const bool statement_only = clause.tense == Tense::used_to;
  clause.negated = !statement_only && choose.chance(12);
  if (is_unidiomatic(clause)) return {};
  clause.question = !statement_only && !clause.negated && choose.chance(15);
  const Phrase words =
      clause.question ? join({realize(clause), choose.time(clause.tense, 25)}) : timed(choose, clause, 40);
  return sentence_pair(words, clause.question ? '?' : '.');
}

/// A verb of staying or leaving: "They will stay at home." "She left on Monday."
Pair staying(WordChooser& choose) {
  const bool stays = choose.chance(60);
  Clause clause = choose.action(stays ? choose.verb("stay") : choose.verb("leave"));
  if (stays) clause.rest = clause.verb->stative ? choose.town().at : choose.place().at;
  clause.negated = clause.tense != Tense::used_to && choose.chance(10);
  if (is_unidiomatic(clause)) return {};
  return sentence_pair(timed(choose, clause, stays ? 30 : 70));
}

/// A reflexive verb: "I get up at seven o'clock", "Mi alzo alle sette".
Pair rising(WordChooser& choose) {
  Clause clause = choose.action(choose.verb("self"));
  const bool is_modal = clause.tense == Tense::present && !clause.verb->involuntary && choose.chance(20);
  if (is_modal) clause.mood = choose.chance(50) ? Mood::must : Mood::want;
  clause.negated = clause.tense != Tense::used_to && choose.chance(15);
  if (clause.tense == Tense::present && !is_modal && choose.chance(20)) clause.frequency = frequency(choose);
  if (clause.frequency.english == "never") clause.negated = false;
  if (is_unidiomatic(clause)) return {};
  if (clause.tense == Tense::progressive) return sentence_pair(clause);
  return sentence_pair(choose.chance(40) ? join({realize(clause), choose.clock()})
                                         : timed(choose, clause, 45));
}

/// A clause with to be in a random tense, without its complement: "Anna is", "Anna was", "Anna will be".
Clause being(WordChooser& choose, const NounPhrase& subject) {
  Clause clause{.subject = subject, .verb = &lexicon().verb("be")};
  const int64_t drawn = choose.rng().below(100);
  if (drawn >= 60) clause.tense = drawn < 85 ? Tense::past : Tense::future;
  return clause;
}

/// A quality of a person or thing: "The big house is not very old."
Pair quality(WordChooser& choose) {
  const bool person = choose.chance(50);
  const Tags tags = lexicon().mask(
      person ? "person" : "animal object food building town text song film nature room lesson");
  const Noun& noun = choose.noun(tags);
  const NounPhrase subject = person ? choose.person() : choose.definite_or_possessive(noun, choose.pronoun());
  Clause clause = being(choose, subject);
  const Tags fit =
      subject.tags == 0 || has_tag(subject.tags, "family") ? lexicon().mask("person") : subject.tags;
  const Adjective& how = choose.predicate_adjective(fit);
  if (contains(subject, how)) return {};
  clause.object = predicate_adjective(how, subject);
  clause.question = choose.chance(18);
  clause.negated = !clause.question && choose.chance(18);
  if (is_unidiomatic(clause)) return {};
  if (!clause.question && how.gradable && choose.chance(18))
    clause.object = join({{"very", "molto"}, clause.object});
  return sentence_pair(clause);
}

/// The position of a thing, or the question for it: "The key is under the chair." "Where is my key?"
Pair position(WordChooser& choose) {
  const NounPhrase owner = choose.pronoun();
  const NounPhrase subject =
      choose.definite_or_possessive(choose.noun("thing clothes text pet fruit"), owner);
  if (choose.chance(25)) {
    const bool plural = subject.number() == Number::plural, past = choose.chance(30);
    const char* are = past ? (plural ? "dove erano" : "dov'era") : plural ? "dove sono" : "dov'è";
    const char* be = past ? (plural ? "where were" : "where was") : plural ? "where are" : "where is";
    return sentence_pair({join(be, subject.english), join(are, subject.full())}, '?');
  }
  Clause clause = being(choose, subject);
  clause.negated = choose.chance(15);
  clause.question = !clause.negated && choose.chance(15);
  clause.object = location(choose, nobody(), subject.tags);
  return sentence_pair(clause);
}

/// What is at a place: "There are three old books on the table."
Pair existence(WordChooser& choose) {
  const Noun& noun = choose.noun("thing clothes text animal fruit person furniture");
  NounModifiers modifiers{.determiner = Determiner::indefinite};
  if (choose.chance(45)) modifiers = {.determiner = Determiner::counted, .number = Number::plural};
  if (modifiers.number == Number::plural && choose.chance(40)) modifiers.determiner = Determiner::many;
  if (choose.chance(40)) modifiers.after = choose.adjective(noun, false);
  const NounPhrase what = choose.phrase(noun, modifiers);
  const bool plural = what.number() == Number::plural, past = choose.chance(30);
  const Phrase be = past ? (plural ? Phrase{"there were", "c'erano"} : Phrase{"there was", "c'era"})
                         : (plural ? Phrase{"there are", "ci sono"} : Phrase{"there is", "c'è"});
  return sentence_pair(join({be, what.phrase(), location(choose, nobody(), noun.tags)}));
}

/// Moving a thing to a place: "Marco puts the hat on the bed."
Pair putting(WordChooser& choose) {
  Clause clause = choose.action(choose.verb("put"));
  clause.rest = location(choose, nobody());
  return sentence_pair(clause);
}

/// Liking: "I like the book", "Mi piace il libro". In Italian the person is the indirect object, and the verb
/// agrees with the thing.
Pair liking(WordChooser& choose) {
  const Verb& verb = lexicon().verb("like");
  const NounPhrase who = choose.person();
  const Noun& noun =
      choose.noun("food drink town film song music text building clothes lesson animal picked");
  const NounPhrase what = choose.definite_or_possessive(noun, who);
  Clause english{.subject = who, .verb = &verb, .object = {what.english, ""}};
  const int64_t drawn = choose.rng().below(10);
  if (drawn > 6) english.tense = drawn == 9 ? Tense::future : Tense::past;
  english.negated = choose.chance(20);
  english.question = !english.negated && choose.chance(20);
  Clause italian = english;
  italian.subject = what;
  italian.object = {};
  italian.subject_last = true;
  std::string to_whom;  // "a Anna"; empty where a clitic pronoun says it
  if (!who.italian.empty())
    to_whom = who.after(Preposition::to);
  else if (who.person == Person::third_plural)
    to_whom = "a loro";
  else
    italian.indirect = who.clitic();
  if (choose.chance(22)) {
    const Verb& deed = choose.verb("do");
    english.object = {"to " + deed.english.base, ""};
    italian.subject = {.italian = deed.italian.infinitive};
  }
  return sentence_pair({realize(english).english, join(to_whom, realize(italian).italian)},
                       english.question ? '?' : '.');
}

/// Giving, to a pronoun or a name: "Anna gave me the key." "Anna gave the key to Marco." Pairs such as "we
/// gave me" and "you gave you all" are left out.
Pair giving(WordChooser& choose) {
  Clause clause = choose.action(choose.verb("give"));
  const bool statement_only = clause.tense == Tense::used_to;
  clause.negated = !statement_only && choose.chance(12);
  clause.question = !statement_only && !clause.negated && choose.chance(12);
  const NounPhrase whom = choose.person();
  if (whom.italian.empty()) {
    const bool is_reflexive = whom.person == clause.subject.person && whom.person != Person::third;
    const bool has_we = whom.person == Person::first_plural || clause.subject.person == Person::first_plural;
    const bool has_me = whom.person == Person::first || clause.subject.person == Person::first;
    const bool differs_in_number = number_of(whom.person) != number_of(clause.subject.person) &&
                                   whom.person != Person::third && whom.person != Person::third_plural;
    if (is_reflexive || (has_we && has_me) || differs_in_number) return {};
    clause.indirect = whom.clitic();
  } else {
    clause.rest = {join("to", whom.english), whom.after(Preposition::to)};
  }
  if (is_unidiomatic(clause) || whom.english == clause.subject.english) return {};
  if (whom.english == "you" && clause.object.english.starts_with("all ")) return {};
  return sentence_pair(join({realize(clause), choose.time(clause.tense, 10)}), clause.question ? '?' : '.');
}

/// A command or a proposal: "Open the window!" "Let's open the window!"
Pair order(WordChooser& choose) {
  static constexpr std::array frames = {"act", "act", "act", "give", "do", "self"};
  const Verb& verb = choose.verb(choose.rng().pick(frames));
  if (verb.stative || verb.involuntary) return {};
  Clause clause = choose.action(verb);
  const bool is_proposal = verb.frame != "self" && choose.chance(30);
  clause.subject = {.person = is_proposal ? Person::first_plural : Person::second};
  if (verb.objects != 0) clause.object = choose.object(choose.noun(verb.objects), clause.subject).phrase();
  if (verb.frame == "do" && choose.chance(50)) clause.rest = choose.place().at;
  if (is_proposal) return sentence_pair(proposal(clause), '!');
  clause.negated = choose.chance(30);
  if (is_unidiomatic(clause)) return {};
  if (verb.frame == "give") {
    const NounPhrase whom = choose.pronoun();
    if (whom.person == Person::second || whom.person == Person::second_plural) return {};
    clause.indirect = whom.clitic();
  }
  return sentence_pair(imperative(clause), '!');
}

/// Hunger, haste, fear and age, where Italian uses avere: "Anna is hungry", "Anna ha fame".
Pair having(WordChooser& choose) {
  static const std::vector<Phrase> states = phrase_table("states");
  static const Verb be_or_have{
      .english = {"be", "was"}, .italian = lexicon().verb("act", "avere").italian, .stative = true};
  Clause clause{.subject = choose.person(), .verb = &be_or_have};
  const int64_t drawn = choose.rng().below(100);
  if (drawn >= 65) clause.tense = drawn < 90 ? Tense::past : Tense::future;
  if (choose.chance(30)) {
    const Phrase& number = choose.rng().pick(lexicon().numbers);
    // vent'anni, trent'anni, cent'anni; but sette anni, undici anni.
    std::string italian = number.italian;
    const bool is_elided = italian == "venti" || italian.ends_with("ta") || italian == "cento";
    if (is_elided) italian.back() = '\'';
    clause.object = {number.english + " years old", join(italian, "anni")};
    return sentence_pair(clause);
  }
  if (choose.chance(25)) {
    const NounPhrase fear = choose.definite_or_possessive(choose.noun("animal"), nobody());
    clause.object = {join("afraid of", fear.english), join("paura", fear.after(Preposition::of))};
  } else {
    clause.object = choose.rng().pick(states);
  }
  clause.question = choose.chance(20);
  clause.negated = !clause.question && choose.chance(20);
  return sentence_pair(clause);
}

/// A profession: "Anna is a good doctor."
Pair profession(WordChooser& choose) {
  const Noun& job = choose.noun("job");
  const NounPhrase who = choose.name(job.gender);
  Clause clause = being(choose, who);
  NounModifiers modifiers{.determiner = Determiner::indefinite};
  if (choose.chance(50)) modifiers.after = choose.adjective(job, false);
  clause.object = choose.phrase(job, modifiers).phrase();
  clause.question = choose.chance(20);
  return sentence_pair(clause);
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
