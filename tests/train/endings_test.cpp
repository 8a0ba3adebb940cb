TEST_CASE("endings: a run that fails before its first line of metrics keeps its checkpoints") {
  const Shell shell;
  // Of 2000 steps, each tenth is logged.
  const Result failed = shell.run(small(
      "a", {"--steps", "2000", "--checkpoint-every", "2", "--quiet", "--set", "test.plant=parameter@7"}));
  CHECK(failed.code == 4);
  CHECK_THAT(failed.err, containing("Last good: step_000006."));
  REQUIRE_FALSE(list_checkpoints(shell.scratch / "runs/a").empty());
  CHECK(list_checkpoints(shell.scratch / "runs/a").back() == 6);
  CHECK(shell.run({"resume", "runs/a", "--steps", "8", "--quiet"}).code == 0);
}

TEST_CASE("endings: scores come last, so that a run killed before them gets all that is missing") {
  const Shell shell;
  const Path run = shell.scratch / "runs/a";
  REQUIRE(shell.run(small("a", {"--steps", "4", "--quiet"})).code == 0);
  const std::string scores = io::read(run / "scores.json");
  for (const char* name : {"scores.json", "report.html", "samples.txt", "metrics.csv"})
    io::remove_all(run / name);
  // A report that cannot be written stops it where a kill might.
  io::make_directories(run / "report.html/taken");
  CHECK(shell.run({"resume", "runs/a", "--quiet"}).code == 5);
  CHECK(!io::exists(run / "scores.json"));
  io::remove_all(run / "report.html");
  CHECK(shell.run({"resume", "runs/a", "--quiet"}).code == 0);
  CHECK(io::read(run / "scores.json") == scores);
  for (const char* name : {"report.html", "samples.txt", "metrics.csv"}) CHECK(io::exists(run / name));
}
