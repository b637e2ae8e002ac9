#!/usr/bin/env python3
# partial_rounds.py - draws the rounds that partial_rounds has printed.
"""partial_rounds.py CSV PICTURE - the percentage of the vector that was averaged
in each round, beside the contributors of those that the round was for. CSV is
the output of the example partial_rounds. Needs matplotlib."""
import csv
import sys


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    import matplotlib
    matplotlib.use('Agg')
    matplotlib.rcParams['svg.hashsalt'] = 'pccl'
    from matplotlib import pyplot
    with open(sys.argv[1], encoding='ascii') as file:
        rows = [row for row in csv.reader(file) if len(row) == 5]
    if not rows:
        sys.exit(f'{sys.argv[1]}: it has no line of a round')
    rounds, members, coverage, contributors, _ = (
        [float(row[i]) for row in rows] for i in range(5))
    figure, (above, below) = pyplot.subplots(2, sharex=True, figsize=(6.4, 4))
    above.bar(rounds, coverage, width=1)
    above.set_ylabel('averaged, %')
    above.set_ylim(0, 105)
    below.step(rounds, members, where='mid', label='members')
    below.step(rounds, contributors, where='mid', label='contributors, mean')
    below.set_ylabel('members')
    below.set_ylim(bottom=0)
    below.set_xlabel('round')
    below.legend(frameon=False)
    for axes in (above, below):
        axes.spines[['top', 'right']].set_visible(False)
    figure.tight_layout()
    figure.savefig(sys.argv[2], metadata={'Date': None} if
                   sys.argv[2].endswith('.svg') else None)


if __name__ == '__main__':
    main()
