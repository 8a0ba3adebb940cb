// Grids of settings: their text, the best point of each attention, curves over settings, and the command.
#include "heed/train/experiments/comparison_sweep.h"

#include <cmath>

#include "heed/core/io/json.h"
#include "heed/tests/train/shell.h"
#include "heed/train/experiments/comparison_plan.h"

using namespace heed;

namespace {

/// A run whose checkpoint of step 2 has this validation accuracy and loss, and this test accuracy.
ComparedRun run_at(const std::string& label, const GridPoint& point, double valid, double test,
                   double loss = 1) {
  return {.label = label,
          .folder = "runs/" + label,
          .failure = "",
          .seed = 1,
          .step = 2,
          .scores = {{"accuracy", test}},
          .parameters = 100,
          .metrics = {{"valid_accuracy", {1, 2}, {0, valid}}, {"valid_loss", {1, 2}, {9, loss}}},
          .point = point};
}

ComparedRun failed_at(const std::string& label, const GridPoint& point) {
  return {.label = label, .folder = "", .failure = "not finite", .code = 4, .seed = 1, .point = point};
}

GridPoint rate(const std::string& value) { return {{"lr", value}}; }

/// `runs` with chosen points, compared.
Comparison swept(std::vector<ComparedRun> runs) {
  const std::string selection = choose_points(runs);
  Comparison out = compare_runs("swept", std::move(runs));
  out.selection = selection;
  return out;
}

}  // namespace

TEST_CASE("grid: lists and logarithmic ranges, the first setting slowest") {
  const std::vector<GridPoint> points = parse_grid("lr=1e-4:1e-2:3,weight_decay=0,0.1");
  REQUIRE(points.size() == 6);
  CHECK(points[0] == GridPoint{{"lr", "0.0001"}, {"weight_decay", "0"}});
  CHECK(points[1] == GridPoint{{"lr", "0.0001"}, {"weight_decay", "0.1"}});
  CHECK(points[2] == GridPoint{{"lr", "0.001"}, {"weight_decay", "0"}});
  CHECK(points[5] == GridPoint{{"lr", "0.01"}, {"weight_decay", "0.1"}});
  CHECK(point_text(points[1]) == "lr=0.0001, weight_decay=0.1");
  CHECK(parse_grid("lr=1e-4:1e-2:4")[1] == GridPoint{{"lr", "0.0004642"}});
  CHECK(parse_grid("activation=gelu,relu,lr=1e-3").size() == 2);
}

TEST_CASE("grid: what is no grid is refused with what it lacks") {
  const auto refused = [](const std::string& grid, const std::string& words) {
    CAPTURE(grid);
    CHECK_THROWS_WITH(parse_grid(grid), containing(words) && containing("--grid"));
  };
  refused("", "write SETTING=VALUE");
  refused("1e-3,1e-4", "write SETTING=VALUE");
  refused("lr=", "a value of lr is empty");
  refused("lr=1,,2", "a value of lr is empty");
  refused("lr=1,2,1", "'1' twice");
  refused("lr=1,lr=2", "lr is there twice");
  for (const char* bad : {"2:1:3", "0:1:3", "1:2:1", "1:2:101", "1:2:x", "a:2:3", "1:1:2"})
    refused(text("lr=", bad), "is not FROM:TO:COUNT");
  refused("lr=1:2:100,weight_decay=1:2:100", "more than 1000 points");
}

TEST_CASE("sweep: each attention has its best point by validation, not by the test") {
  const Comparison found = swept({run_at("a", rate("1"), 0.5, 0.9), run_at("a", rate("2"), 0.7, 0.4),
                                  run_at("b", rate("1"), 0.6, 0.3), run_at("b", rate("2"), 0.2, 0.8)});
  REQUIRE(found.rows.size() == 2);
  CHECK(found.selection == "accuracy");
  CHECK(found.rows[0].point == rate("2"));
  CHECK(found.rows[0].score.mean == 0.4);
  CHECK(found.rows[1].point == rate("1"));
  CHECK(found.rows[1].score.mean == 0.3);
  CHECK(found.rows[0].is_best);
  const std::vector<SweptPoint> points = swept_points(found);
  REQUIRE(points.size() == 4);
  CHECK(points[0].valid.mean == 0.5);
  CHECK(points[0].score.mean == 0.9);
  CHECK_FALSE(points[0].is_chosen);
  CHECK(points[1].is_chosen);
  CHECK_THAT(comparison_csv(found), containing("label,seed,setting,chosen,valid_accuracy,accuracy,") &&
                                        containing("\"a\",1,\"lr=1\",0,0.5,0.9,") &&
                                        containing("\"a\",1,\"lr=2\",1,0.7,0.4,"));
}

TEST_CASE("sweep: a tie goes to the lower validation loss, and means are over seeds") {
  CHECK(swept({run_at("a", rate("1"), 1, 0.1, 0.3), run_at("a", rate("2"), 1, 0.2, 0.2),
               run_at("a", rate("3"), 1, 0.3, 0.4)})
            .rows[0]
            .point == rate("2"));
  CHECK(swept({run_at("a", rate("1"), 0.9, 0.1), run_at("a", rate("1"), 0.1, 0.1),
               run_at("a", rate("2"), 0.6, 0.2), run_at("a", rate("2"), 0.6, 0.2)})
            .rows[0]
            .point == rate("2"));
}

TEST_CASE("sweep: a point with a failed run is not chosen, unless all have one") {
  const Comparison found =
      swept({failed_at("a", rate("1")), run_at("a", rate("2"), 0.1, 0.2), failed_at("b", rate("1")),
             failed_at("b", rate("2")), run_at("c", rate("1"), 0.9, 0.9), failed_at("c", rate("1")),
             run_at("c", rate("2"), 0.1, 0.3)});
  CHECK(found.rows[0].point == rate("2"));
  CHECK(found.rows[0].failure.empty());
  CHECK(found.rows[1].failure == "not finite");
  CHECK(found.rows[2].point == rate("2"));
  CHECK(exit_code(found) == 4);
  CHECK(exit_code(swept({failed_at("a", rate("1")), run_at("a", rate("2"), 0.1, 0.2)})) == 0);
  ComparedRun blind = run_at("a", rate("1"), 0.1, 0.2);
  blind.metrics.clear();
  CHECK_THROWS_WITH(swept({blind}), containing("no run has a validation score"));
}

TEST_CASE("sweep: charts have the best over other settings, and bests at an edge are named") {
  const auto point = [](const char* lr, const char* decay) {
    return GridPoint{{"lr", lr}, {"decay", decay}};
  };
  const Comparison found =
      swept({run_at("a", point("0.01", "0"), 0.3, 0), run_at("a", point("0.01", "1"), 0.4, 0),
             run_at("a", point("0.1", "0"), 0.6, 0), run_at("a", point("0.1", "1"), 0.5, 0),
             run_at("a", point("1", "0"), 0.2, 0), failed_at("a", point("1", "1"))});
  const auto charts = sweep_charts(found);
  REQUIRE(charts.size() == 2);
  CHECK(charts[0].first == "sweep-lr");
  CHECK(charts[0].second.logarithmic_x);
  CHECK(charts[0].second.series[0].x == std::vector<double>{0.01, 0.1, 1});
  CHECK(charts[0].second.series[0].y == std::vector<double>{0.4, 0.6, 0.2});
  CHECK_FALSE(charts[1].second.logarithmic_x);
  CHECK(charts[1].second.series[0].y == std::vector<double>{0.6, 0.5});
  CHECK(sweep_notes(found) ==
        std::vector<std::string>{"each attention has the best of 6 settings by validation accuracy"});
  const Comparison edge =
      swept({run_at("a", rate("1"), 0.1, 0), run_at("a", rate("2"), 0.2, 0), run_at("a", rate("3"), 0.3, 0)});
  CHECK_THAT(sweep_notes(edge).back(), containing("the best lr of a, 3, is at the edge"));
  CHECK(sweep_charts(swept({run_at("a", {{"activation", "gelu"}}, 0.1, 0),
                            run_at("a", {{"activation", "relu"}}, 0.2, 0)}))
            .empty());
}

TEST_CASE("sweep: the table says what is clear, in Markdown and LaTeX too") {
  std::vector<ComparedRun> runs;
  for (const double shift : {0.0, 0.01, 0.02}) {
    runs.push_back(run_at("good_one", {}, 0, 0.9 + shift));
    runs.push_back(run_at("bad", {}, 0, 0.1 + shift));
    runs.push_back(run_at("near", {}, 0, 0.89 + shift));
  }
  runs[1].parameters = 150;
  runs.push_back({.label = "none", .folder = "", .failure = "no 100 %", .seed = 1});
  Comparison found = compare_runs("three", runs);
  found.command = "heed compare x";
  const std::string markdown = comparison_markdown(found);
  CHECK_THAT(markdown, containing("| good_one | 0.910 ± 0.010 | best | 3 |") &&
                           containing("| bad | 0.110 ± 0.010 | 0.8 ± 0.023 below | 3 |") &&
                           containing("| near | 0.900 ± 0.010 | 0.01 ± 0.023, unclear | 3 |") &&
                           containing("- parameters are not matched: bad has 17 % more than good_one") &&
                           containing("- command: heed compare x"));
  CHECK_THAT(comparison_latex(found), containing("good\\_one & 0.910 $\\pm$ 0.010 & best & 3 &") &&
                                          containing("\\bottomrule") && containing("% command: heed") &&
                                          containing("none & \\multicolumn{6}{l}{no 100 \\%} \\\\"));
  CHECK_THAT(markdown, containing("| none | no 100 %"));
}

TEST_CASE("compare --grid: the best point has all seeds, others one, and nothing is trained twice") {
  const Shell shell;
  const std::vector<std::string> words = command_words(
      "compare recall --attention softmax,linear --grid lr=1e-4,1e-2 --seeds 2 --steps 40 --d-model 16 "
      "--heads 2 --d-ff 16 --layers 1 --batch-size 16 --threads 1 --name g");
  const Result first = shell.run(words);
  CAPTURE(first.err);
  REQUIRE(first.code == 0);
  const Path folder = shell.scratch / "runs" / "g";
  CHECK(io::list(folder / "runs").size() == 6);  // four points, and a second seed of both best ones
  CHECK_THAT(first.err, containing("linear, lr=1e-2, seed 1"));
  for (const char* name : {"compare.html", "compare.csv", "compare.md", "compare.tex", "sweep-lr.svg"})
    CHECK(io::exists(folder / name));
  const std::string page = io::read(folder / "compare.md");
  CHECK_THAT(page, containing("| state at 64 |") && containing("±") && containing("heed compare recall"));
  const Result again = shell.run(words);
  CHECK(again.code == 0);
  CHECK_THAT(again.err, containing("trained already") && !containing("step "));
}

TEST_CASE("compare --grid: a setting that is unknown, or set elsewhere, is refused before anything trains") {
  const Shell shell;
  const auto refused = [&](const std::string& more, const std::string& words) {
    const Result result = shell.run(command_words("compare recall --attention softmax --steps 1 " + more));
    CAPTURE(more, result.err);
    CHECK(result.code == 2);
    CHECK_THAT(result.err, containing(words));
  };
  refused("--grid lrr=1,2", "Did you mean 'lr'?");
  refused("--grid lr=a,b", "it takes a number");
  refused("--grid seed=1,2", "Give their number with --seeds");
  refused("--grid attention.encoder=linear", "--attention A,B");
  refused("--grid lr=1e-3,1e-2 --lr 1e-3", "--lr sets it, too");
  refused("--grid lr=1e-3,1e-2 --learning-rate 1e-3", "--learning-rate sets it, too");
  refused("--grid weight_decay=0,1 --set train.weight_decay=2", "--set sets it, too");
  refused("--grid-seeds 2", "goes with --grid");
  refused("--grid lr=1e-3,1e-2 --seeds 2 --grid-seeds 3", "It must be 1 to 2");
  CHECK_FALSE(io::exists(shell.scratch / "runs"));
}
