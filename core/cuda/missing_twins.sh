#!/bin/sh
# C++ that defines K::cuda for every kernel K of the headers given: each stops with the kernel's name.
set -eu
for header; do echo "#include \"heed/$header\""; done
echo 'namespace heed::kernel {'
cat "$@" | awk '
  /^struct [A-Za-z]+ *(final)? *\{/ { name = $2 }
  /^ *static void cuda\(/ { taking = 1; parameters = "" }
  taking {
    parameters = parameters " " $0
    if ($0 ~ /;/) {
      taking = 0
      sub(/^ *static void cuda/, "", parameters)
      sub(/;.*/, "", parameters)
      gsub(/ = [^,)]*/, "", parameters)
      print "void " name "::cuda" parameters " { fail(Fault::device, \"kernel " name " has no CUDA twin.\"); }"
    }
  }'
echo '}'
