// Word order of clauses in English and Italian.
#include "heed/data/synthetic/phrasebook/clause.h"

#include "heed/data/synthetic/phrasebook/english.h"

namespace heed::phrases {
namespace {

/// The modal verb of a mood other than plain; "want" is among the verbs of the frame "act".
const Verb& modal(Mood mood) {
  const Lexicon& words = lexicon();
  return mood == Mood::can    ? words.verb("can")
         : mood == Mood::must ? words.verb("must")
                              : words.verb("act", "volere");
}

/// An English verb cut where "not" and an inverted subject stand: "does" and "read"; the auxiliary may be
/// empty.
struct EnglishGroup {
  std::string auxiliary, main;
};

/// A form of to be.
std::string form_of_be(Person person, bool past) {
  static const EnglishVerb verb{"be", "was"};
  return past ? english::past(verb, person) : english::present(verb, person);
}

/// The English verb in its tense and mood, with the auxiliary that negation or question asks for.
EnglishGroup english_group(const Clause& c) {
  const Person person = c.subject.person;
  const bool past = c.tense == Tense::past;
  const EnglishVerb& verb = c.verb->english;
  if (c.tense == Tense::future) return {"will", verb.base};
  if (c.tense == Tense::used_to) return {"", "used to " + verb.base};
  if (c.tense == Tense::progressive) return {form_of_be(person, false), english::progressive(verb.base)};
  if (c.tense == Tense::was_doing) return {form_of_be(person, true), english::progressive(verb.base)};
  if (c.mood == Mood::can) return {past ? "could" : "can", verb.base};
  if (c.mood == Mood::must && !past) return {"must", verb.base};
  if (c.mood == Mood::plain && verb.base == "be") return {form_of_be(person, past), ""};
  const EnglishVerb finite = c.mood == Mood::plain ? verb : modal(c.mood).english;
  const std::string infinitive = c.mood == Mood::want   ? "to " + verb.base
                                 : c.mood == Mood::must ? verb.base
                                                        : "";
  if (c.negated || c.question) {
    const char* helper = past ? "did" : person == Person::third ? "does" : "do";
    return {helper, join(finite.base, infinitive)};
  }
  return {"", join(past ? english::past(finite, person) : english::present(finite, person), infinitive)};
}

/// English pronouns and object in order: "me the book", "it to me", "the book".
std::string english_objects(const Clause& c) {
  std::string direct, indirect;
  if (c.direct) {
    const bool is_it = c.direct_is_thing && c.direct->person == Person::third;
    direct = is_it ? "it" : form(Form::object, c.direct->person, c.direct->gender);
  }
  if (c.indirect) indirect = form(Form::object, c.indirect->person, c.indirect->gender);
  if (c.direct && c.indirect) indirect = "to " + indirect;
  return c.direct ? join({direct, indirect, c.object.english}) : join({indirect, c.object.english});
}

/// The clause in English: subject, auxiliary, "not", verb, objects; in questions the auxiliary comes first.
std::string realize_english(const Clause& c) {
  EnglishGroup group = english_group(c);
  if (c.silent_subject && c.tense == Tense::future) group.auxiliary.clear();
  const std::string subject = c.silent_subject ? "" : c.subject.english;
  const bool cannot = c.negated && !c.question && group.auxiliary == "can";
  if (cannot) group.auxiliary = "cannot";
  const std::string negation = c.negated && !cannot ? "not" : "";
  return join({c.question ? "" : subject, group.auxiliary, c.question ? subject : "", negation,
               c.frequency.english, group.main, english_objects(c), c.rest.english});
}

/// The pronouns beside the Italian verb, the reflexive one included.
italian::Clitics clitics(const Clause& c) {
  italian::Clitics out{.direct = c.direct, .indirect = c.indirect};
  if (c.verb->italian.reflexive) out.reflexive = c.subject.person;
  return out;
}

/// An Italian verb: pronouns, the finite form, then its participle, gerund or infinitive.
struct ItalianGroup {
  std::string pronouns, finite, main;
};

/// The Italian verb in its tense and mood. A participle agrees with the subject after essere, after avere
/// with a direct pronoun of the third person.
ItalianGroup italian_group(const Clause& c) {
  using italian::Tense;
  const Person person = c.subject.person;
  const ItalianVerb& verb = c.verb->italian;
  const italian::Clitics pronouns = clitics(c);
  const bool past = c.tense == phrases::Tense::past;
  if (c.mood != Mood::plain) {
    const Tense tense = past ? Tense::imperfect : Tense::present;
    return {"", italian::finite(modal(c.mood).italian, tense, person), italian::infinitive(verb, pronouns)};
  }
  ItalianGroup out;
  if (c.tense == phrases::Tense::progressive) {
    out = {"", italian::finite(lexicon().verb("stare").italian, Tense::present, person),
           italian::gerund(verb)};
  } else if (past && !c.verb->stative) {
    const Verb& helper = verb.with_essere ? lexicon().verb("be") : lexicon().verb("act", "avere");
    Gender gender = Gender::masculine;
    Number number = Number::singular;
    if (verb.with_essere) {
      gender = c.subject.gender;
      number = c.subject.number();
    } else if (c.direct && (c.direct->person == Person::third || c.direct->person == Person::third_plural)) {
      gender = c.direct->gender;
      number = number_of(c.direct->person);
    }
    out = {"", italian::finite(helper.italian, Tense::present, person),
           italian::participle(verb, gender, number)};
  } else {
    const bool future = c.tense == phrases::Tense::future, present = c.tense == phrases::Tense::present;
    const Tense tense = future ? Tense::future : present ? Tense::present : Tense::imperfect;
    out.finite = italian::finite(verb, tense, person);
  }
  out.pronouns = italian::proclitics(pronouns, out.finite);
  return out;
}

/// The clause in Italian: subject, "non", pronouns, verb, object.
std::string realize_italian(const Clause& c) {
  const ItalianGroup group = italian_group(c);
  const bool never = c.frequency.english == "never";
  const std::string subject = c.silent_subject ? "" : c.subject.full();
  return join({c.subject_last ? "" : subject, c.negated || never ? "non" : "", group.pronouns, group.finite,
               c.frequency.italian, group.main, c.subject_last ? subject : "", c.object.italian,
               c.rest.italian});
}

}  // namespace

std::string NounPhrase::full() const {
  return definite ? join(italian::definite(gender, number(), italian), italian) : italian;
}

std::string NounPhrase::after(italian::Preposition preposition) const {
  if (definite) return join(italian::articulated(preposition, gender, number(), italian), italian);
  return join(italian::plain(preposition, italian), italian);
}

NounPhrase NounPhrase::as_pronoun(bool animate) const {
  const bool is_it = !animate && person == Person::third;
  return {.english = is_it ? "it" : form(Form::subject, person, gender),
          .person = person,
          .gender = gender,
          .tags = tags};
}

void add_stressed_pronoun(NounPhrase& pronoun) {
  if (pronoun.italian.empty()) pronoun.italian = form(Form::stressed_subject, pronoun.person, pronoun.gender);
}

Phrase realize(const Clause& clause) { return {realize_english(clause), realize_italian(clause)}; }

Phrase imperative(const Clause& c) {
  const std::string english = join({c.negated ? "do not" : "", c.verb->english.base, english_objects(c)});
  const ItalianVerb& verb = c.verb->italian;
  const italian::Clitics pronouns = clitics(c);
  const std::string form =
      c.negated ? "non " + italian::infinitive(verb, pronouns) : italian::imperative(verb, pronouns);
  return {join(english, c.rest.english), join({form, c.object.italian, c.rest.italian})};
}

Phrase proposal(const Clause& c) {
  const std::string english = join({"let's", c.verb->english.base, english_objects(c), c.rest.english});
  const std::string form = italian::finite(c.verb->italian, italian::Tense::present, Person::first_plural);
  return {english, join({form, c.object.italian, c.rest.italian})};
}

std::string join(std::string_view left, std::string_view right) {
  if (left.empty()) return std::string(right);
  if (right.empty()) return std::string(left);
  std::string out(left);
  // There is no blank after l' un' quest', but one after po' and da'.
  const bool elided = left.ends_with("l'") || left.ends_with("n'") || left.ends_with("t'");
  if (!elided) out += ' ';
  return out += right;
}

std::string join(std::initializer_list<std::string_view> words) {
  std::string out;
  for (const std::string_view word : words) out = join(out, word);
  return out;
}

Phrase join(std::initializer_list<Phrase> phrases) {
  Phrase out;
  for (const Phrase& phrase : phrases)
    out = {join(out.english, phrase.english), join(out.italian, phrase.italian)};
  return out;
}

Phrase predicate_adjective(const Adjective& adjective, const NounPhrase& subject) {
  return {adjective.word.english, italian::adjective(adjective, subject.gender, subject.number())};
}

bool has_ambiguous_tense(const Clause& c) {
  const EnglishVerb& verb = c.verb->english;
  return verb.base == verb.past && c.tense == Tense::past && c.mood == Mood::plain && !c.negated &&
         !c.question && c.subject.person != Person::third;
}

std::string sentence(std::string words, char mark) {
  // A capital is 0x20 below its small letter, for ASCII and for the second byte of accented vowels in UTF-8.
  const bool accented = words.size() > 1 && words[0] == '\xC3';
  char& first = words[accented ? 1 : 0];
  if (accented || (first >= 'a' && first <= 'z')) first = static_cast<char>(first - 0x20);
  return words + mark;
}

}  // namespace heed::phrases
