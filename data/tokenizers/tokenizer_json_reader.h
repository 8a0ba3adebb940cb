// What the readers of all kinds of tokenizer.json share.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "heed/core/io/json.h"
#include "heed/data/tokenizers/bert_text.h"

namespace heed::detail {

/// The member; null where it is missing or JSON's null, and where `json` is no object.
const Json* set_member(const Json& json, const char* key);
/// True where the member is this text.
bool has_text(const Json& json, const char* key, std::string_view value);
/// True where the member is missing or null, or is `value`.
bool is_unset_or(const Json& json, const char* key, const Json& value);

/// One of the added_tokens.
struct AddedToken {
  int32_t id = 0;           ///< its id
  std::string content;      ///< the text that it stands for
  bool is_special = false;  ///< whether decoding leaves it out
};

/// An added token as tokenizer.json has it: found in texts as it stands.
Json added_token_json(int64_t id, const std::string& content);

/// A reader of one file, whose errors name it and end with advice.
class TokenizerJsonReader {
 public:
  /// `json` and `remedy` must outlive it. `remedy`: " Give the tokenizer of a BERT."
  TokenizerJsonReader(const Json& json, std::string name, std::string_view remedy)
      : json_(json), name_(std::move(name)), remedy_(remedy) {}

  /// Fails with `why` unless `holds`.
  void demand(bool holds, const std::string& why) const;
  /// A member that is true or false; `otherwise` where it is not set.
  bool flag(const Json& json, const char* key, bool otherwise) const;
  /// A member that is a text and not empty; `otherwise` where it is not set, which fails if that is empty.
  std::string word(const Json& json, const char* key, const char* otherwise = "") const;
  /// The settings of a BertNormalizer.
  BertNormalizer bert_normalizer(const Json& json) const;
  /// The added tokens, which must be found in texts as they stand. What `pieces` and `ids`, the vocabulary,
  /// lack is added to both.
  std::vector<AddedToken> added_tokens(std::vector<std::string>& pieces,
                                       std::unordered_map<std::string, int32_t>& ids) const;
  /// True where the post_processor leaves the tokens of one text as they are, such as a template of the text
  /// alone.
  bool adds_nothing() const;

  const Json& json() const { return json_; }           ///< the file
  const std::string& name() const { return name_; }    ///< the file's name
  std::string_view remedy() const { return remedy_; }  ///< the advice at the end of errors

 private:
  const Json& json_;
  std::string name_;
  std::string_view remedy_;
};

}  // namespace heed::detail
