// Pages and pictures of maps through training.
#include "heed/train/report/training_page.h"

#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/io/files.h"
#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"

using namespace heed;

namespace {

MapSnapshot frame_at(int64_t step) {
  MapSnapshot frame{.step = step, .input = "x", .caption = text("after ", step), .maps = {}, .heads = {}};
  MapView map{.name = "cross", .kind = "cross", .heads = 2, .queries = 2, .keys = 2};
  map.query_tokens = map.key_tokens = {"a", "b"};
  for (int64_t i = 0; i < 8; ++i) map.weights.push_back(static_cast<float>(step + i) / 1000);
  frame.maps = {map};
  frame.heads = {{HeadSnapshot{.entropy = 0.5, .uniform_entropy = 0.7}, HeadSnapshot{}}};
  return frame;
}

TrainingMaps three_frames() {
  return {.title = "run",
          .frames = {frame_at(0), frame_at(10), frame_at(20)},
          .loss = {{.name = "training loss", .x = {1, 10, 20}, .y = {3, 2, 1}}}};
}

int64_t occurrences(const std::string& text, const std::string& what) {
  int64_t found = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE("training page: holds each frame bit for bit, tokens once") {
  const TrainingMaps training = three_frames();
  const std::string page = training_page(training);
  for (const MapSnapshot& frame : training.frames)
    CHECK(occurrences(page, picture::base64_floats(frame.maps[0].weights)) == 1);
  CHECK(occurrences(page, "[\"a\",\"b\"]") == 1);
  CHECK(occurrences(page, "after 10") == 1);
}

TEST_CASE("training page: frames of other models and no frames are refused") {
  TrainingMaps training = three_frames();
  training.frames[1].maps[0].layer = 1;
  CHECK_THROWS_WITH(training_page(training), containing("step 10 has other maps than step 0"));
  training.frames.clear();
  CHECK_THROWS_AS(training_page(training), Error);
  const Scratch scratch;
  CHECK_THROWS_WITH(read_training_maps(scratch.path()), containing("--maps-every"));
}

TEST_CASE(
    "training animation: each frame is shown once a round, the last one longest, and stays without "
    "animation") {
  const std::string film = training_svg(three_frames(), {.seconds = 8});
  CHECK(occurrences(film, "<animate ") == 3);
  CHECK(occurrences(film, "<animateTransform ") == 1);
  CHECK(occurrences(film, "<g visibility=\"visible\">") == 1);
  CHECK(film.find("<g visibility=\"visible\">") > film.find("step 10"));
  CHECK(film.find("keyTimes=\"0;0.25\"") != std::string::npos);  // the first of 3, and one more for the last
  CHECK(film.find("keyTimes=\"0;0.25;0.5\"") != std::string::npos);  // the second
  CHECK(film.find("values=\"hidden;visible\" keyTimes=\"0;0.5\"") != std::string::npos);
  CHECK(film.find("<script") == std::string::npos);
  for (const char* tag : {"g", "svg", "text"})
    CHECK(occurrences(film, text("<", tag, " ")) + occurrences(film, text("<", tag, ">")) ==
          occurrences(film, text("</", tag, ">")));
}

TEST_CASE(
    "training animation: of many frames evenly chosen ones are drawn, the first and the last included") {
  TrainingMaps training{.title = "run"};
  for (int64_t step = 0; step < 100; ++step) training.frames.push_back(frame_at(step));
  const std::string film = training_svg(training, {.max_frames = 12});
  CHECK(occurrences(film, "<animate ") == 12);
  CHECK(film.find(">step 0<") != std::string::npos);
  CHECK(film.find(">step 99<") != std::string::npos);
}
