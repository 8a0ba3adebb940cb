// Generates verse: fills metrical lines with words of the right stress and gives them to speakers.
#include "heed/data/synthetic/language_model_text.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "heed/core/error.h"
#include "heed/core/io/ascii.h"
#include "heed/data/synthetic/counter_rng.h"
#include "heed/data/synthetic/embedded_table.h"

namespace heed {
namespace {

using Words = std::vector<std::string_view>;

/// The words and line patterns of language_model_text.tsv. Capital letters in a pattern are slots for words.
struct VerseVocabulary {
  VerseVocabulary() {
    for (const std::vector<std::string_view>& row : embedded_table("language_model_text.tsv", 2)) {
      const std::string_view kind = row[0], text = row[1];
      if (kind.size() == 1)
        words[static_cast<size_t>(kind[0])] = split_words(text);
      else if (kind == "names")
        names = split_words(text);
      else if (kind == "rhyme")
        rhymes.push_back(split_words(text));
      else
        (kind == "first"    ? first_lines
         : kind == "last"   ? last_lines
         : kind == "answer" ? answers
                            : settings)
            .push_back(text);
    }
  }
  std::array<Words, 128> words;   ///< by the capital letter of their slot
  Words names;                    ///< people
  Words first_lines, last_lines;  ///< patterns of lines; a last line ends a sentence
  Words answers, settings;        ///< patterns of short answers and of the titles of scenes
  std::vector<Words> rhymes;      ///< groups of words that rhyme
};

const VerseVocabulary& vocabulary() {
  static const VerseVocabulary instance;
  return instance;
}

/// Writes scenes: the cast, its lines and their rhymes are random choices.
class SceneWriter {
 public:
  explicit SceneWriter(CounterRng& rng) : rng_(rng) {}

  /// A scene with its title: people of the cast take turns, each answering the last speaker.
  std::string scene(int64_t number) {
    cast_.clear();
    const int64_t num_people = rng_.between(2, 4);
    while (static_cast<int64_t>(cast_.size()) < num_people) {
      const std::string_view name = rng_.pick(vocabulary().names);
      if (std::find(cast_.begin(), cast_.end(), name) == cast_.end()) cast_.push_back(name);
    }
    long_theme_ = rng_.pick(vocabulary().words['M']);
    short_theme_ = rng_.pick(vocabulary().words['N']);
    size_t speaker = 0, listener = 1;
    // Draws have statements of their own: the order of a call's arguments is the compiler's choice.
    const std::string_view rhyme = rng_.pick(rng_.pick(vocabulary().rhymes));
    const std::string_view setting = rng_.pick(vocabulary().settings);
    std::string out = text("SCENE ", number, ". ", line(setting, rhyme, cast_[0]), "\n\n");
    const int64_t num_turns = rng_.between(5, 12);
    for (int64_t turn = 0; turn < num_turns; ++turn) {
      out += upper(cast_[speaker]) + ":\n" + speech(cast_[listener]) + "\n";
      listener = std::exchange(speaker, listener);
      if (cast_.size() > 2 && rng_.chance(35)) {
        // Another person joins in and answers the last speaker.
        size_t joining = speaker;
        while (joining == speaker || joining == listener)
          joining = static_cast<size_t>(rng_.below(num_people));
        speaker = joining;
      }
    }
    return out + "[" + std::string(cast_[listener]) + " leaves.]\n\n";
  }

 private:
  static std::string upper(std::string_view word) {
    std::string out(word);
    std::transform(out.begin(), out.end(), out.begin(), ascii_upper);
    return out;
  }

  /// The lines of one speaker: a short answer, or couplets and quatrains.
  std::string speech(std::string_view listener) {
    if (rng_.chance(18)) return line(rng_.pick(vocabulary().answers), "", listener) + "\n";
    std::string out;
    const int64_t num_stanzas = rng_.between(1, 3);
    for (int64_t i = 0; i < num_stanzas; ++i) out += rng_.chance(25) ? quatrain(listener) : couplet(listener);
    return out;
  }

  /// Two different words that rhyme.
  std::pair<std::string_view, std::string_view> rhyme() {
    const Words& group = rng_.pick(vocabulary().rhymes);
    const auto count = static_cast<int64_t>(group.size());
    const int64_t first = rng_.below(count), second = (first + rng_.between(1, count - 1)) % count;
    return {group[static_cast<size_t>(first)], group[static_cast<size_t>(second)]};
  }

  std::string first_line(std::string_view rhyme, std::string_view listener) {
    const Words& lines = rng_.chance(45) ? vocabulary().first_lines : vocabulary().last_lines;
    return line(rng_.pick(lines), rhyme, listener) + "\n";
  }

  std::string last_line(std::string_view rhyme, std::string_view listener) {
    return line(rng_.pick(vocabulary().last_lines), rhyme, listener) + "\n";
  }

  /// Two lines that rhyme. The last one is drawn first.
  std::string couplet(std::string_view listener) {
    const auto [first_rhyme, last_rhyme] = rhyme();
    const std::string last = last_line(last_rhyme, listener);
    return first_line(first_rhyme, listener) + last;
  }

  /// Four lines that rhyme a b a b. The last one is drawn first.
  std::string quatrain(std::string_view listener) {
    const auto [rhyme_a1, rhyme_a2] = rhyme();
    const auto [rhyme_b1, rhyme_b2] = rhyme();
    const std::string fourth = last_line(rhyme_b2, listener), third = first_line(rhyme_a2, listener),
                      second = last_line(rhyme_b1, listener);
    return first_line(rhyme_a1, listener) + second + third + fourth;
  }

  /// A random word for a slot; nouns are often those of the scene. L is the listener, R the rhyme.
  std::string_view fill(char slot, std::string_view rhyme, std::string_view listener) {
    if (slot == 'L') return listener;
    if (slot == 'R') return rhyme;
    if (slot == 'N' && rng_.chance(40)) return short_theme_;
    if (slot == 'M' && rng_.chance(40)) return long_theme_;
    return rng_.pick(vocabulary().words[static_cast<size_t>(slot)]);
  }

  /// The pattern with its slots filled: a slot is a capital letter that is a word by itself.
  std::string line(std::string_view pattern, std::string_view rhyme, std::string_view listener) {
    static constexpr std::string_view slots = "NMABVTSDPCLR";
    std::string out;
    for (size_t i = 0; i < pattern.size(); ++i) {
      const bool is_word = (i == 0 || !is_ascii_alphanumeric(pattern[i - 1])) &&
                           (i + 1 == pattern.size() || !is_ascii_alphanumeric(pattern[i + 1]));
      const bool is_article = i == 0 && pattern[0] == 'A';
      if (!is_word || is_article || slots.find(pattern[i]) == std::string_view::npos) {
        out += pattern[i];
        continue;
      }
      const std::string_view word = fill(pattern[i], rhyme, listener);
      const bool follows_article = out.ends_with(" a ") || out == "A ";
      if (follows_article && std::string_view("aeiou").find(word.front()) != std::string_view::npos)
        out.insert(out.size() - 1, "n");
      out += word;
    }
    out.front() = ascii_upper(out.front());
    return out;
  }

  CounterRng& rng_;
  Words cast_;                                 // people of the scene
  std::string_view short_theme_, long_theme_;  // nouns of the scene, for the slots N and M
};

}  // namespace

std::string verse(int64_t num_characters, uint64_t seed) {
  if (num_characters < 1 || num_characters > 1'000'000'000) {
    fail("verse: ", num_characters, " characters are outside 1 .. 1000000000. Choose a number inside.");
  }
  std::string out;
  out.reserve(static_cast<size_t>(num_characters) + 4096);
  CounterRng rng(seed);
  SceneWriter writer(rng);
  for (int64_t number = 1; static_cast<int64_t>(out.size()) < num_characters; ++number)
    out += writer.scene(number);
  out.resize(static_cast<size_t>(num_characters));
  return out;
}

}  // namespace heed
