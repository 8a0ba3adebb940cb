// Files of byte-pair tokenizers: in a checkpoint, and GPT-2's two files.
#include <algorithm>
#include <array>
#include <unordered_map>

#include "heed/core/io/files.h"
#include "heed/core/io/json.h"
#include "heed/data/text/text.h"
#include "heed/data/tokenizers/byte_pair.h"
#include "heed/data/tokenizers/saved_vocabulary.h"

namespace heed {
namespace {

constexpr std::string_view title = "heed byte pairs 1";
/// The title of a saved tokenizer whose words do not end as in GPT-2, or that lacks tokens of bytes.
constexpr std::string_view title_with_pre_tokenizer = "heed byte pairs 2";
constexpr std::string_view individual_digits = "individual_digits";
constexpr int64_t max_file_bytes = int64_t{64} << 20;

/// The characters that spell bytes in GPT-2's files: visible ones of Latin-1 spell themselves, the others
/// count up from U+0100.
struct Spelling {
  std::string order;                   // the bytes, in the order of their ids
  std::array<char32_t, 256> letter{};  // the character that spells a byte
  std::array<int16_t, 0x144> byte{};   // the byte that a character spells; -1: none

  Spelling() {
    const auto is_visible = [](int b) {
      return (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || (b >= 0xAE && b <= 0xFF);
    };
    byte.fill(-1);
    char32_t next_hidden = 0x100;
    for (const bool visible : {true, false}) {
      for (int b = 0; b < 256; ++b) {
        if (is_visible(b) != visible) continue;
        const char32_t code = visible ? static_cast<char32_t>(b) : next_hidden++;
        order += static_cast<char>(b);
        letter[static_cast<size_t>(b)] = code;
        byte[code] = static_cast<int16_t>(b);
      }
    }
  }
};

const Spelling& spelling() {
  static const Spelling instance;
  return instance;
}

/// The bytes in the spelling of GPT-2's files.
std::string spelled(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) append_code_point(out, spelling().letter[static_cast<unsigned char>(c)]);
  return out;
}

/// Decodes the spelling of bytes; false when a letter spells no byte.
bool read_spelling(std::string_view letters, std::string& bytes) {
  bytes.clear();
  for (size_t at = 0; at < letters.size();) {
    const char32_t code = next_code_point(letters, at);
    if (code >= spelling().byte.size() || spelling().byte[code] < 0) return false;
    bytes += static_cast<char>(spelling().byte[code]);
  }
  return true;
}

/// True for special tokens, which no merge makes: <|endoftext|>, <s>, [PAD], and those with which fairseq
/// pads a vocabulary.
bool is_special(std::string_view bytes) {
  return (bytes.starts_with('<') && bytes.ends_with('>')) ||
         (bytes.starts_with('[') && bytes.ends_with(']')) || bytes.starts_with("madeupword");
}

/// Builds a tokenizer from spelled tokens, then merges.
class TokenizerBuilder {
 public:
  /// Adds a token and returns its id; -1 when it is empty, repeated, or not spelled in bytes.
  int32_t add(std::string_view letters) {
    std::string bytes;
    if (letters.empty() || !read_spelling(letters, bytes)) return -1;
    const auto id = static_cast<int32_t>(pieces_.size());
    if (!ids_.emplace(bytes, id).second) return -1;
    pieces_.push_back(std::move(bytes));
    return id;
  }

  /// The first byte that has no token; -1: there is none. Marks the tokens of bytes as made.
  int missing_byte() {
    is_made_.assign(pieces_.size(), false);
    int missing = -1;
    for (int b = 0; b < 256; ++b) {
      const auto found = ids_.find(std::string(1, static_cast<char>(b)));
      if (found != ids_.end())
        is_made_[static_cast<size_t>(found->second)] = true;
      else if (missing < 0)
        missing = b;
    }
    return missing;
  }

  /// Adds the merge of a line "left right"; returns what is wrong with the line, or an empty text.
  std::string merge(std::string_view line) {
    const size_t blank = line.find(' ');
    if (blank == std::string_view::npos || line.find(' ', blank + 1) != std::string_view::npos)
      return text("'", shown(line), "' is not two pieces with a blank between them");
    detail::PieceMerge merge;
    std::string merged_bytes;
    for (const auto& [letters, id] :
         {std::pair{line.substr(0, blank), &merge.left}, {line.substr(blank + 1), &merge.right}}) {
      std::string bytes;
      const auto found = read_spelling(letters, bytes) ? ids_.find(bytes) : ids_.end();
      if (found == ids_.end() || !is_made_[static_cast<size_t>(found->second)])
        return text("'", shown(letters), "' is neither a byte nor made by a merge before this one");
      *id = found->second;
      merged_bytes += bytes;
    }
    const auto found = ids_.find(merged_bytes);
    if (found == ids_.end()) return text("the vocabulary has no piece for '", shown(line), "'");
    merge.into = found->second;
    is_made_[static_cast<size_t>(merge.into)] = true;
    merges_.push_back(merge);
    return {};
  }

  /// The first piece that no merge makes, though it is neither a byte nor a special token; null: none.
  const std::string* unmade_piece() const {
    for (size_t id = 0; id < pieces_.size(); ++id) {
      if (!is_made_[id] && !is_special(pieces_[id])) return &pieces_[id];
    }
    return nullptr;
  }
  int64_t num_merges() const { return static_cast<int64_t>(merges_.size()); }

  std::unique_ptr<Tokenizer> finish(PreTokenizer pre_tokenizer = PreTokenizer::gpt2) {
    return detail::make_byte_pair(std::move(pieces_), std::move(merges_), pre_tokenizer);
  }

 private:
  std::vector<std::string> pieces_;
  std::unordered_map<std::string, int32_t> ids_;
  std::vector<bool> is_made_;  // by id: the token is a byte or the result of a merge
  std::vector<detail::PieceMerge> merges_;
};

constexpr std::string_view remedy =
    " Give the vocabulary and the merges of one tokenizer, as they were published.";

/// Adds the tokens of a vocabulary file, and checks that each byte has one.
void add_vocabulary(TokenizerBuilder& builder, const Path& path) {
  const Json json = parse_json(io::read_regular_text(path, max_file_bytes), path.string());
  if (!json.is_object()) fail(Fault::data, path, ": byte 0: a vocabulary is an object, piece to id.", remedy);
  const std::vector<std::string> tokens = detail::tokens_by_id(json.members(), path.string(), remedy);
  for (size_t id = 0; id < tokens.size(); ++id) {
    if (builder.add(tokens[id]) < 0) {
      fail(Fault::data, path, ": the piece '", shown(tokens[id]), "' (id ", id,
           ") is not spelled in the characters that stand for bytes.", remedy);
    }
  }
  const int missing = builder.missing_byte();
  if (missing >= 0) fail(Fault::data, path, ": no piece is the byte ", missing, " alone.", remedy);
}

/// Adds the merges of a file, and checks that they make all tokens.
void add_merges(TokenizerBuilder& builder, const Path& path) {
  const std::string content = io::read_regular_text(path, max_file_bytes);
  check_text(content, path.string());
  int64_t line_number = 0;
  for (const std::string_view line : split_lines(content)) {
    ++line_number;
    if (line.empty() || (line_number == 1 && line.starts_with("#version"))) continue;
    const std::string fault = builder.merge(line);
    if (!fault.empty()) fail(Fault::data, path, ":", line_number, ": ", fault, ".", remedy);
  }
  if (const std::string* piece = builder.unmade_piece(); piece != nullptr) {
    fail(Fault::data, path, ":", std::max<int64_t>(line_number, 1), ": its ", builder.num_merges(),
         " merges do not make '", shown(spelled(*piece)),
         "' of the vocabulary: the file is cut short, or of another tokenizer.", remedy);
  }
}

}  // namespace

const std::string& detail::byte_pair_bytes() { return spelling().order; }

std::string detail::byte_pair_lines(const std::vector<std::string>& pieces,
                                    const std::vector<PieceMerge>& merges) {
  std::string out;
  for (const PieceMerge& merge : merges) {
    out += spelled(pieces[static_cast<size_t>(merge.left)]) + " " +
           spelled(pieces[static_cast<size_t>(merge.right)]) + "\n";
  }
  return out;
}

std::string detail::byte_pair_json(const std::vector<std::string>& pieces) {
  Json json = Json::object();
  for (size_t id = 0; id < pieces.size(); ++id) json.append(spelled(pieces[id]), static_cast<int64_t>(id));
  return json.dump();
}

std::vector<std::string> detail::spelled_pieces(const std::vector<std::string>& pieces) {
  std::vector<std::string> out;
  for (const std::string& bytes : pieces) out.push_back(spelled(bytes));
  return out;
}

std::string detail::saved_byte_pair(const std::vector<std::string>& pieces,
                                    const std::vector<PieceMerge>& merges, PreTokenizer pre_tokenizer) {
  std::string out = pre_tokenizer == PreTokenizer::gpt2
                        ? std::string(title)
                        : text(title_with_pre_tokenizer, "\npre_tokenizer ", individual_digits);
  out += text("\npieces ", pieces.size(), "\n");
  for (const std::string& bytes : pieces) out += spelled(bytes) + "\n";
  return out + text("merges ", merges.size(), "\n") + byte_pair_lines(pieces, merges);
}

std::unique_ptr<Tokenizer> detail::load_byte_pair(std::string_view bytes, std::string_view name) {
  const bool has_pre_tokenizer = bytes.starts_with(title_with_pre_tokenizer);
  SavedLines lines(bytes, has_pre_tokenizer ? title_with_pre_tokenizer : title, name);
  if (has_pre_tokenizer && lines.value("pre_tokenizer") != individual_digits)
    lines.damaged("it names no known pre-tokenizer");
  TokenizerBuilder builder;
  for (int64_t remaining = lines.count("pieces"); remaining > 0; --remaining) {
    const std::string_view letters = lines.next();
    if (builder.add(letters) < 0) lines.damaged("'", shown(letters), "' is no piece, or one already there");
  }
  const int missing = builder.missing_byte();
  if (missing >= 0 && !has_pre_tokenizer) lines.damaged("no piece is the byte ", missing, " alone");
  for (int64_t remaining = lines.count("merges"); remaining > 0; --remaining) {
    const std::string fault = builder.merge(lines.next());
    if (!fault.empty()) lines.damaged(fault);
  }
  lines.finish();
  return builder.finish(has_pre_tokenizer ? PreTokenizer::individual_digits : PreTokenizer::gpt2);
}

std::unique_ptr<Tokenizer> read_byte_pair(const Path& vocabulary, const Path& merges) {
  TokenizerBuilder builder;
  add_vocabulary(builder, vocabulary);
  add_merges(builder, merges);
  return builder.finish();
}

std::unique_ptr<Tokenizer> byte_pair_of(std::span<const std::string> tokens,
                                        std::span<const std::string> merges, PreTokenizer pre_tokenizer,
                                        std::string_view name) {
  TokenizerBuilder builder;
  for (size_t id = 0; id < tokens.size(); ++id) {
    if (builder.add(tokens[id]) < 0)
      fail(Fault::data, name, ": the token '", shown(tokens[id]), "' (id ", id,
           ") is there twice, or not spelled in the characters that stand for bytes.", remedy);
  }
  const int missing = builder.missing_byte();
  if (missing >= 0 && pre_tokenizer == PreTokenizer::gpt2)
    fail(Fault::data, name, ": no token is the byte ", missing, " alone.", remedy);
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const std::string fault = builder.merge(merges[rank]);
    if (!fault.empty()) fail(Fault::data, name, ": merge ", rank, ": ", fault, ".", remedy);
  }
  return builder.finish(pre_tokenizer);
}

std::unique_ptr<Tokenizer> read_byte_pair(const Path& folder) {
  for (const auto& [vocabulary, merges] :
       {std::pair{"vocab.json", "merges.txt"}, {"encoder.json", "vocab.bpe"}}) {
    if (io::exists(folder / vocabulary) && io::exists(folder / merges))
      return read_byte_pair(folder / vocabulary, folder / merges);
  }
  fail(Fault::file, folder, ": neither vocab.json and merges.txt nor encoder.json and vocab.bpe are there. ",
       "Name the folder that holds the two files of the tokenizer.");
}

std::unique_ptr<Tokenizer> padded_byte_pair(const Path& folder, int64_t size) {
  auto found = read_byte_pair(folder);
  if (found->size() == size) return found;
  if (found->size() > size)
    fail(Fault::data, folder, ": the tokenizer has ", found->size(), " tokens, and the model ", size,
         ". Give the tokenizer that the model was trained with.");
  const BytePairLists lists = byte_pair_lists(*found);
  std::vector<std::string> tokens = lists.tokens;
  for (int64_t id = found->size(); id < size; ++id) tokens.push_back(spelled(text("<|unused_", id, "|>")));
  return byte_pair_of(tokens, lists.merges, lists.pre_tokenizer, folder.string());
}

}  // namespace heed
