// The rows of the scorecard, one function each; rows.cpp lists them.
#pragma once

#include "heed/tests/scorecard/scorecard.h"

namespace heed::scorecard {

/// lives.cpp: killed at any moment.
Result killed_and_resumed(const Scene& scene);
Result logs_after_kills(const Scene& scene);

/// calls.cpp: at every system call of a save.
Result killed_at_every_call(const Scene& scene);
Result failed_at_every_call(const Scene& scene);

/// killed_starts.cpp: before the weights that a run begins from are in place.
Result starts_killed_at_every_call(const Scene& scene);

/// disk.cpp
Result disk_full(const Scene& scene);

/// stops.cpp: signals, locks, concurrent starts.
Result stopped_by_signal(const Scene& scene);
Result one_at_a_time(const Scene& scene);
Result prepared_once(const Scene& scene);

/// pipes.cpp: other signals, and standard streams that are closed.
Result other_signals(const Scene& scene);
Result pipes(const Scene& scene);

/// shared_folders.cpp: process namespaces, links in run folders.
Result starts_side_by_side(const Scene& scene);
Result links_in_runs(const Scene& scene);

/// bits.cpp: reproducibility.
Result same_seed(const Scene& scene);
Result any_threads(const Scene& scene);

/// processes.cpp
Result several_processes(const Scene& scene);

/// host_locale.cpp
Result host_locale(const Scene& scene);

/// exact.cpp
Result any_blas(const Scene& scene);
Result gradients(const Scene& scene);
Result gradients_of_all(const Scene& scene);

/// hostile.cpp: malformed files.
Result mutated_checkpoints(const Scene& scene);
Result mutated_tokenizers(const Scene& scene);
Result mutated_data(const Scene& scene);
/// archives.cpp
Result hostile_archives(const Scene& scene);

/// wrong_use.cpp, with the list wrong_use.txt.
Result wrong_use(const Scene& scene);

/// limits.cpp: numbers and memory.
Result planted_nan(const Scene& scene);
Result memory_limits(const Scene& scene);
Result soak(const Scene& scene);
Result memory_estimate(const Scene& scene);
Result memory_of_lists(const Scene& scene);
Result checkpoint_overhead(const Scene& scene);

/// places.cpp: environments.
Result cold_start(const Scene& scene);
Result clean_container(const Scene& scene);
Result no_network(const Scene& scene);

/// versions.cpp: runs of other versions and machines.
Result versions(const Scene& scene);

/// terminals.cpp: untrusted text in terminals.
Result terminals(const Scene& scene);

/// suite.cpp: sanitizers and coverage of the tests.
Result sanitizers(const Scene& scene);
Result coverage(const Scene& scene);

}  // namespace heed::scorecard
