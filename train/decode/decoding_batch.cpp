// Reads the sequences of a batch in step, and starts again where the model can read no more.
#include "heed/train/decode/decoding_batch.h"

#include <algorithm>
#include <limits>

namespace heed {

DecodingBatch::DecodingBatch(std::string function, const AutoregressiveModel& model,
                             std::vector<std::vector<int32_t>> prompts,
                             const std::vector<int32_t>& stop_tokens, std::optional<Decoding> state,
                             WhenFull when_full)
    : function_(std::move(function)),
      model_(model),
      tokens_(std::move(prompts)),
      state_(state ? std::move(*state) : model.start()),
      restarts_(when_full == WhenFull::restart && !state) {
  for (const int32_t id : stop_tokens)
    if (id >= 0) stop_tokens_.push_back(id);  // a tokenizer has -1 for a token that it lacks
  if (restarts_ && model_.max_length() > 0) cut_to_newest(model_.max_length());
  check_prompts();
  check_state();
}

void DecodingBatch::check_prompts() const {
  const int64_t room = model_.max_length() > 0 && !restarts_ ? model_.max_length() - state_.length
                                                             : std::numeric_limits<int64_t>::max();
  for (size_t row = 0; row < tokens_.size(); ++row) {
    const std::string name = tokens_.size() == 1 ? "the prompt" : text("prompt ", row);
    const auto count = static_cast<int64_t>(tokens_[row].size());
    if (count == 0) fail(function_, ": ", name, " is empty. Give at least one token.");
    if (count > room)
      fail(function_, ": ", name, " has ", count, " tokens, and the model has room for ", room,
           ". Shorten it.");
    for (const int32_t id : tokens_[row])
      if (id < 0) fail(function_, ": ", name, " has the id ", id, ". Ids count from 0.");
  }
}

void DecodingBatch::check_state() const {
  for (size_t i = 0; i < state_.cache.size(); ++i) {
    if (state_.cache[i].self == nullptr)
      fail(function_, ": cache ", i,
           " of the state is null. Its attention cannot decode step by step, or new_cache() was not called: "
           "`heed list attention` shows which can.");
  }
  const auto rows = static_cast<int64_t>(tokens_.size());
  if (state_.encoded && state_.encoded.extent(0) != rows)
    fail(function_, ": there are ", rows, " prompts, and the state is of ", state_.encoded.extent(0),
         " sources. Give one prompt for each source.");
  const auto check_rows = [&](const char* part, size_t index, int64_t count) {
    if (count > 0 && count != rows)
      fail(function_, ": there are ", rows, " prompts, and ", part, " ", index, " of the state is of ", count,
           " sequences. Begin with start(), or give as many prompts.");
  };
  for (size_t i = 0; i < state_.tensors.size(); ++i)
    if (state_.tensors[i]) check_rows("tensor", i, state_.tensors[i].extent(0));
  for (size_t i = 0; i < state_.cache.size(); ++i)
    check_rows("cache", i, sequences_of(*state_.cache[i].self));
}

void DecodingBatch::check_logits(const Tensor& logits) const {
  if (logits.rank() != 2 || logits.extent(0) != static_cast<int64_t>(tokens_.size()) || logits.extent(1) < 1)
    fail(function_, ": next() of the model gave ", logits.shape(), ", and it must be [", tokens_.size(),
         ", vocabulary]: the logits of the last position.");
  const auto check = [&](int32_t id, const char* place) {
    if (id >= logits.extent(1))
      fail(function_, ": ", place, " has the id ", id, ", and the model has a vocabulary of ",
           logits.extent(1), ". Use ids below it.");
  };
  for (const int32_t id : stop_tokens_) check(id, "stop_tokens");
  for (const std::vector<int32_t>& row : tokens_)
    for (const int32_t id : row) check(id, "a prompt");
}

std::vector<int64_t> DecodingBatch::limits(int64_t all, const std::vector<int64_t>& each) const {
  if (all < 0) fail(function_, ": max_new_tokens = ", all, ". It must be at least 0.");
  if (!each.empty() && each.size() != tokens_.size())
    fail(function_, ": max_new_tokens_of_each has ", each.size(), " numbers for ", tokens_.size(),
         " prompts. Give one for each prompt.");
  std::vector<int64_t> out = each.empty() ? std::vector<int64_t>(tokens_.size(), all) : each;
  for (size_t row = 0; row < out.size(); ++row) {
    if (!each.empty() && out[row] < 1)
      fail(function_, ": max_new_tokens_of_each has ", out[row], ". It must be at least 1.");
    if (model_.max_length() == 0 || restarts_) continue;
    // The last new token need not be read.
    const int64_t room = model_.max_length() - state_.length - static_cast<int64_t>(tokens_[row].size()) + 1;
    out[row] = std::min(out[row], room);
  }
  return out;
}

bool DecodingBatch::is_stop(int32_t id) const {
  return std::find(stop_tokens_.begin(), stop_tokens_.end(), id) != stop_tokens_.end();
}

Tensor DecodingBatch::read() {
  if (restarts_ && model_.max_length() > 0 && num_read_ >= model_.max_length()) {
    cut_to_newest(std::max<int64_t>(model_.max_length() / 2, 1));
    state_ = model_.start();
    num_read_ = 0;
  }
  size_t end = std::numeric_limits<size_t>::max();  // every row has the tokens before it
  for (const std::vector<int32_t>& row : tokens_) end = std::min(end, row.size());
  const auto begin = static_cast<size_t>(num_read_);
  std::vector<int32_t> ids;
  for (const std::vector<int32_t>& row : tokens_)
    ids.insert(ids.end(), row.begin() + static_cast<int64_t>(begin), row.begin() + static_cast<int64_t>(end));
  const Shape shape{static_cast<int64_t>(tokens_.size()), static_cast<int64_t>(end - begin)};
  Tensor logits = model_.next(Tensor::of<int32_t>(ids, shape), state_);
  num_read_ = static_cast<int64_t>(end);
  if (!is_checked_) check_logits(logits);
  is_checked_ = true;
  return logits;
}

void DecodingBatch::cut_to_newest(int64_t max_tokens) {
  for (std::vector<int32_t>& row : tokens_)
    if (static_cast<int64_t>(row.size()) > max_tokens) row.erase(row.begin(), row.end() - max_tokens);
}

void DecodingBatch::reorder(const std::vector<int32_t>& order) {
  bool is_unchanged = order.size() == tokens_.size();
  for (size_t i = 0; is_unchanged && i < order.size(); ++i)
    is_unchanged = order[i] == static_cast<int32_t>(i);
  if (is_unchanged) return;
  std::vector<std::vector<int32_t>> tokens;
  for (const int32_t row : order) tokens.push_back(tokens_[static_cast<size_t>(row)]);
  tokens_ = std::move(tokens);
  if (!order.empty()) state_.reorder(order);
}

}  // namespace heed
