#!/usr/bin/env python3
"""ranks_plot.py DATA PICTURE - draws what compare_newest.sh has put into DATA:
the time of each collective, by the number of ranks of one host, with each
library. Needs matplotlib."""
import sys

import compare_newest

COLORS = {'pccl': '#c0392b', 'intel': '#2471a3', 'openmpi': '#1e8449',
          'mpich': '#8e44ad'}
TRANSPORT = 'shm'
COLUMNS = 5
POINT_TO_POINT = ('latency', 'rate')


def lines(panels):
    """{(collective, bytes): {library: [(ranks, microseconds)]}}"""
    found = {}
    for (ranks, transport), cases in sorted(panels.items()):
        if transport != TRANSPORT:
            continue
        for (name, size, dirty), libraries in cases.items():
            if dirty or name in POINT_TO_POINT:
                continue
            for library, time in libraries.items():
                row = found.setdefault((name, size), {})
                row.setdefault(library, []).append((ranks, time))
    return found


def words(size):
    return f'{size // 1024} KiB' if size >= 1024 else f'{size} B'


def draw(pyplot, found, picture):
    count = len(found)
    rows = -(-count // COLUMNS)
    figure, grid = pyplot.subplots(rows, COLUMNS, figsize=(13, 2.3 * rows),
                                   squeeze=False)
    for axes in grid.flat[count:]:
        axes.set_axis_off()
    shown = {}
    for axes, ((name, size), libraries) in zip(grid.flat, sorted(found.items())):
        for library, points in sorted(libraries.items()):
            shown[library], = axes.loglog(*zip(*points), marker='.',
                                          color=COLORS.get(library))
        ticks = sorted({ranks for points in libraries.values()
                        for ranks, _ in points})
        axes.set_xticks(ticks, [str(ranks) for ranks in ticks])
        axes.yaxis.set_major_formatter('{x:g}')
        axes.minorticks_off()
        axes.set_title(name if name == 'barrier' else f'{name}, {words(size)}',
                       fontsize=9)
        axes.tick_params(labelsize=7)
        axes.spines[['top', 'right']].set_visible(False)
    figure.legend(shown.values(), shown, loc='lower right', frameon=False,
                  fontsize=8)
    figure.supxlabel('ranks', fontsize=9)
    figure.supylabel('one call of the slowest rank, us', fontsize=9)
    figure.tight_layout()
    figure.savefig(picture, metadata={'Date': None} if
                   picture.endswith('.svg') else None)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding='ascii') as data:
        found = lines(compare_newest.read(data))
    if not found:
        sys.exit(f'ranks_plot.py: {sys.argv[1]} has no collectives over '
                 f'{TRANSPORT}')
    try:
        import matplotlib
    except ImportError:
        sys.exit('ranks_plot.py: needs matplotlib')
    matplotlib.use('Agg')
    matplotlib.rcParams.update({'svg.hashsalt': 'pccl',
                                'svg.fonttype': 'none',
                                'font.sans-serif': ['sans-serif']})
    from matplotlib import pyplot
    draw(pyplot, found, sys.argv[2])


if __name__ == '__main__':
    main()
