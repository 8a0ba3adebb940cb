#!/bin/sh
# shellcheck disable=SC2086
# The house style, one check a call: check.sh NAME ROOT. Says what is wrong and where; 1 for a fault, 77 for not applicable.
set -u
check=$1
cd "$2" || exit 1
LC_ALL=C
export LC_ALL

folders=
for folder in core autograd nn attention data train tests; do [ ! -d $folder ] || folders="$folders $folder"; done
sources() { find $folders -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.def' | sort; }
embedded() { find $folders -name '*.css' -o -name '*.js' -o -name '*.toml' | sort; } # inside the program
texts() { # whatever is read by people, but for this folder, which names what it looks for
  sources | grep -v '^tests/style/'
  find $folders docs .ci -path tests/style -prune -o -name '*.sh' -o -name '*.cmake' -o -name '*.txt' -o -name '*.in' -o -name '*.md' -o -name '*.py' -o -name '*.css' -o -name '*.js' -o -name '*.toml' -o -type f -name run 2>/dev/null | grep -v '^tests/style$'
  find . -maxdepth 1 -type f ! -name LICENSE
}
verdict() { # faults on standard input, and what to do about them
  faults=$(cat)
  [ -n "$faults" ] || exit 0
  printf '%s\n%s\n' "$faults" "$1"
  exit 1
}
allowed() { # the folders that files of folder $1 may include
  case $1 in
    core) echo "core" ;;
    autograd) echo "core autograd" ;;
    nn) echo "core autograd nn" ;;
    attention) echo "core autograd nn attention" ;;
    data) echo "core data" ;;
    train) echo "core autograd nn attention data train" ;;
    tests) echo "core autograd nn attention data train tests" ;;
  esac
}

case $check in
  layering)
    for folder in $folders; do
      # tests/X may know what X may know
      find "$folder" -name '*.h' -o -name '*.cpp' -o -name '*.cu' | sort | while read -r file; do
        own=$folder
        case $file in tests/*/*) own=${file#tests/} && own=${own%%/*} && [ -n "$(allowed "$own")" ] || own=tests ;; esac
        known=" $(allowed "$own") tests "
        [ "$folder" = tests ] || known=" $(allowed "$own") "
        sed -n 's|^ *# *include *"heed/\([a-z_]*\)/.*|\1|p' "$file" | sort -u | while read -r other; do
          case $known in *" $other "*) ;; *) echo "$file: includes $other/, but $own may only include:$known" ;; esac
        done
      done
    done | verdict "The rule: core <- autograd <- nn <- attention <- train <- tests, and data on core alone."
    ;;
  top_level) # by what git knows, since builds and runs lie there, too
    [ -e .git ] && known=$(git ls-files 2>/dev/null) && [ -n "$known" ] || exit 77
    printf '%s\n' "$known" | cut -d/ -f1 | sort -u |
      grep -vxE 'core|autograd|nn|attention|data|train|tests|docs|heed|include|CMakeLists\.txt|CMakePresets\.json|(README|CHANGELOG|CONTRIBUTING)\.md|LICENSE|\.(ci|clang-format|clang-tidy|editorconfig|gitignore)' |
      verdict "The top level is fixed: this belongs into one of its folders, or into .gitignore."
    ;;
  rooms) # which rooms of one folder may not include which others: what everything stands on stays below
    while read -r room never; do
      for other in $never; do
        find "$room" -maxdepth 1 -name '*.h' -o -maxdepth 1 -name '*.cpp' -o -maxdepth 1 -name '*.cu' 2>/dev/null | sort |
          xargs -r grep -HnE "^ *# *include *\"heed/$other/" | grep -v 'core/distributed/batch_shard\.h' # what a kernel knows of processes
      done
    done <<END | verdict "This room may not include that one: move what both need below them."
core/io core/memory core/kernels core/cuda core/distributed core/parallel
core/parallel core/io core/kernels core/cuda core/distributed
core/memory core/kernels core/distributed
core/kernels/simd core/kernels/[a-rt-z] core/io core/distributed
core/kernels/elementwise core/io core/distributed core/kernels/(gemm|linear_attention|content)
core/kernels/norm core/io core/distributed core/kernels/(attention|linear_attention)
core/kernels/gemm core/io core/distributed core/kernels/(attention|linear_attention|content)
core/kernels/attention core/io core/distributed core/kernels/linear_attention
core/kernels/linear_attention core/io core/distributed
core/kernels/content core/io core/distributed core/kernels/linear_attention
core/distributed core/kernels/(attention|linear_attention|gemm|norm|content)
attention attention/variants attention/inspect
attention/base attention/variants attention/inspect
attention/support attention/variants attention/inspect
attention/variants attention/inspect
attention/inspect attention/variants attention/support
data/formats data/synthetic data/download data/batching data/tokenizers
data/text data/synthetic data/download
data/tokenizers data/synthetic data/download
data/batching data/synthetic data/download
data/synthetic data/download
train/optim train/(loop|run|report|decode|commands|bench|experiments|config|tasks|metrics)
train/metrics train/(loop|commands|bench|experiments|config)
train/run train/(loop|commands|bench|experiments|config|decode)
train/report train/(loop|commands|bench|experiments|config)
train/decode train/(loop|commands|bench|experiments)
train/config train/(commands|bench|experiments)
train/distributed train/(loop|commands|bench|experiments|tasks)
train/tasks train/(loop|commands|bench|experiments)
train/tasks/lra train/(loop|commands|bench|experiments)
train/loop train/(commands|bench|experiments|report)
train/experiments train/(commands|bench|session|pages)
train/session train/(commands|pages|bench)
train/pages train/(commands|bench)
train/bench train/(commands|session|pages)
END
    ;;
  includes) # from the root, existing; headers stay light
    sources | while read -r file; do
      sed -n 's|^ *# *include *"\([^"]*\)".*|\1|p' "$file" | while read -r header; do
        case $header in
          heed/*) [ -f "${header#heed/}" ] || echo "$file: \"$header\" does not exist" ;;
          *) echo "$file: \"$header\" is not written from the root: heed/FOLDER/NAME.h" ;;
        esac
      done
      case $file in
        tests/* | core/cuda/*) ;;
        *.h) grep -HnE '^ *# *include *<(iostream|nlohmann/|toml\+\+/|CLI/|cblas|zlib|png\.h|cuda|cublas|sentencepiece)' "$file" ;;
      esac
      case $file in
        core/kernels/simd/*) ;;
        *_cpu.cpp) grep -HnE '^ *# *include *"heed/core/kernels/simd/(vector|row_reductions|target_isa|math)\.h' "$file" ;;
        *) grep -HnE '^ *# *include *"heed/core/kernels/simd/(vector|row_reductions|target_isa)\.h' "$file" ;;
      esac
    done | verdict "Public headers include no streams, parsers, BLAS or CUDA: keep those in the .cpp. SIMD comes from simd/simd.h."
    ;;
  device_bits) # nvcc compiles these functions of <bit> without a word, and to other numbers
    sources | while read -r file; do
      case $file in
        core/bits.h | tests/*) continue ;;
        *.cu | core/cuda/device/*) ;;
        *.h) grep -qE 'HEED_BOTH|__device__' "$file" || continue ;;
        *) continue ;;
      esac
      grep -HnE 'std::(bit_width|bit_ceil|bit_floor|countl_zero|countl_one|countr_zero|countr_one|popcount|has_single_bit|rotl|rotr)\b' "$file" /dev/null
    done | verdict "Device code counts bits with heed/core/bits.h."
    ;;
  length)
    { sources && embedded; } | while read -r file; do
      most=400
      case $file in tests/*) most=600 ;; esac
      lines=$(wc -l <"$file")
      [ "$lines" -le $most ] || echo "$file: $lines lines, at most $most"
    done | verdict "One idea a file: split it."
    ;;
  comment)
    { sources && embedded; } | while read -r file; do
      head -n 1 "$file" | grep -qE '^(//|#|/\*) .{10,}' || echo "$file:1: $(head -n 1 "$file")"
    done | verdict "The first line of a file says what it is for: // ..."
    ;;
  stand_alone) # a comment is read without the one above it
    sources | xargs awk '
      FNR == 1 { inside = 0 }
      {
        if ($0 ~ /(f\("[a-z_0-9]+",.*|[{]"[a-z-]+", "[^"]*", *)"([Oo]f|[Aa]nd|[Oo]r|[Tt]hat|[Tt]hose|[Tt]he same|[Ll]ikewise|[Aa]s) [^"]/) print FILENAME ":" FNR ": " $0
        if (!match($0, /\/\/[\/!]?<? ?/)) { inside = 0; next }
        own = substr($0, 1, RSTART - 1) ~ /^ *$/
        words = substr($0, RSTART + RLENGTH)
        if (!(own && inside) && words ~ /^([Tt]he same|Same |As |[Aa]s above|[Ll]ikewise|[Tt]he next |[Oo]f |And |Or )/)
          print FILENAME ":" FNR ": " words
        inside = own
      }' | verdict "This comment or help leans on something else: say what it is about, in a sentence with a subject and a verb."
    ;;
  words) # those of the glossary's last column, in names, comments, messages and pages
    [ -f docs/glossary.md ] || exit 77
    { texts && echo heed; } | grep -vE '^(\./)?(CHANGELOG\.md|docs/glossary\.md|docs/results/house\.md|data/synthetic/phrasebook/.*|.*/corpus/.*)$' | sort -u | xargs -r awk '
      BEGIN {
        while ((getline row <"docs/glossary.md") > 0) {
          columns = split(row, column, "|")
          rest = columns == 5 ? column[4] : ""
          while (match(rest, /`[^`]+`/)) {
            word = substr(rest, RSTART + 1, RLENGTH - 2)
            if (word != "most") retired[word] = column[2]
            rest = substr(rest, RSTART + RLENGTH)
          }
        }
      }
      {
        plain = $0 # RowCache and row_cache are written as row cache
        gsub(/_/, " ", plain)
        while (match(plain, /[a-z0-9][A-Z]/)) plain = substr(plain, 1, RSTART) " " substr(plain, RSTART + 1)
        plain = " " tolower(plain) " "
        for (word in retired)
          if (match(plain, "[^a-z]" word "[^a-z]")) print FILENAME ":" FNR ": \"" word "\", for which the glossary says" retired[word]
      }
      FILENAME ~ /\.(h|cpp|cu)$/ {
        code = $0
        gsub(/"[^"]*"/, "", code)
        sub(/\/\/.*/, "", code)
        if (match(code, /(^|[^A-Za-z0-9_])(most(_[a-z0-9_]+)?|[a-z0-9_]+_most_?)([^A-Za-z0-9_]|$)/)) print FILENAME ":" FNR ": a limit is max_...: " $0
      }' | verdict "docs/glossary.md has one term for each concept: use it."
    ;;
  two_ways) # folders of train/ that include each other
    sources | grep '^train/' | xargs -r grep -oE '^ *# *include "heed/train/[^"]+' | awk -F: '
      function folder(path) { sub(/\/[^\/]*$/, "", path); return path }
      {
        from = folder($1)
        to = $2
        sub(/.*"heed\//, "", to)
        to = folder(to)
        if (from != to) file[from "," to] = $1
      }
      END { for (pair in file) { split(pair, ends, ","); if ((ends[2] "," ends[1]) in file && ends[1] < ends[2]) print ends[1] " and " ends[2] ": " file[pair] ", " file[ends[2] "," ends[1]] } }' |
      verdict "These folders include each other: move what both need below them."
    ;;
  kernel_docs) # functions at column 0; those of a class stand in its words
    sources | grep '^core/kernels/' | xargs -r awk '
      function leave() { above = $0; first = inside = 0 }
      FNR == 1 { first = inside = 0; above = "" }
      inside {
        if (!/^}/) next
        if (FNR - first >= 11 && !told) print FILENAME ":" first ": no comment above " FNR - first + 1 " lines: " name
        leave()
        next
      }
      !first && !/^[A-Za-z_[]/ { above = $0; next }
      !first { first = FNR; told = above ~ /^\/\//; name = signature = "" } # `template` is a part of the function
      {
        line = $0
        sub(/ *\/\/.*/, "", line)
        if (name == "" && line !~ /^template/) name = line
        signature = signature line
        if (line ~ /[;}]$/ || line == "" || name ~ /^((inline )?namespace|struct|class|enum|union|extern) /) leave()
        else if (line ~ /\{$/) { if (signature ~ /\(/) inside = 1; else leave() }
      }' | verdict "Say above it what it computes, in shapes, and what one task, block or warp does: /// ..."
    ;;
  marks)
    texts | xargs grep -HnE '(^|[^A-Za-z])(TODO|FIXME|XXX|HACK|[Ff]or now|[Nn]ot implemented|[Pp]laceholder)([^A-Za-z]|$)' |
      verdict "Work that is left belongs into an issue, or is done."
    ;;
  defines)
    # CUDA's own words are macros for the host's compiler, in one place
    sources | grep -vx core/cuda/emulator/cuda_keywords.h | xargs grep -HnE '^ *# *define ' | grep -vE 'define (HEED_BOTH|HEED_CUDA_BUILD|HEED_VERSION(_[A-Z]+)?|VARIANT|TASK|COMMAND)([( ]|$)' |
      verdict "Macros are HEED_BOTH, HEED_CUDA_BUILD, HEED_VERSION, VARIANT, TASK and COMMAND: use a function, a constant or a template."
    ;;
  types) # clang-format puts namespaces, and the types they hold, at column 0
    find $folders -name '*.h' -o -name '*.cpp' -o -name '*.cu' | sort | xargs awk '
      function leave() { if (depth > 0) print file ": namespace " scope[depth] " has no }  // namespace at its end" }
      FNR == 1 { leave(); file = FILENAME; depth = opened = 0; is_header = file ~ /\.h$/ }
      /^}  \/\/ namespace/ || (/^}$/ && FNR == opened + 2) { depth--; next } # of one line: without the comment
      { sub(/ *\/\/.*/, "") }
      /^(inline )?namespace [^=]*\{/ { sub(/^(inline )?namespace */, ""); sub(/ *\{.*/, ""); scope[++depth] = $0; opened = FNR; next }
      !/^(struct|class|union|enum|using|typedef) / { next }
      /^using/ ? !/=/ : /;/ && !/\{/ && !/^typedef/ { next } # declares only
      {
        name = ""
        for (i = 1; i <= depth; ++i) {
          if (scope[i] != "") name = name scope[i] "::"
          else if (!is_header) next # of this file alone
        }
        gsub(/(alignas|__align__|__attribute__) *\(+[^)]*\)+ */, "")
        if (/^typedef/) { sub(/ *;.*/, ""); sub(/.* /, "") }
        sub(/^(struct|class|union|enum|using) (class |struct )?/, "")
        if (/^[A-Za-z0-9_:]+</) next # a specialisation
        sub(/[^A-Za-z0-9_:].*/, "")
        name = name $0
        if (name in first) print FILENAME ":" FNR ": " name " is defined at " first[name] " too"
        else first[name] = FILENAME ":" FNR
      }
      END { leave() }' | verdict "A name means one type in a namespace: two classes of one name in one program are undefined behaviour."
    ;;
  lists)
    while read -r list macro folder type; do
      [ -f "$list" ] || continue
      type=$(echo "$type" | tr '_' ' ')
      names=$(sed -n "s/^$macro(\([a-z0-9_]*\)).*/\1/p" "$list" | sort)
      defined=$(find "$folder" -name '*.cpp' -exec sed -n "s/^$type::\([a-z0-9_]*\)().*/\1/p" {} + | sort)
      echo "$names" | uniq -d | sed "s|^|$list: listed twice: |"
      for name in $names; do echo "$defined" | grep -qx "$name" || echo "$list: no file of $folder defines $type::$name()"; done
      for name in $defined; do echo "$names" | grep -qx "$name" || echo "$folder: $type::$name() is not listed in $list"; done
    done <<END | verdict "One file, one line of the list."
attention/variants.def VARIANT attention/variants Variant_variant
train/tasks/tasks.def TASK train/tasks TaskEntry_task
train/commands/commands.def COMMAND train/commands Command_command
END
    ;;
  twins)
    find core/kernels -name '*.h' | sort | while read -r header; do
      grep -q 'static void cuda(' "$header" || continue # functors and tools, no kernel
      [ -f "${header%.h}_cpu.cpp" ] || echo "$header: ${header%.h}_cpu.cpp does not exist"
    done | verdict "A kernel is NAME.h with NAME_cpu.cpp, and NAME_cuda.cu where CUDA is built."
    ;;
  files) # touched in one place; tests may do as they like
    sources | grep -vE '^(tests/|core/io/(files|atomic_write|file_descriptor|file_lock|temporary_folder)\.cpp$|core/io/file_descriptor\.h$)' | while read -r file; do
      grep -HnE '^ *# *include *<(fstream|fcntl\.h|dirent\.h|sys/(stat|file|uio)\.h)>' "$file"
      grep -HnE '(^|[^A-Za-z0-9_.>:])(::|std::)?(fopen|freopen|fdopen|tmpfile|mkstemp|mkdtemp|creat|openat|opendir|unlink|rmdir|symlink|fsync)\(' "$file"
      grep -HnE '(^|[^A-Za-z0-9_:])::(open|rename|remove|mkdir|stat|lstat|truncate|ftruncate|chmod|link)\(|std::(rename|remove)\([^,]*\)' "$file"
      grep -HnE 'std::cin|filesystem::(exists|is_|file_size|copy|rename|remove|create_|resize|permissions|[a-z_]*directory_iterator|last_write|status|canonical|absolute|read_symlink|space)' "$file"
    done | verdict "Files are touched by core/io/files.cpp, core/io/atomic_write.cpp and core/io/file_descriptor.cpp alone, locked by core/io/file_lock.cpp, and temporary ones removed by core/io/temporary_folder.cpp: use core/io/files.h."
    ;;
  streams) # printed in one place, which makes visible what a terminal would obey; device code has none of it
    sources | grep -vE '^(tests/|core/cuda/|core/io/standard_streams\.cpp$)' |
      xargs -r grep -HnE '(^|[^A-Za-z0-9_:.>"])(std::|::)?(printf|puts|putchar|fputs|fputc|fwrite|vprintf|fprintf|perror)\(|std::(cout|cerr|clog)' |
      grep -v 'gnu::format' |
      verdict "People read what core/io/standard_streams.cpp prints: use io::print, io::printf, io::print_data or io::print_error."
    ;;
  locale) # the program that calls the library may have chosen decimal commas and other letters
    sources | grep -vE '^(tests/|core/cuda/emulator/|core/io/number_text\.cpp$)' | while read -r file; do
      grep -HnE '(^|[^A-Za-z0-9_])(sto(i|l|ll|ul|ull|f|d|ld)|strto[a-z]+|ato(f|i|l|ll)|v?sn?printf|v?asprintf|v?s?scanf|(is|to)(alnum|alpha|digit|xdigit|lower|upper|space|blank|punct|print|graph|cntrl)|setlocale)\(' "$file"
      grep -HnE '^ *# *include *<(sstream|iomanip|istream|ostream|locale|clocale|locale\.h|cctype|ctype\.h)>' "$file"
      grep -HnE 'std::to_string\([^;]*([0-9]\.|\.[0-9]|<(float|double)>|\.(real|item)\(\))' "$file"
    done | verdict "These follow the locale of the host program: numbers are written and read by core/io/number_text.h (formatted, exact_number, parsed_number) and text(), letters are told by core/io/ascii.h."
    ;;
  paths)
    texts | xargs grep -HnE '(^|[^A-Za-z0-9_.)}])/(work|root|home|mnt|Users)/' |
      verdict "A path of one machine means nothing on another."
    ;;
  readme)
    {
      for line in './heed train translate' './heed test'; do
        grep -qF "$line" README.md 2>/dev/null || echo "README.md: does not show: $line"
      done
      loop=tests/example/training_loop.cpp
      [ ! -f $loop ] || sed -n '/^```cpp$/,/^```$/p' README.md | sed '1d;$d' | cmp -s - $loop ||
        echo "README.md: its loop is not $loop"
    } | verdict "README.md shows the two commands, and the loop that the tests build."
    ;;
  links)
    for page in README.md CONTRIBUTING.md CHANGELOG.md docs/*.md docs/*/*.md; do
      [ -f "$page" ] || continue
      sed '/^```./,/^```$/d' "$page" | grep -oE '\]\([^)#: ]+' | sed 's/^](//' | while read -r link; do
        [ -e "$(dirname "$page")/$link" ] || echo "$page: there is no $link"
      done
    done | verdict "A link leads to a file of the repository."
    ;;
  format)
    version=$(clang-format --version 2>/dev/null | sed -n 's/.*version \([0-9]*\)\..*/\1/p')
    [ "$version" = 14 ] || { echo "clang-format 14 is not installed (found: ${version:-none}): not checked" && exit 77; }
    find $folders -name '*.h' -o -name '*.cpp' -o -name '*.cu' | sort |
      xargs -r clang-format --dry-run --Werror --ferror-limit=1 2>&1 | grep -E 'error:' |
      verdict "Repair: clang-format -i FILE"
    ;;
  attention_page | commands_page | settings_page) # pages of docs/reference that `heed list WHAT --markdown` prints
    what=${check%_page} page=docs/reference/${check%_page}.md
    [ $what != attention ] || page=docs/reference/attentions.md
    [ -f $page ] || { echo "$page does not exist: not checked" && exit 77; }
    printed=$(mktemp) || exit 1
    trap 'rm -f "$printed"' EXIT
    "$3" list $what --markdown >"$printed" || exit 1
    diff "$printed" $page | verdict "Regenerate: ./heed list $what --markdown > $page"
    ;;
  api_reference) # by $3, docs/reference/Doxyfile.in as CMake has filled it in
    [ -f "${3-}" ] || { echo "check.sh api_reference ROOT DOXYFILE: '${3-}' is no file; CMake makes BUILD/api_reference/Doxyfile" && exit 1; }
    version=$(doxygen --version 2>/dev/null)
    case $version in 1.9.*) ;; *) echo "doxygen 1.9 is not installed (found: ${version:-none}): not checked" && exit 77 ;; esac
    pages=$(mktemp -d) || exit 1
    trap 'rm -rf "$pages"' EXIT
    { cat "$3" && echo "OUTPUT_DIRECTORY = $pages"; } | doxygen - 2>&1 |
      verdict "Every public declaration has a docstring, /// above or ///< behind it: shapes, units, errors, the paper or equation."
    ;;
  *)
    echo "check.sh: no check is called $check"
    exit 1
    ;;
esac
