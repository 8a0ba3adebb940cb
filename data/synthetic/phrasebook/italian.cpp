// Italian morphology: articles, agreement, conjugation and clitics.
#include "heed/data/synthetic/phrasebook/italian.h"

#include "heed/core/io/ascii.h"

namespace heed::phrases::italian {
namespace {

bool vowel(char letter) {
  return std::string_view("aeiou").find(ascii_lower(letter)) != std::string_view::npos;
}

bool starts_with_vowel(std::string_view word) {
  return !word.empty() && (vowel(word.front()) || word.starts_with("è"));
}

/// True for words that take lo, uno, quello: those in s and a consonant, z, gn, ps, x, y.
bool takes_lo(std::string_view word) {
  if (word.size() < 2) return false;
  const char first = ascii_lower(word[0]), second = ascii_lower(word[1]);
  if (first == 's') return !vowel(second);
  return first == 'z' || first == 'x' || first == 'y' || (first == 'g' && second == 'n') ||
         (first == 'p' && second == 's');
}

std::string without_last(std::string_view word, size_t letters = 1) {
  return std::string(word.substr(0, word.size() - letters));
}

/// The stem before an ending in e or i, which keeps its sound: cerc- cerch-, mang(i)- mang-, stud(i)- studi.
std::string before_front_vowel(const ItalianVerb& verb, std::string_view ending) {
  std::string stem = without_last(verb.infinitive, 3);
  if (!verb.infinitive.ends_with("are")) return stem;
  if (stem.ends_with('c') || stem.ends_with('g')) return stem + 'h';
  const bool silent = stem.ends_with("ci") || stem.ends_with("gi");
  if (stem.ends_with('i') && (silent || ending.front() == 'i')) stem.pop_back();
  return stem;
}

std::string present(const ItalianVerb& verb, Person person) {
  const char theme = verb.infinitive[verb.infinitive.size() - 3];
  const Form column = theme == 'a' ? Form::present_are : theme == 'e' ? Form::present_ere : Form::present_ire;
  const std::string& ending = form(column, person);
  const bool inserted = verb.inchoative && person != Person::first_plural && person != Person::second_plural;
  const std::string stem =
      ending.starts_with('i') ? before_front_vowel(verb, ending) : without_last(verb.infinitive, 3);
  return stem + (inserted ? "isc" : "") + ending;
}

/// The form of a participle or an adjective in -o or -e.
std::string agreed(std::string_view word, Gender gender, Number number) {
  const bool feminine = gender == Gender::feminine, plural_form = number == Number::plural;
  const std::string stem = without_last(word);
  if (word.ends_with('e')) return stem + (plural_form ? "i" : "e");
  if (!plural_form) return stem + (feminine ? "a" : "o");
  const bool hard = stem.ends_with('c') || stem.ends_with('g');
  if (feminine) return stem + (hard ? "he" : "e");
  if (stem.ends_with('i')) return stem;
  const bool soft = stem.ends_with("ic") && stem != "antic";
  return stem + (hard && !soft ? "hi" : "i");
}

/// The pronouns in Italian order; joined when attached to a verb: "me lo" and "melo", "glielo".
std::string cluster(const Clitics& clitics, bool attached) {
  if (clitics.reflexive) return form(Form::reflexive, *clitics.reflexive);
  const auto& [direct, indirect, reflexive] = clitics;
  const std::string object = direct ? form(Form::direct, direct->person, direct->gender) : "";
  if (!indirect) return object;
  std::string first = form(Form::indirect, indirect->person, indirect->gender);
  if (!direct) return first;
  if (first == "gli" || first == "le") return "glie" + object;
  first.back() = 'e';
  return attached ? first + object : first + " " + object;
}

}  // namespace

std::string plural(std::string_view noun, Gender gender) {
  const std::string stem = without_last(noun);
  const bool hard = stem.ends_with('c') || stem.ends_with('g');
  if (noun.ends_with('a') && gender == Gender::feminine) return stem + (hard ? "he" : "e");
  if (noun.ends_with('a') || noun.ends_with('e')) return stem + "i";
  if (!noun.ends_with('o')) return std::string(noun);
  if (stem.ends_with('i')) return stem;
  return stem + (hard ? "hi" : "i");
}

std::string definite(Gender gender, Number number, std::string_view next) {
  const bool feminine = gender == Gender::feminine;
  if (number == Number::plural)
    return feminine ? "le" : starts_with_vowel(next) || takes_lo(next) ? "gli" : "i";
  if (starts_with_vowel(next)) return "l'";
  return feminine ? "la" : takes_lo(next) ? "lo" : "il";
}

std::string indefinite(Gender gender, std::string_view next) {
  if (gender == Gender::feminine) return starts_with_vowel(next) ? "un'" : "una";
  return takes_lo(next) ? "uno" : "un";
}

std::string articulated(Preposition preposition, Gender gender, Number number, std::string_view next) {
  static constexpr const char* stems[] = {"de", "a", "da", "ne", "su"};
  const std::string article = definite(gender, number, next);
  if (preposition == Preposition::none) return article;
  const std::string stem(stems[static_cast<size_t>(preposition)]);
  if (article == "il") return stem + "l";
  return stem + (article.starts_with('l') ? "l" : "") + article;
}

std::string plain(Preposition preposition, std::string_view next) {
  static constexpr const char* words[] = {"di", "a", "da", "in", "su", ""};
  if (preposition == Preposition::to && !next.empty() && ascii_lower(next.front()) == 'a') return "ad";
  return words[static_cast<size_t>(preposition)];
}

std::string conjunction(std::string_view next) {
  return !next.empty() && ascii_lower(next.front()) == 'e' ? "ed" : "e";
}

std::string this_one(Gender gender, Number number, std::string_view next) {
  if (number == Number::plural) return gender == Gender::feminine ? "queste" : "questi";
  return starts_with_vowel(next) ? "quest'" : gender == Gender::feminine ? "questa" : "questo";
}

std::string that_one(Gender gender, Number number, std::string_view next) {
  const std::string article = definite(gender, number, next);
  if (article == "il") return "quel";
  if (article == "i") return "quei";
  return (article.starts_with('l') ? "quel" : "que") + article;
}

std::string possessive(Person owner, Gender gender, Number number) {
  return form(Form::possessive_singular, owner, gender,
              (number == Number::plural ? 2 : 0) + (gender == Gender::feminine ? 1 : 0));
}

std::string adjective(const Adjective& adjective, Gender gender, Number number) {
  return adjective.invariable ? adjective.word.italian : agreed(adjective.word.italian, gender, number);
}

std::string adjective_before(const Adjective& word, Gender gender, Number number, std::string_view next) {
  const bool masculine = gender == Gender::masculine;
  if (word.word.italian == "bello" && masculine) return "b" + that_one(gender, number, next).substr(2);
  if (word.word.italian == "buono" && masculine && number == Number::singular && !takes_lo(next))
    return "buon";
  return adjective(word, gender, number);
}

void complete(ItalianVerb& verb) {
  const std::string stem = without_last(verb.infinitive, 3);
  const char theme = verb.infinitive[verb.infinitive.size() - 3];
  for (const Person person : people) {
    std::string& present_form = verb.present[static_cast<size_t>(person)];
    if (present_form.empty()) present_form = present(verb, person);
  }
  if (verb.participle.empty()) verb.participle = stem + (theme == 'a' ? "ato" : theme == 'e' ? "uto" : "ito");
  if (verb.future.empty()) {
    verb.future = theme == 'a' ? before_front_vowel(verb, "e") + "er" : without_last(verb.infinitive);
  }
}

std::string finite(const ItalianVerb& verb, Tense tense, Person person) {
  if (tense == Tense::present) return verb.present[static_cast<size_t>(person)];
  if (tense == Tense::future) return verb.future + form(Form::future, person);
  if (verb.infinitive == "essere") return form(Form::imperfect_of_essere, person);
  const std::string stem = verb.stem.empty() ? without_last(verb.infinitive, 2) : verb.stem + "e";
  return stem + form(Form::imperfect, person);
}

std::string participle(const ItalianVerb& verb, Gender gender, Number number) {
  return agreed(verb.participle, gender, number);
}

std::string gerund(const ItalianVerb& verb) {
  if (!verb.stem.empty()) return verb.stem + "endo";
  return without_last(verb.infinitive, 3) + (verb.infinitive.ends_with("are") ? "ando" : "endo");
}

std::string imperative(const ItalianVerb& verb) {
  if (!verb.imperative.empty()) return verb.imperative;
  return verb.present[static_cast<size_t>(verb.infinitive.ends_with("are") ? Person::third : Person::second)];
}

std::string proclitics(const Clitics& clitics, std::string_view next) {
  std::string out = cluster(clitics, false);
  // lo ho: l'ho. Elides only the singular, and only before forms of avere.
  const bool avere = next.starts_with('h') || next == "abbiamo" || next == "avete";
  const bool singular = clitics.direct && clitics.direct->person == Person::third;
  if (avere && singular) out.back() = '\'';
  return out;
}

std::string infinitive(const ItalianVerb& verb, const Clitics& clitics) {
  const std::string pronouns = cluster(clitics, true);
  if (pronouns.empty()) return verb.infinitive;
  const std::string stem = without_last(verb.infinitive);
  return (stem.ends_with("rr") ? without_last(stem) : stem) + pronouns;
}

std::string imperative(const ItalianVerb& verb, const Clitics& clitics) {
  const std::string pronouns = cluster(clitics, true), form = imperative(verb);
  if (pronouns.empty() || !form.ends_with('\'')) return form + pronouns;
  // da' doubles the next consonant: dammi, dallo; but dagli.
  const std::string_view doubled = pronouns.starts_with("gli") ? "" : std::string_view(pronouns).substr(0, 1);
  return without_last(form) + std::string(doubled) + pronouns;
}

}  // namespace heed::phrases::italian
