// Which processes can sum by NCCL.
#include "heed/core/cuda/runtime/nccl.h"

#include "heed/tests/catch.h"

using namespace heed;

TEST_CASE("nccl: processes that share a GPU are named by it, and those of two hosts share none") {
  CHECK(cuda::why_gpus_are_shared({"a 0000:01", "a 0000:02", "b 0000:01"}).empty());
  CHECK(cuda::why_gpus_are_shared({"a 0000:02", "a 0000:01", "a 0000:02"}) ==
        "processes share the GPU a 0000:02, which NCCL refuses");
}
