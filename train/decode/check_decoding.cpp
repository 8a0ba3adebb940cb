// Compares the logits of decoding step by step with those of the whole sequence.
#include "heed/train/decode/check_decoding.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace heed {
namespace {

/// Logits [V] behind ids that one next() reads.
std::vector<double> logits_behind(const AutoregressiveModel& model, std::span<const int32_t> ids,
                                  Decoding& state) {
  const Tensor logits = model.next(Tensor::of<int32_t>(ids, Shape{1, std::ssize(ids)}), state);
  if (logits.rank() != 2 || logits.extent(0) != 1)
    fail("check_decoding: next() gave ", logits.shape(), " for one sequence of ", ids.size(),
         " tokens. It must give [1, vocabulary], the logits of the last position.");
  return logits.to_doubles();
}

/// What a model that decodes wrongly has usually forgotten, as sentences. `length` is the Decoding::length
/// that it left after `num_read` tokens.
std::string usually_forgotten(int64_t length, size_t num_read) {
  const std::string add = "next() adds ids.extent(1) to state.length";
  return (length == static_cast<int64_t>(num_read)
              ? std::string()
              : text("It left state.length at ", length, " after ", num_read, " tokens: ", add, ". ")) +
         "Usually forgotten: state.length as the position of the first token, state.cache as "
         "AttentionInput::cache of each attention, state.tensors for blocks that look back, and "
         "Mask::causal().";
}

}  // namespace

void check_decoding(const AutoregressiveModel& model, const std::vector<int32_t>& ids,
                    const std::function<Decoding()>& start) {
  const auto begin = [&] { return start ? start() : model.start(); };
  if (ids.size() < 2)
    fail("check_decoding: ", ids.size(), " ids. Give at least 2, so that a step follows another.");
  if (model.max_length() > 0 && std::ssize(ids) > model.max_length())
    fail("check_decoding: ", ids.size(), " ids, and the model reads ", model.max_length(), ". Give fewer.");
  const NoGrad no_grad;
  Decoding state = begin();
  const int64_t first = state.length;
  for (size_t t = 0; t < ids.size(); ++t) {
    const std::vector<double> by_steps = logits_behind(model, std::span(ids).subspan(t, 1), state);
    Decoding fresh = begin();
    const std::vector<double> at_once = logits_behind(model, std::span(ids).first(t + 1), fresh);
    double difference = 0, largest = 0;
    for (size_t i = 0; i < std::min(by_steps.size(), at_once.size()); ++i) {
      difference = std::max(difference, std::abs(by_steps[i] - at_once[i]));
      largest = std::max(largest, std::abs(at_once[i]));
    }
    if (by_steps.size() == at_once.size() && difference <= 1e-3 * largest) continue;
    fail("check_decoding: at position ", t, " a logit of next(), read token by token, differs by ",
         difference, " from that of the ", t + 1, " tokens read at once. ",
         usually_forgotten(state.length - first, t + 1));
  }
}

void check_decoding(const AutoregressiveModel& model, int64_t vocabulary) {
  if (vocabulary < 1) fail("check_decoding: vocabulary = ", vocabulary, ". It must be at least 1.");
  const int64_t count = model.max_length() > 0 ? std::min<int64_t>(model.max_length(), 8) : 8;
  Rng rng(1);
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < count; ++i)
    ids.push_back(static_cast<int32_t>(rng.uniform() * static_cast<double>(vocabulary)));
  check_decoding(model, ids);
}

}  // namespace heed
