// Comma-separated values: quotes, line ends, numbers, classes, and where faults are.
#include "heed/data/formats/csv.h"

#include <chrono>

#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"

using namespace heed;

TEST_CASE("csv: cells are read as RFC 4180 writes them") {
  const CsvTable table(
      "\xEF\xBB\xBFname,\"a,b\",c\r\n\"say \"\"no\"\"\",1,\n\n\"two\nlines\",2, x \r\nlast,3,", "t.csv");
  CHECK(table.columns() == std::vector<std::string>{"name", "a,b", "c"});
  REQUIRE(table.rows() == 3);
  CHECK(table.cell(0, "name") == "say \"no\"");
  CHECK(table.cell(0, "c").empty());
  CHECK(table.cell(1, "name") == "two\nlines");
  CHECK(table.cell(1, "c") == " x ");
  CHECK(table.cell(2, "c").empty());
  CHECK(table.numbers({"a,b"}).to_doubles() == std::vector<double>{1, 2, 3});
}

TEST_CASE("csv: columns become numbers and classes") {
  const Scratch scratch;
  const CsvTable table = read_csv(scratch.file("t.csv", "x,kind,y\n1.5,rose,-2e1\n+3,iris, 4 \n0,rose,5\n"));
  CHECK(table.columns_without({"kind"}) == std::vector<std::string>{"x", "y"});
  const Tensor numbers = table.numbers({"y", "x"});
  CHECK(numbers.shape() == Shape{3, 2});
  CHECK(numbers.to_doubles() == std::vector<double>{-20, 1.5, 4, 3, 5, 0});
  CHECK(table.class_names("kind") == std::vector<std::string>{"iris", "rose"});
  CHECK(table.classes("kind").dtype() == DType::i32);
  CHECK(table.classes("kind").to_doubles() == std::vector<double>{1, 0, 1});
}

TEST_CASE("csv: a fault names file, line and column") {
  const auto read = [](const std::string& text) { return CsvTable(text, "t.csv"); };
  CHECK_THROWS_WITH(read(""), containing("t.csv:1:1: there is no header"));
  CHECK_THROWS_WITH(read("a,,c\n"), containing("t.csv:1:3: a column of the header has no name"));
  CHECK_THROWS_WITH(read("a,b,a\n"), containing("t.csv:1:5: the header names 'a' twice"));
  CHECK_THROWS_WITH(read("a,b\n1,2\n3\n"), containing("t.csv:3:1: this row has 1 cell, the header has 2"));
  CHECK_THROWS_WITH(read("a,b\n1,2,3\n"), containing("t.csv:2:5: this row has 3 cells"));
  CHECK_THROWS_WITH(read("a,b\n1,\"2\n"), containing("t.csv:2:3: the quote that opens here"));
  CHECK_THROWS_WITH(read("a,b\n1,\"2\"x\n"), containing("t.csv:2:6: 'x' stands behind a closed quote"));
  CHECK(fault_of([&] { read("a,b\n1\n"); }) == Fault::data);

  const CsvTable table = read("a,b\n1,2\n\"x\ny\",z\n1e50,nan\n");
  CHECK_THROWS_WITH(table.numbers({"b"}), containing("t.csv:4:4: 'z' in column 'b' is no finite number"));
  CHECK_THROWS_WITH(read("a\n1e50\n").numbers({"a"}), containing("t.csv:2:1: '1e50'"));
  for (const char* bad : {"+-3", "++3", "-+3", "+", "0x10", "1.5abc", "\"0,35\"", "inf"}) {
    CAPTURE(bad);
    const CsvTable one = read(text("a\n", bad, "\n"));
    CHECK_THROWS_WITH(one.numbers({"a"}), containing("t.csv:2:1: '") && containing("no finite number"));
    CHECK(fault_of([&] { one.number(0, "a"); }) == Fault::data);
  }
  CHECK(read("a\n1e50\n").number(0, "a") == 1e50);
  CHECK_THROWS_WITH(read("a\nnan\n").numbers({"a"}), containing("no finite number"));
  CHECK_THROWS_WITH(read("a\n1,\n"), containing("2 cells"));
  CHECK_THROWS_WITH(table.numbers({"d"}), containing("no column 'd'. It has: a, b."));
  CHECK_THROWS_WITH(table.cell(3, "a"), containing("no row 3"));
  CHECK(fault_of([&] { read_csv("nowhere.csv"); }) == Fault::file);
}

TEST_CASE("csv: a table of many columns takes time by its cells alone") {
  constexpr int columns = 200'000;
  std::string names, values;
  for (int i = 0; i < columns; ++i) {
    names += text(i == 0 ? "" : ",", "c", i);
    values += text(i == 0 ? "" : ",", i % 10);
  }
  const auto began = std::chrono::steady_clock::now();
  const CsvTable table(names + "\n" + values + "\n" + values + "\n", "wide.csv");
  const Tensor numbers = table.numbers(table.columns_without({"c7"}));
  CHECK(numbers.shape() == Shape{2, columns - 1});
  // 0.2 s; by a search through all names for each column over a minute
  CHECK(std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count() < 10);
}
