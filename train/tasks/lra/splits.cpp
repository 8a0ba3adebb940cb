// Splits examples into training, validation and test; scales images down.
#include <algorithm>

#include "heed/core/parallel/thread_pool.h"
#include "heed/data/batching/shuffle.h"
#include "heed/train/tasks/lra/lra.h"

namespace heed {
namespace {

constexpr uint64_t holding_out = 0x686F6C64;

}  // namespace

LongSplits LongTask::cut(const Sequences& all) const {
  const int64_t one = options_.num_examples, two = one + options_.validation;
  return {all.slice(0, one), all.slice(one, two), all.slice(two, all.count())};
}

void LongTask::hold_out(LongSplits& splits, int64_t validation, bool shuffle) {
  const int64_t all = splits.train.count(), held = std::max<int64_t>(std::min(validation, all / 10), 1);
  if (shuffle) splits.train = splits.train.pick(shuffled(all, holding_out, 0));
  splits.validation = splits.train.slice(all - held, all);
  splits.train = splits.train.slice(0, all - held);
}

void check_side(int64_t from, int64_t side) {
  if (side < 1 || from % side != 0)
    fail("data.side = ", side, ". It must divide the ", from, " pixels of a side, as ", from / 2, " does.");
}

Sequences shrunk(Sequences images, int64_t from, int64_t side) {
  check_side(from, side);
  if (side == from) return images;
  const int64_t block = from / side, count = images.count();
  Sequences out;
  out.labels = images.labels;
  out.bytes.resize(static_cast<size_t>(count * side * side));
  for (int64_t i = 1; i <= count; ++i) out.ends.push_back(i * side * side);
  parallel_rows(count, 64, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const std::string_view image = images.at(i);
      for (int64_t cell = 0; cell < side * side; ++cell) {
        int64_t sum = 0;
        for (int64_t y = 0; y < block; ++y) {
          for (int64_t x = 0; x < block; ++x)
            sum += static_cast<uint8_t>(
                image[static_cast<size_t>((cell / side * block + y) * from + cell % side * block + x)]);
        }
        const int64_t area = block * block;
        out.bytes[static_cast<size_t>(i * side * side + cell)] =
            static_cast<char>(static_cast<uint8_t>((sum + area / 2) / area));
      }
    }
  });
  return out;
}

}  // namespace heed
