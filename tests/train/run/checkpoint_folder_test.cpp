// Checkpoints: atomic, verified, listed, pruned, and safe from a kill at any time.
#include "heed/train/run/checkpoint_folder.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "heed/core/io/files.h"
#include "heed/core/io/safetensors.h"
#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"

using namespace heed;

namespace {

std::string model_file(float value) {
  const std::vector<float> numbers(1024, value);
  const std::vector<TensorBytes> tensors = {
      {"decoder.0.cross.wq", "f32", {1024}, std::as_bytes(std::span(numbers))},
      {"encoder.0.norm", "f32", {1024}, std::as_bytes(std::span(numbers))}};
  return encode_safetensors(tensors);
}

std::vector<NamedBytes> files(int64_t step) {
  return {{"model.safetensors", model_file(static_cast<float>(step))},
          {"state.json", "{\"step\": " + std::to_string(step) + "}\n"},
          {"tokenizer.model", std::string("\0bytes\xff", 7)}};
}

void flip(const Path& path, int64_t at) {
  std::string bytes = io::read(path);
  bytes[static_cast<size_t>(at)] = static_cast<char>(bytes[static_cast<size_t>(at)] ^ 1);
  io::write(path, bytes);
}

}  // namespace

TEST_CASE("checkpoint: what is written is read back") {
  Scratch scratch;
  const Path run = scratch / "run";
  CHECK(write_checkpoint(run, 400, files(400)) == run / "ckpt/step_000400");
  write_checkpoint(run, 1234567, files(1234567));
  write_checkpoint(run, 20, files(20));
  CHECK(list_checkpoints(run) == std::vector<int64_t>{20, 400, 1234567});
  CHECK(io::list(run / "ckpt") == std::vector<Path>{"step_000020", "step_000400", "step_1234567"});
  CHECK(io::list(run / "ckpt/step_000400") ==
        std::vector<Path>{"MANIFEST.json", "model.safetensors", "state.json", "tokenizer.model"});
  const Checkpoint last = open_checkpoint(run);
  CHECK(last.step == 1234567);
  CHECK(last.file("model.safetensors") == model_file(1234567));
  CHECK(last.file("tokenizer.model") == std::string("\0bytes\xff", 7));
  CHECK_THROWS_WITH(last.file("optim.safetensors"), containing("has no file optim.safetensors"));
  CHECK(open_checkpoint(run, "400").file("state.json") == "{\"step\": 400}\n");
}

TEST_CASE("checkpoint: files of tensors that are left on the disk are verified, too") {
  Scratch scratch;
  const Path run = scratch / "run";
  const Path folder = write_checkpoint(run, 400, files(400));
  const Checkpoint read = open_checkpoint(run, "last", HeldFiles::all_but_tensors);
  CHECK(read.files.size() == 2);
  CHECK(read.file("state.json") == "{\"step\": 400}\n");
  CHECK_THROWS_WITH(read.file("model.safetensors"), containing("has no file model.safetensors"));
  CHECK(io::read(read.path("model.safetensors")) == model_file(400));
  flip(folder / "model.safetensors", -1 + io::size(folder / "model.safetensors"));
  CHECK(fault_of([&] { open_checkpoint(run, "last", HeldFiles::all_but_tensors); }) == Fault::data);
  CHECK_THROWS_WITH(open_checkpoint(run, "last", HeldFiles::all_but_tensors),
                    containing("model.safetensors, tensor encoder.0.norm, bytes "));
}

TEST_CASE("checkpoint: one of the same step is replaced as a whole") {
  Scratch scratch;
  write_checkpoint(scratch.path(), 5, files(5));
  write_checkpoint(scratch.path(), 5, {{"state.json", "new"}});
  const Checkpoint read = open_checkpoint(scratch.path(), "5");
  CHECK(read.files.size() == 1);
  CHECK(read.file("state.json") == "new");
  CHECK(io::list(scratch / "ckpt") == std::vector<Path>{"step_000005"});
  CHECK(io::list(scratch / "ckpt/step_000005").size() == 2);
}

TEST_CASE("checkpoint: the choice of one is checked") {
  Scratch scratch;
  const Path& run = scratch.path();
  CHECK(fault_of([&] { open_checkpoint(run); }) == Fault::data);
  CHECK_THROWS_WITH(open_checkpoint(run), containing("has no checkpoint"));
  write_checkpoint(run, 20, files(20));
  write_checkpoint(run, 40, files(40));
  CHECK_THROWS_WITH(open_checkpoint(run, "30"),
                    containing("no checkpoint of step 30") && containing("20, 40"));
  CHECK(fault_of([&] { open_checkpoint(run, "newest"); }) == Fault::usage);
  CHECK(fault_of([&] { open_checkpoint(run, "-20"); }) == Fault::usage);
  CHECK_THROWS_WITH(open_checkpoint(run, "best"), containing("no record of its best"));
  CHECK_FALSE(best_step(run));
  mark_best(run, 20);
  CHECK(best_step(run) == 20);
  CHECK(open_checkpoint(run, "best").step == 20);
  mark_best(run, 40);
  CHECK(open_checkpoint(run, "best").step == 40);
  io::write(run / "ckpt/best.json", "{\"st");
  CHECK(fault_of([&] { open_checkpoint(run, "best"); }) == Fault::data);
  CHECK(open_checkpoint(run, "20").step == 20);
}

TEST_CASE("checkpoint: damage is named with the tensor and the way out") {
  Scratch scratch;
  const Path& run = scratch.path();
  write_checkpoint(run, 380, files(380));
  write_checkpoint(run, 400, files(400));
  const Path folder = run / "ckpt/step_000400";
  const SafeTensors tensors = SafeTensors::read(folder / "model.safetensors");
  const TensorEntry& entry = tensors.at("decoder.0.cross.wq");
  const std::string range = text("bytes ", entry.offset, "-", entry.offset + 4095);

  flip(folder / "model.safetensors", entry.offset + 100);
  CHECK(fault_of([&] { open_checkpoint(run); }) == Fault::data);
  CHECK_THROWS_WITH(open_checkpoint(run), containing(text("checkpoint ", folder,
                                                          " is damaged: model.safetensors, tensor "
                                                          "decoder.0.cross.wq, ",
                                                          range, " do not match their checksum.")));
  CHECK_THROWS_WITH(open_checkpoint(run),
                    containing(text("step_000380 is intact: heed resume ", run, " --checkpoint 380")));
  CHECK(open_checkpoint(run, "380").step == 380);

  flip(run / "ckpt/step_000380/state.json", 3);
  CHECK_THROWS_WITH(open_checkpoint(run, "380"), containing("state.json, bytes 0-13 do not match"));
  CHECK_THROWS_WITH(open_checkpoint(run), containing("No other checkpoint of this run is intact"));
}

TEST_CASE("checkpoint: files that are missing, cut or added to are found") {
  Scratch scratch;
  const Path& run = scratch.path();
  const Path folder = write_checkpoint(run, 1, files(1));
  io::truncate(folder / "model.safetensors", 100);
  CHECK_THROWS_WITH(open_checkpoint(run), containing("model.safetensors has 100 bytes"));
  io::remove_all(folder / "model.safetensors");
  CHECK_THROWS_WITH(open_checkpoint(run), containing("model.safetensors is missing"));
  io::remove_all(folder / "MANIFEST.json");
  CHECK_THROWS_WITH(open_checkpoint(run), containing("MANIFEST.json is missing"));
}

TEST_CASE("checkpoint: every flipped bit of a payload is found, and none of the manifest does harm") {
  Scratch scratch;
  const Path& run = scratch.path();
  const Path folder =
      write_checkpoint(run, 1, {{"state.json", "{\"step\": 1, \"seed\": 77}"}, {"words.txt", "the\nold\n"}});
  for (const char* name : {"state.json", "words.txt", "MANIFEST.json"}) {
    const std::string bytes = io::read(folder / name);
    for (size_t at = 0; at < bytes.size(); ++at) {
      std::string flipped = bytes;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << at % 8));
      std::ofstream(folder / name, std::ios::binary) << flipped;  // without the sync, which takes its time
      bool accepted = true;
      try {
        const Checkpoint read = open_checkpoint(run);
        for (const auto& [held, content] : read.files) CHECK(content == io::read(folder / held));
      } catch (const Error& error) {
        accepted = false;
        CHECK(error.fault() == Fault::data);
      }
      CHECK((!accepted || name == std::string("MANIFEST.json")));
    }
    io::write(folder / name, bytes);
  }
  CHECK(open_checkpoint(run).step == 1);
}

TEST_CASE("checkpoint: both check sums count") {
  Scratch scratch;
  const Path folder = write_checkpoint(scratch.path(), 1, {{"state.json", "{}"}});
  const std::string manifest = io::read(folder / "MANIFEST.json");
  const auto with = [&](std::string_view key, size_t digits) {
    std::string changed = manifest;
    const size_t at = changed.find(text("\"", key, "\": \"")) + key.size() + 5;
    changed.replace(at, digits, std::string(digits, '0'));
    io::write(folder / "MANIFEST.json", changed);
  };
  with("crc32c", 8);
  CHECK_THROWS_WITH(open_checkpoint(scratch.path()), containing("state.json, bytes 0-1 do not match"));
  with("sha256", 64);
  CHECK_THROWS_WITH(open_checkpoint(scratch.path()), containing("state.json, bytes 0-1 do not match"));
  io::write(folder / "MANIFEST.json", manifest);
  CHECK(open_checkpoint(scratch.path()).step == 1);
}

TEST_CASE("checkpoint: a manifest opens nothing outside its folder") {
  Scratch scratch;
  const Path& run = scratch.path();
  const Path folder = write_checkpoint(run, 1, {{"state.json", "{}"}});
  io::write(run / "secret", "x");
  for (const char* name : {"../../secret", "/etc/hostname", "..", ".hidden", "a/b", ""}) {
    io::write(folder / "MANIFEST.json",
              text("{\"format\": 1, \"step\": 1, \"files\": {\"", name,
                   "\": {\"size\": 1, \"crc32c\": \"00000000\", \"sha256\": \"\"}}}"));
    CHECK_THROWS_WITH(open_checkpoint(run), containing("no plain file name"));
  }
  CHECK_THROWS_AS(write_checkpoint(run, 2, {{"../secret", "y"}}), Error);
  CHECK_THROWS_AS(write_checkpoint(run, 2, {{"MANIFEST.json", "y"}}), Error);
  CHECK_THROWS_AS(write_checkpoint(run, 2, {{"a", "y"}, {"a", "z"}}), Error);
  CHECK(io::read(run / "secret") == "x");
}

TEST_CASE("checkpoint: a record of the best that cannot be read is no missing one") {
  Scratch scratch;
  CHECK_FALSE(best_step(scratch.path()));
  io::make_directories(scratch / "ckpt" / "best.json");
  CHECK(fault_of([&] { best_step(scratch.path()); }) == Fault::file);
  io::remove_all(scratch / "ckpt" / "best.json");
  for (const char* damaged : {"torn", "", "{}", "null", "{\"st", "{\"step\": \"8\"}", "{\"step\": 8, \"x\"",
                              "{\"step\": 8.5}", "{\"step\": -1}", "[8]"}) {
    INFO(damaged);
    io::write(scratch / "ckpt" / "best.json", damaged);
    CHECK(fault_of([&] { best_step(scratch.path()); }) == Fault::data);
    CHECK_THROWS_WITH(best_step(scratch.path()),
                      containing((scratch / "ckpt" / "best.json").string()) && containing("Remove it"));
  }
}

TEST_CASE("checkpoint: pruning keeps the newest and the best") {
  Scratch scratch;
  const Path& run = scratch.path();
  for (int64_t step = 10; step <= 60; step += 10) write_checkpoint(run, step, files(step));
  prune_checkpoints(run, 2, 20);
  CHECK(list_checkpoints(run) == std::vector<int64_t>{20, 50, 60});
  prune_checkpoints(run, 0, std::nullopt);
  CHECK(list_checkpoints(run) == std::vector<int64_t>{60});
  CHECK(io::list(run / "ckpt").size() == 1);
}

TEST_CASE("checkpoint: those after a step are dropped, and nothing of them stays") {
  Scratch scratch;
  const Path& run = scratch.path();
  for (int64_t step = 10; step <= 60; step += 10) write_checkpoint(run, step, files(step));
  drop_checkpoints_after(run, 60);
  CHECK(list_checkpoints(run).size() == 6);
  drop_checkpoints_after(run, 35);
  CHECK(list_checkpoints(run) == std::vector<int64_t>{10, 20, 30});
  CHECK(io::list(run / "ckpt").size() == 3);
  drop_checkpoints_after(run, 0);
  CHECK(io::list(run / "ckpt").empty());
}

TEST_CASE("checkpoint: nothing is written or removed through links") {
  Scratch scratch;
  const Path run = scratch / "run", other = scratch / "other";
  for (const int64_t step : {1, 2, 3}) write_checkpoint(other, step, {{"state.json", "{}"}});
  io::make_directories(run);
  REQUIRE(::symlink("../other/ckpt", (run / "ckpt").c_str()) == 0);
  const std::string words = text(run / "ckpt", " is a link to ../other/ckpt, where heed writes a folder");
  CHECK_THROWS_WITH(write_checkpoint(run, 4, {{"state.json", "{}"}}), containing(words));
  CHECK_THROWS_WITH(prune_checkpoints(run, 1, {}), containing(words));
  CHECK_THROWS_WITH(drop_checkpoints_after(run, 0), containing(words));
  CHECK_THROWS_WITH(clean_checkpoints(run), containing(words));
  CHECK_THROWS_WITH(mark_best(run, 1), containing(words));
  CHECK(io::list(other / "ckpt") == std::vector<Path>{"step_000001", "step_000002", "step_000003"});
  // A checkpoint that is a link goes as a link.
  io::remove_all(run / "ckpt");
  write_checkpoint(run, 9, {{"state.json", "{}"}});
  REQUIRE(::symlink((other / "ckpt/step_000001").c_str(), (run / "ckpt/step_000001").c_str()) == 0);
  prune_checkpoints(run, 1, {});
  CHECK(io::list(run / "ckpt") == std::vector<Path>{"step_000009"});
  CHECK(open_checkpoint(other, "1").file("state.json") == "{}");
}

TEST_CASE("checkpoint: a disk that fills up leaves the older ones and no remains") {
  Scratch scratch;
  const Path& run = scratch.path();
  write_checkpoint(run, 1, files(1));
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit low = before;
  low.rlim_cur = 5000;
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &low) == 0);
  Fault fault = Fault::internal;
  try {
    write_checkpoint(run, 2, files(2));
  } catch (const Error& error) {
    fault = error.fault();
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  CHECK(fault == Fault::file);
  CHECK(io::list(run / "ckpt") == std::vector<Path>{"step_000001"});
  CHECK(open_checkpoint(run).step == 1);
}

TEST_CASE("checkpoint: a kill at any moment leaves a good last one") {
  Scratch scratch;
  const Path& run = scratch.path();
  write_checkpoint(run, 1, files(1));
  uint32_t state = 99;
  int remains = 0;
  for (int trial = 0; trial < 40; ++trial) {
    const int64_t first = list_checkpoints(run).back() + 1;
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      for (int64_t step = first;; ++step) {
        write_checkpoint(run, step, files(step));
        mark_best(run, step);
        prune_checkpoints(run, 2, step);
      }
    }
    state = state * 1664525u + 1013904223u;
    ::usleep(500 + (state >> 16) % 20000);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    const Checkpoint last = open_checkpoint(run);
    CHECK(last.file("model.safetensors") == model_file(static_cast<float>(last.step)));
    for (const int64_t step : list_checkpoints(run))
      CHECK(open_checkpoint(run, std::to_string(step)).step == step);
    for (const Path& name : io::list(run / "ckpt")) remains += name.native().starts_with('.') ? 1 : 0;
    clean_checkpoints(run);
    for (const Path& name : io::list(run / "ckpt")) CHECK_FALSE(name.native().starts_with('.'));
  }
  CHECK(remains > 0);  // else the kills came at no interesting moment
}
