// Stores and reads the weights that a run begins from.
#include "heed/train/run/initial_weights.h"

#include "heed/core/io/files.h"
#include "heed/core/io/hash.h"
#include "heed/train/run/checkpoint_tokenizers.h"
#include "heed/train/run/format_version.h"
#include "heed/train/run/run_folder.h"

namespace heed {
namespace {

constexpr const char* origin_file = "origin.json";

}  // namespace

Path initial_folder(const Path& run) { return run / "initial"; }

void write_initial(const Path& run, const Checkpoint& from, const Path& origin) {
  std::vector<NamedBytes> files{{"model.safetensors", from.file("model.safetensors")}};
  for (NamedBytes& file : tokenizer_files(from)) files.push_back(std::move(file));
  Json origin_json = Json::object({{"run", Json(origin.lexically_normal().string())},
                                   {"step", from.step},
                                   {"sha256", Json(sha256_hex(from.file("model.safetensors")))}});
  files.push_back({origin_file, origin_json.dump(1) + "\n"});
  io::make_directories(initial_folder(run));
  write_checkpoint(initial_folder(run), from.step, files);
  RunFolder::elsewhere(run).write_manifest(Json::object(
      {{"format", run_format}, {origin_key, std::move(origin_json)}, {first_checkpoint_key, Json()}}));
}

std::optional<Checkpoint> read_initial(const Path& run) {
  if (!io::exists(initial_folder(run)) || list_checkpoints(initial_folder(run)).empty()) return {};
  return open_checkpoint(initial_folder(run), "last");
}

Json origin_metadata(const Checkpoint& initial) {
  return parse_json(initial.file(origin_file), (initial.folder / origin_file).string());
}

}  // namespace heed
