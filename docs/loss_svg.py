#!/usr/bin/env python3
"""loss_svg.py OUT - draws what examples/demo.sh has printed.

    sh examples/demo.sh | python3 docs/loss_svg.py docs/loss.svg

The second training of the demo: the loss at each step that was printed, the
number of ranks, and where a rank was killed and two joined. The output of the
demo goes on to standard output.
"""
import re
import sys

WIDTH, HEIGHT = 760, 330
LEFT, RIGHT, TOP, BOTTOM = 56, 740, 40, 232  # of the curve
RANKS_TOP, RANKS_BOTTOM = 258, 296
STYLE = '''text{font:13px sans-serif;fill:#333}.t{font-weight:bold}
.r{text-anchor:end}.m{text-anchor:middle}.g{stroke:#e5e5e5}
.k{stroke:#c0392b;stroke-dasharray:4 3}.j{stroke:#1e8449;stroke-dasharray:4 3}
.kt{fill:#c0392b}.jt{fill:#1e8449}
.l{fill:none;stroke:#2471a3;stroke-width:2}.d{fill:#2471a3}
.n{fill:none;stroke:#666;stroke-width:2}'''


def read(lines):
    """Steps with ranks and loss, and the steps before which something was."""
    steps, events = [], []
    for line in lines:
        if line.startswith('>>> 2.'):
            steps, events = [], []
        found = re.match(r'\s*step +(\d+) +(\d+) ranks +loss ([\d.]+)', line)
        if found:
            steps.append((int(found[1]), int(found[2]), float(found[3])))
        elif line.startswith('>>> kill'):
            events.append((len(steps), 'k', 'kill -9 of a rank'))
        elif 'ranks joined' in line:
            events.append((len(steps), 'j', 'two ranks join'))
    return steps, events


def draw(steps, events):
    last = steps[-1][0]
    high = max(loss for _, _, loss in steps)

    def x(step):
        return LEFT + (RIGHT - LEFT) * step / last

    def y(loss):
        return BOTTOM - (BOTTOM - TOP) * loss / (int(high) + 1)

    def z(ranks):
        return RANKS_BOTTOM - (RANKS_BOTTOM - RANKS_TOP) * (ranks - 2) / 3

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" '
           f'height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}">',
           '<!-- by docs/loss_svg.py, of the output of examples/demo.sh -->',
           f'<style>{STYLE}</style>',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
           f'<text x="{LEFT}" y="20" class="t">A language model trained by MPI '
           'ranks: its loss, step by step</text>']
    for loss in range(int(high) + 2):
        out += [f'<path class="g" d="M{LEFT} {y(loss):.1f}H{RIGHT}"/>',
                f'<text x="{LEFT - 8}" y="{y(loss) + 4:.1f}" class="r">{loss}'
                '</text>']
    for i, (at, kind, words) in enumerate(events):
        place = x((steps[at - 1][0] + steps[at][0]) / 2)
        out += [f'<path class="{kind}" d="M{place:.1f} {TOP}V{RANKS_BOTTOM}"/>',
                f'<text x="{place + 6:.1f}" y="{TOP + 14 + 18 * i}" '
                f'class="{kind}t">'
                f'{words}</text>']
    points = ' '.join(f'{x(s):.1f},{y(loss):.1f}' for s, _, loss in steps)
    out.append(f'<polyline class="l" points="{points}"/>')
    out += [f'<circle class="d" cx="{x(s):.1f}" cy="{y(loss):.1f}" r="2.5"/>'
            for s, _, loss in steps]
    path, before = f'M{x(0):.1f} {z(steps[0][1]):.1f}', steps[0]
    for step in steps[1:]:
        if step[1] != before[1]:
            path += f'H{x((before[0] + step[0]) / 2):.1f}V{z(step[1]):.1f}'
        before = step
    out += [f'<path class="n" d="{path}H{x(last):.1f}"/>']
    out += [f'<text x="{LEFT - 8}" y="{z(n) + 4:.1f}" class="r">{n}</text>'
            for n in sorted({ranks for _, ranks, _ in steps})]
    out += [f'<text x="{RIGHT}" y="{RANKS_TOP - 6}" class="r">ranks</text>',
            f'<text x="{LEFT}" y="{HEIGHT - 12}">step 0</text>',
            f'<text x="{RIGHT}" y="{HEIGHT - 12}" class="r">step {last}</text>',
            '</svg>', '']
    return '\n'.join(out)


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    lines = []
    for line in sys.stdin:
        print(line, end='')
        lines.append(line)
    steps, events = read(lines)
    if len(events) != 2 or not lines[-1].startswith('>>> PASSED'):
        print('loss_svg.py: this is no whole run of the demo', file=sys.stderr)
        return 1
    with open(sys.argv[1], 'w', encoding='utf-8') as file:
        file.write(draw(steps, events))
    return 0


if __name__ == '__main__':
    sys.exit(main())
