// Questions with a question word.
#include <array>

#include "heed/data/synthetic/phrasebook/sentence_patterns.h"

namespace heed::phrases {
namespace {

/// A question with where, when or why: "Where does Anna sleep?" "Why is Marco reading the letter?"
Pair where_when(WordChooser& choose) {
  static const std::vector<Phrase> words = phrase_table("question_words");
  const Phrase& word = choose.rng().pick(words);
  const bool asks_where = word.english == "where", asks_why = word.english == "why";
  static constexpr std::array frames = {"do", "self", "stay", "leave", "act"};
  const Verb& verb = choose.verb(choose.rng().pick(frames));
  if (verb.stative && !(asks_where && verb.frame == "stay")) return {};
  const bool has_no_place = verb.frame == "leave" || verb.frame == "self";
  if (asks_where ? has_no_place : verb.frame == "stay") return {};
  Clause clause = choose.action(verb);
  if (clause.tense == Tense::used_to) return {};
  clause.question = true;
  clause.subject_last = !asks_why && verb.objects == 0;
  if (verb.objects != 0 && !asks_why && !clause.subject.italian.empty()) return {};
  return sentence_pair(join({word, realize(clause)}), '?');
}

/// A question with who, what, which or how many: "Who reads the book?" "How many books does Anna read?"
Pair what_who(WordChooser& choose) {
  const Verb& verb = choose.verb("act");
  Clause clause = choose.action(verb);
  if (clause.tense == Tense::used_to) return {};
  const int64_t drawn = choose.rng().below(10);
  if (drawn < 3) {
    clause.subject = {.english = "who", .italian = "chi"};
    const NounPhrase somebody = choose.name();
    const NounPhrase what = choose.object(choose.noun(verb.objects), somebody);
    clause.object = what.phrase();
    return sentence_pair(realize(clause), '?');
  }
  clause.question = true;
  clause.subject_last = true;
  clause.object = {};
  if (drawn < 6) {
    if (has_tag(verb.objects, "person drives awaited")) return {};
    return sentence_pair(join({{"what", "che cosa"}, realize(clause)}), '?');
  }
  const Noun& noun = choose.noun(verb.objects);
  const bool singular_only = has_tag(noun.tags, "mass single");
  const bool asks_number = drawn > 7 && !singular_only,
             plural = asks_number || (!singular_only && choose.chance(30));
  const NounPhrase phrase = choose.phrase(noun, {.number = plural ? Number::plural : Number::singular});
  const std::string& word = plural ? noun.plural.english : noun.singular.english;
  const char* how_many = phrase.gender == Gender::feminine ? "quante" : "quanti";
  const Phrase asked =
      asks_number ? Phrase{"how many", how_many} : Phrase{"which", plural ? "quali" : "quale"};
  return sentence_pair(join({asked, {word, phrase.italian}, realize(clause)}), '?');
}

constexpr std::array question_patterns = {Pattern{4, where_when}, Pattern{7, what_who}};

}  // namespace

std::span<const Pattern> asked_patterns() { return question_patterns; }

}  // namespace heed::phrases
