// A program and its module: program opened|missing|other. HEED_CUDA_MODULE_FILE names the module. 0 where all
// holds.
#include <cstdio>
#include <string>
#include <thread>

#include "heed/core/cuda/module/module.h"
#include "heed/tests/cuda_module/parts.h"

namespace heed::parts {

int of_the_program(int x) {
  if (x < 0) throw Refused("negative");
  return x + 1;
}

}  // namespace heed::parts

namespace {

using namespace heed;
using namespace heed::parts;

int faults = 0;

void expect(bool holds, const std::string& what) {
  if (holds) return;
  std::printf("wrong: %s\n", what.c_str());
  ++faults;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// A function of the module is called while that is closed: an error that names it.
void check_closed() {
  expect(!cuda::is_open(), "closed");
  std::string said;
  try {
    Kernel::run(1);
  } catch (const Error& error) {
    expect(error.fault() == Fault::internal, "an internal error");
    said = error.what();
  }
  expect(has(said, "heed::parts::Kernel::run(int)"), "the error names the function: " + said);
}

void check_open() {
  expect(cuda::why_closed().empty(), "opened: " + cuda::why_closed());
  if (!cuda::is_open()) return;
  expect(Kernel::run(3) == 12, "a member");
  expect(sum_of_nine(1, 2, 3, 4, 5, 6, 7, 8, 9) == 285, "integers in registers and behind them");
  expect(sum_of_ten(1, 2, 3, 4, 5, 6, 7, 8, 9, 10) == 385, "floats in registers and behind them");
  expect(half(3.0L) == 1.5L, "a long double");
  const Large twice = doubled({{1, 2, 3, 4, 5, 6, 7, 8, 9}}, {{9, 8, 7, 6, 5, 4, 3, 2, 1}});
  for (const int64_t number : twice.numbers) expect(number == 10, "a large struct there and back");
  const Mixed back = swapped({5, 6});
  expect(back.x == 6 && back.n == 5, "a struct in registers of both kinds");
  std::string last = "last";
  expect(joined({"one", "two"}, std::move(last)) == "one two last", "strings");
  const auto from = std::make_shared<int>(4);
  std::unique_ptr<Counter> counter = make_counter(from);
  expect(counter->next() == 4 && counter->next() == 5 && *from == 6, "an object of the module");
  counter.reset();
  expect(from.use_count() == 1, "the object is destroyed");
  bool caught = false;
  try {
    refuse("no");
  } catch (const Refused& refused) {
    caught = refused.what() == std::string("no");
  }
  expect(caught, "an exception of the module");
  expect(calls_program(1) == 9, "functions of the program");
  expect(calls_program(-1) == -1, "an exception of the program");
  of_thread = 2;
  of_program = 3;
  expect(reads_variables() == 203, "variables are one");
  std::thread([] { expect(reads_variables() == 103, "one variable a thread"); }).join();
}

}  // namespace

int main(int, char** words) {
  const std::string way = words[1];
  check_closed();
  if (way == "opened") {
    check_open();
  } else {
    const std::string why = cuda::why_closed();
    expect(has(why, way == "missing" ? "is no file" : "must be of one version"), why);
    std::printf("%s\n", why.c_str());
    check_closed();
    try {
      cuda::require_open();
      expect(false, "require_open() fails");
    } catch (const Error& error) {
      expect(error.fault() == Fault::device && has(error.what(), why), error.what());
    }
  }
  return faults == 0 ? 0 : 1;
}
