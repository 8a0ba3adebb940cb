// Which word of a phrasebook sentence translates which: the truth that alignments of a model are compared
// with.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace heed {

/// What is translated.
enum class LinkKind { noun, adjective, verb, name, number, function_word, article, clitic };

/// A pair of words of which one translates the other.
struct WordLink {
  int64_t source = 0;              ///< index of the English token
  int64_t target = 0;              ///< index of the Italian token
  LinkKind kind = LinkKind::noun;  ///< the part of speech
  /// True for an adjective that stands before its noun in English and behind it in Italian.
  bool swapped = false;
};

/// The name of a kind: "noun", "function word".
const char* name_of(LinkKind kind);

/// The links between the words of a sentence and its translation, by the lexicon and the rules of the
/// phrasebook's grammar, ascending by target. Tokens are those of word_pieces(); others, such as [SOS], are
/// passed over. A word whose partner is not certain, as when a word occurs twice, has no link, and neither
/// have words that only one language says, such as auxiliaries. Sentences of other text give few links.
std::vector<WordLink> phrasebook_alignment(std::span<const std::string> source,
                                           std::span<const std::string> target);

}  // namespace heed
