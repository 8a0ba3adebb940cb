// The list of rows. CMake reads it too: a line begins with Row{"ID".
#include "tests/scorecard/rows.h"

#include <array>

namespace heed::scorecard {
namespace {

// clang-format off
constexpr std::array all{
    Row{"L1", "kill -9 at random moments, resume, compare the last weights", "all the same SHA-256; at most 20 steps lost", killed_and_resumed},
    Row{"L5", "metrics.jsonl and the TensorBoard file after such kills", "at most a torn last line; then each step once", logs_after_kills},
    Row{"D3", "OpenBLAS as pthread, serial and OpenMP build", "the same bits, or refused with the reason", any_blas},
    Row{"G1", "gradient checks: ops and attention variants, shapes, masks, odd sizes", "all within 1e-5 + 1e-3 relative; backward twice identical", gradients},
    Row{"G2", "registered ops and variants that have a gradient check", "all", gradients_of_all},
    Row{"B1", "mutated checkpoints: bit flips, truncations, lengths, overlaps, names", "0 crashes, 0 over 1 s, memory <= file + 64 MiB, file and place named", mutated_checkpoints},
    Row{"B2", "mutated tokenizers", "all refused, 0 crashes", mutated_tokenizers},
    Row{"B3", "mutated idx, gzip, npy, TSV, TOML and JSON files", "as B1", mutated_data},
    Row{"B4", "hostile archives and names: .., absolute, links, gzip of zeros", "0 bytes outside; the cap is named", hostile_archives},
};
// clang-format on

}  // namespace

std::span<const Row> rows() { return all; }

}  // namespace heed::scorecard
