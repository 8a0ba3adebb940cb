// Blocks of quantised numbers in GGUF files. Layouts: ggml's ggml-common.h and ggml-quants.c.
#include <bit>
#include <cstring>

#include "heed/core/io/gguf.h"
#include "heed/core/io/half.h"

namespace heed {
namespace {

uint16_t u16_at(const unsigned char* at) { return static_cast<uint16_t>(at[0] | at[1] << 8); }
uint32_t u32_at(const unsigned char* at) { return u16_at(at) | static_cast<uint32_t>(u16_at(at + 2)) << 16; }
int as_signed(unsigned char byte) { return static_cast<signed char>(byte); }

/// The number of IEEE half precision at `at`.
float half_at(const unsigned char* at) { return half_value(u16_at(at)); }

void decode_f32(const unsigned char* block, float* out) { *out = std::bit_cast<float>(u32_at(block)); }
void decode_f16(const unsigned char* block, float* out) { *out = half_at(block); }
void decode_bf16(const unsigned char* block, float* out) {
  *out = std::bit_cast<float>(static_cast<uint32_t>(u16_at(block)) << 16);
}

/// 32 numbers d q, with d f16 and q of 8 bits.
void decode_q8_0(const unsigned char* block, float* out) {
  const float d = half_at(block);
  for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(as_signed(block[2 + i]));
}

/// 32 numbers d (q - offset) + m with q of 4 bits: the low halves of 16 bytes, then the high ones. `high`: a
/// fifth bit of each q, in this word.
void decode_fours(const unsigned char* quants, uint32_t high, float d, int offset, float m, float* out) {
  for (int i = 0; i < 16; ++i) {
    const int low = (quants[i] & 15) | static_cast<int>(high >> i & 1) << 4;
    const int top = quants[i] >> 4 | static_cast<int>(high >> (i + 16) & 1) << 4;
    out[i] = d * static_cast<float>(low - offset) + m;
    out[i + 16] = d * static_cast<float>(top - offset) + m;
  }
}

void decode_q4_0(const unsigned char* block, float* out) {
  decode_fours(block + 2, 0, half_at(block), 8, 0, out);
}
void decode_q4_1(const unsigned char* block, float* out) {
  decode_fours(block + 4, 0, half_at(block), 0, half_at(block + 2), out);
}
void decode_q5_0(const unsigned char* block, float* out) {
  decode_fours(block + 6, u32_at(block + 2), half_at(block), 16, 0, out);
}
void decode_q5_1(const unsigned char* block, float* out) {
  decode_fours(block + 8, u32_at(block + 4), half_at(block), 0, half_at(block + 2), out);
}

/// Scale and minimum, 6 bits each, of part `i` of 8 in the 12 bytes of a K block.
struct ScaleAndMin {
  float scale, min;
};
ScaleAndMin scale_and_min(const unsigned char* packed, int i) {
  if (i < 4) return {static_cast<float>(packed[i] & 63), static_cast<float>(packed[i + 4] & 63)};
  return {static_cast<float>((packed[i + 4] & 15) | packed[i - 4] >> 6 << 4),
          static_cast<float>(packed[i + 4] >> 4 | packed[i] >> 6 << 4)};
}

/// 256 numbers d scale q - dmin min in 8 parts of 32, with q of 4 bits, or 5 where `high` has the fifth.
void decode_k(const unsigned char* block, const unsigned char* high, const unsigned char* quants,
              float* out) {
  const float d = half_at(block), dmin = half_at(block + 2);
  for (int part = 0; part < 8; ++part) {
    const auto [scale, min] = scale_and_min(block + 4, part);
    const float part_scale = d * scale, part_min = dmin * min;
    const unsigned char* bytes = quants + part / 2 * 32;
    for (int i = 0; i < 32; ++i) {
      int q = part % 2 == 0 ? bytes[i] & 15 : bytes[i] >> 4;
      if (high != nullptr) q |= (high[i] >> part & 1) << 4;
      out[part * 32 + i] = part_scale * static_cast<float>(q) - part_min;
    }
  }
}

void decode_q4_k(const unsigned char* block, float* out) { decode_k(block, nullptr, block + 16, out); }
void decode_q5_k(const unsigned char* block, float* out) { decode_k(block, block + 16, block + 48, out); }

/// 256 numbers d scale (q - 32): 128 bytes of low halves, 64 of upper pairs of bits, 16 scales, d.
void decode_q6_k(const unsigned char* block, float* out) {
  const float d = half_at(block + 208);
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128, quarter = i % 128 / 32, place = i % 32;
    const unsigned char low = block[half * 64 + quarter % 2 * 32 + place];
    const unsigned char top = block[128 + half * 32 + place];
    const int q = (quarter < 2 ? low & 15 : low >> 4) | (top >> 2 * quarter & 3) << 4;
    const int scale = as_signed(block[192 + half * 8 + quarter * 2 + place / 16]);
    out[i] = d * static_cast<float>(scale) * static_cast<float>(q - 32);
  }
}

constexpr GgufType types[] = {
    {.name = "f32", .code = 0, .numbers = 1, .bytes = 4, .decode = decode_f32},
    {.name = "f16", .code = 1, .numbers = 1, .bytes = 2, .decode = decode_f16},
    {.name = "q4_0", .code = 2, .numbers = 32, .bytes = 18, .decode = decode_q4_0},
    {.name = "q4_1", .code = 3, .numbers = 32, .bytes = 20, .decode = decode_q4_1},
    {.name = "q5_0", .code = 6, .numbers = 32, .bytes = 22, .decode = decode_q5_0},
    {.name = "q5_1", .code = 7, .numbers = 32, .bytes = 24, .decode = decode_q5_1},
    {.name = "q8_0", .code = 8, .numbers = 32, .bytes = 34, .decode = decode_q8_0},
    {.name = "q4_k", .code = 12, .numbers = 256, .bytes = 144, .decode = decode_q4_k},
    {.name = "q5_k", .code = 13, .numbers = 256, .bytes = 176, .decode = decode_q5_k},
    {.name = "q6_k", .code = 14, .numbers = 256, .bytes = 210, .decode = decode_q6_k},
    {.name = "bf16", .code = 30, .numbers = 1, .bytes = 2, .decode = decode_bf16},
};

}  // namespace

std::span<const GgufType> gguf_types() { return types; }

}  // namespace heed
