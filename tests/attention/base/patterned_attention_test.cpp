// Patterned attentions: what their maps take of memory.
#include "heed/attention/base/patterned_attention.h"

#include <charconv>

#include "heed/attention/variant.h"
#include "heed/core/io/files.h"
#include "heed/core/memory/storage.h"
#include "heed/nn/attention.h"
#include "heed/tests/catch.h"

using namespace heed;

namespace {

/// The most that this process has had in memory, in bytes.
int64_t peak_bytes() {
  const std::string status = io::read("/proc/self/status");
  int64_t kibibytes = 0;
  const size_t at = status.find_first_of("0123456789", status.find("VmHWM:"));
  std::from_chars(status.data() + at, status.data() + status.size(), kibibytes);
  return kibibytes * 1024;
}

}  // namespace

TEST_CASE("patterned: a map past the cap of memory is refused before anything of its size is made") {
  const std::string name =
      GENERATE("window", "local_m", "nystromformer", "casinoformer", "informer", "retention");
  CAPTURE(name);
  constexpr int64_t length = 16384;  // a map of 1 GiB
  Rng rng(1);
  const bool causal = name == "retention";
  const auto attention =
      make_attention(name, {.d_model = 4, .heads = 1, .causal = causal, .max_length = length}, rng);
  const Tensor x = Tensor::full(Shape{1, length, 4}, 0.5);
  const NoGrad no_grad;
  MapRecorder recorder;
  AttentionInput input{.queries = x, .keys = x};
  if (causal) input.mask = Mask::causal();
  input.context.recorder = &recorder;
  const int64_t before = peak_bytes();
  cap_memory(memory_use().reserved + (int64_t{128} << 20));
  CHECK_THROWS_WITH(attention->forward(input), containing("memory of the machine: "));
  cap_memory(0);
  release_cached();
  CHECK(peak_bytes() < before + (int64_t{256} << 20));
}
