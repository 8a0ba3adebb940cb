// Marks what both compilers build: the host's and, where there is one, the device's.
#pragma once

#ifdef __CUDACC__
#define HEED_BOTH __host__ __device__
#else
#define HEED_BOTH
#endif
