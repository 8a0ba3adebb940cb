// Ends a program at its start where the CPU lacks instructions that the library was compiled with.
#pragma once

namespace heed {

/// The vector instruction sets that the compiler may have used in core/isa.cpp ("avx2", "fma", ...), ended by
/// a null. Most sources are compiled with the same options.
extern const char* const* const needed_instructions;

/// The first of `needed` (names ended by a null) that this CPU lacks; null if it has them all. It lacks
/// unknown names.
///
/// A program that links this function ends before main() with exit code 8 and one sentence on standard error
/// when one of needed_instructions is missing; without it the program would end by SIGILL.
const char* missing_instruction(const char* const* needed);

}  // namespace heed
