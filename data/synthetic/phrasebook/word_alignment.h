// True word alignment of phrasebook sentences, which alignments of a model are compared with.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace heed {

/// The part of speech of two linked words.
enum class LinkKind { noun, adjective, verb, name, number, function_word, article, clitic };

/// A pair of words of which one translates the other.
struct WordLink {
  int64_t source = 0;              ///< index of the English token
  int64_t target = 0;              ///< index of the Italian token
  LinkKind kind = LinkKind::noun;  ///< part of speech of both words
  /// True for an adjective that stands before its noun in English and behind it in Italian.
  bool swapped = false;
};

/// The name of a kind: "noun", "function word".
const char* name_of(LinkKind kind);

/// The links between the words of a sentence and its translation, by the lexicon and the rules of the
/// phrasebook's grammar, ascending by target. Tokens are those of word_pieces(); others, such as [SOS], get
/// no link. Words whose partner is not certain, since they occur twice, have no link, nor do words that only
/// one language has, such as auxiliaries. Sentences of other text get few links.
std::vector<WordLink> phrasebook_alignment(std::span<const std::string> source,
                                           std::span<const std::string> target);

}  // namespace heed
