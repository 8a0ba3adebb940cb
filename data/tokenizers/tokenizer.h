// Tokenizer: text to token ids and back.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/data/tokenizers/special_ids.h"

namespace heed {

/// Encodes text as ids and decodes ids. Immutable, so threads may share one.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// The name for load_tokenizer(): `word`, `character`, `sentencepiece`, `byte_pair`, `ids`,
  /// `llama2_c`, `marian`, `wordpiece` or `tokenizer_json`.
  virtual std::string kind() const = 0;
  /// Number of ids: they are 0 to size() - 1.
  virtual int64_t size() const = 0;
  /// The ids of a text, without start and end. Fault::usage when something has no id and the tokenizer has no
  /// `unknown`.
  virtual std::vector<int32_t> encode(std::string_view text) const = 0;
  /// The token with which the input of a language model begins, where models with this tokenizer were trained
  /// so; -1: none.
  virtual int32_t document_start() const { return -1; }
  /// The text of ids; pad, start and end give nothing. Fault::usage for an id that does not exist.
  virtual std::string decode(std::span<const int32_t> ids) const = 0;
  /// The token of one id, for display, such as in an attention map.
  virtual std::string piece(int32_t id) const = 0;
  /// All data as bytes, for a checkpoint; deterministic.
  virtual std::string save() const = 0;

  const SpecialIds& special() const { return special_; }  ///< all four; -1 where there is none
  int32_t unknown() const { return special_.unknown; }    ///< see SpecialIds
  int32_t pad() const { return special_.pad; }            ///< see SpecialIds
  int32_t start() const { return special_.start; }        ///< see SpecialIds
  int32_t end() const { return special_.end; }            ///< see SpecialIds

 protected:
  /// `special`: ids of the derived tokenizer's vocabulary.
  explicit Tokenizer(SpecialIds special) : special_(special) {}

 private:
  SpecialIds special_;
};

/// Makes a tokenizer from the bytes of save(). Fault::data that names `name` and the position when the bytes
/// are not what save() writes, or the kind is unknown.
std::unique_ptr<Tokenizer> load_tokenizer(std::string_view kind, std::string_view bytes,
                                          std::string_view name = "saved tokenizer");

}  // namespace heed
