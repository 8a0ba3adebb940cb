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
