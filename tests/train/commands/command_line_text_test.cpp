// A language model on the command line: training and generation, with bytes and byte pairs.
#include "heed/core/io/files.h"
#include "heed/core/io/json.h"
#include "heed/data/text/text.h"
#include "heed/tests/catch.h"
#include "heed/tests/train/shell.h"

using namespace heed;

namespace {

/// Trains a model of seconds.
Result train(const Shell& shell, const std::string& name, const std::vector<std::string>& more) {
  return shell.run(with({"train", "lm", "--name", name, "--d-model", "16", "--heads", "2", "--d-ff", "16",
                         "--layers", "1", "--max-length", "16", "--steps", "2", "--batch-size", "4"},
                        more));
}

}  // namespace

TEST_CASE("command line: a language model of byte pairs speaks whole characters") {
  const Shell shell;
  io::write(shell.scratch / "text.txt", [] {
    std::string all;
    for (int i = 0; i < 300; ++i) all += "caff\u00E8 e t\u00E8, per\u00F2 \u20AC" + std::to_string(i) + "\n";
    return all;
  }());
  REQUIRE(
      train(shell, "b", {"--quiet", "--data", "text.txt", "--tokenizer", "byte_pair", "--vocabulary", "280"})
          .code == 0);
  const Result made =
      shell.run({"generate", "runs/b", "--prompt", "caff\u00E8 \u4E2D", "--max-new-tokens", "60"});
  CHECK(made.code == 0);  // every byte has a piece
  CHECK(made.out.starts_with("caff\u00E8 \u4E2D"));
  CHECK(shell.run({"generate", "runs/b", "--max-new-tokens", "5"}).code == 0);
  const Result whole = shell.run({"evaluate", "runs/b"}),
               sliding = shell.run({"evaluate", "runs/b", "--stride", "2"});
  CHECK(whole.out.find("that do not overlap") != std::string::npos);
  CHECK(sliding.out.find("that score 2 new ones each") != std::string::npos);
  CHECK(whole.out.substr(0, whole.out.find("nats")) != sliding.out.substr(0, sliding.out.find("nats")));
  check_refused(shell, {"evaluate", "runs/b", "--stride", "17"}, 2, {"data.stride = 17", "16"});
  CHECK(shell.run({"export", "runs/b", "--out", "files"}).code == 0);
  CHECK(io::read(shell.scratch / "files/merges.txt").starts_with("#version: 0.2\n"));
  CHECK(shell
            .run({"train", "lm", "--dry-run", "--data", "text.txt", "--tokenizer", "byte_pair", "--merges",
                  "files"})
            .code == 0);
  CHECK(io::read(shell.scratch / "runs/b/scores.json").find("bits_per_byte") != std::string::npos);
  CHECK(io::read(shell.scratch / "runs/b/metrics.jsonl").find("valid_estimate") != std::string::npos);
}

TEST_CASE("command line: a language model of bytes takes any input and prints characters") {
  const Shell shell;
  io::write(shell.scratch / "other.txt", [] {
    std::string all;
    for (int i = 0; i < 60; ++i) all += "perch\u00E9 no \xFF\t" + std::to_string(i) + "\n";
    return all;
  }());
  const Result trained = train(shell, "y", {"--num-examples", "3000", "--tokenizer", "byte"});
  REQUIRE(trained.code == 0);
  CHECK_THAT(trained.err, containing("; 256 bytes"));
  const std::string prompt = "caff\u00E8 \u20AC";
  // Two steps teach no UTF-8: most of what is drawn makes no character.
  const Result made = shell.run({"generate", "runs/y", "--prompt", prompt, "--max-new-tokens", "200"});
  CHECK(made.code == 0);
  CHECK(made.out.starts_with(prompt));
  CHECK(invalid_utf8(made.out) == std::string_view::npos);
  CHECK_THAT(made.out, containing("\uFFFD"));
  const Result scored = shell.run({"evaluate", "runs/y", "--data", "other.txt"});
  CHECK(scored.code == 0);
  CHECK_THAT(scored.out, containing("\n  bits per byte  "));
  CHECK(invalid_utf8(io::read(shell.scratch / "runs/y/samples.txt")) == std::string_view::npos);
  CHECK(shell.run({"inspect", "runs/y", "\u00E8"}).code == 0);
}

TEST_CASE("command line: a line that a language model cannot read is left out of maps, and cut by heads") {
  const Shell shell;
  REQUIRE(train(shell, "l", {"--quiet", "--num-examples", "3000"}).code == 0);
  io::write(shell.scratch / "lines.txt", "the moon\n\nthe moon is over the old sea\nthe sea\tmore\n");
  const Result made = shell.run({"maps", "runs/l", "--data", "lines.txt", "--out", "maps"});
  CAPTURE(made.err);
  CHECK(made.code == 0);
  CHECK_THAT(made.err,
             containing("1 input is left out") && containing("lines.txt:3: the text has 28 tokens"));
  CHECK_THAT(made.out, containing("2 of 3 examples"));
  const Json manifest = parse_json(io::read(shell.scratch / "maps/manifest.json"), "manifest");
  CHECK(manifest.at("complete").boolean());
  CHECK(manifest.at("left_out").list().size() == 1);
  CHECK_THAT(manifest.at("left_out").list()[0].text(), containing("lines.txt:3: "));
  CHECK(manifest.at("examples").list()[1].at("number").integer() == 2);
  io::write(shell.scratch / "none.txt", "the moon is over the old sea\n");
  check_refused(shell, {"maps", "runs/l", "--data", "none.txt", "--out", "none"}, 3,
                {"none of the 1 inputs can be read", "none.txt:1: "});
  io::write(shell.scratch / "bytes.txt", "the moon\n\xFF\n");
  check_refused(shell, {"maps", "runs/l", "--data", "bytes.txt", "--out", "bytes"}, 3, {"bytes.txt:2:1: "});
  check_refused(shell, {"heads", "runs/l", "--file", "bytes.txt"}, 3, {"bytes.txt:2:1: "});
  CHECK(shell.run({"heads", "runs/l", "--file", "none.txt"}).code == 0);  // 16 of 28 tokens
  check_refused(shell, {"heads", "runs/l", "--file", "lines.txt"}, 2, {"lines.txt:4: ", "U+0009"});
  const auto first = [&](const char* maximum) {
    const Result heads =
        shell.run({"heads", "runs/l", "--file", "none.txt", "--max-tokens", maximum, "--json"});
    REQUIRE(heads.code == 0);
    return parse_json(heads.out, "heads").at("heads").list()[0].dump();
  };
  CHECK(first("4") != first("16"));
  CHECK(first("16") == first("1024"));
}

TEST_CASE("command line: a language model generates from weights in blocks of 8-bit numbers") {
  const Shell shell;
  REQUIRE(
      shell
          .run({"train", "lm", "--name", "w", "--d-model", "32", "--heads", "2", "--d-ff", "64", "--layers",
                "1", "--max-length", "16", "--steps", "2", "--num-examples", "3000", "--quiet"})
          .code == 0);
  const auto made = [&](const char* precision) {
    return shell.run(
        {"generate", "runs/w", "--prompt", "the ", "--max-new-tokens", "300", "--precision", precision});
  };
  // Rounded weights move the draws a little: within 300 of them one falls otherwise.
  const Result blocks = made("q8_0");
  CHECK(blocks.code == 0);
  CHECK(blocks.out.size() >= 304);
  CHECK(blocks.out == made("q8_0").out);
  CHECK(blocks.out != made("f32").out);
  CHECK(blocks.out != made("bf16").out);
}

TEST_CASE("command line: a language model generates text") {
  const Shell shell;
  REQUIRE(train(shell, "l", {"--quiet", "--num-examples", "3000"}).code == 0);
  const auto made = [&](const std::vector<std::string>& more) {
    return shell.run(with({"generate", "runs/l", "--prompt", "the ", "--max-new-tokens", "40"}, more));
  };
  io::write(shell.scratch / "strange.txt", std::string(500, 'a') + "\u4E2D");
  check_refused(shell, {"evaluate", "runs/l", "--data", "strange.txt"}, 2,
                {"strange.txt: characters: ", "U+4E2D"});
  const Result one = made({});
  CHECK(one.code == 0);
  CHECK(one.out.starts_with("the "));
  CHECK(one.out.size() >= 44);
  CHECK(one.out == made({}).out);
  CHECK(one.out != made({"--seed", "2"}).out);
  CHECK(made({"--temperature", "0"}).out == made({"--top-k", "1", "--seed", "7"}).out);
  const std::string two = made({"--num-samples", "2"}).out;
  CHECK(two.find("\n---\nthe ") != std::string::npos);
  CHECK(made({"--top-p", "0.0001"}).out == made({"--temperature", "0"}).out);
  CHECK(made({"--repetition-penalty", "1.5"}).out != one.out);
  // Rounded weights move the draws a little: within 300 of them one falls otherwise.
  const Result narrow = made({"--precision", "bf16", "--max-new-tokens", "300"});
  CHECK(narrow.code == 0);
  CHECK(narrow.out.size() >= 304);
  CHECK(narrow.out != made({"--max-new-tokens", "300"}).out);
  CHECK(made({"--precision", "f32"}).out == one.out);
  CHECK(made({"--without-heads", "decoder.0.0"}).out != made({"--without-heads", "decoder.0.1"}).out);
  CHECK(made({"--without-heads", "decoder.0.1,decoder.0.0"}).out.starts_with("the "));
  check_refused(shell, {"generate", "runs/l", "--without-heads", "decoder.7.0"}, 2,
                {"decoder.7.0", "decoder.0.0"});
  check_refused(shell, {"generate", "runs/l", "--parse-special"}, 2, {"byte_pair"});
  const Result lines =
      shell.run({"generate", "runs/l", "--prompt", "-", "--max-new-tokens", "10"}, "the \nand \n");
  CHECK(lines.code == 0);
  CHECK(lines.out.starts_with("the "));
  CHECK(lines.out.find("\n---\nand ") != std::string::npos);
  CHECK(shell.run({"generate", "runs/l", "--prompt", "-"}, "").out.empty());
  // Every line has its output, an empty one too.
  const Result gap =
      shell.run({"generate", "runs/l", "--prompt", "-", "--max-new-tokens", "10"}, "the \n\nand \n");
  CHECK(gap.code == 0);
  CHECK(gap.out == std::string(lines.out).replace(lines.out.find("\n---\nand "), 5, "\n---\n\n---\n"));
  const Result strange = shell.run({"generate", "runs/l", "--prompt", "-"}, "the \n\nan\u4E2D\n");
  CHECK(strange.code == 2);
  CHECK(strange.out.starts_with("the "));
  CHECK_THAT(strange.err, containing("standard input:3: ") && containing("U+4E2D"));
  check_refused(shell, {"generate", "runs/l", "--prompt", ""}, 2, {"--prompt is empty"});
  check_refused(shell, {"generate", "runs/l", "--prompt", "the \u4E2D"}, 2, {"U+4E2D", "byte 5"});
  check_refused(shell, {"generate", "runs/l", "--top-p", "2"}, 2, {"--top-p = 2"});
  check_refused(shell, {"generate", "runs/l", "--precision", "f16"}, 2,
                {"--precision 'f16' is unknown", "f32", "bf16", "q8_0"});
  check_refused(shell, {"generate", "runs/l", "--precision", "q8_0"}, 2, {"--precision q8_0", "32 numbers"});
  check_refused(shell, {"generate", "runs/l", "--seed", "-2"}, 2, {"--seed = -2"});
  check_refused(shell, {"generate", "runs/l", "--repetition-penalty", "0"}, 2, {"--repetition-penalty = 0"});
  check_refused(shell, {"generate", "runs/l", "--temperature", "-1"}, 2, {"--temperature"});
  check_refused(shell, {"generate", "runs/l", "--num-samples", "-3"}, 2, {"--num-samples = -3"});
  check_refused(shell, {"generate", "runs/l", "--max-new-tokens", "many"}, 2,
                {"--max-new-tokens", "tokens = many is not legal"});
  check_refused(shell, {"translate", "runs/l", "Good."}, 2, {"runs/l is a run of the task lm"});
  CHECK(shell.run({"inspect", "runs/l", "the thing"}).code == 0);
  CHECK(shell.run({"evaluate", "runs/l", "--json"}).code == 0);
}
