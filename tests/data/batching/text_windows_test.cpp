// Windows of a text.
#include "heed/data/batching/text_windows.h"

#include <numeric>
#include <set>

#include "heed/tests/data/scratch.h"

using namespace heed;

namespace {

using Ids = std::vector<int32_t>;

Ids counting(int64_t count) {
  Ids ids(static_cast<size_t>(count));
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

/// Every row counts upwards, and the target is one ahead.
void check(const WindowBatch& batch, int64_t rows, int64_t block) {
  CHECK(batch.input.rows == rows);
  CHECK(batch.input.columns == block);
  CHECK(batch.target.rows == rows);
  CHECK(batch.target.columns == block);
  CHECK(batch.input.lengths == Ids(static_cast<size_t>(rows), static_cast<int32_t>(block)));
  REQUIRE(batch.input.ids.size() == static_cast<size_t>(rows * block));
  for (size_t i = 0; i < batch.input.ids.size(); ++i) {
    CHECK(batch.target.ids[i] == batch.input.ids[i] + 1);
    if (static_cast<int64_t>(i) % block != 0) CHECK(batch.input.ids[i] == batch.input.ids[i - 1] + 1);
  }
}

}  // namespace

TEST_CASE("characters: random windows depend on seed and step alone and reach every start") {
  const TextWindows windows(counting(20), {.block = 5, .batch = 8, .seed = 3});
  std::set<int32_t> starts;
  for (int64_t step = 0; step < 100; ++step) {
    const WindowBatch batch = windows.random(step);
    check(batch, 8, 5);
    for (size_t row = 0; row < 8; ++row) starts.insert(batch.input.ids[row * 5]);
  }
  CHECK(starts.size() == 15);
  CHECK(*starts.rbegin() == 14);  // the last target is the last id, 19
  CHECK(windows.random(7).input.ids == windows.random(7).input.ids);
  CHECK(windows.random(7).input.ids != windows.random(8).input.ids);
  CHECK(TextWindows(counting(20), {.block = 5, .batch = 8, .seed = 4}).random(7).input.ids !=
        windows.random(7).input.ids);
  refusal(Fault::usage, [&] { windows.random(-1); });
}

TEST_CASE("characters: blocks in order cover the text once") {
  const TextWindows windows(counting(24), {.block = 5, .batch = 3});  // 23 predictions: 4 blocks, 3 are left
  CHECK(windows.batches() == 3);
  check(windows.in_order(0), 3, 5);
  check(windows.in_order(1), 1, 5);
  CHECK(windows.in_order(0).input.ids[5] == 5);
  CHECK(windows.in_order(1).input.ids[0] == 15);
  check(windows.in_order(2), 1, 3);
  CHECK(windows.in_order(2).target.ids == Ids{21, 22, 23});
  refusal(Fault::usage, [&] { windows.in_order(3); });
  refusal(Fault::usage, [&] { windows.in_order(-1); });
  CHECK(TextWindows(counting(6), {.block = 5}).batches() == 1);
}

TEST_CASE("characters: too short a text and impossible options are refused") {
  CHECK_THAT(refusal(Fault::data, [] { TextWindows(counting(5), {.block = 5}); }), containing("5 ids"));
  refusal(Fault::usage, [] { TextWindows(counting(5), {.block = 0}); });
  refusal(Fault::usage, [] { TextWindows(counting(5), {.block = 1, .batch = 0}); });
}

TEST_CASE("characters: blocks of any size and stride score every id but the first once, with context") {
  for (int64_t stride = 0; stride <= 5; ++stride) {
    for (int64_t size = 6; size < 40; ++size) {
      CAPTURE(stride, size);
      const TextWindows windows(counting(size), {.block = 5, .batch = 2, .stride = stride});
      Ids targets;
      for (int64_t i = 0; i < windows.batches(); ++i) {
        const WindowBatch batch = windows.in_order(i);
        const int64_t columns = batch.target.columns;
        for (int64_t row = 0; row < batch.target.rows; ++row) {
          for (int64_t column = batch.first_scored; column < columns; ++column)
            targets.push_back(batch.target.ids[static_cast<size_t>(row * columns + column)]);
        }
        if (stride > 0 && stride < 5) CHECK(columns == 5);
        if (stride > 0 && i > 0) CHECK(columns - batch.first_scored <= stride);
      }
      Ids all = counting(size);
      all.erase(all.begin());
      CHECK(targets == all);
    }
  }
  refusal(Fault::usage, [] { TextWindows(counting(20), {.block = 5, .stride = 6}); });
}

TEST_CASE("windows: parts of documents, the most in any of them, and some rows of a batch") {
  using Parts = std::vector<Ids>;
  const TextWindows windows(counting(24), {.block = 5, .batch = 3, .seed = 2}, {2, 3, 10, 14, 15, 16, 17});
  CHECK(windows.num_documents() == 8);
  CHECK(windows.in_order(0).documents == Parts{{2, 1, 2}, {5}, {4, 1}});
  CHECK(windows.in_order(1).documents == Parts{{1, 1, 3}});
  CHECK(windows.in_order(2).documents == Parts{{3}});  // the rest has three ids
  CHECK(windows.in_order(0).max_documents == 5);       // the window of 13 to 17 has five
  size_t max_parts = 0;
  for (int64_t step = 0; step < 100; ++step) {
    const WindowBatch batch = windows.random(step);
    for (size_t row = 0; row < 3; ++row) {
      Ids expected;  // lengths by the definition
      for (int32_t id = batch.input.ids[row * 5], end = id + 5; id < end; ++id) {
        const bool starts = id == 2 || id == 3 || id == 10 || (id >= 14 && id <= 17);
        if (expected.empty() || starts) expected.push_back(0);
        ++expected.back();
      }
      CHECK(batch.documents[row] == expected);
      max_parts = std::max(max_parts, expected.size());
    }
  }
  CHECK(max_parts == 5);
  const WindowBatch batch = windows.random(1), last = batch.some_rows(1, 2);
  check(last, 2, 5);
  CHECK(last.input.ids == Ids(batch.input.ids.begin() + 5, batch.input.ids.end()));
  CHECK(last.documents == Parts(batch.documents.begin() + 1, batch.documents.end()));
  const WindowBatch undivided = TextWindows(counting(24), {.block = 5, .batch = 3}).in_order(0);
  CHECK(undivided.documents.empty());
  CHECK(undivided.some_rows(0, 1).documents.empty());
}
