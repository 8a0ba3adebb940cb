// Finds each entry of the lexicon on both sides in all its forms, then the articles and pronouns beside them.
#include "heed/data/synthetic/phrasebook/word_alignment.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "heed/core/io/ascii.h"
#include "heed/data/synthetic/phrasebook/english.h"
#include "heed/data/synthetic/phrasebook/italian.h"
#include "heed/data/synthetic/phrasebook/lexicon.h"
#include "heed/data/tokenizers/vocabulary.h"

namespace heed {
namespace {

using namespace phrases;
using Tokens = std::span<const std::string>;
using WordForm = std::vector<std::string>;

/// The word with small letters for capitals of ASCII and for the accented ones of UTF-8's block C3.
std::string lowercase(std::string word) {
  for (size_t i = 0; i < word.size(); ++i) {
    const auto byte = static_cast<unsigned char>(word[i]);
    const bool accented = i > 0 && word[i - 1] == '\xC3' && byte >= 0x80 && byte <= 0x9E;
    word[i] = accented ? static_cast<char>(byte + 0x20) : ascii_lower(word[i]);
  }
  return word;
}

/// The words of a form, without its last apostrophe: bell' is found as bell.
WordForm form_of(const std::string& text) {
  WordForm out;
  for (const std::string_view piece : word_pieces(text)) out.push_back(lowercase(std::string(piece)));
  if (!out.empty() && out.back() == "'") out.pop_back();
  return out;
}

/// An entry of the lexicon: its forms in both languages.
struct LexiconEntry {
  LinkKind kind;
  std::set<WordForm> english, italian;
};

constexpr std::array genders = {Gender::masculine, Gender::feminine};
constexpr std::array numbers_of_words = {Number::singular, Number::plural};

LexiconEntry entry_of(const Noun& noun) {
  return {LinkKind::noun,
          {form_of(noun.singular.english), form_of(noun.plural.english)},
          {form_of(noun.singular.italian), form_of(noun.plural.italian)}};
}

LexiconEntry entry_of(const Adjective& word) {
  LexiconEntry out{LinkKind::adjective, {form_of(word.word.english)}, {}};
  for (const std::string& graded :
       {english::comparative(word.word.english), english::superlative(word.word.english)})
    if (graded.find(' ') == std::string::npos) out.english.insert(form_of(graded));
  for (const Gender gender : genders) {
    for (const Number number : numbers_of_words) {
      out.italian.insert(form_of(italian::adjective(word, gender, number)));
      for (const char* next : {"libro", "amico", "studente"})
        out.italian.insert(form_of(italian::adjective_before(word, gender, number, next)));
    }
  }
  return out;
}

/// Pronouns of a verb: none, one, or a direct and an indirect one.
std::vector<italian::Clitics> all_clitics() {
  std::vector<italian::Clitic> single;
  for (const Person person : people)
    for (const Gender gender : genders) single.push_back({person, gender});
  std::vector<italian::Clitics> out;
  for (const italian::Clitic& one : single) {
    out.push_back({.direct = one});
    out.push_back({.indirect = one});
    for (const italian::Clitic& other : single) out.push_back({.direct = one, .indirect = other});
  }
  return out;
}

/// The forms of a verb without pronouns, and those that end in some.
LexiconEntry entry_of(const Verb& verb, std::set<WordForm>& with_clitics) {
  static const std::vector<italian::Clitics> clitics = all_clitics();
  LexiconEntry out{LinkKind::verb, {}, {}};
  out.english = {form_of(verb.english.base), form_of(verb.english.past),
                 form_of(english::present(verb.english, Person::third)),
                 form_of(english::progressive(verb.english.base))};
  const ItalianVerb& own = verb.italian;
  for (const Person person : people) {
    for (const auto tense : {italian::Tense::present, italian::Tense::imperfect, italian::Tense::future})
      out.italian.insert(form_of(italian::finite(own, tense, person)));
    if (own.reflexive) {
      out.italian.insert(form_of(italian::infinitive(own, {.reflexive = person})));
      out.italian.insert(form_of(italian::imperative(own, {.reflexive = person})));
    }
  }
  for (const Gender gender : genders)
    for (const Number number : numbers_of_words)
      out.italian.insert(form_of(italian::participle(own, gender, number)));
  for (const std::string& form : {italian::gerund(own), italian::infinitive(own), italian::imperative(own)})
    out.italian.insert(form_of(form));
  if (verb.objects != 0) {
    for (const italian::Clitics& pronouns : clitics) {
      with_clitics.insert(form_of(italian::infinitive(own, pronouns)));
      with_clitics.insert(form_of(italian::imperative(own, pronouns)));
    }
    for (const WordForm& form : out.italian) with_clitics.erase(form);
    out.italian.insert(with_clitics.begin(), with_clitics.end());
  }
  return out;
}

/// The dictionary of the phrasebook, made once.
struct AlignmentDictionary {
  AlignmentDictionary() {
    const Lexicon& words = lexicon();
    for (const Noun& noun : words.nouns) entries.push_back(entry_of(noun));
    for (const Adjective& word : words.adjectives) entries.push_back(entry_of(word));
    for (const Verb& verb : words.verbs) {
      // Forms of be and have to be auxiliaries help other verbs, too, so they have no certain partner.
      if (verb.frame == "be" || verb.frame == "stare" || verb.frame == "like") continue;
      std::set<WordForm> ending;
      entries.push_back(entry_of(verb, ending));
      with_clitics.insert(ending.begin(), ending.end());
    }
    for (const Name& name : words.names)
      entries.push_back({LinkKind::name, {form_of(name.word)}, {form_of(name.word)}});
    for (const Phrase& number : words.numbers)
      entries.push_back({LinkKind::number, {form_of(number.english)}, {form_of(number.italian)}});
    for (const Phrase& word : phrase_table("function_words")) {
      LexiconEntry entry{LinkKind::function_word, {form_of(word.english)}, {}};
      for (const std::string& form : form_of(word.italian)) entry.italian.insert({form});
      entries.push_back(entry);
    }
    for (size_t i = 0; i < entries.size(); ++i) {
      for (const WordForm& form : entries[i].english) english[form].push_back(i);
      for (const WordForm& form : entries[i].italian) italian[form].push_back(i);
      if (entries[i].kind != LinkKind::adjective) continue;
      for (const WordForm& form : entries[i].english) between_english.insert(form.back());
      for (const WordForm& form : entries[i].italian) between_italian.insert(form.back());
    }
    for (const Verb* verb : {&words.verb("act", "avere"), &words.verb("be"), &words.verb("stare")}) {
      for (const std::string& present : verb->italian.present) auxiliaries.insert(lowercase(present));
    }
  }
  std::vector<LexiconEntry> entries;
  std::map<WordForm, std::vector<size_t>> english, italian;
  std::set<WordForm> with_clitics;                         ///< verbs with pronouns at their end: leggerlo
  std::set<std::string> between_english, between_italian;  ///< adjectives, between article and noun
  std::set<std::string> auxiliaries;                       ///< present forms of avere, essere and stare
  std::vector<Phrase> clitics = phrase_table("clitics");
};

const AlignmentDictionary& dictionary() {
  static const AlignmentDictionary made;
  return made;
}

/// Where an entry's forms occur: first and last token.
struct Occurrence {
  int64_t first, last;
};
using Occurrences = std::map<size_t, std::vector<Occurrence>>;

Occurrences occurrences(Tokens words, const std::map<WordForm, std::vector<size_t>>& forms) {
  Occurrences out;
  const auto count = static_cast<int64_t>(words.size());
  for (int64_t first = 0; first < count; ++first) {
    WordForm form;
    for (int64_t last = first; last < std::min(first + 3, count); ++last) {
      form.push_back(words[static_cast<size_t>(last)]);
      const auto found = forms.find(form);
      if (found == forms.end()) continue;
      for (const size_t entry : found->second) out[entry].push_back({first, last});
    }
  }
  return out;
}

/// True if the word is one of a blank-separated list.
bool one_of(const std::string& word, std::string_view list) {
  return (" " + std::string(list) + " ").find(" " + word + " ") != std::string::npos;
}

/// Finds articles and clitic pronouns beside linked nouns and verbs.
class NeighbourLinks {
 public:
  NeighbourLinks(Tokens source, Tokens target) : source_(source), target_(target) {}

  /// The article of a noun: before it and its adjectives in both languages; with a preposition in Italian.
  void article(const WordLink& noun, std::vector<WordLink>& out) const {
    const AlignmentDictionary& known = dictionary();
    int64_t english = noun.source - 1, italian = noun.target - 1;
    while (english >= 0 && known.between_english.contains(source(english))) --english;
    while (italian >= 0 && (target(italian) == "'" || known.between_italian.contains(target(italian))))
      --italian;
    if (english < 0 || italian < 0) return;
    static constexpr std::string_view definite =
        "il lo la l i gli le del dello della dell dei degli delle al allo alla all ai agli alle dal dallo "
        "dalla dall dai dagli dalle nel nello nella nell nei negli nelle sul sullo sulla sull sui sugli "
        "sulle";
    const bool the = source(english) == "the" && one_of(target(italian), definite);
    const bool a = one_of(source(english), "a an") && one_of(target(italian), "un uno una");
    if (the || a) out.push_back({english, italian, LinkKind::article});
  }

  /// The pronoun right after an English verb: before the Italian verb and its auxiliary, or at its end.
  void clitic(int64_t after, const WordLink& verb, bool at_end, std::vector<WordLink>& out) const {
    if (after >= static_cast<int64_t>(source_.size())) return;
    for (const Phrase& pronoun : dictionary().clitics) {
      if (source(after) != pronoun.english) continue;
      const AlignmentDictionary& known = dictionary();
      const bool owner =
          pronoun.english == "her" && after + 1 < static_cast<int64_t>(source_.size()) &&
          (known.between_english.contains(source(after + 1)) || known.english.contains({source(after + 1)}));
      if (owner) return;  // her book
      if (at_end) return out.push_back({after, verb.target, LinkKind::clitic});
      int64_t italian = verb.target - 1;
      while (italian >= 0 && (target(italian) == "'" || known.auxiliaries.contains(target(italian)) ||
                              one_of(target(italian), "sempre spesso mai")))
        --italian;
      if (italian >= 0 && one_of(target(italian), pronoun.italian))
        out.push_back({after, italian, LinkKind::clitic});
      return;
    }
  }

 private:
  const std::string& source(int64_t i) const { return source_[static_cast<size_t>(i)]; }
  const std::string& target(int64_t i) const { return target_[static_cast<size_t>(i)]; }
  Tokens source_, target_;
};

std::vector<std::string> all_lowercase(Tokens words) {
  std::vector<std::string> out;
  for (const std::string& word : words) out.push_back(lowercase(word));
  return out;
}

/// Links of entries that occur once on each side, without tokens that two entries claim.
std::vector<std::pair<WordLink, Occurrence>> certain_links(Tokens source, Tokens target) {
  const AlignmentDictionary& known = dictionary();
  const Occurrences english = occurrences(source, known.english),
                    italian = occurrences(target, known.italian);
  std::vector<std::pair<WordLink, Occurrence>> found;
  std::map<int64_t, int> source_claims, target_claims;
  for (const auto& [entry, places] : english) {
    const auto other = italian.find(entry);
    if (places.size() != 1 || other == italian.end() || other->second.size() != 1) continue;
    const Occurrence in_source = places[0], in_target = other->second[0];
    found.push_back({{in_source.last, in_target.last, known.entries[entry].kind}, in_source});
    ++source_claims[in_source.last];
    ++target_claims[in_target.last];
  }
  std::erase_if(found, [&](const auto& link) {
    return source_claims[link.first.source] > 1 || target_claims[link.first.target] > 1;
  });
  return found;
}

}  // namespace

const char* name_of(LinkKind kind) {
  static constexpr std::array names = {"noun",   "adjective",     "verb",    "name",
                                       "number", "function word", "article", "clitic"};
  return names[static_cast<size_t>(kind)];
}

std::vector<WordLink> phrasebook_alignment(Tokens given_source, Tokens given_target) {
  const std::vector<std::string> source = all_lowercase(given_source), target = all_lowercase(given_target);
  const NeighbourLinks neighbours(source, target);
  std::vector<WordLink> out;
  const auto found = certain_links(source, target);
  for (const auto& [link, english] : found) {
    out.push_back(link);
    if (link.kind == LinkKind::noun) neighbours.article(link, out);
    if (link.kind == LinkKind::verb) {
      const WordForm form{target[static_cast<size_t>(link.target)]};
      neighbours.clitic(english.last + 1, link, dictionary().with_clitics.contains(form), out);
    }
    if (link.kind != LinkKind::adjective) continue;
    for (const auto& [noun, unused] : found) {
      const bool next = noun.kind == LinkKind::noun && noun.source == link.source + 1;
      if (next && noun.target == link.target - 1) out.back().swapped = true;
    }
  }
  std::sort(out.begin(), out.end(), [](const WordLink& a, const WordLink& b) {
    return std::pair(a.target, a.source) < std::pair(b.target, b.source);
  });
  return out;
}

}  // namespace heed
