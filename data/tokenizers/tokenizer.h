// Text to ids and back: the interface that tasks and checkpoints know.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// The ids with a meaning of their own; -1 where a tokenizer has none of that kind.
struct SpecialIds {
  int32_t unknown = 0;
  int32_t pad = 1;
  int32_t start = 2;
  int32_t end = 3;
};

/// How the special ids are written where pieces are shown.
inline constexpr std::string_view special_names[] = {"[UNK]", "[PAD]", "[SOS]", "[EOS]"};

/// Turns text into ids and ids into text. Immutable after it is made, so threads may share one.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// `word`, `character`, `sentencepiece` or `byte_pair`: the name under which `load_tokenizer` finds it
  /// again.
  virtual std::string kind() const = 0;
  /// Number of ids; they run from 0 to size() - 1.
  virtual int64_t size() const = 0;
  /// The ids of a text, without start and end. Fault::usage where a text holds what has no id and the
  /// tokenizer has no `unknown`.
  virtual std::vector<int32_t> encode(std::string_view text) const = 0;
  /// Natural text; pad, start and end leave no trace. Fault::usage for an id that does not exist.
  virtual std::string decode(std::span<const int32_t> ids) const = 0;
  /// The piece behind one id, as the label of a row of an attention map.
  virtual std::string piece(int32_t id) const = 0;
  /// Everything, as bytes to be sealed in a checkpoint; the same tokenizer gives the same bytes.
  virtual std::string save() const = 0;

  const SpecialIds& special() const { return special_; }
  int32_t unknown() const { return special_.unknown; }
  int32_t pad() const { return special_.pad; }
  int32_t start() const { return special_.start; }
  int32_t end() const { return special_.end; }

 protected:
  explicit Tokenizer(SpecialIds special) : special_(special) {}

 private:
  SpecialIds special_;
};

/// A tokenizer out of the bytes of `save`. Fault::data naming `name` and the place when they are not exactly
/// what `save` writes, or when the kind is unknown.
std::unique_ptr<Tokenizer> load_tokenizer(std::string_view kind, std::string_view bytes,
                                          std::string_view name = "saved tokenizer");

}  // namespace heed
