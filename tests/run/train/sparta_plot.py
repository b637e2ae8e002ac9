#!/usr/bin/env python3
"""sparta_plot.py CSV PICTURE - draws what `test_sparta --csv` has written: how
far the weights of members are apart, step by step. Needs matplotlib."""
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
        rows = list(csv.DictReader(file))
    steps = [int(row['step']) for row in rows]
    figure, axes = pyplot.subplots(figsize=(6.4, 3.2))
    for name, label in (('without', 'no averages of parameters'),
                        ('with', 'SPARTA: 1/8 of them every 2 steps')):
        axes.plot(steps, [float(row[name]) for row in rows], label=label)
    axes.set_xlabel('step')
    axes.set_ylabel('spread of an element')
    axes.set_ylim(bottom=0)
    axes.spines[['top', 'right']].set_visible(False)
    axes.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(sys.argv[2], metadata={'Date': None} if
                   sys.argv[2].endswith('.svg') else None)


if __name__ == '__main__':
    main()
