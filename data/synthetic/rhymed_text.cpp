// Fills metrical lines with words of the right stress and assigns them to speakers.
#include "heed/data/synthetic/rhymed_text.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "heed/core/error.h"
#include "heed/data/synthetic/random_stream.h"

namespace heed {
namespace {

using Words = std::vector<std::string_view>;

Words split(std::string_view list) {
  Words out;
  while (!list.empty()) {
    const size_t from = list.find_first_not_of(" \n");
    if (from == std::string_view::npos) break;
    const size_t end = std::min(list.find_first_of(" \n", from), list.size());
    out.push_back(list.substr(from, end - from));
    list.remove_prefix(end);
  }
  return out;
}

/// Words by stress, / heavy and x light. A letter is their slot in the lines below.
struct Vocabulary {
  /// N: nouns of one syllable (/).
  Words nouns = split(
      "wind sun bell lamp bread bird wheel cloud storm dawn dusk hound fox moth thorn drum flame leaf bridge "
      "lark "
      "ghost breeze knife loaf wolf swan frost mist path vine");
  /// M: nouns of two syllables (/x).
  Words long_nouns = split(
      "river winter summer garden miller baker shepherd painter sailor lantern candle window mountain valley "
      "meadow "
      "harbour swallow raven kitten donkey orchard fiddle button basket kettle ladder market morning evening "
      "thunder "
      "weaver farmer spider willow pepper hammer anchor mirror blossom pocket");
  /// A: adjectives of one syllable. B: of two (/x).
  Words adjectives =
      split("cold bright pale soft dark old young wild deep slow sweet thin proud warm grey blue kind");
  Words long_adjectives = split(
      "silver golden gentle hollow silent crooked little merry weary yellow broken hidden honest narrow "
      "empty "
      "drowsy faithful rusty velvet bitter lonely careless sudden dusty eager ancient");
  /// V: intransitive verbs of one syllable. T and S: transitive ones, plain and with -s. D: in the past.
  Words deeds = split(
      "runs sings waits sleeps turns burns falls stands lies calls drifts shines glides spins weeps grows");
  Words acts =
      split("hear see keep find love hold bring lose seek know take mend paint hide trust fear catch wake");
  Words acts_third = split(
      "hears sees keeps finds loves holds brings mends seeks knows takes paints hides trusts fears "
      "wakes");
  Words past_acts =
      split("heard saw kept found loved held brought lost sought knew took stole broke hid caught woke");
  /// P: prepositions of two syllables (x/).
  Words places = split("beneath behind above beyond beside below along around upon across before against");
  /// C: imperatives (/).
  Words pleas = split("take bring lead call send show drive row sing walk");
  Words names = split(
      "Nella Bruno Lina Orso Tilda Marco Pia Sandro Greta Milo Vera Dario Alma Rocco Flora Tito Wanda Elmo "
      "Rosa Ugo");
  std::array<Words, 30> rhymes = {split("night light sight kite height"),
                                  split("day bay clay hay way play"),
                                  split("rain lane plain grain chain"),
                                  split("sea tree bee knee key"),
                                  split("moon tune noon spoon dune"),
                                  split("stone bone throne tone"),
                                  split("hill mill quill sill chill"),
                                  split("door floor shore oar store"),
                                  split("thread head bed shed"),
                                  split("wall hall ball call shawl"),
                                  split("fire choir wire spire"),
                                  split("ring king string spring wing"),
                                  split("snow crow bow glow"),
                                  split("air chair stair pear prayer"),
                                  split("road load toad code"),
                                  split("street wheat seat sheet treat"),
                                  split("hand land sand band"),
                                  split("heart cart art part"),
                                  split("boat coat goat note throat"),
                                  split("book brook nook hook cook"),
                                  split("time rhyme chime lime climb"),
                                  split("sheep heap sleep deep"),
                                  split("lake cake snake rake"),
                                  split("clock rock flock lock dock"),
                                  split("sail pail snail nail tale"),
                                  split("house mouse grouse blouse"),
                                  split("town crown gown clown"),
                                  split("ground sound mound pound"),
                                  split("gold fold cold"),
                                  split("dust crust rust trust")};
};

/// Lines of five iambs; R is the rhyme. Each is a sentence or the end of one.
constexpr std::array<std::string_view, 14> closing = {
    "The B M V P the R.",
    "I T the N P the B R.",
    "You D the N, the B N, the R.",
    "My M waits, my M S the R.",
    "Not all the N of M S the R.",
    "Who D the B M and the R?",
    "O gentle M, C me to the R!",
    "There is no N so A as N and R.",
    "We D the N, the M and the R.",
    "Will no one T the M of the R?",
    "The N is A, and A is all the R.",
    "I never D the M nor the R.",
    "O come with me, my L, to the R!",
    "For you, my L, I would T the R.",
};

/// Lines that need another after them.
constexpr std::array<std::string_view, 8> opening = {
    "When every M V upon the R,",         "If you should T the B M's R,",  "Though all the B M V like R,",
    "Before the N can T the B R,",        "As long as N and M T the R,",   "Because a B M D my R,",
    "While I was A and you were A as R,", "And while I T the N, the B R,",
};

constexpr std::array<std::string_view, 8> answers = {
    "Who calls?",      "What, is it you?",   "I know it well.",          "No more of that!",
    "So be it, then.", "Say that again, L.", "Be quiet, L, and listen.", "It is the N, L, not the M."};

constexpr std::array<std::string_view, 6> settings = {"A B M by the R.",    "The R at night.",
                                                      "P the B M.",         "A kitchen with a B R.",
                                                      "The road to the R.", "A M and a R."};

class Poet {
 public:
  explicit Poet(RandomStream& random) : random_(random) {}

  std::string scene(int64_t number) {
    cast_.clear();
    const int64_t people = random_.between(2, 4);
    while (static_cast<int64_t>(cast_.size()) < people) {
      const std::string_view name = random_.pick(words().names);
      if (std::find(cast_.begin(), cast_.end(), name) == cast_.end()) cast_.push_back(name);
    }
    theme_ = random_.pick(words().long_nouns);
    thing_ = random_.pick(words().nouns);
    size_t speaker = 0, other = 1;
    std::string out = text("SCENE ", number, ". ");
    out += line(random_.pick(settings), random_.pick(random_.pick(words().rhymes)), cast_[0]) + "\n\n";
    const int64_t turns = random_.between(5, 12);
    for (int64_t turn = 0; turn < turns; ++turn) {
      out += upper(cast_[speaker]) + ":\n" + speech(cast_[other]) + "\n";
      other = std::exchange(speaker, other);
      if (cast_.size() > 2 && random_.chance(35)) {
        // Another person joins in and answers the last speaker.
        size_t next = speaker;
        while (next == speaker || next == other) next = static_cast<size_t>(random_.below(people));
        speaker = next;
      }
    }
    return out + "[" + std::string(cast_[other]) + " leaves.]\n\n";
  }

 private:
  static const Vocabulary& words() {
    static const Vocabulary vocabulary;
    return vocabulary;
  }

  static std::string upper(std::string_view word) {
    std::string out(word);
    for (char& letter : out)
      letter = static_cast<char>(letter >= 'a' && letter <= 'z' ? letter - 0x20 : letter);
    return out;
  }

  std::string speech(std::string_view listener) {
    if (random_.chance(18)) return line(random_.pick(answers), "", listener) + "\n";
    std::string out;
    const int64_t pairs = random_.between(1, 3);
    for (int64_t i = 0; i < pairs; ++i) out += random_.chance(25) ? quatrain(listener) : couplet(listener);
    return out;
  }

  /// Two different words that rhyme.
  std::pair<std::string_view, std::string_view> rhyme() {
    const Words& group = random_.pick(words().rhymes);
    const auto count = static_cast<int64_t>(group.size());
    const int64_t first = random_.below(count), second = (first + random_.between(1, count - 1)) % count;
    return {group[static_cast<size_t>(first)], group[static_cast<size_t>(second)]};
  }

  std::string first_line(std::string_view rhyme, std::string_view listener) {
    return line(random_.chance(45) ? random_.pick(opening) : random_.pick(closing), rhyme, listener) + "\n";
  }

  std::string last_line(std::string_view rhyme, std::string_view listener) {
    return line(random_.pick(closing), rhyme, listener) + "\n";
  }

  std::string couplet(std::string_view listener) {
    const auto [one, two] = rhyme();
    return first_line(one, listener) + last_line(two, listener);
  }

  std::string quatrain(std::string_view listener) {
    const auto [a, c] = rhyme();
    const auto [b, d] = rhyme();
    return first_line(a, listener) + last_line(b, listener) + first_line(c, listener) +
           last_line(d, listener);
  }

  std::string_view fill(char slot, std::string_view rhyme, std::string_view listener) {
    const Vocabulary& all = words();
    switch (slot) {
      case 'N':
        return random_.chance(40) ? thing_ : random_.pick(all.nouns);
      case 'M':
        return random_.chance(40) ? theme_ : random_.pick(all.long_nouns);
      case 'A':
        return random_.pick(all.adjectives);
      case 'B':
        return random_.pick(all.long_adjectives);
      case 'V':
        return random_.pick(all.deeds);
      case 'T':
        return random_.pick(all.acts);
      case 'S':
        return random_.pick(all.acts_third);
      case 'D':
        return random_.pick(all.past_acts);
      case 'P':
        return random_.pick(all.places);
      case 'C':
        return random_.pick(all.pleas);
      case 'L':
        return listener;
      default:
        return rhyme;
    }
  }

  /// The pattern with its slots filled: a slot is a single capital letter.
  std::string line(std::string_view pattern, std::string_view rhyme, std::string_view listener) {
    static constexpr std::string_view slots = "NMABVTSDPCLR";
    const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
    std::string out;
    for (size_t i = 0; i < pattern.size(); ++i) {
      const bool alone =
          (i == 0 || !letter(pattern[i - 1])) && (i + 1 == pattern.size() || !letter(pattern[i + 1]));
      const bool slot = alone && slots.find(pattern[i]) != std::string_view::npos;
      // "A" at the start of a line is the article.
      if (!slot || (i == 0 && pattern[0] == 'A')) {
        out += pattern[i];
        continue;
      }
      const std::string_view word = fill(pattern[i], rhyme, listener);
      const bool article = out.ends_with(" a ") || out == "A ";
      if (article && std::string_view("aeiou").find(word.front()) != std::string_view::npos)
        out.insert(out.size() - 1, "n");
      out += word;
    }
    if (out.front() >= 'a' && out.front() <= 'z') out.front() = static_cast<char>(out.front() - 0x20);
    return out;
  }

  RandomStream& random_;
  std::vector<std::string_view> cast_;
  std::string_view theme_, thing_;
};

}  // namespace

std::string verse(int64_t characters, uint64_t seed) {
  if (characters < 1 || characters > 1'000'000'000) {
    fail("verse: ", characters, " characters are outside 1 .. 1000000000. Choose a number inside.");
  }
  std::string out;
  out.reserve(static_cast<size_t>(characters) + 4096);
  RandomStream random(seed);
  Poet poet(random);
  for (int64_t number = 1; static_cast<int64_t>(out.size()) < characters; ++number) out += poet.scene(number);
  out.resize(static_cast<size_t>(characters));
  return out;
}

}  // namespace heed
