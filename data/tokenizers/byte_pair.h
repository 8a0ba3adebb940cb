// Byte-level byte-pair encoding as in GPT-2: encoder, files and trainer.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/core/error.h"
#include "heed/data/tokenizers/tokenizer.h"

namespace heed {

/// Marks the end of a document; no text is encoded as this token.
inline constexpr std::string_view end_of_text = "<|endoftext|>";

/// What cuts a text into words. gpt2: see byte_pair_word(); individual_digits: each number is a word of its
/// own, without the blank before it, as in SmolLM.
enum class PreTokenizer { gpt2, individual_digits };

/// The end of the word that begins at byte `at`. Pairs are merged within words only (Radford et al. 2019,
/// "Language models are unsupervised multitask learners", and its program): 's 't 're 've 'm 'll 'd; runs of
/// letters, of numbers, or of other characters but white space, each with one blank before it; and white
/// space, whose last character, if a blank, belongs to the next word.
size_t byte_pair_word(std::string_view text, size_t at, PreTokenizer pre_tokenizer = PreTokenizer::gpt2);

/// How to learn merges.
struct BytePairOptions {
  int64_t size = 8192;        ///< tokens: 256 bytes, merges, end of text; a small text yields fewer
  int64_t min_frequency = 2;  ///< rarer pairs are not merged
};

/// Learns merges from a text: repeatedly merges the most frequent pair of tokens, in ties that with the
/// smaller ids. Sennrich, Haddow and Birch 2016, arXiv 1508.07909. Deterministic. Fault::usage for a size
/// outside 257 .. 1,000,000, Fault::data for an empty text.
std::unique_ptr<Tokenizer> train_byte_pair(std::string_view text, const BytePairOptions& options = {});

/// Reads a vocabulary (JSON, token to id) and merges (a pair a line, by rank), both in GPT-2's spelling, in
/// which every byte is a visible character. Fault::data that names the place where ids have a gap, a byte is
/// missing, a merge has unknown tokens, or no merge makes a token that is not special (<...>, [...]).
std::unique_ptr<Tokenizer> read_byte_pair(const Path& vocabulary, const Path& merges);

/// Reads a folder with vocab.json and merges.txt, or encoder.json and vocab.bpe.
std::unique_ptr<Tokenizer> read_byte_pair(const Path& folder);

/// read_byte_pair() of a folder, with special tokens such as <|unused_300|> behind it until there are `size`:
/// some models have more embeddings than tokens. Fault::data where the folder has more tokens than `size`.
std::unique_ptr<Tokenizer> padded_byte_pair(const Path& folder, int64_t size);

/// Makes a tokenizer of tokens by id and merges by rank in the same spelling. With individual_digits a byte
/// may lack a token, and is left out of texts, as by Hugging Face's tokenizers. Fault::data that begins with
/// `name` and names the token or the merge that does not fit.
std::unique_ptr<Tokenizer> byte_pair_of(std::span<const std::string> tokens,
                                        std::span<const std::string> merges, PreTokenizer pre_tokenizer,
                                        std::string_view name);

/// Tokens by id and merges by rank in GPT-2's spelling, as byte_pair_of() takes them.
struct BytePairLists {
  std::vector<std::string> tokens;  ///< a token an id
  std::vector<std::string> merges;  ///< "left right" a rank
  PreTokenizer pre_tokenizer;       ///< cuts texts into words
  /// Texts by id of the tokens that are neither a byte nor made by a merge: <|endoftext|>.
  std::map<int32_t, std::string> special = {};
};

/// The lists of a `byte_pair` tokenizer; Fault::usage for other kinds.
BytePairLists byte_pair_lists(const Tokenizer& tokenizer);

/// The ids of a text in which special tokens stand for themselves, such as <|im_start|> in a chat; of several
/// at one place the longest. Texts of foreign origin should be encoded by encode(), which makes no special
/// token. Fault::usage for tokenizers of other kinds than `byte_pair`.
std::vector<int32_t> encode_with_special(const Tokenizer& tokenizer, std::string_view text);

/// The contents of a tokenizer's two files.
struct BytePairFiles {
  std::string vocabulary;  ///< contents of vocab.json
  std::string merges;      ///< contents of merges.txt
};

/// The files of a `byte_pair` tokenizer, for other programs; Fault::usage for other kinds, and for words that
/// do not end as in GPT-2, which the files cannot say.
BytePairFiles byte_pair_files(const Tokenizer& tokenizer);

namespace detail {

/// Two tokens that merge into one.
struct PieceMerge {
  int32_t left = 0, right = 0, into = 0;
};

/// The 256 bytes in the order of their ids: first the visible characters of Latin-1.
const std::string& byte_pair_bytes();
/// Positions, 0 and the size included, that cut a text into parts between words, for parallel work.
std::vector<size_t> byte_pair_cuts(std::string_view text);
/// A tokenizer of tokens by id, as bytes, and merges by rank; both must fit together.
std::unique_ptr<Tokenizer> make_byte_pair(std::vector<std::string> pieces, std::vector<PieceMerge> merges,
                                          PreTokenizer pre_tokenizer = PreTokenizer::gpt2);
/// Makes a tokenizer from the bytes of save().
std::unique_ptr<Tokenizer> load_byte_pair(std::string_view bytes, std::string_view name);
/// The result of Tokenizer::save().
std::string saved_byte_pair(const std::vector<std::string>& pieces, const std::vector<PieceMerge>& merges,
                            PreTokenizer pre_tokenizer);
/// The lines of merges.txt.
std::string byte_pair_lines(const std::vector<std::string>& pieces, const std::vector<PieceMerge>& merges);
/// The content of vocab.json.
std::string byte_pair_json(const std::vector<std::string>& pieces);
/// The pieces in GPT-2's spelling.
std::vector<std::string> spelled_pieces(const std::vector<std::string>& pieces);

}  // namespace detail

}  // namespace heed
