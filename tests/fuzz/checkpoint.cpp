// Fuzz target: the manifest of a checkpoint whose files are intact.
#include "heed/core/io/files.h"
#include "heed/tests/fuzz/input.h"
#include "heed/tests/fuzz/reader_rules.h"
#include "heed/train/run/checkpoint_folder.h"

using namespace heed;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = bytes_of(data, size);
  static const Path run = [] {
    const Path folder = law::planted_folder();
    write_checkpoint(folder, 7, {{"state.json", "{\"step\": 7}\n"}, {"tokenizer.source.word", "bytes\n"}});
    return folder;
  }();
  const Path manifest = checkpoint_folder(run, 7) / "MANIFEST.json";
  io::write_plain(manifest, std::span(&input, 1));
  io::write_plain(run / "ckpt/best.json", std::span(&input, 1));
  Checkpoint checkpoint;
  if (law::obeys(checkpoint_folder(run, 7).string(), input, [&] { checkpoint = open_checkpoint(run); })) {
    law::demand(checkpoint.step == 7, "a checkpoint is of its step");
    for (const auto& [name, bytes] : checkpoint.files) {
      law::demand(io::read(checkpoint.folder / name) == bytes, "a file is what lies on the disk");
    }
  }
  law::obeys((run / "ckpt/best.json").string(), input, [&] {
    const std::optional<int64_t> best = best_step(run);
    law::demand(best && *best >= 0, "a record of the best is a step");
  });
  return 0;
}
