// Sessions of a run: listing, comparison, and the warning when they differ.
#include "heed/train/run/session_history.h"

#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"

using namespace heed;

namespace {

Json session(const std::string& isa, int64_t step) {
  return Json::object({{"heed", "0.1.0"},
                       {"source", "a"},
                       {"compiler", "g++ 12.2.0"},
                       {"cpu", "one"},
                       {"cpu_threads", 4},
                       {"isa", isa},
                       {"blas_core", "Haswell"},
                       {"threads", 2},
                       {"device", "cpu"},
                       {"processes", 1},
                       {"step", step}});
}

}  // namespace

TEST_CASE("sessions: each is added behind those before, and the head stays that of the first") {
  Json manifest = Json::object();
  add_session(manifest, nullptr, session("avx512", 0));
  Json next = Json::object({{"seed", 3}});
  add_session(next, &manifest, session("avx2", 20));
  CHECK(next.at("isa").text() == "avx512");
  CHECK(next.find("step") == nullptr);
  const std::vector<Json> all = sessions_of(next);
  REQUIRE(all.size() == 2);
  CHECK(all[1].at("isa").text() == "avx2");
  for (int64_t i = 0; i < 1100; ++i) {
    const Json before = next;
    add_session(next, &before, session("avx2", 21 + i));
  }
  CHECK(sessions_of(next).size() == 1000);
  CHECK(sessions_of(next).front().at("isa").text() == "avx512");
  CHECK(sessions_of(next).back().at("step").integer() == 1120);
}

TEST_CASE("sessions: a manifest of format 1 tells of one, nonsense is a fault of the data") {
  const Json old =
      parse_json(R"({"heed": "0.1.0", "isa": "avx2", "seed": 1, "took": {"steps": 4}})", "manifest");
  const std::vector<Json> all = sessions_of(old);
  REQUIRE(all.size() == 1);
  CHECK(all[0].at("isa").text() == "avx2");
  CHECK(all[0].find("seed") == nullptr);
  CHECK(all[0].at("took").at("steps").integer() == 4);
  CHECK(sessions_of(parse_json(R"({"seed": 1})", "manifest")).empty());
  for (const char* words : {R"({"sessions": 1})", R"({"sessions": [1]})"})
    CHECK(fault_of([&] { sessions_of(parse_json(words, "manifest")); }) == Fault::data);
}

TEST_CASE("sessions: a resume is warned of what changes bits, and of nothing else") {
  const std::vector<Json> before{session("avx512", 0)};
  Json now = session("avx512", 20);
  now.set("threads", 8).set("cpu", "another");
  CHECK(resume_warning(before, now, 20).empty());
  const std::vector<std::pair<const char*, Json>> others{
      {"isa", "avx2"},    {"blas_core", "Zen"},   {"heed", "0.2.0"}, {"source", "b"},
      {"device", "cuda"}, {"compiler", "g++ 13"}, {"processes", 2}};
  for (const auto& [key, value] : others) {
    CAPTURE(key);
    Json other = session("avx512", 20);
    const std::string warning = resume_warning(before, other.set(key, value), 20);
    CHECK_THAT(warning,
               containing("those of neither") && containing(value.is_text() ? value.text() : value.dump()));
  }
  CHECK_THAT(resume_warning(before, session("avx2", 20), 20),
             containing("the steps to 20 ") && containing("instruction set avx2 instead of avx512"));
}

TEST_CASE("sessions: where kernels are compiled for one machine, another processor counts") {
  const std::vector<Json> before{session("native", 0)};
  Json now = session("native", 20);
  CHECK(resume_warning(before, now, 20).empty());
  CHECK_THAT(resume_warning(before, now.set("cpu", "two"), 20), containing("processor two instead of one"));
}

TEST_CASE("sessions: a program from before sources were hashed is another one") {
  Json old = Json::object();
  const Json now = session("avx2", 20);
  for (const auto& [key, value] : now.members()) {
    if (key != "source" && key != "step") old.set(key, value);
  }
  CHECK_THAT(resume_warning({old}, now, 20), containing("source a") && containing("source unknown"));
}

TEST_CASE("sessions: a step is of the last session that began before it") {
  const std::vector<Json> all{session("a", 0), session("b", 20), session("c", 10)};
  CHECK(session_of_step(all, 5)->at("isa").text() == "a");
  CHECK(session_of_step(all, 10)->at("isa").text() == "a");
  CHECK(session_of_step(all, 30)->at("isa").text() == "c");
  CHECK(session_of_step(all, 0) == nullptr);
  CHECK(resume_warning(all, session("a", 10), 10).empty());
}
