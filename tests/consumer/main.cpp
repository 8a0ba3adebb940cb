// A user's first program: uses Heed from a project of its own.
#include <cstdio>

#include "heed/core/tensor.h"
#include "heed/core/version.h"

int main() {
  const heed::Tensor x = heed::Tensor::from({1.f, 2.f, 3.f});
  std::printf("%s %s\n", to_string(x.shape()).c_str(), x.to_host()[2] == 3.f ? "all well" : "wrong");
  std::printf("version %s = %d.%d.%d\n", HEED_VERSION, HEED_VERSION_MAJOR, HEED_VERSION_MINOR,
              HEED_VERSION_PATCH);
}
