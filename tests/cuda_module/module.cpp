// The module of tests/cuda_module.
#include <utility>

#include "heed/tests/cuda_module/parts.h"

namespace heed::parts {

int64_t sum_of_nine(int64_t a, int64_t b, int64_t c, int64_t d, int64_t e, int64_t f, int64_t g, int64_t h,
                    int64_t i) {
  return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i;
}

double sum_of_ten(float a, double b, float c, double d, float e, double f, float g, double h, float i,
                  double j) {
  return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j;
}

long double half(long double x) { return x / 2; }

Large doubled(const Large& x, Large y) {
  for (int i = 0; i < 9; ++i) y.numbers[i] += x.numbers[i];
  return y;
}

Mixed swapped(Mixed x) { return {static_cast<double>(x.n), static_cast<int64_t>(x.x)}; }

std::string joined(const std::vector<std::string>& words, std::string&& last) {
  std::string out;
  for (const std::string& word : words) out += word + " ";
  return out + std::exchange(last, "");
}

namespace {

class From final : public Counter {
 public:
  explicit From(std::shared_ptr<int> from) : from_(std::move(from)) {}
  int next() override { return (*from_)++; }

 private:
  std::shared_ptr<int> from_;
};

}  // namespace

std::unique_ptr<Counter> make_counter(std::shared_ptr<int> from) {
  return std::make_unique<From>(std::move(from));
}

void refuse(const std::string& what) { throw Refused(what); }

int calls_program(int x) {
  try {
    return of_the_program(x) + used_by_the_module_alone();
  } catch (const Refused&) {
    return -1;
  }
}

int reads_variables() { return 100 * of_thread + of_program; }

int Kernel::run(int x) { return x * MODULE_FACTOR; }

}  // namespace heed::parts
