// DecodingBatch: sequences that a model continues, all read in step.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "heed/nn/transformer.h"

namespace heed {

/// The sequences of a batch that a model continues. All have the same number of tokens read: prompts that
/// differ in length are read up to the end of the shortest at once, then token by token, and those that have
/// ended are continued meanwhile.
class DecodingBatch {
 public:
  /// What to do when a sequence is as long as the model reads. restart: cut all to their newest half and read
  /// that again; stop: limits() ends them there.
  enum class WhenFull { restart, stop };
  /// `function` begins errors. Without `state`, decoding begins at model.start(); with one, a batch that is
  /// full stops, since its state cannot be made again. Fails for an empty prompt, for negative ids, for a
  /// prompt that is too long where the batch stops, and for a state of another number of sequences.
  DecodingBatch(std::string function, const AutoregressiveModel& model,
                std::vector<std::vector<int32_t>> prompts, const std::vector<int32_t>& stop_tokens,
                std::optional<Decoding> state, WhenFull when_full);
  /// The largest number of new tokens of each prompt: `each`, or `all` where it is empty, or what the model
  /// has room for. Fails for negative numbers, and unless `each` has one above 0 for each prompt. Called
  /// before the first read().
  std::vector<int64_t> limits(int64_t all, const std::vector<int64_t>& each) const;
  /// Reads the next token of every sequence; at first all that every prompt has. Returns logits [rows, V] of
  /// the tokens that follow. Fails for logits of another shape, and for ids past the vocabulary.
  Tensor read();
  /// Whether the token that follows is known already, as a part of the prompt.
  bool is_given(size_t row) const { return static_cast<int64_t>(tokens_[row].size()) > num_read_; }
  /// Whether a token ends its sequence.
  bool is_stop(int32_t id) const;
  /// The tokens of a sequence so far, those left out that restarts have cut off.
  const std::vector<int32_t>& tokens(size_t row) const { return tokens_[row]; }
  /// Adds a token behind those that are read; read() reads it.
  void append(size_t row, int32_t id) { tokens_[row].push_back(id); }
  /// Sequence i becomes a copy of sequence order[i]; others leave the batch.
  void reorder(const std::vector<int32_t>& order);

 private:
  void check_prompts() const;
  void check_state() const;
  void check_logits(const Tensor& logits) const;
  void cut_to_newest(int64_t max_tokens);

  std::string function_;
  const AutoregressiveModel& model_;
  std::vector<std::vector<int32_t>> tokens_;  // one list per row
  std::vector<int32_t> stop_tokens_;          // without negative ones
  Decoding state_;
  bool restarts_;
  int64_t num_read_ = 0;  // tokens of each row that the model has read since the start of state_
  bool is_checked_ = false;
};

}  // namespace heed
