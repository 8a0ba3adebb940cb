// HEED_BOTH marks functions that run on the host and, under nvcc, on the device.
#pragma once

#ifdef __CUDACC__
#define HEED_BOTH __host__ __device__
#else
#define HEED_BOTH
#endif
