// Parses the tables of the phrasebook's vocabulary.
#include "heed/data/synthetic/phrasebook/lexicon.h"

#include <algorithm>

#include "heed/core/error.h"
#include "heed/data/synthetic/phrasebook/english.h"
#include "heed/data/synthetic/phrasebook/italian.h"
#include "heed/data/synthetic/phrasebook/words.h"

namespace heed::phrases {
namespace {

std::string trimmed(std::string_view piece) {
  const size_t from = piece.find_first_not_of(" \n");
  if (from == std::string_view::npos) return {};
  return std::string(piece.substr(from, piece.find_last_not_of(" \n") + 1 - from));
}

/// The parts between separators, trimmed.
std::vector<std::string> split(std::string_view line, char separator) {
  std::vector<std::string> out;
  while (true) {
    const size_t end = std::min(line.find(separator), line.size());
    out.push_back(trimmed(line.substr(0, end)));
    if (end == line.size()) return out;
    line.remove_prefix(end + 1);
  }
}

/// The non-empty parts between separators: a table's lines or a list's words.
std::vector<std::string> filled(std::string_view line, char separator) {
  std::vector<std::string> out = split(line, separator);
  std::erase(out, "");
  return out;
}

std::string spaced(std::string word) {
  std::replace(word.begin(), word.end(), '_', ' ');
  return word;
}

/// `book/books` gives both forms; `book` gives "" as the second.
std::array<std::string, 2> two_forms(const std::string& entry) {
  const size_t slash = entry.find('/');
  if (slash == std::string::npos) return {spaced(entry), ""};
  return {spaced(entry.substr(0, slash)), spaced(entry.substr(slash + 1))};
}

Gender gender_of(const std::string& letter) {
  if (letter != "m" && letter != "f")
    fail(Fault::internal, "phrasebook: gender '", letter, "' is neither m nor f.");
  return letter == "m" ? Gender::masculine : Gender::feminine;
}

Tags learn(Lexicon& out, const std::string& tag) {
  const auto place = std::find(out.tags.begin(), out.tags.end(), tag);
  const auto index = place - out.tags.begin();
  if (place == out.tags.end()) out.tags.push_back(tag);
  if (index >= 64) fail(Fault::internal, "phrasebook: more than 64 tags.");
  return Tags{1} << index;
}

void read_nouns(Lexicon& out) {
  const Tags uova = learn(out, "uova");
  for (const std::string& line : filled(tables::nouns, '\n')) {
    const auto head = split(line, ':');
    Tags common = 0;
    for (const std::string& tag : filled(head.at(0), ' ')) common |= learn(out, tag);
    for (const std::string& entry : split(head.at(1), ',')) {
      const auto part = filled(entry, ' ');
      const auto english = two_forms(part.at(0)), italian = two_forms(part.at(1));
      Noun noun;
      noun.gender = gender_of(part.at(2));
      noun.tags = common;
      for (size_t i = 3; i < part.size(); ++i) noun.tags |= learn(out, part[i].substr(1));
      noun.plural_gender = (noun.tags & uova) != 0 ? Gender::feminine : noun.gender;
      noun.singular = {english[0], italian[0]};
      noun.plural = {english[1].empty() ? english::plural(english[0]) : english[1],
                     italian[1].empty() ? italian::plural(italian[0], noun.gender) : italian[1]};
      out.nouns.push_back(std::move(noun));
    }
  }
}

void read_adjectives(Lexicon& out) {
  for (const std::string& line : filled(tables::adjectives, '\n')) {
    const auto head = split(line, ':');
    for (const std::string& entry : split(head.at(1), ',')) {
      const auto part = filled(entry, ' ');
      Adjective adjective{.word = {part.at(0), part.at(1)}, .tags = out.mask(head[0])};
      for (size_t i = 2; i < part.size(); ++i) {
        if (part[i] == "pre") adjective.before = true;
        if (part[i] == "inv") adjective.fixed = true;
        if (part[i] == "abs") adjective.graded = false;
        if (part[i] == "state") adjective.state = true;
      }
      out.adjectives.push_back(std::move(adjective));
    }
  }
}

void read_verbs(Lexicon& out) {
  for (const std::string& line : filled(tables::verbs, '\n')) {
    const auto field = split(line, '|');
    const auto head = split(field.at(0), ':');
    const auto part = filled(head.at(1), ' ');
    const auto english = two_forms(part.at(0));
    Verb verb{.frame = head[0], .subjects = out.mask(field.at(1)), .objects = out.mask(field.at(2))};
    verb.english = {english[0], english[1].empty() ? english::past(english[0]) : english[1]};
    ItalianVerb& italian = verb.italian;
    italian.infinitive = part.at(1);
    italian.reflexive = italian.infinitive.ends_with("si");
    if (italian.reflexive) {
      italian.infinitive.replace(italian.infinitive.size() - 2, 2, "e");
      italian.with_essere = true;
    }
    for (size_t i = 2; i < part.size(); ++i) {
      const size_t equals = part[i].find('=');
      const std::string key = part[i].substr(0, equals);
      const std::string value = equals == std::string::npos ? "" : part[i].substr(equals + 1);
      if (key == "pp")
        italian.participle = value;
      else if (key == "fut")
        italian.future = value;
      else if (key == "stem")
        italian.stem = value;
      else if (key == "imp")
        italian.imperative = value;
      else if (key == "isc")
        italian.inchoative = true;
      else if (key == "essere")
        italian.with_essere = true;
      else if (key == "stative")
        verb.stative = true;
      else if (key == "first")
        verb.first = true;
      else if (key == "unwilled")
        verb.unwilled = true;
      else
        fail(Fault::internal, "phrasebook: '", part[i], "' of the verb '", part[1], "' means nothing.");
    }
    for (const std::string& row : filled(tables::presents, '\n')) {
      const auto pair = split(row, ':');
      if (pair[0] != part[1]) continue;
      const auto forms = filled(pair.at(1), ' ');
      for (size_t i = 0; i < 6; ++i) italian.present[i] = forms.at(i);
    }
    italian::complete(italian);
    out.verbs.push_back(std::move(verb));
  }
}

Lexicon read_tables() {
  Lexicon out;
  read_nouns(out);
  read_adjectives(out);
  read_verbs(out);
  for (const std::string& line : filled(tables::places, '\n')) {
    const auto part = split(line, '|');
    out.places.push_back({{part.at(0), part.at(3)}, {part.at(1), part.at(3)}, {part.at(2), part.at(4)}});
  }
  for (const std::string& line : filled(tables::times, '\n')) {
    const auto part = split(line, '|');
    out.times.push_back({{part.at(0), part.at(1)}, part.at(2)});
  }
  for (const std::string& line : filled(tables::manners, '\n')) {
    const auto part = split(line, '|');
    out.manners.push_back({part.at(0), part.at(1)});
  }
  for (const std::string& entry : split(tables::numbers, ',')) {
    const auto part = filled(entry, ' ');
    out.numbers.push_back({spaced(part.at(0)), part.at(1)});
  }
  for (const std::string& entry : split(tables::names, ',')) {
    const auto part = filled(entry, ' ');
    out.names.push_back({part.at(0), gender_of(part.at(1))});
  }
  return out;
}

}  // namespace

Tags Lexicon::mask(std::string_view list) const {
  Tags out = 0;
  for (const std::string& tag : filled(list, ' ')) {
    const auto place = std::find(tags.begin(), tags.end(), tag);
    if (place == tags.end()) fail(Fault::internal, "phrasebook: no noun has the tag '", tag, "'.");
    out |= Tags{1} << (place - tags.begin());
  }
  return out;
}

std::vector<const Noun*> Lexicon::nouns_of(Tags wanted) const {
  std::vector<const Noun*> out;
  for (const Noun& noun : nouns) {
    if ((noun.tags & wanted) != 0) out.push_back(&noun);
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
