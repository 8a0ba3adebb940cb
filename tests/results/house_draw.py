#!/usr/bin/env python3
"""Draws functions and comments at random for a reading by a stranger: docs/results/house.md.

house_draw.py functions|comments COUNT SEED [PREFIX]: prints COUNT functions of at least 8 lines, or comments, of
files whose path begins with PREFIX (all outside tests/ without it), each with its place. One seed gives one draw.
"""
import random
import re
import subprocess
import sys


def sources(prefix):
    names = subprocess.check_output(["git", "ls-files"], text=True).split()
    return [n for n in names if n.endswith((".h", ".cpp", ".cu")) and n.startswith(prefix)
            and not n.startswith(("tests/", "include/"))]


def functions(name):
    """(first line, last line) of each function, with its comment: from a signature to the brace of equal indent."""
    lines = open(name, encoding="utf-8").read().split("\n")
    for end, line in enumerate(lines):
        if not re.match(r" *}$", line):
            continue
        indent = len(line) - 1
        start = end - 1
        while start > 0 and (len(lines[start]) - len(lines[start].lstrip()) > indent or not lines[start]):
            start -= 1
        while start > 0 and lines[start - 1].startswith(" " * indent + "template"):
            start -= 1
        if not re.search(r"\) *(const|override|final|noexcept|->.*|: .*)* *{$|^ *template", lines[start]):
            continue
        if re.match(r" *(if|for|while|switch|else|do|namespace|struct|class|\}|return|case|auto .* = \[|const auto .* = \[|\[)",
                    lines[start]):
            continue
        top = start
        while top > 0 and re.match(r" *//", lines[top - 1]):
            top -= 1
        if end - start >= 7:
            yield name, top, end, lines


def comments(name):
    """Each comment: a run of // lines, or what stands behind code."""
    lines = open(name, encoding="utf-8").read().split("\n")
    at = 0
    while at < len(lines):
        end = at
        if re.match(r" *//", lines[at]):
            while end + 1 < len(lines) and re.match(r" *//", lines[end + 1]):
                end += 1
        if re.search(r"(^|[^:\"])//", lines[at]):
            yield name, at, min(end + (1 if re.match(r" *//", lines[at]) else 0), len(lines) - 1), lines
        at = end + 1


def main():
    if len(sys.argv) not in (4, 5) or sys.argv[1] not in ("functions", "comments"):
        sys.exit(__doc__)
    find = functions if sys.argv[1] == "functions" else comments
    found = [one for name in sources(sys.argv[4] if len(sys.argv) == 5 else "") for one in find(name)]
    for name, top, end, lines in random.Random(int(sys.argv[3])).sample(found, int(sys.argv[2])):
        print(f"\n{name}:{top + 1}")
        print("\n".join(lines[top:end + 1]))


main()
