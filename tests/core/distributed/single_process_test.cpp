// A group of one: collectives are copies, and errors stay what they are.
#include "heed/core/distributed/single_process.h"

#include "heed/tests/catch.h"
#include "heed/tests/device.h"

using namespace heed;

TEST_CASE("single process: what is sent arrives as it is") {
  ProcessGroup& group = single_process();
  CHECK((group.rank() == 0 && group.size() == 1 && group.is_main()));
  const std::string bytes("with\0zero", 9);
  CHECK(group.broadcast(bytes) == bytes);
  CHECK(group.broadcast(std::string()).empty());
  CHECK(group.all_gather(bytes) == std::vector<std::string>{bytes});
  CHECK(group.all_gather(0.1) == std::vector<double>{0.1});
  int from = 7, to = 0;
  group.all_to_all(&from, &to, sizeof from);
  CHECK(to == 7);
  const LocalRanks here = local_ranks(group);
  CHECK((here.place == 0 && here.count == 1));
}

TEST_CASE("single process: a sum of one keeps its bits, on any device") {
  for (const Device device : devices()) {
    const Tensor x = Tensor::full(Shape{5}, 0.1, DType::f32, device);
    const std::unique_ptr<AllReduce> sums = make_all_reduce(single_process(), device, [](const std::string&) {
      fail(Fault::internal, "nothing is to be said of a group of one");
    });
    sums->start(x);
    sums->finish();
    for (const double one : x.to_doubles()) CHECK(one == static_cast<double>(0.1F));
  }
}

TEST_CASE("single process: work that fails throws what it threw") {
  int calls = 0;
  single_process().together_on_main([&] { ++calls; });
  CHECK(calls == 1);
  CHECK_THROWS_AS(single_process().together([] { throw std::bad_alloc(); }), std::bad_alloc);
  try {
    single_process().together([] { fail(Fault::data, "as it was said"); });
    FAIL("nothing was thrown");
  } catch (const CollectiveError&) {
    FAIL("an error of one process became one of several");
  } catch (const Error& error) {
    CHECK(error.what() == std::string("as it was said"));
  }
}
