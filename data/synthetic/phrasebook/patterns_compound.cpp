// Sentences of two clauses, and comparisons.
#include <array>

#include "heed/data/synthetic/phrasebook/english.h"
#include "heed/data/synthetic/phrasebook/sentence_patterns.h"

namespace heed::phrases {
namespace {

using italian::Preposition;

Phrase with_comma(const Phrase& words) { return {words.english + ",", words.italian + ","}; }

/// True for subjects that "he" or "she" refers to: people, names (which have no tags) and pronouns.
bool is_animate(const NounPhrase& who) { return who.tags == 0 || has_tag(who.tags, "person family"); }

/// A second action with the same thing, different from the first.
const Verb* second_action(WordChooser& choose, const Noun& thing, const Verb& first) {
  std::vector<const Verb*> fit;
  for (const Verb* verb : lexicon().verbs_of("act")) {
    if (verb != &first && !verb->stative && (verb->objects & thing.tags) != 0) fit.push_back(verb);
  }
  return fit.empty() ? nullptr : choose.rng().pick(fit);
}

/// Two actions with one thing, whose pronoun agrees with the noun: "Anna buys the red book and reads it."
Pair chain(WordChooser& choose) {
  const Verb& first = choose.verb("act");
  if (!first.starts_chain) return {};
  Clause clause{.subject = choose.subject(first.subjects), .verb = &first, .tense = choose.tense(first)};
  if (clause.tense == Tense::progressive) clause.tense = Tense::past;
  const Noun& thing = choose.noun(first.objects);
  const NounPhrase what = choose.object(thing, clause.subject);
  clause.object = what.phrase();
  const bool gives = choose.chance(25);
  const Verb* second = gives ? &choose.verb("give") : second_action(choose, thing, first);
  if (second == nullptr || (gives && (second->objects & thing.tags) == 0)) return {};
  if ((second->subjects & clause.subject.tags) == 0 && !is_animate(clause.subject)) return {};
  Clause next{.subject = clause.subject, .verb = second, .tense = clause.tense, .silent_subject = true};
  next.direct = what.clitic();
  next.direct_is_thing = !has_tag(thing.tags, "person");
  if (gives) {
    const NounPhrase whom = choose.pronoun();
    const auto is_third = [](const NounPhrase& who) {
      return who.person == Person::third || who.person == Person::third_plural;
    };
    if (!is_third(whom) && !is_third(clause.subject)) return {};  // no "I give it to us"
    if (choose.chance(35)) {
      const NounPhrase named = choose.chance(60) ? choose.name() : choose.family();
      next.rest = {join("to", named.english), named.after(Preposition::to)};
    } else {
      next.indirect = whom.clitic();
    }
  }
  if (has_ambiguous_tense(clause) || has_ambiguous_tense(next)) clause.tense = next.tense = Tense::present;
  if (clause.tense == Tense::used_to) clause.tense = next.tense = Tense::present;
  const Phrase end = realize(next);
  if (!gives && choose.chance(18) && clause.tense != Tense::future) {
    next.negated = true;
    return sentence_pair(join({realize(clause), {"but", "ma"}, realize(next)}));
  }
  const bool has_time = choose.chance(15);
  const Phrase time = choose.time(clause.tense, has_time ? 100 : 0);
  return sentence_pair(join({time, realize(clause), {"and", italian::conjunction(end.italian)}, end}));
}

/// Two commands about one thing: "Buy the book and read it!"
Pair command_chain(WordChooser& choose) {
  const Verb& first = choose.verb("act");
  if (!first.starts_chain || first.involuntary) return {};
  const Noun& thing = choose.noun(first.objects);
  const NounPhrase you{.person = Person::second};
  const NounPhrase what = choose.object(thing, you);
  const Verb* second = second_action(choose, thing, first);
  if (second == nullptr || second->involuntary) return {};
  const Clause left{.subject = you, .verb = &first, .object = what.phrase()};
  Clause right{.subject = you, .verb = second};
  right.direct = what.clitic();
  right.direct_is_thing = !has_tag(thing.tags, "person");
  const Phrase end = imperative(right);
  return sentence_pair(join({imperative(left), {"and", italian::conjunction(end.italian)}, end}), '!');
}

/// The thing compared with, which follows "than", or "as" where `equal`; in Italian it follows "di", or
/// "come".
Phrase comparison_standard(const NounPhrase& other, bool equal) {
  if (other.italian.empty()) {
    const std::string& word = form(Form::stressed_object, other.person, other.gender);
    return {form(Form::object, other.person, other.gender), equal ? word : "di " + word};
  }
  return {other.english, equal ? other.full() : other.after(Preposition::of)};
}

/// A comparison: "Anna is taller than Marco." "The house is as old as the bridge."
Pair comparison(WordChooser& choose) {
  const bool people_only = choose.chance(50);
  const Tags tags =
      lexicon().mask(people_only ? "person" : "animal object food building town text song film lesson");
  const Noun& left_noun = choose.noun(tags);
  const NounPhrase left =
      people_only ? choose.person() : choose.definite_or_possessive(left_noun, choose.name());
  const Tags fit = people_only ? lexicon().mask("person") : left_noun.tags;
  const auto thing_of_somebody = [&] {
    const NounPhrase owner = choose.name();
    return choose.definite_or_possessive(choose.noun(fit), owner);
  };
  const NounPhrase right = people_only ? choose.person() : thing_of_somebody();
  if (left.english == right.english || (left.italian.empty() && right.italian.empty())) return {};
  const Adjective& how = choose.predicate_adjective(fit, Quality::gradable);
  Clause clause{.subject = left, .verb = &lexicon().verb("be")};
  if (choose.chance(25)) clause.tense = Tense::past;
  clause.question = choose.chance(12);
  clause.negated = !clause.question && choose.chance(12);
  if (contains(left, how) || contains(right, how)) return {};
  const Phrase quality = predicate_adjective(how, left);
  const int64_t drawn = choose.rng().below(10);
  const bool equal = drawn >= 8;
  const Phrase standard = comparison_standard(right, equal);
  if (drawn < 6) {
    clause.object = {join({english::comparative(how.word.english), "than", standard.english}),
                     join({"più", quality.italian, standard.italian})};
  } else if (!equal) {
    clause.object = {join({"less", how.word.english, "than", standard.english}),
                     join({"meno", quality.italian, standard.italian})};
  } else {
    clause.object = {join({"as", how.word.english, "as", standard.english}),
                     join({quality.italian, "come", standard.italian})};
  }
  return sentence_pair(clause);
}

/// A superlative: "Marco is the tallest boy in the school."
Pair superlative(WordChooser& choose) {
  const Noun& noun = choose.noun("person animal building town text song film nature vehicle");
  const Adjective& how = choose.predicate_adjective(noun.tags, Quality::gradable);
  const NounPhrase plain = choose.phrase(noun, {});
  const NounPhrase whole = choose.chance(50)
                               ? choose.phrase(choose.noun("inhabited"), {})
                               : NounPhrase{.english = "world", .italian = "mondo", .definite = true};
  const bool world = whole.italian == "mondo";
  const std::string adjective = italian::adjective(how, plain.gender, Number::singular);
  NounPhrase best = plain;
  best.english = join({"the", english::superlative(how.word.english), noun.singular.english, "in",
                       world ? "the world" : whole.english});
  best.italian = join({plain.italian, "più", adjective, whole.after(Preposition::of)});
  const bool person = has_tag(noun.tags, "person");
  NounPhrase who = person ? choose.name(noun.gender) : NounPhrase{.english = "this", .gender = noun.gender};
  if (!person) who.italian = italian::demonstrative_this(noun.gender, Number::singular, "");
  Clause clause{.subject = who, .verb = &lexicon().verb("be"), .object = best.phrase()};
  clause.question = choose.chance(20);
  return sentence_pair(clause);
}

/// The noun with the clause that describes it: "the man who sells the flowers".
NounPhrase with_relative_clause(NounPhrase noun, const char* pronoun, const Clause& clause) {
  const Phrase inner = realize(clause);
  noun.english = join({noun.english, pronoun, inner.english});
  noun.italian = join({noun.italian, "che", inner.italian});
  return noun;
}

/// A relative clause about a subject or an object: "The man who sells the flowers is old." "The book that
/// Anna reads is new."
Pair relative(WordChooser& choose) {
  const Verb& verb = choose.verb(choose.chance(75) ? "act" : "do");
  Clause clause = choose.action(verb);
  if (clause.tense == Tense::used_to) clause.tense = Tense::past;
  Clause main{.verb = &lexicon().verb("be"), .tense = choose.chance(75) ? Tense::present : Tense::past};
  if (verb.objects == 0 || choose.chance(45)) {
    const Noun& noun = choose.noun("person");
    NounModifiers modifiers;
    if (choose.chance(30)) modifiers.number = Number::plural;
    const NounPhrase who = choose.phrase(noun, modifiers);
    clause.subject = who;
    if (verb.objects != 0) clause.object = choose.object(choose.noun(verb.objects), who).phrase();
    if (has_ambiguous_tense(clause)) clause.tense = Tense::present;
    clause.silent_subject = true;
    if (clause.tense == Tense::future) return {};
    main.subject = with_relative_clause(who, "who", clause);
    main.object = predicate_adjective(choose.predicate_adjective(noun.tags), who);
    if (choose.chance(35)) {
      // The whole phrase is the object of another verb: I know the man who sells the flowers.
      const Verb& outer_verb = choose.verb("act");
      if (!has_tag(outer_verb.objects, "person")) return {};
      Clause outer{.subject = choose.person(), .verb = &outer_verb, .tense = choose.tense(outer_verb)};
      if (outer.tense == Tense::used_to) outer.tense = Tense::present;
      outer.object = main.subject.phrase();
      if (has_ambiguous_tense(outer)) return {};
      return sentence_pair(outer);
    }
    return sentence_pair(main);
  }
  const Noun& noun = choose.noun(verb.objects);
  NounModifiers modifiers;
  if (!has_tag(noun.tags, "mass single") && choose.chance(30)) modifiers.number = Number::plural;
  const NounPhrase what = choose.phrase(noun, modifiers);
  clause.object = {};
  if (has_ambiguous_tense(clause)) clause.tense = Tense::present;
  main.subject = with_relative_clause(what, "that", clause);
  main.object = predicate_adjective(choose.predicate_adjective(noun.tags), what);
  return sentence_pair(main);
}

/// A clause and its reason, which describes the subject or the object: "Anna does not read the book because
/// it is long."
Pair because(WordChooser& choose) {
  const Verb& verb = choose.verb(choose.chance(60) ? "act" : "do");
  if (verb.objects != 0 && choose.chance(50)) {
    Clause clause{.subject = choose.person(), .verb = &verb};
    clause.tense = choose.chance(50) ? Tense::present : Tense::past;
    clause.negated = choose.chance(40);
    const Noun& noun = choose.noun(verb.objects);
    const NounPhrase what = choose.definite_or_possessive(noun, clause.subject);
    clause.object = what.phrase();
    if (has_ambiguous_tense(clause) || is_unidiomatic(clause)) return {};
    const bool is_person = has_tag(noun.tags, "person");
    // Between two people of one grammatical person, "he" or "they" could be either.
    if (is_person && what.person == clause.subject.person) return {};
    Clause reason{
        .subject = what.as_pronoun(is_person), .verb = &lexicon().verb("be"), .tense = clause.tense};
    const Adjective& how = choose.predicate_adjective(noun.tags);
    if (contains(what, how)) return {};
    reason.object = predicate_adjective(how, reason.subject);
    return sentence_pair(join({realize(clause), {"because", "perché"}, realize(reason)}));
  }
  Clause clause = choose.action(verb);
  if (clause.tense != Tense::past) clause.tense = Tense::present;
  clause.negated = choose.chance(30);
  if (has_ambiguous_tense(clause) || is_unidiomatic(clause)) return {};
  if (clause.subject.english.starts_with("every ")) return {};
  const bool is_person = is_animate(clause.subject);
  Clause reason{
      .subject = clause.subject.as_pronoun(is_person), .verb = &lexicon().verb("be"), .tense = clause.tense};
  const Adjective& why =
      choose.predicate_adjective(is_person ? lexicon().mask("person") : clause.subject.tags, Quality::state);
  if (contains(clause.subject, why)) return {};
  reason.object = predicate_adjective(why, reason.subject);
  return sentence_pair(join({realize(clause), {"because", "perché"}, realize(reason)}));
}

/// Two clauses with if, when, while or but: "If it rains, we will stay at home." "When it rains, Anna reads."
/// "While Anna was cooking, Marco was reading." "Anna reads the book, but she does not read the letter."
Pair two_clauses(WordChooser& choose) {
  static const std::vector<Phrase> weather = phrase_table("weather");
  const auto action_in = [&](Tense tense) {
    Clause clause = choose.action(choose.verb(choose.chance(50) ? "act" : "do"));
    clause.tense = tense;
    return clause;
  };
  const int64_t drawn = choose.rng().below(10);
  if (drawn < 2) {
    Clause stays = choose.action(choose.verb("stay"));
    stays.tense = Tense::future;
    stays.rest = choose.place().at;
    if (stays.verb->stative || choose.chance(40)) stays = action_in(Tense::future);
    const Phrase condition = join({{"if", "se"}, choose.rng().pick(weather)});
    return sentence_pair(join({with_comma(condition), realize(stays)}));
  }
  if (drawn < 4) {
    const Phrase condition = join({{"when", "quando"}, choose.rng().pick(weather)});
    return sentence_pair(join({with_comma(condition), realize(action_in(Tense::present))}));
  }
  if (drawn < 7) {
    Clause left = action_in(Tense::was_doing), right = action_in(Tense::was_doing);
    if (left.verb == right.verb) return {};
    if (left.subject.italian.empty() && right.subject.italian.empty()) {
      if (left.subject.english == right.subject.english) return {};
      add_stressed_pronoun(left.subject);
      add_stressed_pronoun(right.subject);
    }
    for (const Verb* verb : {left.verb, right.verb}) {
      if (verb->stative || verb->involuntary) return {};
    }
    return sentence_pair(join({with_comma(join({{"while", "mentre"}, realize(left)})), realize(right)}));
  }
  Clause left = choose.action(choose.verb("act"));
  if (left.tense == Tense::used_to) left.tense = Tense::present;
  if (has_ambiguous_tense(left)) return {};
  Clause right = left;
  right.subject = left.subject.as_pronoun(is_animate(left.subject));
  right.object = choose.object(choose.noun(left.verb->objects), left.subject).phrase();
  if (left.object.english == right.object.english) return {};
  right.negated = true;
  if (is_unidiomatic(right)) return {};
  if (left.subject.english.starts_with("every ")) return {};
  return sentence_pair(join({with_comma(realize(left)), {"but", "ma"}, realize(right)}));
}

/// A contrast, in which Italian does not drop the pronouns: "I read and you write", "Io leggo e tu scrivi".
Pair contrast(WordChooser& choose) {
  NounPhrase left = choose.pronoun(), right = choose.chance(70) ? choose.pronoun() : choose.name();
  if (left.person == right.person) return {};
  add_stressed_pronoun(left);
  add_stressed_pronoun(right);
  Clause first = choose.action(choose.verb(choose.chance(60) ? "act" : "do"));
  if (first.tense == Tense::used_to) first.tense = Tense::present;
  Clause second = choose.action(choose.verb(first.verb->frame));
  second.tense = first.tense;
  first.subject = left;
  second.subject = right;
  const bool has_no_progressive =
      first.tense == Tense::progressive && (first.verb->involuntary || second.verb->involuntary);
  if (first.verb->stative || second.verb->stative || has_no_progressive || first.verb == second.verb)
    return {};
  for (Clause* clause : {&first, &second}) {
    if (clause->verb->objects == 0) continue;
    clause->object = choose.object(choose.noun(clause->verb->objects), clause->subject).phrase();
  }
  if (has_ambiguous_tense(first) || has_ambiguous_tense(second)) return {};
  const Phrase end = realize(second);
  const bool has_but = choose.chance(40);
  const Phrase word = has_but ? Phrase{"but", "ma"} : Phrase{"and", italian::conjunction(end.italian)};
  const Phrase start = realize(first);
  return sentence_pair(join({has_but ? with_comma(start) : start, word, end}));
}

/// Reported speech and knowledge: "Marco says that Anna reads the letter." "I know that you sing."
Pair reported(WordChooser& choose) {
  const Verb& verb = lexicon().verb(choose.chance(50) ? "say" : "know");
  Clause outer{.subject = choose.person(), .verb = &verb};
  if (outer.subject.english.starts_with("every ")) return {};
  Clause inner = choose.action(choose.verb(choose.chance(70) ? "act" : "do"));
  if (inner.tense == Tense::used_to) inner.tense = Tense::present;
  outer.negated = verb.frame == "know" && choose.chance(20);
  return sentence_pair(join({realize(outer), {"that", "che"}, realize(inner)}));
}

constexpr std::array compound_patterns = {
    Pattern{22, chain},      Pattern{4, command_chain}, Pattern{6, comparison},
    Pattern{2, superlative}, Pattern{12, relative},     Pattern{10, because},
    Pattern{8, two_clauses}, Pattern{3, contrast},      Pattern{4, reported}};

}  // namespace

std::span<const Pattern> joined_patterns() { return compound_patterns; }

}  // namespace heed::phrases
