// Questions with a question word.
#include <array>

#include "heed/data/synthetic/phrasebook/sentence_patterns.h"

namespace heed::phrases {
namespace {

Pair where_when(Speaker& speaker) {
  static const std::array<Phrase, 3> words = {Phrase{"where", "dove"}, {"when", "quando"}, {"why", "perché"}};
  const Phrase& word = speaker.random().pick(words);
  const bool why = word.english == "why";
  static constexpr std::array frames = {"do", "self", "stay", "leave", "act"};
  const Verb& verb = speaker.verb(speaker.random().pick(frames));
  if (verb.stative && !(word.english == "where" && verb.frame == "stay")) return {};
  const bool wandering = verb.frame == "leave" || verb.frame == "self";
  if ((word.english == "where") ? wandering : verb.frame == "stay") return {};
  Clause clause = speaker.action(verb);
  if (clause.tense == Tense::used_to) return {};
  clause.question = true;
  clause.subject_last = !why && verb.objects == 0;
  if (verb.objects != 0 && !why && !clause.subject.italian.empty()) return {};
  return finished(join(word, say(clause)), '?');
}

Pair what_who(Speaker& speaker) {
  const Verb& verb = speaker.verb("act");
  Clause clause = speaker.action(verb);
  if (clause.tense == Tense::used_to) return {};
  const int64_t kind = speaker.random().below(10);
  if (kind < 3) {
    clause.subject = {.english = "who", .italian = "chi"};
    const NounPhrase what = speaker.object(speaker.noun(verb.objects), speaker.name());
    clause.object = {what.english, what.full()};
    return finished(say(clause), '?');
  }
  clause.question = true;
  clause.subject_last = true;
  clause.object = {};
  if (kind < 6) {
    if ((verb.objects & speaker.words().mask("person drives awaited")) != 0) return {};
    return finished(join({"what", "che cosa"}, say(clause)), '?');
  }
  const Noun& noun = speaker.noun(verb.objects);
  const bool single = (noun.tags & speaker.words().mask("mass single")) != 0;
  const bool many = kind > 7 && !single, plural = many || (!single && speaker.chance(30));
  const NounPhrase plain = speaker.phrase(noun, {.number = plural ? Number::plural : Number::singular});
  const std::string& word = plural ? noun.plural.english : noun.singular.english;
  const char* many_italian = plain.gender == Gender::feminine ? "quante" : "quanti";
  const Phrase front = many ? Phrase{"how many", many_italian} : Phrase{"which", plural ? "quali" : "quale"};
  return finished(join(join(front, {word, plain.italian}), say(clause)), '?');
}

constexpr std::array question_patterns = {Pattern{4, where_when}, Pattern{7, what_who}};

}  // namespace

std::span<const Pattern> asked_patterns() { return question_patterns; }

}  // namespace heed::phrases
