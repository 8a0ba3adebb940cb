#!/bin/sh
# Drives a page of the program in a headless Chromium: run.sh PROGRAM WHAT. 77 where there is no Chromium or no Python 3, and says so.
set -eu
command -v python3 >/dev/null || { echo "skipped: there is no python3 here, which drives the browser" && exit 77; }
exec python3 "$(dirname "$0")/inspect_pages.py" "$1" "$2"
