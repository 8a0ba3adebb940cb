// Orders of examples, batches of them, and the thread that prepares batches ahead.
#include "heed/data/batching/data_loader.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <numeric>
#include <thread>
#include <utility>

#include "heed/data/batching/shuffle.h"
#include "heed/data/batching/stack_examples.h"

namespace heed {

/// Moves the tensors of a batch to the default device.
static Batch on_default_device(Batch batch) {
  for (Tensor& x : batch.tensors) x = x.to(default_device);
  return batch;
}

/// A thread that makes the batches from a position on, at most `prefetch` of them ahead of their use.
class DataLoader::PrefetchThread {
 public:
  explicit PrefetchThread(const DataLoader& loader)
      : loader_(loader), next_position_(loader.position_), thread_([this] { make_batches(); }) {}
  ~PrefetchThread() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  PrefetchThread(const PrefetchThread&) = delete;
  PrefetchThread& operator=(const PrefetchThread&) = delete;

  /// Waits for the next batch and takes it. Rethrows what making it threw; after that it gives no more
  /// batches.
  Batch next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !ready_.empty() || error_; });
    if (ready_.empty()) std::rethrow_exception(error_);
    Batch batch = std::move(ready_.front());
    ready_.pop_front();
    changed_.notify_all();
    return batch;
  }

 private:
  void make_batches() {
    try {
      for (Plan plan;;) {
        Batch batch = loader_.make_batch(loader_.examples_at(next_position_, plan));
        next_position_ = loader_.after(next_position_);
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] {
          return stop_ || static_cast<int64_t>(ready_.size()) < loader_.options_.prefetch;
        });
        if (stop_) return;
        ready_.push_back(std::move(batch));
        changed_.notify_all();
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      error_ = std::current_exception();
      changed_.notify_all();
    }
  }

  const DataLoader& loader_;
  LoaderPosition next_position_;  // position of the batch that the thread makes
  std::mutex mutex_;              // guards ready_, error_ and stop_
  std::condition_variable changed_;
  std::deque<Batch> ready_;   // batches that next() has not taken
  std::exception_ptr error_;  // what ended the thread; null: nothing
  bool stop_ = false;
  std::thread thread_;  // declared last, since it uses the members above
};

DataLoader::DataLoader(const Dataset& dataset, const DataLoaderOptions& options)
    : dataset_(dataset), options_(options) {
  check_options();
  const int64_t count = dataset.size(), batch = options.batch_size;
  if (count < 1) fail(Fault::data, "DataLoader: the set has no examples. Give it data.");
  batches_ = options.drop_last ? count / batch : (count + batch - 1) / batch;
  if (batches_ < 1) {
    fail("DataLoader: drop_last leaves nothing of ", count, " examples, which do not fill a batch of ", batch,
         ". Lower batch_size, or leave drop_last out.");
  }
  if (options.length_buckets == 0) return;
  for (int64_t i = 0; i < count; ++i) lengths_.push_back(dataset.read_length(i));
}

DataLoader::~DataLoader() = default;

void DataLoader::check_options() const {
  if (options_.batch_size < 1)
    fail("DataLoader: batch_size = ", options_.batch_size, ". It must be at least 1.");
  if (options_.prefetch < 0 || options_.prefetch > 1000)
    fail("DataLoader: prefetch = ", options_.prefetch, ". It must be 0 to 1000.");
  if (options_.length_buckets < 0)
    fail("DataLoader: length_buckets = ", options_.length_buckets, ". It must be at least 0.");
  for (size_t i = 0; i < options_.pad.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (options_.pad[i].tensor == options_.pad[j].tensor)
        fail("DataLoader: pad names tensor ", options_.pad[i].tensor, " twice. Name it once.");
    }
  }
}

void DataLoader::check(LoaderPosition position) const {
  if (position.epoch < 0 || position.batch < 0 || position.batch >= batches_) {
    fail("DataLoader: there is no batch ", position.batch, " in epoch ", position.epoch, ". An epoch has ",
         batches_, ", counted from 0.");
  }
}

LoaderPosition DataLoader::after(LoaderPosition position) const {
  return position.batch + 1 < batches_ ? LoaderPosition{position.epoch, position.batch + 1}
                                       : LoaderPosition{position.epoch + 1, 0};
}

void DataLoader::seek(LoaderPosition position) {
  check(position);
  if (position == position_) return;
  prefetch_thread_.reset();
  position_ = position;
}

Batch DataLoader::next() {
  Batch batch;
  if (options_.prefetch > 0) {
    if (prefetch_thread_ == nullptr) prefetch_thread_ = std::make_unique<PrefetchThread>(*this);
    try {
      batch = prefetch_thread_->next();
    } catch (...) {
      prefetch_thread_.reset();  // another call starts a new thread, which tries again
      throw;
    }
  } else {
    batch = make_batch(examples_at(position_, plan_));
  }
  position_ = after(position_);
  return on_default_device(std::move(batch));
}

Batch DataLoader::at(LoaderPosition position) const {
  check(position);
  return on_default_device(make_batch(examples_at(position, plan_)));
}

int64_t DataLoader::rows_at(LoaderPosition position) const {
  check(position);
  return static_cast<int64_t>(examples_at(position, plan_).size());
}

const std::vector<int64_t>& DataLoader::examples_at(LoaderPosition position, Plan& plan) const {
  const auto epoch = static_cast<uint64_t>(position.epoch);
  if (plan.epoch != position.epoch) {
    // Random streams: one for the examples of an epoch, one for its batches.
    const uint64_t example_stream = 2 * epoch, batch_stream = 2 * epoch + 1;
    std::vector<int64_t> order(static_cast<size_t>(size()));
    std::iota(order.begin(), order.end(), 0);
    if (options_.shuffle) shuffle(std::span(order), options_.seed, example_stream);
    if (options_.length_buckets > 0) sort_by_length(order);
    plan.batches.clear();
    for (int64_t batch = 0; batch < batches_; ++batch) {
      const int64_t begin = batch * options_.batch_size,
                    end = std::min(begin + options_.batch_size, static_cast<int64_t>(order.size()));
      plan.batches.emplace_back(order.begin() + begin, order.begin() + end);
    }
    // Sorted batches come in order of length; training needs them shuffled.
    if (options_.shuffle && options_.length_buckets > 0)
      shuffle(std::span(plan.batches), options_.seed, batch_stream);
    plan.epoch = position.epoch;
  }
  return plan.batches[static_cast<size_t>(position.batch)];
}

void DataLoader::sort_by_length(std::vector<int64_t>& order) const {
  const auto count = static_cast<int64_t>(order.size());
  // A pool has at most all examples: the product of large options must not overflow.
  const int64_t pool = options_.length_buckets > count / options_.batch_size
                           ? count
                           : options_.length_buckets * options_.batch_size;
  for (int64_t first = 0; first < count; first += pool) {
    std::stable_sort(order.begin() + first, order.begin() + std::min(first + pool, count),
                     [this](int64_t left, int64_t right) {
                       return lengths_[static_cast<size_t>(left)] < lengths_[static_cast<size_t>(right)];
                     });
  }
}

Batch DataLoader::make_batch(const std::vector<int64_t>& indices) const {
  std::vector<Example> examples;
  for (const int64_t index : indices) examples.push_back(dataset_.read(index));
  Batch batch{.tensors = stack_examples(examples, indices, options_.pad)};
  batch.weight = static_cast<double>(indices.size());
  if (!options_.pad.empty()) {
    for (const Example& example : examples)
      batch.tokens += example[static_cast<size_t>(options_.pad[0].tensor)].extent(0);
  }
  return batch;
}

std::string DataLoader::identity() {
  prefetch_thread_.reset();
  return dataset_.identity();
}

std::string DataLoader::description() const {
  std::string out = text(size(), " examples in batches of ", options_.batch_size);
  if (options_.shuffle) out += text(", shuffled by seed ", options_.seed);
  if (options_.length_buckets > 0) out += text(", sorted by length in ", options_.length_buckets, " batches");
  if (options_.drop_last) out += ", full ones only";
  return out;
}

}  // namespace heed
