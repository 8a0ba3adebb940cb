// Event files: the bytes that TensorBoard reads, truncation, damage.
#include "heed/train/run/tensorboard.h"

#include <unistd.h>

#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"

using namespace heed;

namespace {

std::string only_file(const Path& folder) {
  const std::vector<Path> names = io::list(folder);
  REQUIRE(names.size() == 1);
  CHECK(names[0].string().starts_with("events.out.tfevents."));
  return io::read(folder / names[0]);
}

}  // namespace

TEST_CASE("tensorboard: the record of a scalar is the one its own writer makes") {
  // What tensorboard's EventFileWriter writes for wall_time 1.5, step 7, loss 0.25.
  const std::vector<Scalar> scalars = {{"loss", 0.25}};
  const std::string record = encode_scalar_event(1.5, 7, scalars);
  const unsigned char golden[] = {0x1a, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x12, 0x9b, 0xd8,
                                  0x2d, 0x09, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xf8, 0x3f, 0x10,
                                  0x07, 0x2a, 0x0d, 0x0a, 0x0b, 0x0a, 0x04, 0x6c, 0x6f, 0x73, 0x73,
                                  0x15, 0x00, 0x00, 0x80, 0x3e, 0xc9, 0xd0, 0x7b, 0x8d};
  CHECK(record == std::string(reinterpret_cast<const char*>(golden), sizeof golden));
}

TEST_CASE("tensorboard: what is written is read back") {
  Scratch scratch;
  TensorBoard board(scratch / "tb");
  CHECK_FALSE(io::exists(scratch / "tb"));
  board.write(1, std::vector<Scalar>{{"loss", 2.5}, {"rate", 1e-4}});
  board.write(int64_t{1} << 40, std::vector<Scalar>{{"loss", 1.5}});
  const std::vector<ScalarEvent> events = decode_events(only_file(scratch / "tb"));
  REQUIRE(events.size() == 3);
  CHECK(events[0].scalars.empty());
  CHECK(events[1].step == 1);
  REQUIRE(events[1].scalars.size() == 2);
  CHECK((events[1].scalars[0].tag == "loss" && events[1].scalars[0].number == 2.5f));
  CHECK((events[1].scalars[1].tag == "rate" && events[1].scalars[1].number == 1e-4f));
  CHECK(events[1].wall_time > 1.6e9);
  CHECK(events[2].step == int64_t{1} << 40);
}

TEST_CASE("tensorboard: rewinding drops later steps and a torn record, and goes on in the same file") {
  Scratch scratch;
  {
    TensorBoard board(scratch / "tb");
    for (int64_t step = 1; step <= 5; ++step)
      board.write(step, std::vector<Scalar>{{"loss", 1.0 / double(step)}});
  }
  const Path file = scratch.path() / "tb" / io::list(scratch / "tb").front();
  io::Appender(file).raw("torn record");
  TensorBoard board(scratch / "tb");
  board.truncate_to(3);
  board.write(4, std::vector<Scalar>{{"loss", 9.0}});
  const std::vector<ScalarEvent> events = decode_events(only_file(scratch / "tb"));
  REQUIRE(events.size() == 5);
  CHECK(events[3].step == 3);
  CHECK(events[4].step == 4);
  CHECK(events[4].scalars[0].number == 9.0f);
  board.truncate_to(-1);
  CHECK(io::list(scratch / "tb").empty());
}

TEST_CASE("tensorboard: damage ends the reading") {
  std::string bytes = encode_scalar_event(1, 1, std::vector<Scalar>{{"a", 1}});
  const size_t first = bytes.size();
  bytes += encode_scalar_event(2, 2, std::vector<Scalar>{{"b", 2}});
  for (size_t length = 0; length < bytes.size(); ++length) {
    CHECK(decode_events(std::string_view(bytes).substr(0, length)).size() == (length < first ? 0u : 1u));
  }
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = bytes;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
      CHECK(decode_events(flipped).size() == (at < first ? 0u : 1u));
    }
  }
}

TEST_CASE("tensorboard: neither the folder nor its files may be links") {
  Scratch scratch;
  const std::vector<Scalar> scalars{{"loss", 1.0}};
  const Path victim = scratch.file("victim", "keep"), tb = scratch / "tb";
  io::make_directories(scratch / "elsewhere");
  REQUIRE(::symlink("elsewhere", tb.c_str()) == 0);
  CHECK_THROWS_WITH(TensorBoard(tb).write(1, scalars), containing(text(tb, " is a link to elsewhere")));
  CHECK_THROWS_WITH(TensorBoard(tb).truncate_to(0), containing(text(tb, " is a link to elsewhere")));
  CHECK(io::list(scratch / "elsewhere").empty());
  io::remove_all(tb);
  TensorBoard(tb).write(1, scalars);
  const Path file = tb / io::list(tb).at(0);
  io::remove_all(file);
  REQUIRE(::symlink(victim.c_str(), file.c_str()) == 0);
  CHECK_THROWS_WITH(TensorBoard(tb).write(2, scalars), containing(text(file, " is a link to ", victim)));
  CHECK_THROWS_WITH(TensorBoard(tb).truncate_to(0), containing(text(file, " is a link to ", victim)));
  CHECK(io::read(victim) == "keep");
}
