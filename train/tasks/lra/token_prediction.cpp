// Hides tokens, predicts next tokens, and computes baselines by token frequency.
#include "heed/train/tasks/lra/token_prediction.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "heed/core/io/number_text.h"
#include "heed/core/parallel/thread_pool.h"
#include "heed/data/batching/shuffle.h"
#include "heed/train/tasks/lra/lra.h"

namespace heed {
namespace {

constexpr uint64_t hiding_stream = 0x68696465;
constexpr int64_t max_counted = 10000;   // examples whose tokens are max_counted
constexpr int64_t inputs_per_block = 8;  // a block is the work of one thread

}  // namespace

int64_t num_hidden(int64_t length, double share) {
  return std::clamp<int64_t>(std::llround(share * static_cast<double>(length)), 1, length);
}

AskedTokens hide_tokens(TokenRows& inputs, const Hiding& hiding) {
  const auto count = static_cast<int64_t>(inputs.lengths.size());
  std::vector<int64_t> begins{0};
  for (const int64_t length : inputs.lengths)
    begins.push_back(begins.back() + num_hidden(length, hiding.share));
  AskedTokens out;
  out.rows.resize(static_cast<size_t>(begins.back()));
  out.tokens.resize(out.rows.size());
  const uint64_t seed = counter_bits(hiding.seed, hiding_stream, hiding.drawn);
  parallel_rows(count, inputs_per_block, [&](int64_t first, int64_t last) {
    std::vector<std::pair<uint64_t, int64_t>> drawn;  // a random number for each place; the lowest are hidden
    for (int64_t i = first; i < last; ++i) {
      const auto input = static_cast<size_t>(i);
      const auto name = static_cast<uint64_t>(inputs.names[input]);
      drawn.clear();
      for (int64_t place = 0; place < inputs.lengths[input]; ++place)
        drawn.emplace_back(counter_bits(seed, name, static_cast<uint64_t>(place)), place);
      const int64_t begin = begins[input], count_hidden = begins[input + 1] - begin;
      std::nth_element(drawn.begin(), drawn.begin() + (count_hidden - 1), drawn.end());
      std::sort(drawn.begin(), drawn.begin() + count_hidden,
                [](const auto& left, const auto& right) { return left.second < right.second; });
      for (int64_t n = 0; n < count_hidden; ++n) {
        const int64_t row = i * inputs.columns + drawn[static_cast<size_t>(n)].second;
        const auto index = static_cast<size_t>(begin + n);
        out.rows[index] = static_cast<int32_t>(row);
        out.tokens[index] = std::exchange(inputs.ids[static_cast<size_t>(row)], hiding.hidden);
      }
    }
  });
  return out;
}

AskedTokens next_tokens(const TokenRows& inputs) {
  AskedTokens out;
  for (size_t i = 0; i < inputs.lengths.size(); ++i) {
    for (int64_t place = 0; place + 1 < inputs.lengths[i]; ++place) {
      const int64_t row = static_cast<int64_t>(i) * inputs.columns + place;
      out.rows.push_back(static_cast<int32_t>(row));
      out.tokens.push_back(inputs.ids[static_cast<size_t>(row + 1)]);
    }
  }
  if (out.rows.empty()) out = {{0}, {inputs.ids[0]}};
  return out;
}

std::vector<int64_t> asked_of_each(const Tensor& rows, int64_t inputs, int64_t columns) {
  std::vector<int64_t> out(static_cast<size_t>(inputs));
  for (const double row : rows.to_doubles())
    ++out.at(static_cast<size_t>(row) / static_cast<size_t>(columns));
  return out;
}

std::string LongTask::frequencies() {
  const Sequences& train = splits_.train;
  std::array<double, 256> counts{};  // by byte
  double total = 0;
  for (int64_t i = 0; i < std::min(train.count(), max_counted); ++i) {
    for (int64_t part = 0; part < train.parts; ++part) {
      for (const char byte : train.at(i, part).substr(0, static_cast<size_t>(max_tokens_))) {
        if (byte == '\0' && tokens().drop_zeros) continue;
        ++counts[static_cast<uint8_t>(byte)];
        ++total;
      }
    }
  }
  double entropy = 0;  // in nats
  for (const double count : counts) entropy -= count > 0 ? count / total * std::log(count / total) : 0;
  const double commonest = *std::max_element(counts.begin(), counts.end()) / std::max(total, 1.0);
  baselines_ = {{"loss", "frequencies of tokens", entropy}, {"accuracy", "the commonest token", commonest}};
  return formatted("frequencies of tokens %.4g nats, the commonest token %.4g", entropy, commonest);
}

}  // namespace heed
