// A user's first program: uses an installed Heed without its source tree.
#include <cstdio>

#include "heed/core/tensor.h"

int main() {
  const heed::Tensor x = heed::Tensor::from({1.f, 2.f, 3.f});
  std::printf("%s %s\n", to_string(x.shape()).c_str(), x.to_host()[2] == 3.f ? "all well" : "wrong");
}
