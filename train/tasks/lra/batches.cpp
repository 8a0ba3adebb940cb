// Batches of long sequences: tokens, what is asked, and how many rows they have packed.
#include <algorithm>
#include <cmath>

#include "heed/core/ceil_div.h"
#include "heed/nn/packing.h"
#include "heed/train/tasks/lra/lra.h"
#include "heed/train/tasks/lra/token_prediction.h"

namespace heed {

int64_t LongTask::batch_columns(const Sequences& set, std::span<const int64_t> numbers) const {
  int64_t max_columns = 1;
  for (const int64_t number : numbers) max_columns = std::max(max_columns, columns(set, number));
  return max_columns;
}

LongTask::Frame LongTask::training_frame(std::span<const int64_t> numbers) const {
  const int64_t columns = batch_columns(splits_.train, numbers);
  if (!carries_packing_) return {columns};
  constexpr int64_t max_lengths = 16, multiple = 8;
  const int64_t step = ceil_div(ceil_div(max_tokens_, max_lengths), multiple) * multiple;
  return {.columns = std::min(ceil_div(columns, step) * step, max_tokens_),
          .row_step = ceil_div(batch_size_ * splits_.train.parts * step, int64_t{2})};
}

int64_t LongTask::training_tokens(std::span<const int64_t> numbers) const {
  int64_t tokens = 0;
  for (const int64_t number : numbers) {
    for (int64_t part = 0; part < splits_.train.parts; ++part)
      tokens += length(splits_.train, number, part) + (options_.pool == Pool::first ? 1 : 0);
  }
  return tokens;
}

Batch LongTask::vectors(const Sequences& set, std::span<const int64_t> numbers) const {
  const auto count = static_cast<int64_t>(numbers.size());
  const Tokens tokens = this->tokens();
  const auto standardised = [&](char byte) {
    return static_cast<float>((static_cast<uint8_t>(byte) - tokens.mean) / tokens.deviation);
  };
  std::vector<float> values;
  std::vector<int32_t> labels;
  for (const int64_t number : numbers) {
    for (const char byte : set.at(number)) values.push_back(standardised(byte));
    labels.push_back(set.labels[static_cast<size_t>(number)]);
  }
  const int64_t bytes = tokens.bytes,
                length = static_cast<int64_t>(values.size()) / std::max<int64_t>(count * bytes, 1);
  Batch batch;
  batch.tensors = {Tensor::of<float>(values, Shape{count, length, bytes}),
                   Tensor::of<int32_t>(labels, Shape{count})};
  batch.weight = static_cast<double>(count);
  batch.tokens = count * (length + (options_.pool == Pool::first ? 1 : 0));
  return batch;
}

LongTask::TokenTable LongTask::token_table(const Sequences& set, std::span<const int64_t> numbers,
                                           int64_t num_columns) const {
  const Tokens tokens = this->tokens();
  const int64_t first = options_.pool == Pool::first ? 1 : 0;
  const size_t rows = numbers.size() * static_cast<size_t>(set.parts);
  const auto id_columns = static_cast<size_t>(num_columns),
             place_columns = static_cast<size_t>(num_columns + first);
  TokenTable out;
  out.ids.resize(rows * id_columns);
  if (tokens.drop_zeros) out.places.resize(rows * place_columns);
  for (int64_t part = 0; part < set.parts; ++part) {
    for (const int64_t number : numbers) {
      const std::string_view bytes = set.at(number, part).substr(0, static_cast<size_t>(max_tokens_));
      const size_t row = out.lengths.size();
      size_t column = 0;
      const auto add = [&](size_t place) {
        // A token put first has place 0 and no id, so the others move by one.
        if (tokens.drop_zeros)
          out.places[row * place_columns + static_cast<size_t>(first) + column] =
              static_cast<int32_t>(place) + static_cast<int32_t>(first);
        out.ids[row * id_columns + column++] =
            static_cast<int32_t>(static_cast<uint8_t>(bytes[place]) + tokens.shift);
      };
      for (size_t place = 0; place < bytes.size(); ++place) {
        if (!tokens.drop_zeros || bytes[place] != '\0') add(place);
      }
      // An input without tokens becomes one token of padding.
      out.lengths.push_back(static_cast<int32_t>(std::max<int64_t>(static_cast<int64_t>(column), 1) + first));
      for (size_t place = 0; keeps_zeros() && place < bytes.size(); ++place) {
        if (bytes[place] == '\0') add(place);
      }
    }
  }
  return out;
}

Batch LongTask::tensors(const Sequences& set, std::span<const int64_t> numbers, uint64_t drawn,
                        const Frame& frame) const {
  if (reads_vectors()) return vectors(set, numbers);
  const Tokens tokens = this->tokens();
  const auto count = static_cast<int64_t>(numbers.size());
  const int64_t rows = count * set.parts, first = options_.pool == Pool::first ? 1 : 0;
  const int64_t num_columns = frame.columns;
  TokenTable table = token_table(set, numbers, num_columns);
  Batch batch;
  batch.weight = static_cast<double>(count);
  for (const int32_t length : table.lengths) batch.tokens += length;
  const int64_t packed =
      packed_rows(std::max(batch.tokens, frame.min_tokens), rows * (num_columns + first), frame.row_step);
  std::vector<int32_t> labels;
  AskedTokens asked;
  if (predicts_classes()) {
    for (const int64_t number : numbers) labels.push_back(set.labels[static_cast<size_t>(number)]);
  } else {
    TokenRows inputs{.ids = table.ids, .columns = num_columns, .lengths = {}, .names = {}};
    for (int64_t row = 0; row < rows; ++row) {
      inputs.lengths.push_back(table.lengths[static_cast<size_t>(row)] - static_cast<int32_t>(first));
      inputs.names.push_back(numbers[static_cast<size_t>(row % count)] * set.parts + row / count);
    }
    const double share = options_.hidden_share > 0 ? options_.hidden_share : tokens.hidden;
    const bool causal = options_.predict == LongOptions::Predict::causal;
    asked = causal ? next_tokens(inputs)
                   : hide_tokens(inputs, {.share = share,
                                          .hidden = static_cast<int32_t>(tokens.vocabulary),
                                          .seed = seed_,
                                          .drawn = drawn});
    batch.weight = static_cast<double>(asked.rows.size());
    if (frame.row_step > 1) {  // as many targets as packed rows can ask for; those that fill up are -1
      const double max_asked = causal ? static_cast<double>(packed) : share * static_cast<double>(packed);
      const size_t targets = static_cast<size_t>(std::ceil(max_asked)) + static_cast<size_t>(rows);
      asked.rows.resize(targets, 0);
      asked.tokens.resize(targets, -1);
    }
  }
  const auto list = [](const std::vector<int32_t>& numbers_of) {
    return Tensor::of<int32_t>(numbers_of, Shape{static_cast<int64_t>(numbers_of.size())});
  };
  batch.tensors = {Tensor::of<int32_t>(table.ids, Shape{rows, num_columns}),
                   list(predicts_classes() ? labels : asked.tokens)};
  if (has_lengths()) batch.tensors.push_back(list(table.lengths));
  if (tokens.drop_zeros)
    batch.tensors.push_back(Tensor::of<int32_t>(table.places, Shape{rows, num_columns + first}));
  if (!predicts_classes()) batch.tensors.push_back(list(asked.rows));
  if (carries_packing_)
    batch.tensors.push_back(
        Packing::of(Tensor::of<int32_t>(table.lengths, Shape{rows}, Device::cpu), num_columns + first, packed)
            .table()
            .to(default_device));
  return batch;
}

}  // namespace heed
