// Questions with a question word.
#include <array>

#include "heed/data/synthetic/phrasebook/sentence_patterns.h"

namespace heed::phrases {
namespace {

/// Where does Anna sleep? When did they leave? Why is Marco reading the letter?
Pair where_when(WordChooser& choose) {
  static const std::vector<Phrase> words = phrase_table("question_words");
  const Phrase& word = choose.rng().pick(words);
  const bool why = word.english == "why";
  static constexpr std::array frames = {"do", "self", "stay", "leave", "act"};
  const Verb& verb = choose.verb(choose.rng().pick(frames));
  if (verb.stative && !(word.english == "where" && verb.frame == "stay")) return {};
  const bool wandering = verb.frame == "leave" || verb.frame == "self";
  if ((word.english == "where") ? wandering : verb.frame == "stay") return {};
  Clause clause = choose.action(verb);
  if (clause.tense == Tense::used_to) return {};
  clause.question = true;
  clause.subject_last = !why && verb.objects == 0;
  if (verb.objects != 0 && !why && !clause.subject.italian.empty()) return {};
  return sentence_pair(join({word, realize(clause)}), '?');
}

/// What does Anna read? Who reads the book? Which book, how many books does Anna read?
Pair what_who(WordChooser& choose) {
  const Verb& verb = choose.verb("act");
  Clause clause = choose.action(verb);
  if (clause.tense == Tense::used_to) return {};
  const int64_t kind = choose.rng().below(10);
  if (kind < 3) {
    clause.subject = {.english = "who", .italian = "chi"};
    const NounPhrase what = choose.object(choose.noun(verb.objects), choose.name());
    clause.object = what.phrase();
    return sentence_pair(realize(clause), '?');
  }
  clause.question = true;
  clause.subject_last = true;
  clause.object = {};
  if (kind < 6) {
    if (has_tag(verb.objects, "person drives awaited")) return {};
    return sentence_pair(join({{"what", "che cosa"}, realize(clause)}), '?');
  }
  const Noun& noun = choose.noun(verb.objects);
  const bool single = has_tag(noun.tags, "mass single");
  const bool many = kind > 7 && !single, plural = many || (!single && choose.chance(30));
  const NounPhrase plain = choose.phrase(noun, {.number = plural ? Number::plural : Number::singular});
  const std::string& word = plural ? noun.plural.english : noun.singular.english;
  const char* many_italian = plain.gender == Gender::feminine ? "quante" : "quanti";
  const Phrase front = many ? Phrase{"how many", many_italian} : Phrase{"which", plural ? "quali" : "quale"};
  return sentence_pair(join({front, {word, plain.italian}, realize(clause)}), '?');
}

constexpr std::array question_patterns = {Pattern{4, where_when}, Pattern{7, what_who}};

}  // namespace

std::span<const Pattern> asked_patterns() { return question_patterns; }

}  // namespace heed::phrases
