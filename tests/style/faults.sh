#!/bin/sh
# Each check of check.sh passes a tree without fault and finds the fault it is made for.
set -eu
here=$(cd "$(dirname -- "$0")" && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
bad=0

plant() { # a small tree without fault
  rm -rf "$tree"
  mkdir -p "$tree/core/io" "$tree/core/kernels" "$tree/nn" "$tree/attention/variants" "$tree/data" "$tree/tests/core" "$tree/docs/reference"
  cd "$tree"
  printf '// One row of numbers.\n#pragma once\n' >core/row.h
  printf '// A kernel that copies.\n#include "heed/core/row.h"\nstatic void cuda(int);\n' >core/kernels/copy.h
  printf '// The CPU twin of copy.\n#include "heed/core/kernels/copy.h"\n' >core/kernels/copy_cpu.cpp
  printf '// A layer of numbers.\n#include "heed/core/row.h"\n' >nn/layer.h
  printf '// The list of variants.\nVARIANT(softmax)\n' >attention/variants.def
  printf '// Softmax of scaled products.\n#include "heed/nn/layer.h"\nVariant variant::softmax() {}\n' >attention/variants/softmax.cpp
  printf '// The rows of a file.\n#include "heed/core/row.h"\n' >data/rows.h
  printf '// Tests of the row.\n#include "heed/core/row.h"\n#include "heed/tests/catch.h"\n' >tests/core/row_test.cpp
  printf '// Catch2 under one name.\n' >tests/catch.h
  printf './heed train translate\n./heed test\n' >README.md
  printf '| term | meaning | not |\n|---|---|---|\n| session | one start | `sitting` |\n| scope | a block | `no tape` |\n' >docs/glossary.md
  echo page | tee docs/reference/attentions.md >docs/reference/commands.md
}
expect() { # CHECK RESULT [WORD that its answer must hold] [PROGRAM]
  answer=$(sh "$here/check.sh" "$1" "$tree" "${4-}" 2>&1) && result=0 || result=$?
  if [ "$result" != "$2" ] || ! echo "$answer" | grep -qF "${3-}"; then
    echo "check $1: result $result instead of $2, answer: $answer" && bad=1
  fi
}

plant
for check in layering rooms two_ways includes device_bits length comment stand_alone words kernel_docs marks defines types lists twins files streams locale paths readme links; do expect $check 0; done
expect attention_page 1 'Regenerate' true
expect commands_page 1 'Regenerate: ./heed list commands --markdown' true
expect nothing_of_the_kind 1 'no check'

plant && printf '#include "heed/nn/layer.h"\n' >>core/row.h && expect layering 1 'core/row.h: includes nn/'
plant && printf '#include "heed/attention/x.h"\n' >>nn/layer.h && expect layering 1 'nn/layer.h: includes attention/'
plant && printf '#include "heed/nn/layer.h"\n' >>data/rows.h && expect layering 1 'data/rows.h: includes nn/'
plant && printf '#include "heed/data/rows.h"\n' >>tests/core/row_test.cpp && expect layering 1 'row_test.cpp: includes data/'
plant && printf '#include "heed/tests/catch.h"\n' >>nn/layer.h && expect layering 1 'nn/layer.h: includes tests/'
plant && expect top_level 77
if command -v git >/dev/null; then
  plant && git init -q . && git add . && expect top_level 0
  mkdir html && echo page >html/index.html && expect top_level 0 && git add . && expect top_level 1 'html'
fi
expect api_reference 1 'is no file'
plant && printf '// Reads rows.\n#include "heed/core/kernels/copy.h"\n' >core/io/reader.h && expect rooms 1 'core/io/reader.h:2'
plant && printf '// Reads rows.\n#include "heed/core/row.h"\n' >core/io/reader.h && expect rooms 0
plant && mkdir -p train/run train/tasks && printf '#include "heed/train/tasks/b.h"\n' >train/run/a.h
printf '#include "heed/train/tasks/c.h"\n' >train/tasks/b.h && expect two_ways 0
printf '#include "heed/train/run/a.h"\n' >train/tasks/b.h && expect two_ways 1 'train/run and train/tasks: train/run/a.h, train/tasks/b.h'
plant && printf '// One sitting.\n' >>core/row.h && expect words 1 'core/row.h:3: "sitting"'
plant && printf 'int first_sitting;\n' >>core/row.h && expect words 1 'core/row.h:3: "sitting"'
plant && printf 'struct NoTape {};\n' >>core/row.h && expect words 1 'the glossary says scope'
plant && printf 'Transit sittings(); // at most two\n' >>core/row.h && expect words 0
plant && printf 'int most_rows;\n' >>core/row.h && expect words 1 'core/row.h:3: a limit is max_'
plant && printf 'It took one sitting.\n' >>README.md && expect words 1 'README.md:3'
plant && printf '/// The same of rows.\nint x;\n' >>core/row.h && expect stand_alone 1 'core/row.h:3'
plant && printf 'int x;  ///< of the rows\n' >>core/row.h && expect stand_alone 1 'core/row.h:3'
plant && printf '  f("rows", rows, "of the table");  // number\n' >>core/row.h && expect stand_alone 1 'core/row.h:3'
plant && printf '/// Rows are those\n/// of the table.\nint x;\n' >>core/row.h && expect stand_alone 0
plant && printf '#include "row.h"\n' >core/kernels/copy_cpu.cpp && expect includes 1 '"row.h" is not written from the root'
plant && printf '#include <iostream>\n' >>core/row.h && expect includes 1 'core/row.h:3'
plant && printf 'int ends(int x) { return std::countr_zero(x); }\n' >>core/row.h && expect device_bits 0
plant && printf '__device__ int ends(int x) { return std::countr_zero(x); }\n' >>core/row.h && expect device_bits 1 'core/row.h:3'
plant && printf 'HEED_BOTH int ends(int x) { return std::countr_zero(x); }\n' >>core/row.h && expect device_bits 1 'core/row.h:3'
plant && yes 'int x;' | head -n 400 >>core/row.h && expect length 1 'core/row.h: 402'
plant && yes 'int x;' | head -n 500 >>tests/core/row_test.cpp && expect length 0
plant && yes 'int x;' | head -n 600 >>tests/core/row_test.cpp && expect length 1 'row_test.cpp: 603'
plant && printf 'int x;\n' >core/row.cpp && expect comment 1 'core/row.cpp:1'
kernel() { echo && printf '%s\n' "$@" && yes '  ++x;' | head -n 10 && echo '}'; } # of 11 lines and its arguments
plant && kernel 'void copy(int x) {' >>core/kernels/copy_cpu.cpp && expect kernel_docs 1 'core/kernels/copy_cpu.cpp:4: no comment above 12 lines: void copy(int x) {'
plant && kernel '// A type.' 'template <class T>' 'struct Row {};' '' 'template <class T>' 'void copy(int x,' '          int y) {  // both' >>core/kernels/copy_cpu.cpp && expect kernel_docs 1 'copy_cpu.cpp:8'
plant && kernel '/// x + 10' 'template <class T>' 'void copy(int x) {' >>core/kernels/copy_cpu.cpp && kernel 'int few[] = {' '};' 'class Row {' >>core/kernels/copy_cpu.cpp && expect kernel_docs 0
plant && kernel 'void copy(int x) {' >>nn/layer.h && kernel 'void copy(int x) {' | sed 3d >>core/kernels/copy.h && expect kernel_docs 0
plant && printf '// TO''DO later\n' >>core/row.h && expect marks 1 'core/row.h:3'
plant && printf 'Good enough for'' now.\n' >docs/index.md && expect marks 1 'docs/index.md:1'
plant && printf '#define SQUARE(x) ((x) * (x))\n' >>core/row.h && expect defines 1 'SQUARE'
plant && printf '#define HEED_BOTH\n' >>core/row.h && expect defines 0
named() { printf '\nnamespace %s {\n%s\n%s\n}  // namespace %s\n' "$1" "$2" "${3-}" "$1"; }
plant && named heed 'struct Row {' '};' >>core/row.h && named heed 'class Row final : Base {' '};' >>nn/layer.h && expect types 1 'nn/layer.h:5: heed::Row is defined at core/row.h:5 too'
plant && named heed::kernel 'template <class T>' 'struct Row {};' >>core/row.h && named heed::kernel 'using Row = int;' >>core/kernels/copy_cuda.cu && expect types 1 'heed::kernel::Row is defined'
plant && named heed 'enum class Row : int { a };' >>core/row.h && named heed 'namespace {' "$(printf 'struct Row\n    : Base {};\n}  // namespace')" >>nn/layer.h && expect types 1 'heed::Row is defined'
plant && named heed "$(printf 'namespace detail {\nclass Row;\n}\nclass Row {};')" >>core/row.h && named heed 'typedef int Row __attribute__((vector_size(64)));' >>nn/layer.h && expect types 1 'heed::Row is defined'
plant && named heed 'struct Row {};' 'struct Row;' >>core/row.h && named heed 'using other::Row;' 'template <> struct Other<Row> {};' >>nn/layer.h && named heed::kernel 'struct Row {};' >>data/rows.h &&
  named heed 'namespace {' "$(printf 'struct Row {};\n}  // namespace')" >>core/kernels/copy_cpu.cpp && expect types 0
plant && printf 'namespace heed {\nint x, y;\nint z;\n}\n' >>core/row.h && expect types 1 'core/row.h: namespace heed has no'
plant && printf 'VARIANT(linear)\n' >>attention/variants.def && expect lists 1 'no file of attention/variants defines Variant variant::linear()'
plant && printf 'VARIANT(softmax)\n' >>attention/variants.def && expect lists 1 'listed twice: softmax'
plant && printf '// Linear.\nVariant variant::linear() {}\n' >attention/variants/linear.cpp && expect lists 1 'Variant variant::linear() is not listed'
plant && mkdir -p train/tasks/lra && printf '// The tasks.\nTASK(lm)\n' >train/tasks/tasks.def && expect lists 1 'no file of train/tasks defines TaskEntry task::lm()'
echo 'TaskEntry task::lm() {' >train/tasks/lra/text.cpp && expect lists 0
echo 'TaskEntry task::other() {' >train/tasks/other.cpp && expect lists 1 'TaskEntry task::other() is not listed'
plant && mkdir -p train/commands && printf '// The commands.\nCOMMAND(show)\n' >train/commands/commands.def && expect lists 1 'no file of train/commands defines Command command::show()'
echo 'Command command::show() {' >train/commands/show.cpp && expect lists 0
echo 'Command command::hide() {' >>train/commands/show.cpp && expect lists 1 'Command command::hide() is not listed'
plant && rm core/kernels/copy_cpu.cpp && expect twins 1 'copy_cpu.cpp does not exist'
plant && printf '#include <fstream>\n' >>core/row.h && expect files 1 'core/row.h:3'
plant && printf '#include <fcntl.h>\n' >>core/kernels/copy_cpu.cpp && expect files 1 'copy_cpu.cpp:3'
plant && printf 'auto* f = std::fopen(name, "r");\n' >>data/rows.h && expect files 1 'data/rows.h:3'
plant && printf 'int f = ::open(name, 0);\n' >>data/rows.h && expect files 1 'data/rows.h:3'
plant && printf 'std::rename(a, b), ::unlink(a);\n' >>data/rows.h && expect files 1 'data/rows.h:3'
plant && printf 'std::filesystem::create_directories(a);\n' >>nn/layer.h && expect files 1 'nn/layer.h:3'
plant && printf 'std::getline(std::cin, line);\n' >>nn/layer.h && expect files 1 'nn/layer.h:3'
plant && printf 'io::rename_directory(a, b), io::remove_all(b), open(x), std::remove(first, last, x);\n' >>nn/layer.h && expect files 0
plant && printf 'void f() { std::%s("x"); }\n' printf >nn/said.h && expect streams 1 'nn/said.h:1'
plant && printf '  fprintf(stderr, "x");\n' >>core/row.h && expect streams 1 'core/row.h:3'
plant && printf 'void f() { io::printf("x"); }\n' >>core/row.h && expect streams 0
for call in 'std::stod(x)' 'std::stof(x)' 'strtod(x, &end)' 'std::atof(x)' 'std::snprintf(b, n, "%%g", x)' 'vsnprintf(b, n, f, v)' 'std::sscanf(x, f, &y)' 'std::isalnum(c)' 'std::tolower(c)' 'std::to_string(0.5)' 'std::to_string(static_cast<double>(x))' 'setlocale(LC_ALL, "")'; do
  plant && printf "auto y = $call;\n" >>data/rows.h && expect locale 1 'data/rows.h:3'
done
for header in sstream iomanip locale cctype; do plant && printf '#include <%s>\n' $header >>core/row.h && expect locale 1 'core/row.h:3'; done
plant && printf 'auto y = formatted("%%.2f", 0.5) + std::to_string(i + 1) + to_string(x); io::printf("x"); // stod, printf\n' >>core/row.h && expect locale 0
plant && printf '// Numbers.\nauto y = std::vsnprintf(b, n, f, v);\n' >core/io/number_text.cpp && printf 'auto y = std::stod(x);\n' >>tests/core/row_test.cpp && expect locale 0
plant && printf '// Files.\n#include <fcntl.h>\nint f = ::open(name, 0);\n' >core/io/files.cpp && expect files 0
plant && printf '#include <fstream>\n' >>tests/core/row_test.cpp && expect files 0
plant && printf 'cd /ho''me/somebody/heed\n' >docs/index.md && expect paths 1 'docs/index.md:1'
plant && printf './heed test\n' >README.md && expect readme 1 './heed train translate'
plant && mkdir -p tests/example && printf 'int main() {}\n' >tests/example/training_loop.cpp && expect readme 1 'its loop is not'
plant && printf 'See [this](no/such.md).\n' >docs/index.md && expect links 1 'there is no no/such.md'
plant && printf '#!/bin/sh\necho page\n' >list && chmod +x list && expect attention_page 0 '' "$tree/list"
plant && printf '#!/bin/sh\necho other\n' >list && chmod +x list && expect attention_page 1 'other' "$tree/list"
plant && rm docs/reference/attentions.md && expect attention_page 77
plant && printf '#!/bin/sh\n[ "$2" != commands ] || echo page\n' >list && chmod +x list && expect commands_page 0 '' "$tree/list"
plant && rm docs/reference/commands.md && expect commands_page 77
plant && echo page >docs/reference/settings.md && printf '#!/bin/sh\n[ "$2" != settings ] || echo other\n' >list && chmod +x list && expect settings_page 1 'other' "$tree/list"
if [ "$(clang-format --version 2>/dev/null | sed -n 's/.*version \([0-9]*\)\..*/\1/p')" = 14 ]; then
  plant && expect format 0
  plant && printf 'int   x  ;\n' >>core/row.h && expect format 1 'core/row.h:3'
fi
case $(doxygen --version 2>/dev/null) in
  1.9.*)
    doxyfile() { # of the real settings, for a header that is given on standard input
      plant && mkdir include && cat >>core/row.h
      sed -e "s|@api_input@|core/row.h|" -e "s|@[A-Za-z_]*@|$tree|g" "$here/../../docs/reference/Doxyfile.in" >Doxyfile
    }
    doxyfile <<'END' && expect api_reference 0 '' "$tree/Doxyfile"
/// Of rows.
namespace rows {
/// One row.
struct Row {
  int extent = 0;  ///< how many numbers

 private:
  int capacity = 0;
};
namespace detail {
int hidden();
}  // namespace detail
}  // namespace rows
END
    doxyfile <<'END' && expect api_reference 1 'core/row.h:6: error: Member extent' "$tree/Doxyfile"
/// One row.
struct Row {
  // how many numbers
  int extent = 0;
};
END
    doxyfile <<'END' && expect api_reference 1 'core/row.h:5: error: Member extent()' "$tree/Doxyfile"
/// Of rows.
namespace rows {
int extent();
}  // namespace rows
END
    doxyfile <<'END' && expect api_reference 1 'MOST_ROWS' "$tree/Doxyfile"
#define MOST_ROWS 4
END
    ;;
esac
exit $bad
