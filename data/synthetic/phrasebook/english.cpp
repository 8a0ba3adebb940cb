// English spelling rules and the irregular words of the phrasebook.
#include "heed/data/synthetic/phrasebook/english.h"

#include <array>
#include <utility>

namespace heed::phrases::english {
namespace {

bool is_vowel(char letter) { return std::string_view("aeiou").find(letter) != std::string_view::npos; }

bool ends_in_consonant_y(std::string_view word) {
  return word.size() > 1 && word.ends_with('y') && !is_vowel(word[word.size() - 2]);
}

/// True for words whose plural or third person ends in -es for their sound: box, watch, kiss.
bool takes_es(std::string_view word) {
  return word.ends_with('s') || word.ends_with('x') || word.ends_with('z') || word.ends_with("ch") ||
         word.ends_with("sh");
}

/// Number of runs of vowels: about the number of syllables.
int vowel_groups(std::string_view word) {
  int count = 0;
  for (size_t i = 0; i < word.size(); ++i)
    count += is_vowel(word[i]) && (i == 0 || !is_vowel(word[i - 1])) ? 1 : 0;
  return count;
}

/// True for words of one syllable with a single vowel between consonants, such as big, run and swim.
bool doubles_last_letter(std::string_view word) {
  const size_t size = word.size();
  if (word == "travel" || word == "forget") return true;
  if (size < 3 || vowel_groups(word) != 1) return false;
  const char last = word[size - 1];
  return !is_vowel(last) && last != 'w' && last != 'x' && last != 'y' && is_vowel(word[size - 2]) &&
         !is_vowel(word[size - 3]);
}

/// Splits a phrase into the word that is inflected and the rest: "look" and " for".
std::pair<std::string, std::string> inflected_and_rest(std::string_view words) {
  const size_t blank = words.find(' ');
  if (blank == std::string_view::npos) return {std::string(words), ""};
  return {std::string(words.substr(0, blank)), std::string(words.substr(blank))};
}

/// The word with -s, -es or -ies, of a plural or a third person.
std::string with_s(const std::string& word) {
  if (ends_in_consonant_y(word)) return word.substr(0, word.size() - 1) + "ies";
  return word + (takes_es(word) || word.ends_with('o') ? "es" : "s");
}

/// Comparative or superlative: adjectives of one syllable and those in -y get the ending, others `adverb`.
std::string graded(std::string_view adjective, std::string_view ending, std::string_view adverb) {
  std::string word(adjective);
  const bool is_short = vowel_groups(word.ends_with('e') ? word.substr(0, word.size() - 1) : word) <= 1;
  if (ends_in_consonant_y(word) && word != "shy")
    return word.substr(0, word.size() - 1) + "i" + std::string(ending);
  if (!is_short && word != "simple") return std::string(adverb) + " " + word;
  if (word.ends_with('e')) return word + std::string(ending.substr(1));
  if (doubles_last_letter(word)) word += word.back();
  return word + std::string(ending);
}

}  // namespace

std::string plural(std::string_view singular) {
  const std::string word(singular);
  if (word == "potato" || word == "tomato") return word + "es";
  if (word.ends_with('o')) return word + "s";
  return with_s(word);
}

std::string past(std::string_view base) {
  auto [word, rest] = inflected_and_rest(base);
  if (word.ends_with('e')) return word + "d" + rest;
  if (ends_in_consonant_y(word)) return word.substr(0, word.size() - 1) + "ied" + rest;
  if (doubles_last_letter(word)) word += word.back();
  return word + "ed" + rest;
}

std::string progressive(std::string_view base) {
  auto [word, rest] = inflected_and_rest(base);
  if (word.ends_with('e') && !word.ends_with("ee") && word.size() > 2)
    return word.substr(0, word.size() - 1) + "ing" + rest;
  if (doubles_last_letter(word)) word += word.back();
  return word + "ing" + rest;
}

std::string present(const EnglishVerb& verb, Person person) {
  if (verb.base == "be") return person == Person::first ? "am" : person == Person::third ? "is" : "are";
  if (person != Person::third || verb.base == "can" || verb.base == "must") return verb.base;
  if (verb.base == "have" || verb.base.starts_with("have ")) return "has" + verb.base.substr(4);
  const auto [word, rest] = inflected_and_rest(verb.base);
  return with_s(word) + rest;
}

std::string past(const EnglishVerb& verb, Person person) {
  if (verb.base == "be") return person == Person::first || person == Person::third ? "was" : "were";
  return verb.past;
}

std::string indefinite(std::string_view next) {
  if (next.starts_with("useful")) return "a";
  const bool silent_h = next.starts_with("honest") || next.starts_with("hour");
  return is_vowel(static_cast<char>(next.front() | 0x20)) || silent_h ? "an" : "a";
}

std::string comparative(std::string_view adjective) { return graded(adjective, "er", "more"); }
std::string superlative(std::string_view adjective) { return graded(adjective, "est", "most"); }

}  // namespace heed::phrases::english
