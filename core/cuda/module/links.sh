#!/bin/sh
# links.sh NM CXX VERSION MODULE HOST OUT: what links a program and its module, which are linked apart. MODULE and HOST are files that
# name their objects, a quoted path a line. Writes two objects:
# - OUT_host.o, for the program (core/cuda/module/module.cpp uses it). Each function of the module that the program calls, or that its
#   tests may call, is defined there as a jump through a slot; opening the module fills the slots. What the module needs of the program
#   is kept in it.
# - OUT_module.o, for the module: it needs a symbol that only a program of the same build has.
set -eu
nm=$1 cxx=$2 version=$3 module=$4 host=$5 out=$6
"$nm" -gP "@$module" >"$out.module_symbols"
"$nm" -gP "@$host" >"$out.host_symbols"
# A module of other objects is another build: layouts of classes may differ.
build=heed_cuda_of_$(echo "$version" | tr -c 'A-Za-z0-9\n' _)_$(xargs cat <"$module" | sha256sum | cut -c 1-16)

awk '
  FNR == 1 { ++file }
  NF < 2 || length($2) != 1 { next } # the name of an object
  $2 ~ /[Uwv]/ { needed[file, $1]; names[$1]; next }
  { defined[file, $1] = $2; names[$1] }
  END {
    for (name in names) {
      # Tests call functions of core/cuda/runtime that the program does not. nvcc calls kernels of anonymous namespaces _GLOBAL__N.
      is_runtime = (1, name) in defined && defined[1, name] == "T" && name ~ /^_ZN4heed4cuda[0-9]/ && name !~ /_GLOBAL__N/
      is_called = (2, name) in needed || is_runtime
      if (is_called && !((2, name) in defined) && (1, name) in defined) print defined[1, name], name
      if (name ~ /^_Z.*4heed/ && (1, name) in needed && !((1, name) in defined) && (2, name) in defined) print "keep", name
    }
  }' "$out.module_symbols" "$out.host_symbols" | LC_ALL=C sort >"$out.links"
if grep -vE '^(keep|[TW]) ' "$out.links" >&2; then
  echo "these of the module are data, not functions, and the program uses them: let it ask by a function" >&2
  exit 1
fi
grep -q '^[TW] ' "$out.links" || { echo "the program calls nothing of the module: are these the right objects?" >&2 && exit 1; }

awk -v build="$build" '
  $1 == "keep" { kept = kept "\t.reloc ., R_X86_64_NONE, " $2 "\n"; next }
  {
    printf "\t.globl %s\n\t.hidden %s\n\t.type %s, @function\n%s:\n\tjmp *heed_cuda_slots+%d(%%rip)\n", $2, $2, $2, $2, 8 * n
    printf ".Lclosed%d:\n\tleaq .Lname%d(%%rip), %%rdi\n\tjmp heed_cuda_closed\n", n, n
    strings = strings ".Lname" n ":\n\t.string \"" $2 "\"\n"
    slots = slots "\t.quad .Lclosed" n "\n"
    pointers = pointers "\t.quad .Lname" n "\n"
    ++n
  }
  BEGIN { n = 0; print "\t.text" }
  END {
    print "\t.data\n\t.globl heed_cuda_slots\n\t.hidden heed_cuda_slots\n\t.balign 8\nheed_cuda_slots:\n" slots
    print "\t.section .data.rel.ro,\"aw\"\n\t.globl heed_cuda_names\n\t.hidden heed_cuda_names\n\t.balign 8\nheed_cuda_names:\n" pointers "\t.quad 0"
    print "\t.section .rodata\n" strings kept
    print "\t.globl " build "\n\t.type " build ", @object\n" build ":\n\t.byte 0\n\t.size " build ", 1"
    print "\t.section .note.GNU-stack,\"\",@progbits"
  }' "$out.links" >"${out}_host.s"
cat >"${out}_module.s" <<END
	.section .data.rel.ro,"aw"
	.balign 8
	.quad $build
	.section .note.GNU-stack,"",@progbits
END
"$cxx" -c "${out}_host.s" -o "${out}_host.o"
"$cxx" -c "${out}_module.s" -o "${out}_module.o"
