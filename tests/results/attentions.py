# The table of all attentions (docs/results/attentions.md) out of the folders that `heed compare --grid` made, one for each task:
#   attentions.py --csv TABLE.csv NAME=SCORE@FOLDER ...     SCORE: the column of compare.csv, such as accuracy
# Prints Markdown: a row for each attention, the mean of its chosen runs and the setting that was best; --csv writes every number.
import argparse
import csv
import pathlib
import re
import statistics


def chosen(folder, score):
    """By label: scores of the chosen runs, their setting, parameters, and seconds of training."""
    out = {}
    with open(folder / 'compare.csv', newline='') as file:
        for row in csv.DictReader(file):
            if row['chosen'] == '1' and not row['failure']:
                out.setdefault(row['label'], []).append(row)
    return {label: {'scores': [float(row[score]) for row in rows], 'setting': rows[0]['setting'],
                    'parameters': rows[0]['parameters'], 'seconds': statistics.mean(float(row['seconds']) for row in rows)}
            for label, rows in out.items()}


def origin(folder):
    """Date and commit in the notes of compare.md."""
    return re.search(r'trained on (\S+)(?: to \S+)?, commit (\w+)', (folder / 'compare.md').read_text()).groups()


def cell(result):
    if result is None:
        return ''
    mean = statistics.mean(result['scores'])
    spread = f" ± {statistics.stdev(result['scores']):.2g}" if len(result['scores']) > 1 else ''
    return f"{mean:.4g}{spread} ({result['setting']})"


def main():
    parser = argparse.ArgumentParser(description='Joins comparisons into one table.')
    parser.add_argument('--csv', required=True, help='the file to write')
    parser.add_argument('columns', nargs='+', metavar='NAME=SCORE@FOLDER')
    args = parser.parse_args()
    columns = {}
    for column in args.columns:
        name, score, folder = re.fullmatch(r'([^=]+)=([^@]+)@(.+)', column).groups()
        columns[name] = (score, pathlib.Path(folder), chosen(pathlib.Path(folder), score))
    labels = sorted({label for _, _, results in columns.values() for label in results})
    with open(args.csv, 'w', newline='') as file:
        out = csv.writer(file, lineterminator='\n')
        out.writerow(['attention', 'task', 'score', 'seeds', 'mean', 'deviation', 'setting', 'parameters', 'seconds', 'date', 'commit'])
        for label in labels:
            for name, (score, folder, results) in columns.items():
                if label in results:
                    one = results[label]
                    deviation = statistics.stdev(one['scores']) if len(one['scores']) > 1 else ''
                    out.writerow([label, name, score, len(one['scores']), statistics.mean(one['scores']), deviation, one['setting'],
                                  one['parameters'], round(one['seconds'], 1), *origin(folder)])
    print('| attention | ' + ' | '.join(columns) + ' |\n|---|' + '---:|' * len(columns))
    for label in labels:
        print(f'| {label} | ' + ' | '.join(cell(results.get(label)) for _, _, results in columns.values()) + ' |')


if __name__ == '__main__':
    main()
