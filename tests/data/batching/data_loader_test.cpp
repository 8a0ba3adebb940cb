// The order of batches, padding, resuming, and the thread that makes them ahead.
#include "heed/data/batching/data_loader.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <numeric>
#include <thread>

#include "heed/tests/catch.h"

using namespace heed;

namespace {

/// Example i is the sequence 1, 2, ... of 1 + i * 7 % 11 numbers, and the class i.
class Sequences final : public Dataset {
 public:
  explicit Sequences(int64_t count) : count_(count) {}
  int64_t size() const override { return count_; }
  Example get(int64_t index) const override {
    ++asked;
    if (index == refused) fail(Fault::data, "example ", index, " is damaged");
    std::vector<int32_t> ids(static_cast<size_t>(1 + index * 7 % 11));
    std::iota(ids.begin(), ids.end(), 1);
    const auto length = static_cast<int64_t>(ids.size());
    const auto label = static_cast<int32_t>(index);
    return {Tensor::of<int32_t>(ids, Shape{length}), Tensor::of<int32_t>(std::span(&label, 1), Shape{})};
  }
  mutable std::atomic<int64_t> asked = 0;
  std::atomic<int64_t> refused = -1;

 private:
  int64_t count_;
};

/// Example i is the number i. Copies read the same file, so calls of any of them must not overlap.
class SharedFile final : public Dataset {
 public:
  explicit SharedFile(int64_t count) : count_(count) {}
  int64_t size() const override { return count_; }
  Example get(int64_t index) const override {
    ++*calls;
    if (inside_->fetch_add(1) != 0) ++*overlaps;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    --*inside_;
    return {Tensor::full(Shape{1}, static_cast<double>(index))};
  }
  std::shared_ptr<std::atomic<int64_t>> calls = std::make_shared<std::atomic<int64_t>>(0);
  std::shared_ptr<std::atomic<int64_t>> overlaps = std::make_shared<std::atomic<int64_t>>(0);

 private:
  int64_t count_;
  std::shared_ptr<std::atomic<int64_t>> inside_ = std::make_shared<std::atomic<int64_t>>(0);
};

/// A set that is made of another one.
class Doubled final : public Dataset {
 public:
  explicit Doubled(const Dataset& all) : all_(all) {}
  int64_t size() const override { return all_.size(); }
  Example get(int64_t index) const override {
    return {Tensor::full(Shape{1}, 2 * all_.read(index)[0].item())};
  }

 private:
  const Dataset& all_;
};

/// Example i is i + the example before it.
class Neighbours final : public Dataset {
 public:
  int64_t size() const override { return 3; }
  Example get(int64_t index) const override {
    return {
        Tensor::full(Shape{1}, static_cast<double>(index) + (index == 0 ? 1 : read(index - 1)[0].item()))};
  }
};

DataLoaderOptions padded(int64_t batch_size) {
  return {.batch_size = batch_size, .pad = {{.tensor = 0, .value = -7}}};
}

std::vector<double> labels(const Batch& batch) { return batch[1].to_doubles(); }

/// The labels of the batches of the rest of an epoch.
std::vector<std::vector<double>> rest(DataLoader& loader) {
  std::vector<std::vector<double>> out;
  for (const Batch& batch : loader) out.push_back(labels(batch));
  return out;
}

std::vector<double> joined(const std::vector<std::vector<double>>& parts) {
  std::vector<double> out;
  for (const auto& part : parts) out.insert(out.end(), part.begin(), part.end());
  return out;
}

}  // namespace

TEST_CASE("data_loader: batches stack examples in the order of the set") {
  const TensorDataset data({Tensor::from(std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, Shape{5, 2})});
  for (const int64_t prefetch : {0, 3}) {
    DataLoader loader(data, {.batch_size = 2, .prefetch = prefetch});
    CHECK(loader.batches() == 3);
    std::vector<Batch> all;
    for (const Batch& batch : loader) all.push_back(batch);
    REQUIRE(all.size() == 3);
    CHECK(all[0][0].shape() == Shape{2, 2});
    CHECK(all[1][0].to_doubles() == std::vector<double>{4, 5, 6, 7});
    CHECK(all[2][0].shape() == Shape{1, 2});
    CHECK(all[2].weight == 1);
    CHECK(loader.position() == LoaderPosition{1, 0});
    CHECK_THROWS_WITH(all[0][1], containing("no tensor 1; it has 1"));
  }
  CHECK(DataLoader(data, {.batch_size = 2, .drop_last = true}).batches() == 2);
}

TEST_CASE("data_loader: ragged tensors are padded, and lengths follow them") {
  const Sequences data(6);  // lengths 1, 8, 4, 11, 7, 3
  DataLoader loader(data, padded(3));
  const Batch first = loader.next();
  REQUIRE(first.tensors.size() == 3);
  CHECK(first[0].shape() == Shape{3, 8});
  CHECK(first[2].to_doubles() == std::vector<double>{1, 8, 4});
  const std::vector<double> ids = first[0].to_doubles();
  CHECK(std::vector<double>(ids.begin(), ids.begin() + 9) ==
        std::vector<double>{1, -7, -7, -7, -7, -7, -7, -7, 1});
  CHECK(ids[19] == 4);
  CHECK(ids[20] == -7);
  CHECK(first.tokens == 13);
  CHECK(first.weight == 3);
}

TEST_CASE("data_loader: the shuffled order is a function of seed and epoch") {
  const Sequences data(20);
  DataLoaderOptions options = padded(3);
  options.shuffle = true;
  DataLoader one(data, options), same(data, options);
  const auto epoch = rest(one), next = rest(one);
  std::vector<double> all = joined(epoch);
  CHECK(joined(next) != all);
  CHECK(rest(same) == epoch);
  std::sort(all.begin(), all.end());
  for (size_t i = 0; i < 20; ++i) CHECK(all[i] == static_cast<double>(i));
  options.seed = 2;
  DataLoader other(data, options);
  CHECK(rest(other) != epoch);
  same.seek({1, 0});
  CHECK(rest(same) == next);
}

TEST_CASE("data_loader: a loader that seeks gives the batches of an uninterrupted one") {
  const Sequences data(20);
  for (const int64_t prefetch : {0, 1, 4}) {
    for (const int64_t buckets : {0, 2}) {
      DataLoaderOptions options = padded(3);
      options.shuffle = true;
      options.length_buckets = buckets;
      options.prefetch = prefetch;
      DataLoader whole(data, options);
      std::vector<std::vector<double>> all;
      std::vector<LoaderPosition> places;
      for (int i = 0; i < 17; ++i) {
        places.push_back(whole.position());
        all.push_back(labels(whole.next()));
      }
      for (const size_t from : {1, 6, 7, 13}) {
        DataLoader resumed(data, options);
        resumed.next();
        resumed.seek(places[from]);
        for (size_t i = from; i < all.size(); ++i) CHECK(labels(resumed.next()) == all[i]);
        CHECK(labels(resumed.at(places[2])) == all[2]);
        CHECK(resumed.rows_at(places[2]) == static_cast<int64_t>(all[2].size()));
      }
    }
  }
}

TEST_CASE("data_loader: a loop that is left goes on behind the batch it took last") {
  const Sequences data(20);
  DataLoader loader(data, padded(3));
  for (const Batch& batch : loader) {
    if (labels(batch)[0] == 6) break;
  }
  CHECK(loader.position() == LoaderPosition{0, 3});
  CHECK(rest(loader).size() == 4);
  CHECK(rest(loader).size() == 7);
}

TEST_CASE("data_loader: buckets put examples of like length together, and lose none") {
  const Sequences data(60);
  DataLoaderOptions options = padded(4);
  options.shuffle = true;
  DataLoader plain(data, options);
  options.length_buckets = 15;
  DataLoader sorted(data, options);
  const auto elements = [](DataLoader& loader, std::vector<double>& seen) {
    int64_t count = 0;
    for (const Batch& batch : loader) {
      count += batch[0].size();
      for (const double label : labels(batch)) seen.push_back(label);
    }
    return count;
  };
  std::vector<double> once, twice;
  CHECK(elements(sorted, once) * 5 < elements(plain, twice) * 4);
  CHECK(once != twice);
  std::sort(once.begin(), once.end());
  std::sort(twice.begin(), twice.end());
  CHECK(once == twice);
}

TEST_CASE("data_loader: batches are made ahead, so many and no more") {
  const Sequences data(100);
  DataLoaderOptions options = padded(10);
  options.prefetch = 2;
  DataLoader loader(data, options);
  CHECK(data.asked == 0);
  loader.next();
  for (int i = 0; i < 2000 && data.asked < 40; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK(data.asked == 40);  // the one given, two that wait, and one that waits to be put beside them
}

TEST_CASE("data_loader: loaders of one set, its parts and its copies call it one after the other") {
  const SharedFile file(64);
  const SharedFile copy = file;
  const auto [training, held_out] = random_split(file, 0.5, 3);
  const Doubled made(file);
  const DataLoaderOptions options{.batch_size = 4, .prefetch = 4};
  DataLoader all(file, options), one(training, options), other(held_out, options), more(made, options),
      of_copy(copy, options);
  std::vector<std::vector<double>> first, second;
  for (int epoch = 0; epoch < 2; ++epoch) {
    std::vector<std::vector<double>>& given = epoch == 0 ? first : second;
    while (all.position().epoch == epoch) {
      for (DataLoader* loader : {&all, &one, &other, &more, &of_copy})
        given.push_back(loader->next()[0].to_doubles());
      DataLoader sorted(held_out, {.batch_size = 4, .length_buckets = 2});  // asks for all lengths
      CHECK(sorted.batches() == 8);
    }
  }
  CHECK(first == second);
  CHECK(file.calls->load() > 500);
  CHECK(file.overlaps->load() == 0);
}

TEST_CASE("data_loader: a set may read another of its own examples") {
  const Neighbours data;
  DataLoader loader(data, {.batch_size = 3});
  CHECK(loader.next()[0].to_doubles() == std::vector<double>{1, 2, 4});
}

TEST_CASE("data_loader: what an example throws comes out where its batch is asked for, each time") {
  Sequences data(9);
  data.refused = 4;
  for (const int64_t prefetch : {0, 2}) {
    DataLoaderOptions options = padded(3);
    options.prefetch = prefetch;
    DataLoader loader(data, options);
    loader.next();
    CHECK_THROWS_WITH(loader.next(), containing("example 4 is damaged"));
    CHECK_THROWS_WITH(loader.next(), containing("example 4 is damaged"));
    CHECK(loader.position() == LoaderPosition{0, 1});
    data.refused = -1;
    CHECK(labels(loader.next()) == std::vector<double>{3, 4, 5});
    data.refused = 4;
  }
}

TEST_CASE("data_loader: what cannot be stacked is named") {
  const Sequences data(4);
  DataLoader ragged(data, {.batch_size = 2});
  CHECK_THROWS_WITH(ragged.next(),
                    containing("tensor 0 of example 1 is i32 [8], that of example 0 is i32 [1]") &&
                        containing("DataLoaderOptions::pad"));
  DataLoader absent(data, {.batch_size = 2, .pad = {{.tensor = 2}}});
  CHECK_THROWS_WITH(absent.next(), containing("pad names tensor 2, and examples have 2"));
  DataLoader single(data, {.batch_size = 2, .pad = {{.tensor = 0}, {.tensor = 1}}});
  CHECK_THROWS_WITH(single.next(), containing("tensor 1 of example 0 is a single number"));
  DataLoader large(data, {.batch_size = 2, .pad = {{.tensor = 0, .value = 1e10}}});
  CHECK_THROWS_WITH(large.next(), containing("for a tensor of i32, which cannot hold it"));
}

TEST_CASE("data_loader: options out of range are refused") {
  const Sequences data(4), none(0);
  CHECK_THROWS_WITH(DataLoader(none), containing("no examples"));
  CHECK_THROWS_WITH(DataLoader(data, {.batch_size = 0}), containing("batch_size = 0"));
  CHECK_THROWS_WITH(DataLoader(data, {.batch_size = 5, .drop_last = true}),
                    containing("leaves nothing of 4"));
  CHECK_THROWS_WITH(DataLoader(data, {.prefetch = -1}), containing("prefetch = -1"));
  CHECK_THROWS_WITH(DataLoader(data, {.length_buckets = -1}), containing("length_buckets = -1"));
  CHECK_THROWS_WITH(DataLoader(data, {.pad = {{.tensor = 0}, {.tensor = 0}}}), containing("tensor 0 twice"));
  DataLoader loader(data, {.batch_size = 2});
  CHECK_THROWS_WITH(loader.seek({0, 2}), containing("no batch 2 in epoch 0. An epoch has 2"));
  CHECK_THROWS_WITH(loader.at({-1, 0}), containing("epoch -1"));
}
