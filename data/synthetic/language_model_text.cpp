// Fills metrical lines with words of the right stress and assigns them to speakers.
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

/// The words and lines of language_model_text.tsv.
struct Vocabulary {
  Vocabulary() {
    for (const std::vector<std::string_view>& row : embedded_table("language_model_text.tsv", 2)) {
      const std::string_view kind = row[0], text = row[1];
      if (kind.size() == 1)
        words[static_cast<size_t>(kind[0])] = split_words(text);
      else if (kind == "names")
        names = split_words(text);
      else if (kind == "rhyme")
        rhymes.push_back(split_words(text));
      else
        (kind == "first"    ? first
         : kind == "last"   ? last
         : kind == "answer" ? answers
                            : settings)
            .push_back(text);
    }
  }
  std::array<Words, 128> words;  ///< by the capital letter of their slot
  Words names, first, last, answers, settings;
  std::vector<Words> rhymes;
};

const Vocabulary& vocabulary() {
  static const Vocabulary read;
  return read;
}

/// Writes scenes: the cast, its lines and their rhymes are random choices.
class SceneWriter {
 public:
  explicit SceneWriter(CounterRng& rng) : rng_(rng) {}

  std::string scene(int64_t number) {
    cast_.clear();
    const int64_t people = rng_.between(2, 4);
    while (static_cast<int64_t>(cast_.size()) < people) {
      const std::string_view name = rng_.pick(vocabulary().names);
      if (std::find(cast_.begin(), cast_.end(), name) == cast_.end()) cast_.push_back(name);
    }
    long_theme_ = rng_.pick(vocabulary().words['M']);
    short_theme_ = rng_.pick(vocabulary().words['N']);
    size_t speaker = 0, other = 1;
    std::string out = text("SCENE ", number, ". ");
    out +=
        line(rng_.pick(vocabulary().settings), rng_.pick(rng_.pick(vocabulary().rhymes)), cast_[0]) + "\n\n";
    const int64_t turns = rng_.between(5, 12);
    for (int64_t turn = 0; turn < turns; ++turn) {
      out += upper(cast_[speaker]) + ":\n" + speech(cast_[other]) + "\n";
      other = std::exchange(speaker, other);
      if (cast_.size() > 2 && rng_.chance(35)) {
        // Another person joins in and answers the last speaker.
        size_t next = speaker;
        while (next == speaker || next == other) next = static_cast<size_t>(rng_.below(people));
        speaker = next;
      }
    }
    return out + "[" + std::string(cast_[other]) + " leaves.]\n\n";
  }

 private:
  static std::string upper(std::string_view word) {
    std::string out(word);
    std::transform(out.begin(), out.end(), out.begin(), ascii_upper);
    return out;
  }

  std::string speech(std::string_view listener) {
    if (rng_.chance(18)) return line(rng_.pick(vocabulary().answers), "", listener) + "\n";
    std::string out;
    const int64_t pairs = rng_.between(1, 3);
    for (int64_t i = 0; i < pairs; ++i) out += rng_.chance(25) ? quatrain(listener) : couplet(listener);
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
    const Words& lines = rng_.chance(45) ? vocabulary().first : vocabulary().last;
    return line(rng_.pick(lines), rhyme, listener) + "\n";
  }

  std::string last_line(std::string_view rhyme, std::string_view listener) {
    return line(rng_.pick(vocabulary().last), rhyme, listener) + "\n";
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

  /// A word for a slot. The scene's own things are said again and again.
  std::string_view fill(char slot, std::string_view rhyme, std::string_view listener) {
    if (slot == 'L') return listener;
    if (slot == 'R') return rhyme;
    if (slot == 'N' && rng_.chance(40)) return short_theme_;
    if (slot == 'M' && rng_.chance(40)) return long_theme_;
    return rng_.pick(vocabulary().words[static_cast<size_t>(slot)]);
  }

  /// The pattern with its slots filled: a slot is a single capital letter.
  std::string line(std::string_view pattern, std::string_view rhyme, std::string_view listener) {
    static constexpr std::string_view slots = "NMABVTSDPCLR";
    const auto letter = [](char c) { return is_ascii_alphanumeric(c); };
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
    out.front() = ascii_upper(out.front());
    return out;
  }

  CounterRng& rng_;
  std::vector<std::string_view> cast_;
  std::string_view short_theme_, long_theme_;  // nouns of the scene
};

}  // namespace

std::string verse(int64_t characters, uint64_t seed) {
  if (characters < 1 || characters > 1'000'000'000) {
    fail("verse: ", characters, " characters are outside 1 .. 1000000000. Choose a number inside.");
  }
  std::string out;
  out.reserve(static_cast<size_t>(characters) + 4096);
  CounterRng rng(seed);
  SceneWriter writer(rng);
  for (int64_t number = 1; static_cast<int64_t>(out.size()) < characters; ++number)
    out += writer.scene(number);
  out.resize(static_cast<size_t>(characters));
  return out;
}

}  // namespace heed
