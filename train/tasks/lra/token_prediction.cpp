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
constexpr int64_t counted = 10000;  // examples whose tokens are counted
constexpr int64_t at_once = 8;      // inputs of one thread's block

}  // namespace

AskedTokens hide_tokens(TokenRows& inputs, const Hiding& hiding) {
  const auto count = static_cast<int64_t>(inputs.lengths.size());
  std::vector<int64_t> begins{0};
  for (const int64_t length : inputs.lengths) {
    const auto share = std::llround(hiding.share * static_cast<double>(length));
    begins.push_back(begins.back() + std::clamp<int64_t>(share, 1, length));
  }
  AskedTokens out;
  out.rows.resize(static_cast<size_t>(begins.back()));
  out.tokens.resize(out.rows.size());
  const uint64_t seed = counter_bits(hiding.seed, hiding_stream, hiding.drawn);
  parallel_rows(count, at_once, [&](int64_t first, int64_t last) {
    std::vector<std::pair<uint64_t, int64_t>> drawn;
    for (int64_t i = first; i < last; ++i) {
      const auto at = static_cast<size_t>(i);
      drawn.clear();
      for (int64_t place = 0; place < inputs.lengths[at]; ++place) {
        drawn.emplace_back(
            counter_bits(seed, static_cast<uint64_t>(inputs.names[at]), static_cast<uint64_t>(place)), place);
      }
      const int64_t begin = begins[at], kept = begins[at + 1] - begin;
      std::nth_element(drawn.begin(), drawn.begin() + (kept - 1), drawn.end());
      std::sort(drawn.begin(), drawn.begin() + kept,
                [](const auto& one, const auto& other) { return one.second < other.second; });
      for (int64_t n = 0; n < kept; ++n) {
        const int64_t row = i * inputs.columns + drawn[static_cast<size_t>(n)].second;
        const auto to = static_cast<size_t>(begin + n);
        int32_t& id = inputs.ids[static_cast<size_t>(row)];
        out.rows[to] = static_cast<int32_t>(row);
        out.tokens[to] = std::exchange(id, hiding.hidden);
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
  std::array<double, 256> times{};
  double all = 0;
  for (int64_t i = 0; i < std::min(train.count(), counted); ++i) {
    for (int64_t part = 0; part < train.parts; ++part) {
      for (const char byte : train.at(i, part).substr(0, static_cast<size_t>(longest_))) {
        if (byte == '\0' && tokens().drop_zeros) continue;
        ++times[static_cast<uint8_t>(byte)];
        ++all;
      }
    }
  }
  double nats = 0;
  for (const double one : times) nats -= one > 0 ? one / all * std::log(one / all) : 0;
  const double commonest = *std::max_element(times.begin(), times.end()) / std::max(all, 1.0);
  baselines_ = {{"loss", "frequencies of tokens", nats}, {"accuracy", "the commonest token", commonest}};
  return formatted("frequencies of tokens %.4g nats, the commonest token %.4g", nats, commonest);
}

}  // namespace heed
