// The word alignment of the phrasebook, on sentences aligned by hand and on many generated ones.
#include "heed/data/synthetic/phrasebook/word_alignment.h"

#include <set>

#include "heed/data/synthetic/phrasebook/phrasebook.h"
#include "heed/data/tokenizers/vocabulary.h"
#include "heed/tests/catch.h"

using namespace heed;

namespace {

std::vector<std::string> words_of(const std::string& sentence) {
  std::vector<std::string> out;
  for (const std::string_view piece : word_pieces(sentence)) out.emplace_back(piece);
  return out;
}

/// The links as text: "house=casa noun".
std::set<std::string> links(const std::string& english, const std::string& italian) {
  const std::vector<std::string> source = words_of(english), target = words_of(italian);
  std::set<std::string> out;
  for (const WordLink& link : phrasebook_alignment(source, target))
    out.insert(source[static_cast<size_t>(link.source)] + "=" + target[static_cast<size_t>(link.target)] +
               " " + name_of(link.kind) + (link.swapped ? " swapped" : ""));
  return out;
}

using Links = std::set<std::string>;

}  // namespace

TEST_CASE("word alignment: adjectives change places with their noun, articles follow the noun") {
  CHECK(links("Anna buys the red book.", "Anna compra il libro rosso.") ==
        Links{"Anna=Anna name", "buys=compra verb", "the=il article", "red=rosso adjective swapped",
              "book=libro noun"});
  CHECK(links("The small dog sees a beautiful house.", "Il piccolo cane vede una bella casa.") ==
        Links{"The=Il article", "small=piccolo adjective", "dog=cane noun", "sees=vede verb", "a=una article",
              "beautiful=bella adjective", "house=casa noun"});
  CHECK(links("The man is in the house.", "L'uomo è nella casa.") ==
        Links{"The=L article", "man=uomo noun", "the=nella article", "house=casa noun"});
}

TEST_CASE("word alignment: clitic pronouns before the verb, before its auxiliary, and at its end") {
  CHECK(links("Anna does not see me.", "Anna non mi vede.") ==
        Links{"Anna=Anna name", "not=non function word", "me=mi clitic", "see=vede verb"});
  CHECK(links("Marco bought the book and read it.", "Marco ha comprato il libro e l'ha letto.") ==
        Links{"Marco=Marco name", "bought=comprato verb", "the=il article", "book=libro noun",
              "and=e function word", "it=l clitic", "read=letto verb"});
  CHECK(links("Luca wants to help her.", "Luca vuole aiutarla.") ==
        Links{"Luca=Luca name", "wants=vuole verb", "help=aiutarla verb", "her=aiutarla clitic"});
}

TEST_CASE("word alignment: what is not certain has no link, and special tokens are passed over") {
  // Each verb is said twice in Italian or in English.
  CHECK(links("The cook cooks.", "Il cuoco cucina.").empty());
  const std::vector<std::string> source{"[SOS]", "Anna", "sleeps", ".", "[EOS]"},
      target{"Anna", "dorme", ".", "[EOS]"};
  const auto found = phrasebook_alignment(source, target);
  REQUIRE(found.size() == 2);
  CHECK(found[0].source == 1);
  CHECK(found[1].target == 1);
  CHECK(phrasebook_alignment({}, {}).empty());
  CHECK(links("I don't see any of these words.", "Lorem ipsum dolor sit amet.").empty());
}

TEST_CASE("word alignment: most words of the phrasebook have a link, and no target word has two nouns") {
  int64_t linked = 0, all = 0, swapped = 0, clitics = 0;
  for (const Pair& pair : phrasebook({.count = 2000, .seed = 5})) {
    const std::vector<std::string> source = words_of(pair.source), target = words_of(pair.target);
    std::set<int64_t> seen, once;
    for (const WordLink& link : phrasebook_alignment(source, target)) {
      CHECK((link.source >= 0 && link.source < static_cast<int64_t>(source.size())));
      CHECK((link.target >= 0 && link.target < static_cast<int64_t>(target.size())));
      seen.insert(link.source);
      if (link.kind != LinkKind::clitic) CHECK(once.insert(link.target).second);
      swapped += link.swapped ? 1 : 0;
      clitics += link.kind == LinkKind::clitic ? 1 : 0;
    }
    linked += static_cast<int64_t>(seen.size());
    all += static_cast<int64_t>(source.size()) - 1;  // without the full stop
  }
  CHECK(static_cast<double>(linked) > 0.6 * static_cast<double>(all));
  CHECK(swapped > 150);
  CHECK(clitics > 60);
}
