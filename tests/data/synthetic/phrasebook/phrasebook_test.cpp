// The phrasebook: its Italian and English forms against known sentences, and properties of the corpus.
#include "heed/data/synthetic/phrasebook/phrasebook.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "heed/core/io/hash.h"
#include "heed/data/synthetic/phrasebook/english.h"
#include "heed/data/synthetic/phrasebook/sentence_patterns.h"
#include "heed/tests/catch.h"

using namespace heed;
using namespace heed::phrases;
using italian::Clitic;
using italian::Preposition;

namespace {

constexpr Gender m = Gender::masculine, f = Gender::feminine;
constexpr Number sg = Number::singular, pl = Number::plural;

const Noun& noun(const std::string& english) {
  for (const Noun& noun : lexicon().nouns) {
    if (noun.singular.english == english) return noun;
  }
  throw std::runtime_error("no noun " + english);
}

const Adjective& adjective(const std::string& english) {
  for (const Adjective& adjective : lexicon().adjectives) {
    if (adjective.word.english == english) return adjective;
  }
  throw std::runtime_error("no adjective " + english);
}

const Verb& verb(const std::string& english, const std::string& frame = "") {
  for (const Verb& verb : lexicon().verbs) {
    if (verb.english.base == english && (frame.empty() || verb.frame == frame)) return verb;
  }
  throw std::runtime_error("no verb " + english);
}

/// `the`, or another determiner, before the noun and its adjectives.
NounPhrase phrase(const std::string& word, NounModifiers modifiers = {}) {
  CounterRng rng(1);
  return WordChooser(rng).phrase(noun(word), modifiers);
}

NounPhrase who(Person person, Gender gender = m) {
  return {.english = form(Form::subject, person, gender), .person = person, .gender = gender};
}

NounPhrase name(const std::string& word, Gender gender) {
  return {.english = word, .italian = word, .gender = gender};
}

Phrase object(const NounPhrase& what) { return what.phrase(); }

std::string both(const Phrase& words) { return words.english + " | " + words.italian; }

const std::vector<Pair>& corpus() {
  static const std::vector<Pair> pairs = phrasebook();
  return pairs;
}

}  // namespace

TEST_CASE("phrasebook: Italian articles and prepositions take their form from the next word") {
  CHECK(italian::definite(m, sg, "libro") == "il");
  CHECK(italian::definite(m, sg, "studente") == "lo");
  CHECK(italian::definite(m, sg, "zio") == "lo");
  CHECK(italian::definite(m, sg, "uovo") == "l'");
  CHECK(italian::definite(m, pl, "libri") == "i");
  CHECK(italian::definite(m, pl, "specchi") == "gli");
  CHECK(italian::definite(m, pl, "alberi") == "gli");
  CHECK(italian::definite(f, sg, "scarpa") == "la");
  CHECK(italian::definite(f, sg, "ape") == "l'");
  CHECK(italian::definite(f, pl, "api") == "le");
  CHECK(italian::indefinite(m, "albero") == "un");
  CHECK(italian::indefinite(m, "zaino") == "uno");
  CHECK(italian::indefinite(f, "anatra") == "un'");
  CHECK(italian::indefinite(f, "zebra") == "una");
  CHECK(italian::articulated(Preposition::in, m, sg, "zaino") == "nello");
  CHECK(italian::articulated(Preposition::in, m, sg, "cassetto") == "nel");
  CHECK(italian::articulated(Preposition::of, m, pl, "uccelli") == "degli");
  CHECK(italian::articulated(Preposition::of, f, sg, "amica") == "dell'");
  CHECK(italian::articulated(Preposition::on, f, sg, "sedia") == "sulla");
  CHECK(italian::articulated(Preposition::to, m, pl, "ragazzi") == "ai");
  CHECK(italian::articulated(Preposition::from, f, pl, "case") == "dalle");
  CHECK(italian::plain(Preposition::to, "Anna") == "ad");
  CHECK(italian::plain(Preposition::to, "Marco") == "a");
  CHECK(italian::conjunction("Elena") == "ed");
  CHECK(italian::demonstrative_this(m, sg, "albero") == "quest'");
  CHECK(italian::demonstrative_that(m, sg, "specchio") == "quello");
  CHECK(italian::demonstrative_that(m, pl, "libri") == "quei");
  CHECK(italian::demonstrative_that(m, pl, "uomini") == "quegli");
  CHECK(italian::demonstrative_that(f, sg, "isola") == "quell'");
}

TEST_CASE("phrasebook: adjectives agree, and stand before or after their noun") {
  const Adjective &red = adjective("red"), &old = adjective("old"), &beautiful = adjective("beautiful"),
                  &good = adjective("good"), &blue = adjective("blue"), &big = adjective("big");
  CHECK(phrase("car", {.before = &big, .after = &red}).full() == "la grande macchina rossa");
  CHECK(phrase("car", {.before = &big, .after = &red}).english == "the big red car");
  CHECK(phrase("shoe", {.number = pl, .after = &blue}).full() == "le scarpe blu");
  CHECK(phrase("mirror", {.before = &beautiful}).full() == "il bello specchio");
  CHECK(phrase("ring", {.number = pl, .before = &beautiful}).full() == "i begli anelli");
  CHECK(phrase("umbrella", {.determiner = Determiner::indefinite, .before = &beautiful}).full() ==
        "un bell'ombrello");
  CHECK(phrase("book", {.before = &beautiful}).full() == "il bel libro");
  CHECK(phrase("egg", {.before = &good}).full() == "il buon uovo");
  CHECK(phrase("egg", {.number = pl, .before = &good}).full() == "le buone uova");
  CHECK(phrase("backpack", {.determiner = Determiner::indefinite, .before = &old}).full() ==
        "un vecchio zaino");
  CHECK(phrase("skirt", {.number = pl, .after = &adjective("white")}).full() == "le gonne bianche");
  CHECK(phrase("doctor", {.number = pl, .after = &adjective("nice")}).full() == "i medici simpatici");
  CHECK(phrase("soldier", {.number = pl, .after = &adjective("German")}).full() == "i soldati tedeschi");
  CHECK(phrase("hotel", {.number = pl, .after = &adjective("ancient")}).full() == "gli alberghi antichi");
  CHECK(phrase("student", {.number = pl, .after = &adjective("intelligent")}).full() ==
        "gli studenti intelligenti");
  CHECK(phrase("tie", {.number = pl, .after = &adjective("grey")}).full() == "le cravatte grigie");
}

TEST_CASE("phrasebook: determiners and possessives") {
  const auto owned = [](Person owner) {
    return NounModifiers{.determiner = Determiner::possessive, .owner = owner};
  };
  CHECK(both(object(phrase("book", owned(Person::first)))) == "my book | il mio libro");
  CHECK(both(object(phrase("shirt", owned(Person::second)))) == "your shirt | la tua camicia");
  CHECK(both(object(phrase("brother", owned(Person::first)))) == "my brother | mio fratello");
  CHECK(both(object(phrase("brother", owned(Person::third_plural)))) == "their brother | il loro fratello");
  NounModifiers uncles = owned(Person::first);
  uncles.number = pl;
  CHECK(both(object(phrase("uncle", uncles))) == "my uncles | i miei zii");
  NounModifiers aunt = owned(Person::first_plural);
  aunt.before = &adjective("old");
  CHECK(phrase("aunt", aunt).full() == "la nostra vecchia zia");
  CHECK(phrase("friend", owned(Person::first)).after(Preposition::to) == "al mio amico");
  CHECK(phrase("father", owned(Person::first)).after(Preposition::of) == "di mio padre");
  CHECK(both(object(phrase("water", {.determiner = Determiner::some}))) == "some water | dell'acqua");
  CHECK(both(object(phrase("sugar", {.determiner = Determiner::some}))) == "some sugar | dello zucchero");
  CHECK(phrase("apple", {.determiner = Determiner::some, .number = pl}).full() == "alcune mele");
  CHECK(phrase("bird", {.determiner = Determiner::all, .number = pl}).full() == "tutti gli uccelli");
  CHECK(phrase("man", {.determiner = Determiner::those, .number = pl}).full() == "quegli uomini");
  CHECK(both(object(phrase("orange", {.determiner = Determiner::indefinite}))) == "an orange | un'arancia");
}

TEST_CASE("phrasebook: Italian conjugation") {
  const auto form = [](const std::string& english, italian::Tense tense, Person person) {
    return italian::finite(verb(english).italian, tense, person);
  };
  using enum italian::Tense;
  CHECK(form("look for", present, Person::second) == "cerchi");
  CHECK(form("look for", future, Person::first) == "cercherò");
  CHECK(form("eat", present, Person::first_plural) == "mangiamo");
  CHECK(form("eat", future, Person::third) == "mangerà");
  CHECK(form("study", present, Person::second) == "studi");
  CHECK(form("study", future, Person::third_plural) == "studieranno");
  CHECK(form("clean", present, Person::third_plural) == "puliscono");
  CHECK(form("clean", present, Person::second_plural) == "pulite");
  CHECK(form("open", present, Person::third) == "apre");
  CHECK(form("read", present, Person::third_plural) == "leggono");
  CHECK(form("drink", imperfect, Person::third) == "beveva");
  CHECK(form("make", imperfect, Person::first) == "facevo");
  CHECK(form("give", present, Person::third) == "dà");
  CHECK(form("see", future, Person::second) == "vedrai");
  CHECK(form("be", imperfect, Person::first_plural) == "eravamo");
  CHECK(form("be", future, Person::third) == "sarà");
  CHECK(form("come", future, Person::second_plural) == "verrete");
  CHECK(italian::participle(verb("write").italian, f, pl) == "scritte");
  CHECK(italian::participle(verb("know").italian, m, sg) == "conosciuto");
  CHECK(italian::gerund(verb("make").italian) == "facendo");
  CHECK(italian::gerund(verb("sleep").italian) == "dormendo");
  CHECK(italian::infinitive(verb("translate").italian, {.direct = Clitic{Person::third, f}}) == "tradurla");
}

TEST_CASE("phrasebook: English forms") {
  CHECK(english::plural("box") == "boxes");
  CHECK(english::plural("story") == "stories");
  CHECK(english::plural("key") == "keys");
  CHECK(english::plural("radio") == "radios");
  CHECK(english::plural("potato") == "potatoes");
  CHECK(english::progressive("run") == "running");
  CHECK(english::progressive("write") == "writing");
  CHECK(english::progressive("get up") == "getting up");
  CHECK(english::progressive("travel") == "travelling");
  CHECK(english::past("carry") == "carried");
  CHECK(english::past("hug") == "hugged");
  CHECK(english::past("look for") == "looked for");
  CHECK(english::present(verb("wash").english, Person::third) == "washes");
  CHECK(english::present(verb("have fun").english, Person::third) == "has fun");
  CHECK(english::comparative("big") == "bigger");
  CHECK(english::comparative("heavy") == "heavier");
  CHECK(english::comparative("strange") == "stranger");
  CHECK(english::comparative("famous") == "more famous");
  CHECK(english::superlative("polite") == "most polite");
  CHECK(english::indefinite("honest man") == "an");
  CHECK(english::indefinite("useful book") == "a");
  CHECK(english::indefinite("Italian song") == "an");
}

TEST_CASE("phrasebook: tenses, negation and questions say the same in both languages") {
  const NounPhrase anna = name("Anna", f);
  Clause reads{.subject = anna, .verb = &verb("read"), .object = object(phrase("letter"))};
  CHECK(both(realize(reads)) == "Anna reads the letter | Anna legge la lettera");
  reads.negated = true;
  CHECK(both(realize(reads)) == "Anna does not read the letter | Anna non legge la lettera");
  reads.question = true;
  reads.negated = false;
  reads.tense = Tense::past;
  CHECK(both(realize(reads)) == "did Anna read the letter | Anna ha letto la lettera");
  reads.question = false;
  reads.tense = Tense::future;
  CHECK(both(realize(reads)) == "Anna will read the letter | Anna leggerà la lettera");
  reads.tense = Tense::progressive;
  CHECK(both(realize(reads)) == "Anna is reading the letter | Anna sta leggendo la lettera");
  reads.tense = Tense::used_to;
  CHECK(both(realize(reads)) == "Anna used to read the letter | Anna leggeva la lettera");
  reads.tense = Tense::present;
  reads.frequency = {"never", "mai"};
  CHECK(both(realize(reads)) == "Anna never reads the letter | Anna non legge mai la lettera");

  Clause leaves{.subject = who(Person::third, f), .verb = &verb("leave"), .tense = Tense::past};
  CHECK(both(realize(leaves)) == "she left | è partita");
  leaves.subject = who(Person::third_plural);
  CHECK(both(realize(leaves)) == "they left | sono partiti");
  leaves.subject = phrase("nurse", {.number = pl});
  CHECK(both(realize(leaves)) == "the nurses left | le infermiere sono partite");
  const Clause rises{.subject = who(Person::first_plural), .verb = &verb("get up"), .tense = Tense::past};
  CHECK(both(realize(rises)) == "we got up | ci siamo alzati");
  const Clause must{.subject = who(Person::first), .verb = &verb("get up"), .mood = Mood::must};
  CHECK(both(realize(must)) == "I must get up | devo alzarmi");
  const Clause knew{
      .subject = anna, .verb = &verb("love"), .tense = Tense::past, .object = object(phrase("dog"))};
  CHECK(both(realize(knew)) == "Anna loved the dog | Anna amava il cane");
}

TEST_CASE("phrasebook: pronouns agree with the noun they stand for") {
  const NounPhrase marco = name("Marco", m);
  const auto pronoun = [&](const NounPhrase& what, Tense tense) {
    Clause clause{.subject = marco, .verb = &verb("open"), .tense = tense};
    clause.direct = Clitic{what.person, what.gender};
    clause.direct_is_thing = true;
    return both(realize(clause));
  };
  CHECK(pronoun(phrase("door"), Tense::present) == "Marco opens it | Marco la apre");
  CHECK(pronoun(phrase("gate"), Tense::present) == "Marco opens it | Marco lo apre");
  CHECK(pronoun(phrase("door"), Tense::past) == "Marco opened it | Marco l'ha aperta");
  CHECK(pronoun(phrase("door", {.number = pl}), Tense::past) == "Marco opened them | Marco le ha aperte");
  CHECK(pronoun(phrase("gate", {.number = pl}), Tense::past) == "Marco opened them | Marco li ha aperti");

  Clause gives{.subject = marco, .verb = &verb("give")};
  gives.direct = Clitic{Person::third, f};
  gives.direct_is_thing = true;
  gives.indirect = Clitic{Person::first, m};
  CHECK(both(realize(gives)) == "Marco gives it to me | Marco me la dà");
  gives.indirect = Clitic{Person::third, f};
  gives.tense = Tense::past;
  CHECK(both(realize(gives)) == "Marco gave it to her | Marco gliel'ha data");
  gives.direct.reset();
  gives.object = object(phrase("key"));
  CHECK(both(realize(gives)) == "Marco gave her the key | Marco le ha dato la chiave");

  Clause read{.subject = who(Person::second), .verb = &verb("read")};
  read.direct = Clitic{Person::third, m};
  read.direct_is_thing = true;
  CHECK(both(imperative(read)) == "read it | leggilo");
  read.negated = true;
  CHECK(both(imperative(read)) == "do not read it | non leggerlo");
  Clause give{.subject = who(Person::second), .verb = &verb("give"), .object = object(phrase("key"))};
  give.indirect = Clitic{Person::first, m};
  CHECK(both(imperative(give)) == "give me the key | dammi la chiave");
  give.indirect = Clitic{Person::third, m};
  CHECK(both(imperative(give)) == "give him the key | dagli la chiave");
}

TEST_CASE("phrasebook: capitals of accented letters") {
  CHECK(sentence("è tardi", '.') == "È tardi.");
  CHECK(sentence("she sings", '?') == "She sings?");
}

TEST_CASE("phrasebook: sixty thousand distinct sentences, whole and clean") {
  REQUIRE(corpus().size() == 60000);
  std::set<std::string> sources;
  for (const auto& [source, target] : corpus()) {
    sources.insert(source);
    for (const std::string& side : {source, target}) {
      bool clean = side.find("  ") == std::string::npos && side.find(" ,") == std::string::npos;
      for (size_t at = side.find("' "); at != std::string::npos; at = side.find("' ", at + 1)) {
        const std::string before = side.substr(at < 2 ? 0 : at - 2, 2);
        clean =
            clean && (before == "po" || before == "Fa" || before == "fa" || before == "Da" || before == "da");
      }
      const bool ends = side.ends_with('.') || side.ends_with('?') || side.ends_with('!');
      const bool begins = (side[0] >= 'A' && side[0] <= 'Z') || side.starts_with("È");
      if (!clean || !ends || !begins) FAIL("not a clean sentence: '" << side << "'");
    }
    if (source.back() != target.back()) FAIL("different marks: " << source << " | " << target);
    const int64_t words = 1 + std::count(source.begin(), source.end(), ' ');
    if (words < 2 || words > 16) FAIL("too short or too long: " << source);
  }
  CHECK(sources.size() == corpus().size());
}

TEST_CASE("phrasebook: the same options give the same pairs, another seed others") {
  const auto first = phrasebook({.count = 500, .seed = 3});
  CHECK(first == phrasebook({.count = 500, .seed = 3}));
  const auto other = phrasebook({.count = 500, .seed = 4});
  int64_t same = 0;
  for (size_t i = 0; i < first.size(); ++i) same += first[i] == other[i];
  CHECK(same < 5);
  const std::vector<Pair> start(corpus().begin(), corpus().begin() + 100);
  CHECK(start == phrasebook({.count = 100}));
  CHECK_THROWS_WITH(phrasebook({.count = 0}), containing("1 .. 1000000"));
}

TEST_CASE("phrasebook: the sentences of a seed never change") {
  Sha256 sum;
  for (const auto& [source, target] : phrasebook({.count = 5000})) sum.update(source + "\t" + target + "\n");
  CHECK(sum.hex() == "fceb29c1bd85bc71247cd5752fec4148e854f991dba0a2c136c0a8c117611950");
}

TEST_CASE("phrasebook: an English sentence has one translation") {
  std::map<std::string, std::string> translation;
  for (uint64_t number = 0; number < 100000; ++number) {
    CounterRng rng(77, number);
    const Pair pair = compose(rng);
    const auto [place, fresh] = translation.emplace(pair.source, pair.target);
    if (!fresh && place->second != pair.target) {
      FAIL(pair.source << " is both '" << place->second << "' and '" << pair.target << "'");
    }
  }
}

TEST_CASE("phrasebook: every word of the lexicon is used") {
  std::string english, italian;
  const auto padded = [](std::string text) {
    for (char& letter : text) {
      if (letter == '.' || letter == ',' || letter == '?' || letter == '!' || letter == '\'') letter = ' ';
      if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter | 0x20);
    }
    return " " + text + " ";
  };
  for (const auto& [source, target] : corpus()) {
    english += padded(source);
    italian += padded(target);
  }
  std::vector<std::string> unused;
  const auto look = [&](const std::string& in, const std::string& words) {
    if (in.find(padded(words)) == std::string::npos) unused.push_back(words);
  };
  for (const Noun& noun : lexicon().nouns) {
    look(english, noun.singular.english);
    look(italian, noun.singular.italian);
    const bool plural = (noun.tags & lexicon().mask("mass single")) == 0;
    if (plural) look(english, noun.plural.english);
    if (plural) look(italian, noun.plural.italian);
  }
  for (const Adjective& adjective : lexicon().adjectives) look(english, adjective.word.english);
  for (const Verb& verb : lexicon().verbs) {
    if (verb.frame == "stare") continue;  // lends its forms to the progressive
    look(italian, italian::finite(verb.italian, italian::Tense::present, Person::third));
    if (verb.frame != "can" && verb.frame != "must")
      look(english, english::present(verb.english, Person::third));
  }
  for (const Place& place : lexicon().places) look(italian, place.at.italian);
  for (const Time& time : lexicon().times) look(italian, time.words.italian);
  for (const Phrase& adverb : lexicon().adverbs) look(english, adverb.english);
  for (const Phrase& number : lexicon().numbers) look(italian, number.italian);
  for (const Name& name : lexicon().names) look(english, name.word);
  CAPTURE(unused);
  CHECK(unused.empty());
}
