// Whether this CPU has the instructions that the library was compiled with.
#pragma once

namespace heed {

/// The vector instruction sets that the compiler of core/isa.cpp was free to use ("avx2", "fma", ...), ended
/// by a null. Most sources are compiled with the same options.
extern const char* const needed_instructions[];

/// The first of `needed` (names ended by a null) that this CPU lacks; null if it has them all. A name that
/// nobody knows counts as lacking.
///
/// A program that links this function ends before main() when a needed instruction set is missing: with exit
/// code 8 and one sentence on standard error, instead of SIGILL.
const char* missing_instruction(const char* const* needed);

}  // namespace heed
