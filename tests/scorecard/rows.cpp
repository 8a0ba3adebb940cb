// The list of rows. CMake parses it too: a line begins with Row{"ID".
#include "heed/tests/scorecard/rows.h"

#include <array>

namespace heed::scorecard {
namespace {

// clang-format off
constexpr std::array all{
    Row{"L1", "kill -9 at random moments, resume, compare the last weights", "all the same SHA-256; at most 20 steps lost", killed_and_resumed},
    Row{"L2", "kill at every system call of a run that saves, replaces and prunes", "always a loadable checkpoint; the same SHA-256 in the end", killed_at_every_call},
    Row{"L3", "every system call fails: EIO, ENOSPC, EDQUOT, EINTR, short reads and writes", "goes on, or code 5 with the reason; last good intact; EINTR and short unseen", failed_at_every_call},
    Row{"L4", "disks full at every stage, without names, read only; ulimit -f; /dev/full", "code 5 and the reason, old checkpoint intact, no half file with a final name", disk_full},
    Row{"L5", "metrics.jsonl and the TensorBoard file after such kills", "at most a torn last line; then each step once", logs_after_kills},
    Row{"L6", "kill at every system call of a start from given weights: train --from, import", "no run, or one that begins from these weights, never from random ones", starts_killed_at_every_call},
    Row{"S1", "SIGTERM and SIGINT at random moments; a second signal", "at most 2 s and a step, code 143/130, the same bits later; second at most 0.2 s", stopped_by_signal},
    Row{"S2", "8 starts at once in one run folder; a killed holder", "1 runs, 7 end with code 6 naming its pid; a stale lock never blocks", one_at_a_time},
    Row{"S3", "8 fetch and prepare one corpus in one folder at once", "1 fetches, the others use it; one SHA-256", prepared_once},
    Row{"S4", "8 starts at once in one folder of runs, each the first process of a namespace", "a run each without a name, 1 with one; nothing left", starts_side_by_side},
    Row{"S5", "links and pipes among the files of a run folder, for every command that reads one", "code 5, named; nothing outside touched, nothing waited for; the folder itself may be a link", links_in_runs},
    Row{"P1", "SIGHUP, SIGXCPU and SIGUSR1; signals that were ignored", "saved, code 129/152, the same bits later; SIGUSR1 saves and goes on; ignored stays so", other_signals},
    Row{"P2", "pipes whose reader is gone, closed standard streams", "runs save and go on or stop with the signal's code; answers end quietly; no file takes what is printed", pipes},
    Row{"D1", "the same seed twice, each preset", "all losses and weights bit-identical", same_seed, Takes::minutes},
    Row{"D2", "threads 1, 2, 3, 4, 8, each preset", "all losses and weights bit-identical", any_threads, Takes::minutes},
    Row{"D3", "OpenBLAS as pthread, serial and OpenMP build", "the same bits, or refused with the reason", any_blas},
    Row{"D4", "2 to 4 processes against one with the batch of all", "losses within 1e-5 relative over 200 steps; the same weights twice", several_processes},
    Row{"D5", "heed in a program whose locale has decimal commas, each preset", "the same weights, settings, scores and words as in the C locale", host_locale},
    Row{"G1", "gradient checks: ops and attention variants, shapes, masks, odd sizes", "all within 1e-5 + 1e-3 relative; backward twice identical", gradients},
    Row{"G2", "registered ops and variants that have a gradient check", "all", gradients_of_all},
    Row{"B1", "mutated checkpoints: bit flips, truncations, lengths, overlaps, names", "0 crashes, 0 over 1 s, memory <= file + 64 MiB, file and place named", mutated_checkpoints},
    Row{"B2", "mutated tokenizers", "all refused, 0 crashes", mutated_tokenizers},
    Row{"B3", "mutated idx, gzip, npy, TSV, TOML and JSON files", "as B1", mutated_data},
    Row{"B4", "hostile archives and names: .., absolute, links, gzip of zeros", "0 bytes outside; the cap is named", hostile_archives},
    Row{"B5", "wrong use: 150 wrong command lines and settings", "the right code within 100 ms; names the key and its place; suggests what is near", wrong_use},
    Row{"N1", "NaN and infinities planted in parameters, inputs and gradients", "caught at their step, named, last good kept, code 4; or skipped and counted", planted_nan},
    Row{"M1", "memory limits: --memory and address space, 20 sizes", "trains, or code 7 with the largest users before the first step; never hangs", memory_limits, Takes::minutes},
    Row{"M2", "soak: a million tiny steps", "memory grows at most 1 % after warm-up, files constant, steps at most 5 % slower", soak},
    Row{"M3", "estimated against measured peak of memory, each preset", "within 10 %", memory_estimate, Takes::minutes},
    Row{"M4", "what no tensor holds under --memory: maps of attend, empty arrays, a text without spaces", "peak at most the limit and 48 MiB; code 7 with the numbers, or done", memory_of_lists},
    Row{"V1", "runs of 0.1, newer formats, resumes by other programs and machines, impossible states", "read; named as newer; told; refused with key and range", versions},
    Row{"T1", "terminal escapes in names and data, narrow terminals", "shown, not obeyed; data on a pipe exact; living lines shorter than the terminal", terminals},
    Row{"U1", "cold start of heed --version", "at most 20 ms and 16 MiB, no CUDA library", cold_start},
    Row{"U2", "clean container to the first training", "2 commands, at most 5 min, 300 MiB of packages, 0 questions", clean_container},
    Row{"U3", "no network", "everything works with data given; clear words otherwise", no_network},
    Row{"C1", "ASan with UBSan, and TSan, over the whole suite", "0 reports, 0 suppressions", sanitizers},
    Row{"C3", "line coverage of core, autograd, nn, attention", "at least 95 % each", coverage},
    Row{"K1", "what checkpoints cost at the default interval", "at most 3.5 % of the time", checkpoint_overhead},
};
// clang-format on

}  // namespace

std::span<const Row> rows() { return all; }

}  // namespace heed::scorecard
