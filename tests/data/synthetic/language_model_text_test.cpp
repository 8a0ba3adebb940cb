// Synthetic verse: shape, rhymes and speakers.
#include "heed/data/synthetic/language_model_text.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <vector>

#include "heed/core/io/hash.h"
#include "heed/tests/catch.h"

using namespace heed;

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) out.push_back(line);
  return out;
}

std::string last_word(const std::string& line) {
  const size_t end = line.find_last_not_of(".,?!");
  const size_t from = line.find_last_of(" ", end) + 1;
  return line.substr(from, end + 1 - from);
}

bool speaker(const std::string& line) {
  return line.size() > 1 && line.back() == ':' && std::all_of(line.begin(), line.end() - 1, [](char letter) {
           return letter >= 'A' && letter <= 'Z';
         });
}

}  // namespace

TEST_CASE("verse: as many characters as asked, always the same") {
  const std::string text = verse(1'000'000, 1);
  CHECK(text.size() == 1'000'000);
  CHECK(text == verse(1'000'000, 1));
  CHECK(text.substr(0, 5000) == verse(5000, 1));
  CHECK(text.substr(0, 5000) != verse(5000, 2));
  CHECK(verse(1, 1) == "S");
  CHECK(sha256_hex(verse(500'000, 1)) == "7104783dc60bf50c6081b6320b1f3da39f905e694f37a36d8d9cc62808c4e1e0");
  CHECK_THROWS_WITH(verse(0, 1), containing("1 .. 1000000000"));
}

TEST_CASE("verse: printable characters, no double blanks, no slot left open") {
  const std::string text = verse(300'000, 5);
  std::set<char> used(text.begin(), text.end());
  for (const char letter : used) CHECK((letter == '\n' || (letter >= ' ' && letter <= '~')));
  CHECK(used.size() > 50);
  CHECK(text.find("  ") == std::string::npos);
  CHECK(text.find("\n\n\n") == std::string::npos);
  for (const char* open :
       {" N ", " M ", " B ", " R.", " L,", " R,", " a a", " a e", " a o", " A a", " A e"}) {
    CAPTURE(open);
    CHECK(text.find(open) == std::string::npos);
  }
}

TEST_CASE("verse: two to four people speak in a scene, in turns") {
  std::set<std::string> people;
  std::string last;
  int64_t scenes = 0, turns = 0;
  const auto close = [&] {
    if (scenes > 0) CHECK((people.size() >= 2 && people.size() <= 4));
    people.clear();
    last.clear();
  };
  const auto lines = lines_of(verse(200'000, 2));
  for (const std::string& line : lines) {
    if (line.starts_with("SCENE ")) {
      close();
      ++scenes;
    } else if (speaker(line)) {
      CHECK(line != last);
      last = line;
      people.insert(line);
      ++turns;
    }
  }
  CHECK(scenes > 50);
  CHECK(turns > 5 * scenes);
}

TEST_CASE("verse: lines rhyme, in pairs or crosswise") {
  // Words that end a line together with another form the groups; a group that swallows others would not be a
  // rhyme.
  std::map<std::string, std::set<std::string>> partners;
  std::vector<std::string> speech;
  int64_t rhyming = 0, pairs = 0;
  const auto close = [&] {
    if (speech.size() == 2) {
      partners[last_word(speech[0])].insert(last_word(speech[1]));
      ++pairs;
      rhyming += last_word(speech[0]) != last_word(speech[1]);
    }
    speech.clear();
  };
  for (const std::string& line : lines_of(verse(400'000, 3))) {
    if (line.empty() || speaker(line) || line.starts_with("SCENE") || line.starts_with("["))
      close();
    else
      speech.push_back(line);
  }
  CHECK(pairs > 300);
  CHECK(rhyming == pairs);
  for (const auto& [word, others] : partners) {
    CAPTURE(word);
    CHECK(others.size() <= 5);
  }
}
