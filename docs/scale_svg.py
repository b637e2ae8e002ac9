#!/usr/bin/env python3
"""scale_svg.py OUT - draws what build/tests/sim_scale has printed.

    build/tests/sim_scale 65536 64 256 1000 4000 | \\
        python3 docs/scale_svg.py docs/scale.svg

The coordinator's CPU time for each event and the bytes that it sends, by the
number of members, on logarithmic axes; and n log n. The output goes on to
standard output.
"""
import math
import sys

WIDTH, HEIGHT = 800, 330
TOP, BOTTOM = 40, 280
GAP = 13  # between two lines of text
PANELS = ((60, 330, 'coordinator: CPU time, ms', 2, 0.01, 10000),
          (450, 720, 'coordinator: MiB sent', 8, 0.001, 1000))
EVENTS = (('join', 'join of all', '#c0392b'), ('newcomer', 'newcomer', '#8e44ad'),
          ('second', 'a second', '#666666'), ('loss', 'loss', '#2471a3'),
          ('update', 'update', '#1e8449'))
STYLE = '''text{font:12px sans-serif;fill:#333}.t{font-weight:bold}
.r{text-anchor:end}.m{text-anchor:middle}.g{stroke:#e5e5e5}
.n{stroke:#999;stroke-dasharray:4 3;fill:none}.l{fill:none;stroke-width:2}'''


def read(lines):
    """The rows of each event: (n, columns)."""
    rows = {}
    for line in lines:
        print(line, end='')
        fields = line.split()
        if len(fields) == 12 and fields[0].isdigit():
            rows.setdefault(fields[1], []).append(
                (int(fields[0]), [float(f) for f in fields[2:]]))
    return rows


def panel(out, rows, left, right, title, column, low, high):
    """One diagram, of a column of the output."""
    sizes = [n for n, _ in rows['join']]

    def x(n):
        span = math.log(sizes[-1] / sizes[0])
        return left + (right - left) * math.log(n / sizes[0]) / span

    def y(value):
        part = math.log(max(value, low) / low) / math.log(high / low)
        return BOTTOM - (BOTTOM - TOP) * min(part, 1)

    out.append(f'<text class="t" x="{left}" y="{TOP - 16}">{title}</text>')
    mark = low
    while mark <= high * 1.01:
        out.append(f'<path class="g" d="M{left} {y(mark):.1f}H{right}"/>'
                   f'<text class="r" x="{left - 6}" y="{y(mark) + 4:.1f}">'
                   f'{mark:g}</text>')
        mark *= 10
    for n in sizes:
        out.append(f'<text class="m" x="{x(n):.1f}" y="{BOTTOM + 18}">'
                   f'{n:,}</text>')
    labels = []
    for name, label, color in EVENTS:
        scale = 1 if column == 2 else 1024
        points = [(n, row[column - 2] / scale) for n, row in rows[name]]
        path = 'L'.join(f'{x(n):.1f} {y(v):.1f}' for n, v in points)
        out.append(f'<path class="l" stroke="{color}" d="M{path}"/>')
        labels.append((y(points[-1][1]), label, color))
    first = rows['update'][0][1][column - 2] / (1 if column == 2 else 1024)
    base = first / 3 / (sizes[0] * math.log(sizes[0]))
    path = 'L'.join(f'{x(n):.1f} {y(base * n * math.log(n)):.1f}'
                    for n in sizes)
    out.append(f'<path class="n" d="M{path}"/>')
    last = base * sizes[-1] * math.log(sizes[-1])
    labels.append((y(last), 'n log n', '#777'))
    above = TOP - GAP
    for at, label, color in sorted(labels):
        above = max(at, above + GAP)  # none over another one
        out.append(f'<text x="{right + 6}" y="{above + 4:.1f}" '
                   f'style="fill:{color}">{label}</text>')


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    rows = read(sys.stdin)
    if not all(name in rows for name, _, _ in EVENTS):
        sys.exit('scale_svg.py: this is no output of sim_scale')
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" '
           f'height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}">',
           f'<style>{STYLE}</style>',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>']
    for left, right, title, column, low, high in PANELS:
        panel(out, rows, left, right, title, column, low, high)
    out.append(f'<text class="m" x="{WIDTH // 2}" y="{HEIGHT - 8}">'
               'members</text></svg>')
    with open(sys.argv[1], 'w', encoding='utf-8') as file:
        file.write('\n'.join(out) + '\n')


if __name__ == '__main__':
    main()
