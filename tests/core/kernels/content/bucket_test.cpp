// Buckets of tokens, and the tiles of tokens that share one.
#include "heed/core/kernels/content/bucket.h"
#include "heed/core/kernels/content/sort.h"
#include "heed/core/launch.h"

#include "heed/tests/core/kernels/tensors_on_device.h"
#include "heed/tests/core/numbers.h"

using namespace heed;
using kernel::BucketWindow;

namespace {

Tensor ids(const std::vector<int32_t>& values, const Shape& shape) {
  return Tensor::of<int32_t>(values, shape);
}

/// Tiles and biases of one round of one head, whose token i is in bucket buckets_of_tokens[i].
struct OneRound {
  OneRound(const std::vector<int32_t>& buckets_of_tokens, const BucketWindow& bucket_window, int64_t tiles,
           const Tensor& lengths = {}) {
    const auto N = static_cast<int64_t>(buckets_of_tokens.size());
    const Tensor buckets = ids(buckets_of_tokens, Shape{1, 1, 1, N}), order(buckets.shape(), DType::i32);
    launch_here<kernel::Argsort>(buckets, order);
    queries = Tensor(Shape{1, 1, 1, tiles * bucket_window.queries_per_tile}, DType::i32);
    keys = Tensor(Shape{1, 1, 1, tiles, bucket_window.keys_per_tile()}, DType::i32);
    slots = Tensor(Shape{1, 1, N}, DType::i32);
    bias = Tensor(Shape{1, tiles, bucket_window.queries_per_tile, bucket_window.keys_per_tile()});
    const kernel::BucketOrder sorted{.order = order, .buckets = buckets, .lengths = lengths};
    launch_here<kernel::BucketTiles>(sorted, bucket_window, queries, keys, slots);
    launch_here<kernel::BucketBias>(sorted, bucket_window, queries, keys, bias);
  }
  Tensor queries, keys, slots, bias;
};

const double no = -INFINITY;  // the bias of a key that a query does not see

}  // namespace

TEST_CASE("buckets: the first greatest score, or least with both signs, and padding is nowhere") {
  const OnEachDevice here;
  const Tensor scores = Tensor::from(std::vector<float>{1, 3, 3, -4, 0, 1, 9, 9, 9}, Shape{1, 1, 1, 3, 3});
  const Tensor out(Shape{1, 1, 1, 3}, DType::i32);
  launch_here<kernel::Buckets>(scores, false, Tensor(), int64_t{0}, 7, out);
  CHECK(out.to_doubles() == std::vector<double>{1, 2, 0});
  launch_here<kernel::Buckets>(scores, true, ids({4}, Shape{1}), int64_t{2}, 7, out);
  CHECK(out.to_doubles() == std::vector<double>{1, 3, 7});
}

TEST_CASE("buckets: chunks see themselves and the one before, the first one the last") {
  const OnEachDevice here;
  // Order: 1 3 | 0 2 | 4
  const OneRound round({1, 0, 1, 0, 2}, {.window = 2, .queries_per_tile = 2}, 3);
  CHECK(round.queries.to_doubles() == std::vector<double>{1, 3, 0, 2, 4, -1});
  CHECK(round.keys.to_doubles() == std::vector<double>{4, -1, 1, 3, 1, 3, 0, 2, 0, 2, 4, -1});
  CHECK(round.slots.to_doubles() == std::vector<double>{2, 0, 3, 1, 4});
  CHECK(round.bias.to_doubles() ==
        std::vector<double>{0, no, 0, 0, 0, no, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, no, no, no, no, no});
  const OneRound causal({1, 0, 1, 0, 2},
                        {.window = 2, .queries_per_tile = 2, .causal = true, .hides_self = true}, 3);
  CHECK(causal.bias.to_doubles() ==
        std::vector<double>{no, no, 0,  no, no, no, 0,  no,  // 1 is alone, 3 sees 1
                            no, no, 0,  no, 0,  no, 0,  no,  // 0 is alone, 2 sees 1 and 0
                            0,  0,  no, no, no, no, no, no});
}

TEST_CASE("buckets: tiles of one bucket hold the last tokens of it, whatever comes later") {
  const OnEachDevice here;
  const BucketWindow bucket_window{.window = 2, .queries_per_tile = 2, .by_bucket = true, .causal = true};
  // Bucket 0: 1 3 4, bucket 1: 0 2.
  const OneRound round({1, 0, 1, 0, 0}, bucket_window, 5);
  CHECK(round.queries.to_doubles() == std::vector<double>{1, 3, 4, -1, 0, 2, -1, -1, -1, -1});
  CHECK(round.keys.to_doubles() ==
        std::vector<double>{-1, -1, 1, 3, 1, 3, 4, -1, -1, -1, 0, 2, -1, -1, -1, -1, -1, -1, -1, -1});
  const std::vector<double> bias = round.bias.to_doubles();
  CHECK(std::vector<double>(bias.begin(), bias.begin() + 12) ==
        std::vector<double>{no, no, 0, no, no, no, 0, 0, no, 0, 0, no});  // 1; 1 3; 3 4: a window of two
}

TEST_CASE("buckets: padding is in no tile") {
  const OnEachDevice here;
  const OneRound round({0, 0, 9, 9}, {.window = 2, .queries_per_tile = 2}, 2, ids({2}, Shape{1}));
  CHECK(round.queries.to_doubles() == std::vector<double>{0, 1, -1, -1});
  CHECK(round.slots.to_doubles() == std::vector<double>{0, 1, -1, -1});
}

TEST_CASE("buckets: the latest of a bucket for a token that comes, in every round") {
  const OnEachDevice here;
  const Tensor buckets = ids({0, 1, 0, 0, 1, 1, 1, 0}, Shape{1, 1, 2, 4}), out(Shape{1, 1, 1, 4}, DType::i32),
               bias(Shape{1, 1, 1, 4});
  const auto recent = [&](const BucketWindow& bucket_window) {
    launch_here<kernel::RecentInBucket>(buckets, int64_t{3}, 9, bucket_window, out, bias);
    return bias.to_doubles();
  };
  // Token 3: bucket 0 in the first round (with 2 and 0), alone in bucket 0 of the second.
  CHECK(recent({.window = 2, .by_bucket = true}) == std::vector<double>{0, 0, 0, no});
  CHECK(out.to_doubles() == std::vector<double>{3, 2, 3, -1});
  CHECK(recent({.window = 2, .by_bucket = true, .hides_self = true}) == std::vector<double>{no, 0, no, no});
  const auto once = recent({.window = 2, .by_bucket = true, .counts_keys_once = true});
  CHECK(once[0] == Approx(-std::log(2)));
  CHECK(once[1] == 0);
}

TEST_CASE("buckets: groups of queries and keys") {
  const OnEachDevice here;
  const Tensor queries = ids({0, 2, 1, -1}, Shape{1, 1, 2, 2}), keys = ids({2, 0, -1, 1}, Shape{1, 1, 2, 2});
  const Tensor any(Shape{1, 1, 2, 1, 2}), causal(Shape{1, 1, 2, 2, 2});
  launch_here<kernel::GroupBias>(queries, keys, false, any);
  launch_here<kernel::GroupBias>(queries, keys, true, causal);
  CHECK(any.to_doubles() == std::vector<double>{0, 0, no, 0});
  CHECK(causal.to_doubles() == std::vector<double>{no, 0, 0, 0, no, 0, no, no});
}
