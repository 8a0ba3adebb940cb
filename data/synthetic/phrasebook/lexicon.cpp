// Reads the tables of the phrasebook's vocabulary.
#include "heed/data/synthetic/phrasebook/lexicon.h"

#include <algorithm>

#include "heed/core/error.h"
#include "heed/data/synthetic/embedded_table.h"
#include "heed/data/synthetic/phrasebook/english.h"
#include "heed/data/synthetic/phrasebook/italian.h"

namespace heed::phrases {
namespace {

using Row = std::vector<std::string_view>;

std::vector<Row> table(const std::string& name, size_t columns) {
  return embedded_table("phrasebook/" + name + ".tsv", columns);
}

/// The gender that the first letter of a cell tells.
Gender gender_of(std::string_view cell) {
  if (!cell.starts_with('m') && !cell.starts_with('f'))
    fail(Fault::internal, "phrasebook: gender '", cell, "' is neither m nor f.");
  return cell.starts_with('m') ? Gender::masculine : Gender::feminine;
}

/// For each known flag, whether a blank-separated list holds it; fails for unknown flags.
template <size_t n>
std::array<bool, n> flags_in(std::string_view list, const std::string_view (&known)[n]) {
  std::array<bool, n> out{};
  for (const std::string_view flag : split_words(list)) {
    const auto found = std::find(std::begin(known), std::end(known), flag);
    if (found == std::end(known)) fail(Fault::internal, "phrasebook: '", flag, "' is no flag.");
    out[static_cast<size_t>(found - std::begin(known))] = true;
  }
  return out;
}

/// The bits of the tags in a blank-separated list; new tags get the next bits.
Tags add_tags(Lexicon& out, std::string_view list) {
  for (const std::string_view tag : split_words(list)) {
    if (std::find(out.tags.begin(), out.tags.end(), tag) == out.tags.end()) out.tags.emplace_back(tag);
  }
  if (out.tags.size() > 64) fail(Fault::internal, "phrasebook: more than 64 tags.");
  return out.mask(list);
}

/// A row of nouns.tsv; adds its tags to the lexicon. Empty plurals are regular.
Noun read_noun(Lexicon& out, const Row& cell) {
  const std::string english(cell[0]), english_plural(cell[1]), italian(cell[2]), italian_plural(cell[3]);
  Noun noun{.singular = {english, italian},
            .plural = {english_plural, italian_plural},
            .gender = gender_of(cell[4]),
            .plural_gender = gender_of(cell[4].substr(cell[4].size() - 1)),
            .tags = add_tags(out, cell[5])};
  if (english_plural.empty()) noun.plural.english = english::plural(english);
  if (italian_plural.empty()) noun.plural.italian = italian::plural(italian, noun.gender);
  return noun;
}

/// A row of adjectives.tsv.
Adjective read_adjective(const Lexicon& out, const Row& cell) {
  const auto [precedes, invariable, absolute, state] =
      flags_in(cell[2], {"precedes", "invariable", "absolute", "state"});
  return {.word = {std::string(cell[0]), std::string(cell[1])},
          .precedes = precedes,
          .invariable = invariable,
          .gradable = !absolute,
          .state = state,
          .tags = out.mask(cell[3])};
}

/// A row of verbs.tsv; empty forms are regular.
Verb read_verb(const Lexicon& out, const Row& cell) {
  const auto [inchoative, essere, stative, starts_chain, involuntary] =
      flags_in(cell[9], {"inchoative", "essere", "stative", "starts_chain", "involuntary"});
  Verb verb{.frame = std::string(cell[0]),
            .english = {std::string(cell[1]), std::string(cell[2])},
            .italian = {.infinitive = std::string(cell[3]),
                        .participle = std::string(cell[4]),
                        .future = std::string(cell[5]),
                        .stem = std::string(cell[6]),
                        .imperative = std::string(cell[7]),
                        .present = {},
                        .inchoative = inchoative,
                        .with_essere = essere,
                        .reflexive = cell[3].ends_with("si")},
            .stative = stative,
            .starts_chain = starts_chain,
            .involuntary = involuntary,
            .subjects = out.mask(cell[10]),
            .objects = out.mask(cell[11])};
  if (cell[2].empty()) verb.english.past = english::past(verb.english.base);
  if (verb.italian.reflexive) {
    verb.italian.infinitive.replace(verb.italian.infinitive.size() - 2, 2, "e");
    verb.italian.with_essere = true;
  }
  const std::vector<std::string_view> present = split_words(cell[8]);
  if (present.size() > verb.italian.present.size())
    fail(Fault::internal, "phrasebook: ", verb.english.base, " has ", present.size(),
         " forms of the present.");
  std::copy(present.begin(), present.end(), verb.italian.present.begin());
  italian::complete(verb.italian);
  return verb;
}

Lexicon read_tables() {
  Lexicon out;
  for (const Row& cell : table("nouns", 6)) out.nouns.push_back(read_noun(out, cell));
  for (const Row& cell : table("adjectives", 4)) out.adjectives.push_back(read_adjective(out, cell));
  for (const Row& cell : table("verbs", 12)) out.verbs.push_back(read_verb(out, cell));
  for (const Row& cell : table("places", 5)) {
    const std::string to(cell[0]), at(cell[1]), from(cell[2]), italian_at(cell[3]), italian_from(cell[4]);
    out.places.push_back({{to, italian_at}, {at, italian_at}, {from, italian_from}});
  }
  for (const Row& cell : table("times", 3))
    out.times.push_back({{std::string(cell[0]), std::string(cell[1])}, std::string(cell[2])});
  for (const Row& cell : table("names", 2)) out.names.push_back({std::string(cell[0]), gender_of(cell[1])});
  out.adverbs = phrase_table("adverbs");
  out.numbers = phrase_table("numbers");
  return out;
}

}  // namespace

const std::string& form(Form column, Person person, Gender gender, size_t offset) {
  using Forms = std::vector<std::string>;
  static const auto forms = [] {
    std::array<std::array<Forms, 2>, people.size()> out;
    // A row without gender is for both; of two rows of a person, the masculine one is first.
    size_t person_index = 0;
    for (const Row& cell : table("persons", 1 + static_cast<size_t>(Form::count))) {
      const Forms row(cell.begin() + 1, cell.end());
      if (cell[0] != "f") out[person_index][static_cast<size_t>(Gender::masculine)] = row;
      if (cell[0] != "m") out[person_index++][static_cast<size_t>(Gender::feminine)] = row;
    }
    return out;
  }();
  return forms[static_cast<size_t>(person)][static_cast<size_t>(gender)]
              [static_cast<size_t>(column) + offset];
}

std::vector<Phrase> phrase_table(const std::string& name) {
  std::vector<Phrase> out;
  for (const Row& cell : table(name, 2)) out.push_back({std::string(cell[0]), std::string(cell[1])});
  return out;
}

Tags Lexicon::mask(std::string_view list) const {
  Tags out = 0;
  for (const std::string_view tag : split_words(list)) {
    const auto place = std::find(tags.begin(), tags.end(), tag);
    if (place == tags.end()) fail(Fault::internal, "phrasebook: no noun has the tag '", tag, "'.");
    out |= Tags{1} << (place - tags.begin());
  }
  return out;
}

std::vector<const Verb*> Lexicon::verbs_of(std::string_view frame) const {
  std::vector<const Verb*> out;
  for (const Verb& verb : verbs) {
    if (verb.frame == frame) out.push_back(&verb);
  }
  return out;
}

const Verb& Lexicon::verb(std::string_view frame, std::string_view infinitive) const {
  for (const Verb& verb : verbs) {
    if (verb.frame == frame && (infinitive.empty() || verb.italian.infinitive == infinitive)) return verb;
  }
  fail(Fault::internal, "phrasebook: no verb '", infinitive, "' of frame '", frame, "'.");
}

const Lexicon& lexicon() {
  static const Lexicon built = read_tables();
  return built;
}

}  // namespace heed::phrases
