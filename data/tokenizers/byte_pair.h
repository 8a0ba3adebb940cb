// Byte-level byte-pair encoding, as GPT-2 has it: encoder, files and trainer.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "data/tokenizer.h"

namespace heed {

/// What marks the end of a document: a piece that no text is encoded as.
inline constexpr std::string_view end_of_text = "<|endoftext|>";

/// The end of the word that begins at byte `at`. Words are what pairs are merged within (Radford et al. 2019,
/// "Language models are unsupervised multitask learners", and the program beside it): 's 't 're 've 'm 'll
/// 'd; runs of letters, of numbers, or of anything else that is no white space, each with one blank before
/// it; and white space, whose last character is left to the word after it where that is a blank.
size_t byte_pair_word(std::string_view text, size_t at);

/// How merges are learned.
struct BytePairOptions {
  int64_t size = 8192;  ///< pieces: 256 bytes, merges, and the end of text; a small text gives fewer
  int64_t minimum = 2;  ///< how often a pair must occur
};

/// Learns merges from a text: again and again the commonest pair of pieces, of equally common ones that with
/// the smaller ids. Sennrich, Haddow and Birch 2016, arXiv 1508.07909. The same text and options give the
/// same tokenizer. Fault::usage for a size outside of 257 .. 1,000,000, Fault::data for an empty text.
std::unique_ptr<Tokenizer> train_byte_pair(std::string_view text, const BytePairOptions& options = {});

/// A tokenizer out of a vocabulary (JSON, piece to id) and its merges (a pair a line, the first to be merged
/// first), both in the spelling of GPT-2, in which every byte is a character that can be seen. Fault::data
/// naming the place where ids have a hole, a byte is missing, or a merge is of pieces that are not there.
std::unique_ptr<Tokenizer> read_byte_pair(const Path& vocabulary, const Path& merges);

/// The same out of a folder that holds vocab.json and merges.txt, or encoder.json and vocab.bpe.
std::unique_ptr<Tokenizer> read_byte_pair(const Path& folder);

/// What the two files of a tokenizer hold.
struct BytePairFiles {
  std::string vocabulary;  ///< of vocab.json
  std::string merges;      ///< of merges.txt
};

/// The files of a tokenizer of the kind `byte_pair`, for other programs; Fault::usage for other kinds.
BytePairFiles byte_pair_files(const Tokenizer& tokenizer);

namespace detail {

/// Two pieces that become one.
struct PieceMerge {
  int32_t left = 0, right = 0, into = 0;
};

/// The 256 bytes in the order of their ids: those that are visible characters of Latin-1 first.
const std::string& byte_pair_bytes();
/// Places at which a text can be cut, 0 and its size among them, so that its words are those of its parts.
std::vector<size_t> byte_pair_cuts(std::string_view text);
/// Pieces by id, as bytes, and merges in the order of their rank; both must fit together.
std::unique_ptr<Tokenizer> make_byte_pair(std::vector<std::string> pieces, std::vector<PieceMerge> merges);
std::unique_ptr<Tokenizer> load_byte_pair(std::string_view bytes, std::string_view name);
/// What `Tokenizer::save` gives, the lines of merges.txt, and vocab.json.
std::string saved_byte_pair(const std::vector<std::string>& pieces, const std::vector<PieceMerge>& merges);
std::string byte_pair_lines(const std::vector<std::string>& pieces, const std::vector<PieceMerge>& merges);
std::string byte_pair_json(const std::vector<std::string>& pieces);

}  // namespace detail

}  // namespace heed
