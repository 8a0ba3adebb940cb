// Stores and reads the weights of another run that a run begins from.
#include "heed/train/run/weights_from_run.h"

#include "heed/core/io/files.h"
#include "heed/core/io/hash.h"
#include "heed/train/run/checkpoint_tokenizers.h"
#include "heed/train/run/format_version.h"
#include "heed/train/run/run_folder.h"

namespace heed {
static constexpr const char* origin_file = "origin.json";

Path weights_from_run_folder(const Path& run) { return run / "initial"; }

void write_weights_from_run(const Path& run, const Checkpoint& checkpoint, const Path& origin) {
  const std::string& weights = checkpoint.file("model.safetensors");
  std::vector<NamedBytes> files{{"model.safetensors", weights}};
  for (NamedBytes& file : tokenizer_files(checkpoint)) files.push_back(std::move(file));
  Json metadata = Json::object({{"run", Json(origin.lexically_normal().string())},
                                {"step", checkpoint.step},
                                {"sha256", Json(sha256_hex(weights))}});
  files.push_back({origin_file, metadata.dump(1) + "\n"});
  io::make_directories(weights_from_run_folder(run));
  write_checkpoint(weights_from_run_folder(run), checkpoint.step, files);
  RunFolder::elsewhere(run).write_manifest(Json::object(
      {{"format", run_format}, {origin_key, std::move(metadata)}, {first_checkpoint_key, Json()}}));
}

std::optional<Checkpoint> read_weights_from_run(const Path& run) {
  const Path folder = weights_from_run_folder(run);
  if (!io::exists(folder) || list_checkpoints(folder).empty()) return {};
  return open_checkpoint(folder, "last");
}

Json origin_metadata(const Checkpoint& weights_from_run) {
  return parse_json(weights_from_run.file(origin_file), (weights_from_run.folder / origin_file).string());
}

}  // namespace heed
