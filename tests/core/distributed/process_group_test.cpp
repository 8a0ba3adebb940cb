// Process groups: communication, sums, and errors that all members agree on.
#include "heed/core/distributed/process_group.h"

#include <algorithm>
#include <cmath>

#include "heed/core/distributed/mpi.h"
#include "heed/tests/catch.h"
#include "heed/tests/device.h"
#include "heed/tests/thread_group.h"

using namespace heed;

namespace {

/// Numbers whose sum depends on the order in which they are added.
double number_of(int64_t member, int64_t i) {
  return std::sin(static_cast<double>(member * 1000 + i)) *
         std::pow(10.0, static_cast<double>((i + member) % 7));
}

}  // namespace

TEST_CASE("group: texts of any length are gathered in order, and those of the first reach all") {
  std::vector<std::string> spread(3);
  std::vector<std::vector<std::string>> gathered(3);
  std::vector<std::vector<double>> numbers(3);
  as_members(3, [&](ProcessGroup& group) {
    const auto me = static_cast<size_t>(group.rank());
    gathered[me] = group.all_gather(std::string(me * 5, static_cast<char>('a' + me)));
    spread[me] = group.broadcast(group.is_main() ? std::string("with\0zero", 9) : std::string("ignored"));
    numbers[me] = group.all_gather(static_cast<double>(me) + 0.5);
  });
  for (size_t me = 0; me < 3; ++me) {
    CHECK(gathered[me] == std::vector<std::string>{"", "bbbbb", "cccccccccc"});
    CHECK(spread[me] == std::string("with\0zero", 9));
    CHECK(numbers[me] == std::vector<double>{0.5, 1.5, 2.5});
  }
}

TEST_CASE("group: sums are made in the order of the members, to the same bits for all") {
  for (const int64_t members : {1, 2, 3, 5}) {
    for (const int64_t size : {1, 7, 16, 1000, 4099}) {
      for (const DType dtype : {DType::f32, DType::f64}) {
        CAPTURE(members, size, dtype);
        std::vector<Tensor> sums(static_cast<size_t>(members));
        as_members(members, [&](ProcessGroup& group) {
          std::vector<double> values;
          for (int64_t i = 0; i < size; ++i) values.push_back(number_of(group.rank(), i));
          Tensor x(Shape{size}, dtype, Device::cpu);
          for (int64_t i = 0; i < size; ++i) {
            if (dtype == DType::f32)
              x.data<float>()[i] = static_cast<float>(values[static_cast<size_t>(i)]);
            else
              x.data<double>()[i] = values[static_cast<size_t>(i)];
          }
          std::vector<std::byte> room;
          group.sum(x, room);
          sums[static_cast<size_t>(group.rank())] = x;
        });
        bool same = true;
        for (int64_t i = 0; i < size; ++i) {
          double expected = 0;
          if (dtype == DType::f32) {
            auto sum = static_cast<float>(number_of(0, i));
            for (int64_t m = 1; m < members; ++m) sum += static_cast<float>(number_of(m, i));
            expected = sum;
          } else {
            expected = number_of(0, i);
            for (int64_t m = 1; m < members; ++m) expected += number_of(m, i);
          }
          for (const Tensor& sum : sums) same = same && sum.to_doubles()[static_cast<size_t>(i)] == expected;
        }
        CHECK(same);
      }
    }
  }
}

TEST_CASE("group: sums go on in the background, on any device, in the order they were started") {
  for (const Device device : devices()) {
    std::vector<std::vector<double>> found(2);
    as_members(2, [&](ProcessGroup& group) {
      const DefaultDevice here(device);
      std::vector<Tensor> all;
      const auto sums = make_all_reduce(group, device, [](const std::string&) {});
      for (int round = 0; round < 3; ++round) {
        all.clear();
        for (int i = 0; i < 20; ++i) {
          all.push_back(Tensor::full(Shape{1 + i * 37}, static_cast<double>(group.rank() + i + round)));
          sums->start(all.back());
        }
        sums->finish();
      }
      for (const Tensor& x : all) {
        for (const double value : x.to_doubles()) found[static_cast<size_t>(group.rank())].push_back(value);
      }
    });
    std::vector<double> expected;
    for (int i = 0; i < 20; ++i)
      expected.insert(expected.end(), static_cast<size_t>(1 + i * 37), 2 * (i + 2) + 1);
    CHECK(found[0] == expected);
    CHECK(found[1] == expected);
  }
}

TEST_CASE("group: what fails for one fails for all, with the words and the kind of the first") {
  std::vector<std::string> words(3);
  std::vector<Fault> faults(3, Fault::internal);
  as_members(3, [&](ProcessGroup& group) {
    const auto me = static_cast<size_t>(group.rank());
    group.together([] {});
    try {
      group.together([&] {
        if (me == 1) fail(Fault::file, "the disk is full");
        if (me == 2) fail("another");
      });
    } catch (const CollectiveError& error) {
      words[me] = error.what();
      faults[me] = error.fault();
    }
    group.together([] {});
  });
  for (size_t me = 0; me < 3; ++me) {
    CHECK(words[me] == "process 2 of 3: the disk is full");
    CHECK(faults[me] == Fault::file);
  }
}

TEST_CASE("group: members know who shares their machine") {
  std::vector<int64_t> places(3), counts(3);
  as_members(3, [&](ProcessGroup& group) {
    const LocalRanks here = local_ranks(group);
    places[static_cast<size_t>(group.rank())] = here.place;
    counts[static_cast<size_t>(group.rank())] = here.count;
  });
  CHECK(places == std::vector<int64_t>{0, 1, 2});
  CHECK(counts == std::vector<int64_t>{3, 3, 3});
}

TEST_CASE("group: a sum of what is no float is refused") {
  as_members(1, [](ProcessGroup& group) {
    std::vector<std::byte> room;
    bool refused = false;
    try {
      group.sum(Tensor::zeros(Shape{3}, DType::i32, Device::cpu), room);
    } catch (const Error&) {
      refused = true;
    }
    if (!refused) fail(Fault::internal, "a sum of i32 went through");
  });
}

TEST_CASE("group: a process by itself is no member, and MPI says what it is without being joined") {
  CHECK(!launch_info());
  const std::string words = mpi_words();
  CHECK((words.starts_with("no: ") || words.starts_with("Open MPI")));
}
