// Learning rates of every schedule against their formulas.
#include "heed/train/optim/schedule.h"

#include "heed/tests/catch.h"

using namespace heed;

namespace {

constexpr int64_t total = 100, width = 64;

double rate(const Schedule& schedule, int64_t step) { return schedule.at(step, total, width); }

}  // namespace

TEST_CASE("schedule: constant warms up and stays") {
  const Schedule schedule{.kind = ScheduleKind::constant, .learning_rate = 0.5, .warmup_steps = 10};
  CHECK(rate(schedule, 1) == Approx(0.05));
  CHECK(rate(schedule, 5) == Approx(0.25));
  CHECK(rate(schedule, 10) == Approx(0.5));
  CHECK(rate(schedule, 100) == Approx(0.5));
  CHECK(rate({.kind = ScheduleKind::constant, .learning_rate = 0.5, .warmup_steps = 0}, 1) == Approx(0.5));
}

TEST_CASE("schedule: noam is equation 3 of Vaswani et al.") {
  const Schedule schedule{.kind = ScheduleKind::noam, .learning_rate = 2, .warmup_steps = 16};
  for (const int64_t step : {1, 7, 16, 17, 64, 100}) {
    const double s = static_cast<double>(step);
    CHECK(rate(schedule, step) ==
          Approx(2 * std::pow(64.0, -0.5) * std::min(std::pow(s, -0.5), s * std::pow(16.0, -1.5))));
  }
  CHECK(rate(schedule, 16) == Approx(2.0 / 8 / 4));  // the peak
  CHECK(schedule.at(16, total, 4 * width) == Approx(rate(schedule, 16) / 2));
}

TEST_CASE("schedule: rsqrt has its rate as the peak") {
  const Schedule schedule{.kind = ScheduleKind::rsqrt, .learning_rate = 0.3, .warmup_steps = 25};
  CHECK(rate(schedule, 5) == Approx(0.3 / 5));
  CHECK(rate(schedule, 25) == Approx(0.3));
  CHECK(rate(schedule, 100) == Approx(0.15));
}

TEST_CASE("schedule: cosine and linear fall from the peak to their final share") {
  const Schedule cosine{
      .kind = ScheduleKind::cosine, .learning_rate = 0.8, .warmup_steps = 20, .min_lr_ratio = 0.25};
  CHECK(rate(cosine, 1) == Approx(0.04));
  CHECK(rate(cosine, 20) == Approx(0.8));
  CHECK(rate(cosine, 60) == Approx(0.8 * (0.25 + 0.75 / 2)));
  CHECK(rate(cosine, 40) == Approx(0.8 * (0.25 + 0.75 * 0.5 * (1 + std::sqrt(0.5)))));
  CHECK(rate(cosine, 100) == Approx(0.2));
  const Schedule linear{
      .kind = ScheduleKind::linear, .learning_rate = 0.8, .warmup_steps = 20, .min_lr_ratio = 0.25};
  CHECK(rate(linear, 10) == Approx(0.4));
  CHECK(rate(linear, 20) == Approx(0.8));
  CHECK(rate(linear, 40) == Approx(0.8 * (1 - 0.75 / 4)));
  CHECK(rate(linear, 100) == Approx(0.2));
}

TEST_CASE("schedule: wsd warms up, stays, and falls in the last steps") {
  Schedule schedule{.kind = ScheduleKind::wsd,
                    .learning_rate = 0.8,
                    .warmup_steps = 10,
                    .min_lr_ratio = 0.25,
                    .decay_share = 0.4};
  CHECK(rate(schedule, 5) == Approx(0.4));
  CHECK(rate(schedule, 10) == Approx(0.8));
  CHECK(rate(schedule, 60) == Approx(0.8));
  CHECK(rate(schedule, 70) == Approx(0.8 * (1 - 0.75 * 0.25)));
  CHECK(rate(schedule, 100) == Approx(0.2));
  schedule.decay_shape = DecayShape::one_minus_sqrt;
  CHECK(rate(schedule, 60) == Approx(0.8));
  CHECK(rate(schedule, 70) == Approx(0.8 * (1 - 0.75 * 0.5)));
  CHECK(rate(schedule, 100) == Approx(0.2));
  // The steps before the fall do not depend on its shape, nor on how many steps follow.
  CHECK(schedule.at(60, 1000, width) == Approx(0.8));
  schedule.decay_share = 1;
  schedule.min_lr_ratio = 0;
  CHECK(rate(schedule, 1) == Approx(0.08 * 0.9));
  CHECK(rate(schedule, 100) == Approx(0).margin(1e-15));
}

TEST_CASE("schedule: one-cycle rises from a 25th and ends at a 250,000th") {
  const Schedule schedule{.kind = ScheduleKind::one_cycle, .learning_rate = 1, .warmup_steps = 30};
  CHECK(rate(schedule, 1) == Approx(1.0 / 25));
  CHECK(rate(schedule, 15) == Approx(1.0 / 25 + 24.0 / 25 * 14 / 29));
  CHECK(rate(schedule, 30) == Approx(1));
  CHECK(rate(schedule, 65) == Approx(0.5 + 0.5 / 250000));
  CHECK(rate(schedule, 100) == Approx(1 / 250000.0));
}

TEST_CASE("schedule: the momentum of one-cycle falls while the rate rises, and moves back") {
  Schedule schedule{.kind = ScheduleKind::one_cycle, .learning_rate = 1, .warmup_steps = 30};
  CHECK_FALSE(schedule.momentum(1, total));
  schedule.cycle_momentum = true;
  CHECK(*schedule.momentum(1, total) == Approx(0.95));
  CHECK(*schedule.momentum(15, total) == Approx(0.95 - 0.1 * 14 / 29));
  CHECK(*schedule.momentum(30, total) == Approx(0.85));
  CHECK(*schedule.momentum(65, total) == Approx(0.9));
  CHECK(*schedule.momentum(100, total) == Approx(0.95));
  schedule.kind = ScheduleKind::cosine;
  CHECK_FALSE(schedule.momentum(1, total));
}

TEST_CASE(
    "schedule: without warm-up the first step has the peak and the last one the end, whatever the kind") {
  for (const ScheduleKind kind : {ScheduleKind::cosine, ScheduleKind::linear}) {
    const Schedule schedule{.kind = kind, .learning_rate = 0.8, .warmup_steps = 0, .min_lr_ratio = 0.5};
    CHECK(rate(schedule, 1) == Approx(0.8));
    CHECK(rate(schedule, 100) == Approx(0.4));
  }
}

TEST_CASE("schedule: a run that is all warm-up stays below the peak and finite") {
  for (int kind = 0; kind < 6; ++kind) {
    const Schedule schedule{
        .kind = static_cast<ScheduleKind>(kind), .learning_rate = 1, .warmup_steps = 1000};
    for (const int64_t step : {1, 50, 100}) {
      CAPTURE(kind, step);
      CHECK(rate(schedule, step) > 0);
      CHECK(rate(schedule, step) < 0.2);
    }
  }
}
