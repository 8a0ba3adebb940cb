// Aligns words: finds each entry of the lexicon on both sides in all its forms, then the articles and
// pronouns beside it.
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

/// The lowercase words of a form, without an apostrophe at its end: bell' becomes bell.
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

/// All combinations of one clitic pronoun, or of a direct and an indirect one.
std::vector<italian::Clitics> all_clitics() {
  std::vector<italian::Clitic> single;
  for (const Person person : people)
    for (const Gender gender : genders) single.push_back({person, gender});
  std::vector<italian::Clitics> out;
  for (const italian::Clitic& direct : single) {
    out.push_back({.direct = direct});
    out.push_back({.indirect = direct});
    for (const italian::Clitic& indirect : single) out.push_back({.direct = direct, .indirect = indirect});
  }
  return out;
}

/// All forms of a verb. Those that end in pronouns (leggerlo) are added to `with_clitics` as well.
LexiconEntry entry_of(const Verb& verb, std::set<WordForm>& with_clitics) {
  static const std::vector<italian::Clitics> clitics = all_clitics();
  LexiconEntry out{LinkKind::verb, {}, {}};
  out.english = {form_of(verb.english.base), form_of(verb.english.past),
                 form_of(english::present(verb.english, Person::third)),
                 form_of(english::progressive(verb.english.base))};
  const ItalianVerb& italian_verb = verb.italian;
  for (const Person person : people) {
    for (const auto tense : {italian::Tense::present, italian::Tense::imperfect, italian::Tense::future})
      out.italian.insert(form_of(italian::finite(italian_verb, tense, person)));
    if (italian_verb.reflexive) {
      out.italian.insert(form_of(italian::infinitive(italian_verb, {.reflexive = person})));
      out.italian.insert(form_of(italian::imperative(italian_verb, {.reflexive = person})));
    }
  }
  for (const Gender gender : genders)
    for (const Number number : numbers_of_words)
      out.italian.insert(form_of(italian::participle(italian_verb, gender, number)));
  for (const std::string& form :
       {italian::gerund(italian_verb), italian::infinitive(italian_verb), italian::imperative(italian_verb)})
    out.italian.insert(form_of(form));
  if (verb.objects != 0) {
    for (const italian::Clitics& pronouns : clitics) {
      with_clitics.insert(form_of(italian::infinitive(italian_verb, pronouns)));
      with_clitics.insert(form_of(italian::imperative(italian_verb, pronouns)));
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
      std::set<WordForm> with_clitics_of_verb;
      entries.push_back(entry_of(verb, with_clitics_of_verb));
      with_clitics.insert(with_clitics_of_verb.begin(), with_clitics_of_verb.end());
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
      for (const WordForm& form : entries[i].english) english_adjectives.insert(form.back());
      for (const WordForm& form : entries[i].italian) italian_adjectives.insert(form.back());
    }
    for (const Verb* verb : {&words.verb("act", "avere"), &words.verb("be"), &words.verb("stare")}) {
      for (const std::string& present : verb->italian.present) auxiliaries.insert(lowercase(present));
    }
  }
  std::vector<LexiconEntry> entries;
  std::map<WordForm, std::vector<size_t>> english, italian;  ///< form to indices of its entries
  std::set<WordForm> with_clitics;                           ///< verbs with pronouns at their end: leggerlo
  std::set<std::string> english_adjectives, italian_adjectives;  ///< words between article and noun
  std::set<std::string> auxiliaries;                             ///< present forms of avere, essere and stare
  std::vector<Phrase> clitics = phrase_table("clitics");
};

const AlignmentDictionary& dictionary() {
  static const AlignmentDictionary made;
  return made;
}

/// A place in a sentence where a form of an entry stands: its first and last token.
struct Occurrence {
  int64_t first, last;
};
using Occurrences = std::map<size_t, std::vector<Occurrence>>;  // by the index of the entry

/// Finds all forms in a sentence.
Occurrences occurrences(Tokens words, const std::map<WordForm, std::vector<size_t>>& forms) {
  constexpr int64_t max_form_words = 3;
  Occurrences out;
  const auto count = static_cast<int64_t>(words.size());
  for (int64_t first = 0; first < count; ++first) {
    WordForm form;
    for (int64_t last = first; last < std::min(first + max_form_words, count); ++last) {
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

  /// Links the articles of a linked noun, which stand before it and its adjectives; the Italian one may be
  /// joined with a preposition.
  void link_article(const WordLink& noun, std::vector<WordLink>& out) const {
    const AlignmentDictionary& known = dictionary();
    int64_t english = noun.source - 1, italian = noun.target - 1;
    while (english >= 0 && known.english_adjectives.contains(source(english))) --english;
    while (italian >= 0 && (target(italian) == "'" || known.italian_adjectives.contains(target(italian))))
      --italian;
    if (english < 0 || italian < 0) return;
    static constexpr std::string_view definite =
        "il lo la l i gli le del dello della dell dei degli delle al allo alla all ai agli alle dal dallo "
        "dalla dall dai dagli dalle nel nello nella nell nei negli nelle sul sullo sulla sull sui sugli "
        "sulle";
    const bool are_definite = source(english) == "the" && one_of(target(italian), definite);
    const bool are_indefinite = one_of(source(english), "a an") && one_of(target(italian), "un uno una");
    if (are_definite || are_indefinite)
      out.push_back({.source = english, .target = italian, .kind = LinkKind::article});
  }

  /// Links the pronoun at token `place`, right behind a linked English verb, to the clitic before the Italian
  /// verb and its auxiliary, or to the verb itself where the clitic is its ending (`is_attached`).
  void link_clitic(int64_t place, const WordLink& verb, bool is_attached, std::vector<WordLink>& out) const {
    const auto num_source = static_cast<int64_t>(source_.size());
    if (place >= num_source) return;
    const AlignmentDictionary& known = dictionary();
    for (const Phrase& pronoun : known.clitics) {
      if (source(place) != pronoun.english) continue;
      const bool is_possessive = pronoun.english == "her" && place + 1 < num_source &&
                                 (known.english_adjectives.contains(source(place + 1)) ||
                                  known.english.contains({source(place + 1)}));
      if (is_possessive) return;  // her book
      if (is_attached)
        return out.push_back({.source = place, .target = verb.target, .kind = LinkKind::clitic});
      int64_t italian = verb.target - 1;
      while (italian >= 0 && (target(italian) == "'" || known.auxiliaries.contains(target(italian)) ||
                              one_of(target(italian), "sempre spesso mai")))
        --italian;
      if (italian >= 0 && one_of(target(italian), pronoun.italian))
        out.push_back({.source = place, .target = italian, .kind = LinkKind::clitic});
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

/// A link between the last words of two forms, and the place of the English one.
struct EntryLink {
  WordLink link;
  Occurrence english;
};

/// Links of entries that occur once on each side, without tokens that two entries claim.
std::vector<EntryLink> certain_links(Tokens source, Tokens target) {
  const AlignmentDictionary& known = dictionary();
  const Occurrences english = occurrences(source, known.english),
                    italian = occurrences(target, known.italian);
  std::vector<EntryLink> found;
  std::map<int64_t, int> source_claims, target_claims;
  for (const auto& [entry, places] : english) {
    const auto italian_places = italian.find(entry);
    if (places.size() != 1 || italian_places == italian.end() || italian_places->second.size() != 1) continue;
    const Occurrence in_source = places[0], in_target = italian_places->second[0];
    found.push_back(
        {.link = {.source = in_source.last, .target = in_target.last, .kind = known.entries[entry].kind},
         .english = in_source});
    ++source_claims[in_source.last];
    ++target_claims[in_target.last];
  }
  std::erase_if(found, [&](const EntryLink& entry) {
    return source_claims[entry.link.source] > 1 || target_claims[entry.link.target] > 1;
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
  const std::vector<EntryLink> found = certain_links(source, target);
  for (const auto& [link, english] : found) {
    out.push_back(link);
    if (link.kind == LinkKind::noun) neighbours.link_article(link, out);
    if (link.kind == LinkKind::verb) {
      const WordForm form{target[static_cast<size_t>(link.target)]};
      neighbours.link_clitic(english.last + 1, link, dictionary().with_clitics.contains(form), out);
    }
    if (link.kind != LinkKind::adjective) continue;
    out.back().swapped = std::any_of(found.begin(), found.end(), [&](const EntryLink& entry) {
      const WordLink& noun = entry.link;
      return noun.kind == LinkKind::noun && noun.source == link.source + 1 && noun.target == link.target - 1;
    });
  }
  std::sort(out.begin(), out.end(), [](const WordLink& left, const WordLink& right) {
    return std::pair(left.target, left.source) < std::pair(right.target, right.source);
  });
  return out;
}

}  // namespace heed
