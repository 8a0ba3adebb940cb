// Italian morphology: articles, agreement, conjugation and clitics.
#include "heed/data/synthetic/phrasebook/italian.h"

#include "heed/core/io/ascii.h"

namespace heed::phrases::italian {
namespace {

bool is_vowel(char letter) {
  return std::string_view("aeiou").find(ascii_lower(letter)) != std::string_view::npos;
}

bool starts_with_vowel(std::string_view word) {
  return !word.empty() && (is_vowel(word.front()) || word.starts_with("è"));
}

/// True for words that take lo, uno, quello: those in s and a consonant, z, gn, ps, x, y.
bool takes_lo(std::string_view word) {
  if (word.size() < 2) return false;
  const char first = ascii_lower(word[0]), second = ascii_lower(word[1]);
  if (first == 's') return !is_vowel(second);
  return first == 'z' || first == 'x' || first == 'y' || (first == 'g' && second == 'n') ||
         (first == 'p' && second == 's');
}

std::string without_last(std::string_view word, size_t letters = 1) {
  return std::string(word.substr(0, word.size() - letters));
}

/// The infinitive without -are, -ere or -ire: compr-.
std::string root_of(const ItalianVerb& verb) { return without_last(verb.infinitive, 3); }

/// The letter of a verb's conjugation: a, e or i, of -are, -ere and -ire.
char theme_vowel(const ItalianVerb& verb) { return verb.infinitive[verb.infinitive.size() - 3]; }

/// The root before an ending that begins with e or i, spelled so that its sound stays: cerc- becomes cerch-
/// (cerchi), mangi- mang- (mangi, mangerò), studi- stud- before i alone (studi, studierò).
std::string before_front_vowel(const ItalianVerb& verb, std::string_view ending) {
  std::string stem = root_of(verb);
  if (!verb.infinitive.ends_with("are")) return stem;
  if (stem.ends_with('c') || stem.ends_with('g')) return stem + 'h';
  const bool has_silent_i = stem.ends_with("ci") || stem.ends_with("gi");
  if (stem.ends_with('i') && (has_silent_i || ending.front() == 'i')) stem.pop_back();
  return stem;
}

/// The regular present: compro; finisco where the verb is inchoative.
std::string regular_present(const ItalianVerb& verb, Person person) {
  const char theme = theme_vowel(verb);
  const Form column = theme == 'a' ? Form::present_are : theme == 'e' ? Form::present_ere : Form::present_ire;
  const std::string& ending = form(column, person);
  const bool takes_isc = verb.inchoative && person != Person::first_plural && person != Person::second_plural;
  const std::string stem = ending.starts_with('i') ? before_front_vowel(verb, ending) : root_of(verb);
  return stem + (takes_isc ? "isc" : "") + ending;
}

/// True for stems whose plural is spelled with an h to keep its sound: fuoco, fuochi.
bool ends_in_c_or_g(std::string_view stem) { return stem.ends_with('c') || stem.ends_with('g'); }

/// A participle or an adjective in -o or -e, agreeing with gender and number.
std::string agreed(std::string_view word, Gender gender, Number number) {
  const bool feminine = gender == Gender::feminine, plural_form = number == Number::plural;
  const std::string stem = without_last(word);
  if (word.ends_with('e')) return stem + (plural_form ? "i" : "e");
  if (!plural_form) return stem + (feminine ? "a" : "o");
  if (feminine) return stem + (ends_in_c_or_g(stem) ? "he" : "e");
  if (stem.ends_with('i')) return stem;
  const bool becomes_soft = stem.ends_with("ic") && stem != "antic";  // simpatico: simpatici
  return stem + (ends_in_c_or_g(stem) && !becomes_soft ? "hi" : "i");
}

/// The pronouns in Italian order: "me lo" before a verb, "melo" where they are `attached` to its end;
/// "glielo" in both places.
std::string cluster(const Clitics& clitics, bool attached) {
  if (clitics.reflexive) return form(Form::reflexive, *clitics.reflexive);
  const auto& [direct, indirect, reflexive] = clitics;
  const std::string direct_word = direct ? form(Form::direct, direct->person, direct->gender) : "";
  if (!indirect) return direct_word;
  std::string indirect_word = form(Form::indirect, indirect->person, indirect->gender);
  if (!direct) return indirect_word;
  if (indirect_word == "gli" || indirect_word == "le") return "glie" + direct_word;
  indirect_word.back() = 'e';  // mi lo: me lo
  return indirect_word + (attached ? "" : " ") + direct_word;
}

}  // namespace

std::string plural(std::string_view noun, Gender gender) {
  const std::string stem = without_last(noun);
  if (noun.ends_with('a') && gender == Gender::feminine) return stem + (ends_in_c_or_g(stem) ? "he" : "e");
  if (noun.ends_with('a') || noun.ends_with('e')) return stem + "i";
  if (!noun.ends_with('o')) return std::string(noun);
  if (stem.ends_with('i')) return stem;
  return stem + (ends_in_c_or_g(stem) ? "hi" : "i");
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

std::string demonstrative_this(Gender gender, Number number, std::string_view next) {
  if (number == Number::plural) return gender == Gender::feminine ? "queste" : "questi";
  return starts_with_vowel(next) ? "quest'" : gender == Gender::feminine ? "questa" : "questo";
}

std::string demonstrative_that(Gender gender, Number number, std::string_view next) {
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
  if (word.word.italian == "bello" && masculine)
    return "b" + demonstrative_that(gender, number, next).substr(2);
  if (word.word.italian == "buono" && masculine && number == Number::singular && !takes_lo(next))
    return "buon";
  return adjective(word, gender, number);
}

void complete(ItalianVerb& verb) {
  const char theme = theme_vowel(verb);
  for (const Person person : people) {
    std::string& present = verb.present[static_cast<size_t>(person)];
    if (present.empty()) present = regular_present(verb, person);
  }
  if (verb.participle.empty())
    verb.participle = root_of(verb) + (theme == 'a' ? "ato" : theme == 'e' ? "uto" : "ito");
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
  return root_of(verb) + (theme_vowel(verb) == 'a' ? "ando" : "endo");
}

std::string imperative(const ItalianVerb& verb) {
  if (!verb.imperative.empty()) return verb.imperative;
  return verb.present[static_cast<size_t>(verb.infinitive.ends_with("are") ? Person::third : Person::second)];
}

std::string proclitics(const Clitics& clitics, std::string_view next) {
  std::string out = cluster(clitics, /*attached=*/false);
  // lo ho becomes l'ho: the singular pronoun is elided, and only before forms of avere.
  const bool before_avere = next.starts_with('h') || next == "abbiamo" || next == "avete";
  const bool is_singular = clitics.direct && clitics.direct->person == Person::third;
  if (before_avere && is_singular) out.back() = '\'';
  return out;
}

std::string infinitive(const ItalianVerb& verb, const Clitics& clitics) {
  const std::string pronouns = cluster(clitics, /*attached=*/true);
  if (pronouns.empty()) return verb.infinitive;
  const std::string stem = without_last(verb.infinitive);
  return (stem.ends_with("rr") ? without_last(stem) : stem) + pronouns;
}

std::string imperative(const ItalianVerb& verb, const Clitics& clitics) {
  const std::string pronouns = cluster(clitics, /*attached=*/true), form = imperative(verb);
  if (pronouns.empty() || !form.ends_with('\'')) return form + pronouns;
  // After da' the next consonant doubles: dammi, dallo; but dagli.
  const std::string_view doubled = pronouns.starts_with("gli") ? "" : std::string_view(pronouns).substr(0, 1);
  return without_last(form) + std::string(doubled) + pronouns;
}

}  // namespace heed::phrases::italian
