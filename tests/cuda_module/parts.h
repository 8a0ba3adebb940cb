// What a program and its module have of each other in tests: arguments of all kinds, exceptions, objects.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace heed::parts {

/// There is one `of_thread` a thread and one `of_program` a program, wherever they are named.
inline thread_local int of_thread = 1;
inline int of_program = 1;

/// Thrown by either, caught by the other.
class Refused : public std::runtime_error {
 public:
  explicit Refused(const std::string& what) : std::runtime_error(what) {}
};

/// Too large for registers.
struct Large {
  int64_t numbers[9];
};
/// In registers of both kinds.
struct Mixed {
  double x;
  int64_t n;
};

/// Made by the module.
class Counter {
 public:
  virtual ~Counter() = default;
  virtual int next() = 0;
};

// The module defines these functions.
int64_t sum_of_nine(int64_t a, int64_t b, int64_t c, int64_t d, int64_t e, int64_t f, int64_t g, int64_t h,
                    int64_t i);
double sum_of_ten(float a, double b, float c, double d, float e, double f, float g, double h, float i,
                  double j);
long double half(long double x);
Large doubled(const Large& x, Large y);
Mixed swapped(Mixed x);
std::string joined(const std::vector<std::string>& words, std::string&& last);
std::unique_ptr<Counter> make_counter(std::shared_ptr<int> from);
void refuse(const std::string& what);
int calls_program(int x);
int reads_variables();

/// A member of a class, as K::cuda is.
struct Kernel {
  static int run(int x);
};

// The program defines these functions.
int of_the_program(int x);
int used_by_the_module_alone();

}  // namespace heed::parts
