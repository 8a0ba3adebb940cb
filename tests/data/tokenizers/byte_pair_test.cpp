// Byte pairs: words, merges, files, training, and GPT-2's ids for real text.
#include "heed/data/tokenizers/byte_pair.h"

#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <map>

#include "heed/core/io/json.h"
#include "heed/core/parallel/thread_pool.h"
#include "heed/data/text/text.h"
#include "heed/data/tokenizers/vocabulary.h"
#include "heed/tests/data/scratch.h"
#include "heed/tests/deflate.h"

using namespace heed;

namespace {

using Ids = std::vector<int32_t>;

std::vector<std::string> words_of(std::string_view text, PreTokenizer pre_tokenizer = PreTokenizer::gpt2) {
  std::vector<std::string> words;
  for (size_t at = 0; at < text.size();) {
    const size_t after = byte_pair_word(text, at, pre_tokenizer);
    REQUIRE(after > at);
    words.emplace_back(text.substr(at, after - at));
    at = after;
  }
  return words;
}

using Words = std::vector<std::string>;

const std::string& rhyme() {
  static const std::string text = [] {
    std::string all;
    for (int i = 0; i < 40; ++i)
      all += "the cat sat on the mat, and the rat's hat sat on the cat's mat\nthen they're there\n";
    return all;
  }();
  return text;
}

/// The rule as it is told: the pair of lowest rank is merged wherever it stands, until none is left.
Ids told(const Tokenizer& tokenizer, std::string_view text) {
  const BytePairFiles files = byte_pair_files(tokenizer);
  std::map<std::pair<std::string, std::string>, int> ranks;
  std::map<std::string, int32_t> ids;
  for (int32_t id = 0; id < tokenizer.size(); ++id) {
    const std::string bytes = tokenizer.decode(Ids{id});
    if (!bytes.empty()) ids[bytes] = id;
  }
  const Json json = parse_json(files.vocabulary, "vocabulary");
  std::map<std::string, std::string> bytes_of;  // the bytes of a spelled piece
  for (const JsonMember& member : json.members())
    bytes_of[member.key] = tokenizer.decode(Ids{static_cast<int32_t>(member.value.integer())});
  int rank = 0;
  for (const std::string_view line : split_lines(files.merges)) {
    if (line.starts_with("#version")) continue;
    const size_t blank = line.find(' ');
    ranks.try_emplace(
        {bytes_of.at(std::string(line.substr(0, blank))), bytes_of.at(std::string(line.substr(blank + 1)))},
        rank++);
  }
  Ids out;
  for (const std::string& word : words_of(text)) {
    std::vector<std::string> pieces;
    for (const char c : word) pieces.emplace_back(1, c);
    while (true) {
      auto best = ranks.end();
      for (size_t i = 0; i + 1 < pieces.size(); ++i) {
        const auto found = ranks.find({pieces[i], pieces[i + 1]});
        if (found != ranks.end() && (best == ranks.end() || found->second < best->second)) best = found;
      }
      if (best == ranks.end()) break;
      std::vector<std::string> next;
      for (size_t i = 0; i < pieces.size(); ++i) {
        if (i + 1 < pieces.size() && pieces[i] == best->first.first && pieces[i + 1] == best->first.second) {
          next.push_back(pieces[i] + pieces[i + 1]);
          ++i;
        } else {
          next.push_back(pieces[i]);
        }
      }
      pieces = next;
    }
    for (const std::string& piece : pieces) out.push_back(ids.at(piece));
  }
  return out;
}

/// The merges that the rule gives, in the spelling of merges.txt: all pairs of all words are counted anew
/// before each.
std::string recounted_merges(std::string_view text, const BytePairOptions& options) {
  std::map<std::string, int32_t> ids;
  const auto id_of = [&](const std::string& bytes) {
    return ids.try_emplace(bytes, static_cast<int32_t>(ids.size())).first->second;
  };
  for (const char byte : detail::byte_pair_bytes()) id_of(std::string(1, byte));
  std::vector<Words> words;
  for (const std::string& word : words_of(text)) {
    Words& pieces = words.emplace_back();
    for (const char c : word) pieces.emplace_back(1, c);
  }
  std::vector<std::string> pieces;
  std::vector<detail::PieceMerge> merges;
  while (static_cast<int64_t>(ids.size()) + 1 < options.size) {
    std::map<std::pair<int32_t, int32_t>, int64_t> counts;
    for (const Words& word : words) {
      for (size_t i = 0; i + 1 < word.size(); ++i) ++counts[{ids.at(word[i]), ids.at(word[i + 1])}];
    }
    const auto best = std::max_element(counts.begin(), counts.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    if (best == counts.end() || best->second < options.min_frequency) break;
    const auto [left, right] = best->first;
    int32_t into = -1;
    for (Words& word : words) {
      for (size_t i = 0; i + 1 < word.size(); ++i) {
        if (ids.at(word[i]) != left || ids.at(word[i + 1]) != right) continue;
        word[i] += word[i + 1];
        into = id_of(word[i]);
        word.erase(word.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      }
    }
    merges.push_back({left, right, into});
  }
  pieces.resize(ids.size());
  for (const auto& [bytes, id] : ids) pieces[static_cast<size_t>(id)] = bytes;
  return "#version: 0.2\n" + detail::byte_pair_lines(pieces, merges);
}

std::string random_text(uint64_t number) {
  static const Words parts{"the",    " ",   "cat", "'s", "\n",       "  ",     "\t",           "12", "\u00BD",
                           "\u00E9", "aaa", "!",   "?!", "\xE2\x82", "\u3000", "\u4E2D\u6587", "'",  "LL"};
  std::string out;
  for (uint64_t i = 0; i < 1 + number % 40; ++i)
    out += parts[static_cast<size_t>(counter_below(5, number, i, static_cast<int64_t>(parts.size())))];
  return out;
}

/// The ids of a file of little-endian 16-bit numbers.
Ids wide_ids(const Path& path) {
  const std::string bytes = io::read(path);
  Ids ids;
  for (size_t i = 0; i + 1 < bytes.size(); i += 2)
    ids.push_back(static_cast<unsigned char>(bytes[i]) | static_cast<unsigned char>(bytes[i + 1]) << 8);
  return ids;
}

}  // namespace

TEST_CASE("byte pairs: words are cut as GPT-2 cuts them") {
  CHECK(words_of("Hello world") == Words{"Hello", " world"});
  CHECK(words_of("don't we'll I'M they're") ==
        Words{"don", "'t", " we", "'ll", " I", "'", "M", " they", "'re"});
  CHECK(words_of("x  y   z") == Words{"x", " ", " y", "  ", " z"});
  CHECK(words_of("a\n\nb\n c") == Words{"a", "\n", "\n", "b", "\n", " c"});
  CHECK(words_of("end  \n") == Words{"end", "  \n"});
  CHECK(words_of("3.14, 42nd") == Words{"3", ".", "14", ",", " 42", "nd"});
  CHECK(words_of(" = = ?!") == Words{" =", " =", " ?!"});
  CHECK(words_of(" 's 's") == Words{" '", "s", " '", "s"});
  CHECK(words_of("'st'd'v") == Words{"'s", "t", "'d", "'", "v"});
  CHECK(words_of("\tx\t\ty") == Words{"\t", "x", "\t", "\t", "y"});
  CHECK(words_of("na\u00EFve \u00BDx \u2167") == Words{"na\u00EFve", " \u00BD", "x", " \u2167"});
  CHECK(words_of("\u4E2D\u6587\u3000\u3002") == Words{"\u4E2D\u6587", "\u3000", "\u3002"});
  CHECK(words_of("\xFF\xC3(") == Words{"\xFF\xC3("});
  CHECK(words_of(" ") == Words{" "});
  CHECK(words_of("a_b \xCC\x81") == Words{"a", "_", "b", " \xCC\x81"});  // a combining mark is no letter
}

TEST_CASE("byte pairs: with single digits words end as in the tokenizer of SmolLM") {
  // pre_tokenizers.Sequence([Digits(individual_digits=True), ByteLevel(add_prefix_space=False)]) of the
  // package tokenizers.
  const std::pair<const char*, Words> goldens[] = {
      {"in 2024, a12b  3\t4 \n 5x",
       {"in", " ", "2", "0", "2", "4", ",", " a", "1", "2", "b", "  ", "3", "\t", "4", " \n ", "5", "x"}},
      {"  12", {"  ", "1", "2"}},
      {" a  b ", {" a", " ", " b", " "}},
      {"it's 5's", {"it", "'s", " ", "5", "'s"}},
      {"\u00BD \u2167 \u0663x", {"\u00BD", " ", "\u2167", " ", "\u0663", "x"}},
  };
  for (const auto& [text, words] : goldens) CHECK(words_of(text, PreTokenizer::individual_digits) == words);
}

TEST_CASE("byte pairs: tokens and merges in a list make a tokenizer, which keeps its words") {
  const Words tokens{"<|endoftext|>", "a", "b", "\u0120", "1", "ab", "\u0120a", "\u0120ab"},
      merges{"a b", "\u0120 ab"};
  const auto made = byte_pair_of(tokens, merges, PreTokenizer::individual_digits, "m.gguf");
  CHECK(made->encode(" ab 1ab") == Ids{7, 3, 4, 5});
  const std::string with_control = std::string("a\x04") + "ab";  // this byte has no token and is left out
  CHECK(made->encode(with_control) == Ids{1, 5});
  CHECK(made->decode(Ids{7, 3, 4, 0}) == " ab 1");
  const auto again = load_tokenizer(made->kind(), made->save());
  CHECK(again->encode(" ab 1ab") == Ids{7, 3, 4, 5});
  CHECK(again->save() == made->save());
  CHECK_THROWS_WITH(byte_pair_files(*made), containing("each digit is a word of its own"));
  CHECK(fault_of([&] { byte_pair_of(tokens, merges, PreTokenizer::gpt2, "m.gguf"); }) == Fault::data);
  CHECK_THROWS_WITH(byte_pair_of(tokens, merges, PreTokenizer::gpt2, "m.gguf"),
                    containing("m.gguf: no token is the byte"));
  CHECK_THROWS_WITH(byte_pair_of(tokens, Words{"a c"}, PreTokenizer::individual_digits, "m.gguf"),
                    containing("m.gguf: merge 0: 'c' is neither"));
  CHECK_THROWS_WITH(byte_pair_of(Words{"a", "a"}, {}, PreTokenizer::individual_digits, "m.gguf"),
                    containing("the token 'a' (id 1) is there twice"));
}

TEST_CASE("byte pairs: special tokens in a text stand for themselves where that is asked for") {
  const Words tokens{"<|endoftext|>", "<|im|>", "<|im|><|x|>", "a", "b", "ab", "<"};
  const auto made = byte_pair_of(tokens, Words{"a b"}, PreTokenizer::individual_digits, "m.gguf");
  CHECK(encode_with_special(*made, "ab<|im|>a<|im|><|x|>b<|endoftext|><a<|im|>") ==
        Ids{5, 1, 3, 2, 4, 0, 6, 3, 1});
  CHECK(encode_with_special(*made, "ab") == made->encode("ab"));
  CHECK(encode_with_special(*made, "").empty());
  CHECK(made->encode("ab<|im|>") == Ids{5, 6});  // other bytes of it have no token here
  CHECK(fault_of([] { encode_with_special(*make_byte_tokenizer(), "a"); }) == Fault::usage);
}

TEST_CASE("byte pairs: the lists of a tokenizer make it again") {
  const auto trained = train_byte_pair(rhyme(), {.size = 300});
  const BytePairLists lists = byte_pair_lists(*trained);
  CHECK(static_cast<int64_t>(lists.tokens.size()) == trained->size());
  CHECK(lists.merges.size() + 257 == lists.tokens.size());
  const auto again = byte_pair_of(lists.tokens, lists.merges, lists.pre_tokenizer, "lists");
  CHECK(again->save() == trained->save());
  CHECK(fault_of([] { byte_pair_lists(*make_byte_tokenizer()); }) == Fault::usage);
}

TEST_CASE("byte pairs: cutting a text into parts changes no word") {
  std::string text;
  for (uint64_t i = 0; text.size() < 700000; ++i) text += random_text(i) + "x.\n";
  const std::vector<size_t> cuts = detail::byte_pair_cuts(text);
  REQUIRE(cuts.size() > 2);
  CHECK(cuts.front() == 0);
  CHECK(cuts.back() == text.size());
  Words joined;
  for (size_t i = 0; i + 1 < cuts.size(); ++i) {
    const Words part = words_of(std::string_view(text).substr(cuts[i], cuts[i + 1] - cuts[i]));
    joined.insert(joined.end(), part.begin(), part.end());
  }
  CHECK((joined == words_of(text)));
}

TEST_CASE("byte pairs: the trainer takes the commonest pair, of equals the one with smaller ids") {
  // aab 3, ab 2, cd 5 (a c d b: bytes by their order, a < b < c < d): ab 5 and cd 5 tie, then a+ab.
  const auto tokenizer =
      train_byte_pair("aab\naab\naab\nab\nab\ncd\ncd\ncd\ncd\ncd", {.size = 1000, .min_frequency = 2});
  const std::string merges = byte_pair_files(*tokenizer).merges;
  CHECK(merges == "#version: 0.2\na b\nc d\na ab\n");
  CHECK(tokenizer->size() == 256 + 3 + 1);
  CHECK(tokenizer->end() == 259);
  CHECK(tokenizer->encode("aab") == Ids{258});
  CHECK(tokenizer->encode("aaab").size() == 2);
  CHECK(train_byte_pair("aab aab", {.size = 257})->size() == 257);
  CHECK(train_byte_pair("ab ab ab", {.size = 300, .min_frequency = 4})->size() == 257);
  CHECK(train_byte_pair("aaaa aaaa", {.size = 300})->encode("aaaa").size() == 1);
}

TEST_CASE("byte pairs: the trainer learns what counting anew before each merge gives") {
  // Letters that overlap with themselves, several ways to one token, words that repeat, one word alone.
  for (const std::string letters : {"ab", "aaab", "abcd", "ab \n", "the cat's 12 \n"}) {
    for (uint64_t number = 0; number < 40; ++number) {
      std::string text;
      for (uint64_t i = 0; i < 1 + 10 * number; ++i)
        text +=
            letters[static_cast<size_t>(counter_below(6, number, i, static_cast<int64_t>(letters.size())))];
      if (number % 3 == 0) text += " " + text;
      const BytePairOptions options{.size = 260 + static_cast<int64_t>(number) * 3,
                                    .min_frequency = 1 + static_cast<int64_t>(number % 3)};
      CAPTURE(letters, number);
      CHECK((byte_pair_files(*train_byte_pair(text, options)).merges == recounted_merges(text, options)));
    }
  }
}

TEST_CASE("byte pairs: a text without spaces is learned and encoded in time that grows with its length") {
  std::string text;
  for (uint64_t i = 0; i < 500000; ++i) text += static_cast<char>('a' + counter_below(8, 9, i, 26));
  const std::clock_t began = std::clock();
  const auto tokenizer = train_byte_pair(text, {.size = 4096});
  const Ids ids = tokenizer->encode(text);
  const double seconds = static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC;
  CHECK(tokenizer->size() == 4096);
  CHECK(ids.size() < text.size() / 2);
  CHECK((tokenizer->decode(ids) == text));
  CHECK(seconds < 4);  // CPU time: a pass over the text for each merge takes more
}

TEST_CASE("byte pairs: encoding follows the rule, and every byte comes back") {
  const auto tokenizer = train_byte_pair(rhyme(), {.size = 300});
  CHECK(tokenizer->size() <= 300);
  CHECK(tokenizer->encode(rhyme()).size() < rhyme().size() / 2);
  CHECK(tokenizer->encode(rhyme()) == told(*tokenizer, rhyme()));
  for (uint64_t number = 0; number < 300; ++number) {
    const std::string text = random_text(number);
    CAPTURE(number, text);
    const Ids ids = tokenizer->encode(text);
    CHECK(ids == told(*tokenizer, text));
    CHECK(tokenizer->decode(ids) == text);
  }
  CHECK(tokenizer->encode("").empty());
  std::string bytes;
  for (int i = 0; i < 4096; ++i)
    bytes += static_cast<char>(counter_below(1, 2, static_cast<uint64_t>(i), 256));
  CHECK(tokenizer->decode(tokenizer->encode(bytes)) == bytes);
  CHECK(tokenizer->decode(Ids{tokenizer->end()}).empty());
  CHECK(tokenizer->encode(end_of_text).size() > 1);
  CHECK(refusal(Fault::usage, [&] { tokenizer->decode(Ids{300}); }).find("300") != std::string::npos);
  // No word is too long.
  CHECK(tokenizer->decode(tokenizer->encode(std::string(300000, 'a'))) == std::string(300000, 'a'));
}

TEST_CASE("byte pairs: any number of threads trains and encodes the same") {
  std::string text;
  for (uint64_t i = 0; text.size() < 300000; ++i) text += random_text(i) + "y.\n";
  const int before = threads();
  set_threads(1);
  const auto one = train_byte_pair(text, {.size = 500});
  const Ids ids = one->encode(text);
  set_threads(5);
  const auto five = train_byte_pair(text, {.size = 500});
  CHECK((five->save() == one->save()));
  CHECK((five->encode(text) == ids));
  set_threads(before);
}

TEST_CASE("byte pairs: saved bytes and files give the same tokenizer") {
  const auto tokenizer = train_byte_pair(rhyme(), {.size = 320});
  CHECK(tokenizer->kind() == "byte_pair");
  const std::string saved = tokenizer->save();
  CHECK(load_tokenizer("byte_pair", saved)->save() == saved);
  const BytePairFiles files = byte_pair_files(*tokenizer);
  const Scratch scratch;
  scratch.file("vocab.json", files.vocabulary);
  scratch.file("merges.txt", files.merges);
  CHECK(read_byte_pair(scratch.path())->save() == saved);
  int64_t refused = 0;
  for (uint64_t number = 0; number < 400; ++number) {
    const std::string bytes = damaged(saved, number);
    try {
      const std::string again = load_tokenizer("byte_pair", bytes)->save();
      CHECK((again == bytes));
    } catch (const Error& error) {
      CHECK(static_cast<int>(error.fault()) == static_cast<int>(Fault::data));
      const std::string said = error.what();
      CHECK(
          (said.find(", line ") != std::string::npos || said.find("saved tokenizer:") != std::string::npos));
      ++refused;
    }
  }
  CHECK(refused > 300);
}

TEST_CASE("byte pairs: files that do not fit together are refused, with the place") {
  const auto tokenizer = train_byte_pair(rhyme(), {.size = 290});
  const BytePairFiles files = byte_pair_files(*tokenizer);
  const Scratch scratch;
  const auto refused = [&](const std::string& vocabulary, const std::string& merges) {
    const Path one = scratch.file("v.json", vocabulary), two = scratch.file("m.txt", merges);
    return refusal(Fault::data, [&] { read_byte_pair(one, two); });
  };
  const auto changed = [](std::string whole, const std::string& from, const std::string& to) {
    const size_t at = whole.find(from);
    REQUIRE(at != std::string::npos);
    return whole.replace(at, from.size(), to);
  };
  REQUIRE(::mkfifo((scratch.path() / "pipe").c_str(), 0600) == 0);
  CHECK(refusal(Fault::file, [&] { read_byte_pair(scratch.path() / "pipe", {}); }).find("a pipe") !=
        std::string::npos);
  // Files may be gzip.
  CHECK_NOTHROW(read_byte_pair(scratch.file("v.json", deflate(files.vocabulary)),
                               scratch.file("m.txt", deflate(files.merges))));
  const std::string first_merge = files.merges.substr(0, files.merges.find('\n', 15) + 1);
  CHECK(refused("[]", files.merges).find("byte 0") != std::string::npos);
  CHECK(refused(changed(files.vocabulary, "\"!\": 0", "\"!\": 5"), files.merges)
            .find(text("whole numbers 0 .. ", tokenizer->size() - 1)) != std::string::npos);
  CHECK(refused(changed(files.vocabulary, "\"!\": 0", "\"!!\": 0"), files.merges).find("the byte 33") !=
        std::string::npos);
  CHECK(refused(changed(files.vocabulary, "\"!\": 0", "\"\u4E2D\": 0"), files.merges).find("id 0") !=
        std::string::npos);
  CHECK(refused(files.vocabulary, first_merge + "h\n").find("m.txt:3: ") != std::string::npos);
  CHECK(refused(files.vocabulary, "th e\n").find("m.txt:1: 'th' is neither a byte nor made") !=
        std::string::npos);
  CHECK(refused(files.vocabulary, "z q\n").find("no piece for 'z q'") != std::string::npos);
  const std::string cut = refused(files.vocabulary, first_merge);  // by chance at the end of a line
  CAPTURE(cut);
  CHECK(cut.find("m.txt:2: its 1 merges do not make '") != std::string::npos);
  CHECK(cut.find("Give the vocabulary and the merges of one tokenizer") != std::string::npos);
  for (const char* empty : {"", "#version: 0.2\n"})
    CHECK(refused(files.vocabulary, empty).find("m.txt:1: its 0 merges do not make '") != std::string::npos);
  CHECK(
      refused(files.vocabulary, files.merges.substr(0, files.merges.rfind('\n', files.merges.size() - 2) + 1))
          .find(text("its ", tokenizer->size() - 258, " merges do not make '")) != std::string::npos);
  // Special tokens need no merge, wherever they stand.
  const std::string special = changed(files.vocabulary, "<|endoftext|>", "<s>");
  const Path one = scratch.file("v.json", special), two = scratch.file("m.txt", files.merges);
  CHECK(read_byte_pair(one, two)->size() == tokenizer->size());
  CHECK(refusal(Fault::file, [&] { read_byte_pair(scratch.path()); }).find("merges.txt") !=
        std::string::npos);
  refusal(Fault::usage, [] { train_byte_pair("abc", {.size = 256}); });
  refusal(Fault::data, [] { train_byte_pair(""); });
  const auto words = load_tokenizer("character", "heed character vocabulary 1\nunit byte\ncount 1\n0x41\n");
  refusal(Fault::usage, [&] { byte_pair_files(*words); });
}

TEST_CASE("byte pairs: labels of pieces can be read") {
  const auto tokenizer = train_byte_pair(rhyme(), {.size = 400});
  const auto label = [&](std::string_view word) {
    const Ids ids = tokenizer->encode(word);
    return tokenizer->piece(ids.back());
  };
  CHECK(label(" the") == "\u2581the");
  CHECK(label("\n") == "\\n");
  CHECK(label("\t") == "<09>");
  CHECK(label("\xC3") == "<C3>");
}

TEST_CASE("byte pairs: GPT-2's vocabulary gives GPT-2's ids for WikiText-2") {
  const Path vocabulary = real_data("gpt2/encoder.json");
  if (vocabulary.empty()) return;
  const auto tokenizer = read_byte_pair(vocabulary.parent_path());
  CHECK(tokenizer->size() == 50257);
  CHECK(tokenizer->end() == 50256);
  CHECK((byte_pair_files(*tokenizer).merges == io::read(vocabulary.parent_path() / "vocab.bpe")));
  const std::string saved = tokenizer->save();
  CHECK((load_tokenizer("byte_pair", saved)->save() == saved));
  for (const char* name : {"wikitext-2/wiki.test.tokens", "wikitext-2/wiki.valid.tokens"}) {
    CAPTURE(name);
    const Path path = real_data(name), expected = real_data(std::string(name) + ".gpt2.u16");
    if (path.empty() || expected.empty()) continue;
    const std::string text = io::read(path);
    Ids ids;
    for (size_t at = 0; at < text.size();) {
      const size_t after = text.find('\n', at) + 1;
      const std::string_view row = std::string_view(text).substr(at, after - at);
      at = after;
      if (!trimmed(row).empty()) {
        const Ids made = tokenizer->encode(row);
        ids.insert(ids.end(), made.begin(), made.end());
      }
      ids.push_back(tokenizer->end());
    }
    CHECK((ids == wide_ids(expected)));
    CHECK((tokenizer->decode(tokenizer->encode(text)) == text));
  }
}
