# Fills the tables of docs/results/performance.md anew: what stands between <!-- from: COMMAND --> and <!-- end --> is what COMMAND
# prints. See README.md beside it.
import argparse
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def main():
    parser = argparse.ArgumentParser(description='Runs the commands of a page and puts what they print into it.')
    parser.add_argument('words', nargs='*', help='only commands that have one of these in them')
    parser.add_argument('--page', default=str(ROOT / 'docs/results/performance.md'))
    parser.add_argument('--before', default='', help='a command that runs each of them, such as taskset -c 0,1')
    options = parser.parse_args()
    page = pathlib.Path(options.page)

    def filled(match):
        command = match[1]
        if options.words and not any(word in command for word in options.words):
            return match[0]
        print(command, file=sys.stderr, flush=True)
        done = subprocess.run(shlex.split(options.before) + shlex.split(command), cwd=ROOT, stdout=subprocess.PIPE, text=True)
        if done.returncode != 0:
            sys.exit(f'{command}: exit code {done.returncode}. The page is as it was.')
        return f'<!-- from: {command} -->\n\n    {command}\n\n{done.stdout.strip()}\n\n<!-- end -->'

    page.write_text(re.sub(r'<!-- from: (.*?) -->\n.*?<!-- end -->', filled, page.read_text(), flags=re.DOTALL))


main()
