#!/usr/bin/env python3
"""compare.py DATA [--svg FILE] - table and drawing for compare.sh.

DATA has a line "RANKS TRANSPORT CASE LIBRARY MEDIAN MIN" (microseconds) for
each library and round; what is shown is the median of the rounds.

compare.py --self-test checks the arithmetic on made-up figures.
"""
import math
import statistics
import sys
from html import escape

OURS, FLOOR, PRIVATE = "pccl", "floor", "floor-private"
COLORS = {"pccl": "#c0392b", "mpich": "#2471a3", "mpich-tuned": "#85c1e9",
          "openmpi": "#1e8449", "openmpi-tuned": "#7dcea0", "gloo": "#b9770e", "floor": "#909497",
          "floor-private": "#515a5a"}
ORDER = list(COLORS)


def read(lines):
    """{(ranks, transport): {case: {library: [median of each round]}}}"""
    panels = {}
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or words[0] == "#":
            continue
        try:
            ranks, transport, case, library = words[:4]
            time = float(words[4])
            key = (int(ranks), transport)
        except (ValueError, IndexError):
            raise SystemExit(f"compare.py: line {number} is no figure: {line}")
        cases = panels.setdefault(key, {})
        cases.setdefault(case, {}).setdefault(library, []).append(time)
    for cases in panels.values():
        for case, rounds in cases.items():
            cases[case] = {library: statistics.median(times)
                           for library, times in rounds.items()}
    return panels


def split(case):
    """(bytes, operations at once, in place)"""
    in_place = case.endswith("i")
    size, _, at_once = case.rstrip("i").partition("x")
    return int(size), int(at_once or 1), in_place


def name(case):
    size, at_once, in_place = split(case)
    text = f"{size} B"
    for unit, bytes_ in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= bytes_ and size % bytes_ == 0:
            text = f"{size // bytes_} {unit}"
            break
    if at_once > 1:
        text = f"{at_once} x {text}"
    return text + " in place" * in_place


def ratios(times):
    """Ours by the best peer's and by the floor's; None where one lacks."""
    ours = times.get(OURS)
    peers = [t for library, t in times.items()
             if library not in (OURS, FLOOR, PRIVATE)]
    floor = times.get(FLOOR)
    return (ours / min(peers) if ours and peers else None,
            ours / floor if ours and floor else None)


def sort_cases(cases):
    return sorted(cases, key=lambda c: (split(c)[1] > 1, split(c)[2],
                                        split(c)[0]))


def in_place_lines(cases):
    """What it costs us that the input must be restorable."""
    out = []
    for case in sort_cases(cases):
        text = ""
        for library in (OURS, PRIVATE):
            there = cases[case].get(library)
            beside = cases.get(case.rstrip("i"), {}).get(library)
            if split(case)[2] and there and beside:
                text += f", {library} {there / beside:.2f}"
        if text:
            out.append(f"{name(case):>18}{text} of out of place")
    return out


def table(panels):
    out = []
    for (ranks, transport), cases in sorted(panels.items(),
                                            key=lambda p: (p[0][1], p[0][0])):
        seen = {library for times in cases.values() for library in times}
        libraries = [lib for lib in ORDER if lib in seen]
        libraries += sorted(seen - set(ORDER))
        out.append(f"{ranks} ranks, {transport}: median, us")
        out.append(f"{'':>18}" + "".join(f"{lib:>14}" for lib in libraries)
                   + f"{'/ best peer':>13}{'/ floor':>9}")
        for case in sort_cases(cases):
            times = cases[case]
            row = f"{name(case):>18}"
            for library in libraries:
                row += (f"{times[library]:>14.2f}" if library in times
                        else f"{'-':>14}")
            peer, floor = ratios(times)
            row += f"{peer:>13.2f}" if peer else f"{'-':>13}"
            row += f"{floor:>9.2f}" if floor else f"{'-':>9}"
            out.append(row)
        out += in_place_lines(cases)
        out.append("")
    return "\n".join(out)


# ---------------------------------------------------------------- drawing

WIDTH, HEIGHT, LEFT, TOP, GAP = 300, 220, 58, 56, 58


def panel(x, y, title, cases):
    plain = [c for c in sort_cases(cases) if split(c)[1:] == (1, False)]
    times = [t for c in plain for t in cases[c].values() if t > 0]
    if not times:
        return []
    low = math.floor(math.log10(min(times)))
    high = max(math.ceil(math.log10(max(times))), low + 1)

    def px(index):
        return x + WIDTH * (index + 0.5) / len(plain)

    def py(time):
        return y + HEIGHT * (high - math.log10(time)) / (high - low)

    out = [f'<text x="{x}" y="{y - 8}" class="t">{escape(title)}</text>',
           f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" '
           f'class="b"/>']
    for power in range(low, high + 1):
        at = py(10.0 ** power)
        unit = {0: "1 us", 3: "1 ms", 6: "1 s"}.get(power, f"1e{power}")
        unit = {-1: "0.1", 1: "10", 2: "100", 4: "10 ms",
                5: "100 ms"}.get(power, unit)
        out.append(f'<line x1="{x}" x2="{x + WIDTH}" y1="{at:.1f}" '
                   f'y2="{at:.1f}" class="g"/>')
        out.append(f'<text x="{x - 6}" y="{at + 4:.1f}" class="r">'
                   f'{unit}</text>')
    for index, case in enumerate(plain):
        out.append(f'<text x="{px(index):.1f}" y="{y + HEIGHT + 16}" '
                   f'class="m">{name(case)}</text>')
    for library in ORDER:
        points = [(px(i), py(cases[c][library])) for i, c in enumerate(plain)
                  if cases[c].get(library, 0) > 0]
        if not points:
            continue
        line = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
        dash = ' stroke-dasharray="4 3"' if library in (FLOOR, PRIVATE) else ""
        wide = 2.5 if library == OURS else 1.5
        out.append(f'<polyline points="{line}" fill="none" '
                   f'stroke="{COLORS[library]}" stroke-width="{wide}"{dash}/>')
        out += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="{wide}" '
                f'fill="{COLORS[library]}"/>' for a, b in points]
    return out


def draw(panels):
    transports = sorted({transport for _, transport in panels})
    worlds = sorted({ranks for ranks, _ in panels})
    width = LEFT + len(worlds) * (WIDTH + GAP)
    height = TOP + len(transports) * (HEIGHT + GAP)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" '
           f'height="{height}" viewBox="0 0 {width} {height}">',
           "<style>text{font:11px sans-serif;fill:#333}.t{font-size:13px;"
           "font-weight:bold}.r{text-anchor:end}.m{text-anchor:middle}"
           ".b{fill:none;stroke:#bbb}.g{stroke:#e5e5e5}</style>",
           f'<rect width="{width}" height="{height}" fill="#fff"/>']
    seen = {library for cases in panels.values() for times in cases.values()
            for library in times}
    for index, library in enumerate(lib for lib in ORDER if lib in seen):
        at = LEFT + index * 120
        out.append(f'<rect x="{at}" y="12" width="18" height="4" '
                   f'fill="{COLORS[library]}"/>')
        out.append(f'<text x="{at + 24}" y="18">{library}</text>')
    for row, transport in enumerate(transports):
        for column, ranks in enumerate(worlds):
            if (ranks, transport) in panels:
                out += panel(LEFT + column * (WIDTH + GAP),
                             TOP + row * (HEIGHT + GAP),
                             f"all-reduce, {ranks} ranks, {transport}",
                             panels[ranks, transport])
    return "\n".join(out + ["</svg>", ""])


def self_test():
    lines = ["2 tcp 8 pccl 6 5", "2 tcp 8 pccl 2 1", "2 tcp 8 pccl 3 1",
             "2 tcp 8 mpich 4 1", "2 tcp 8 openmpi 2 1", "2 tcp 8 floor 1 1",
             "2 tcp 1048576x8 pccl 50 9", "", "4 shm 16777216i pccl 9.5 1",
             "# done 1 2 tcp pccl", "4 shm 16777216 pccl 10 1",
             "4 shm 16777216i floor-private 9 8",
             "4 shm 16777216 floor-private 6 5"]
    panels = read(lines)
    assert panels[2, "tcp"]["8"]["pccl"] == 3
    assert ratios(panels[2, "tcp"]["8"]) == (1.5, 3.0)
    assert ratios(panels[2, "tcp"]["1048576x8"]) == (None, None)
    assert [name(c) for c in ("8", "1024", "1048576x8", "16777216i")] == \
        ["8 B", "1 KiB", "8 x 1 MiB", "16 MiB in place"]
    text = table(panels)
    assert "1.50     3.00" in text and "8 x 1 MiB" in text, text
    assert ratios(panels[4, "shm"]["16777216"]) == (None, None)
    assert "16 MiB in place, pccl 0.95, floor-private 1.50 of out of" in text
    assert text.index("4 ranks, shm") < text.index("2 ranks, tcp")
    picture = draw(panels)
    assert picture.count("<polyline") == 6 and "2 ranks, tcp" in picture
    for bad in (["2 tcp 8"], ["x tcp 8 pccl 1 1"], ["2 tcp 8 pccl y 1"]):
        try:
            read(bad)
        except SystemExit:
            continue
        raise AssertionError(f"{bad} was taken")


def main(args):
    if args == ["--self-test"]:
        return self_test()
    if len(args) not in (1, 3) or (len(args) == 3 and args[1] != "--svg"):
        raise SystemExit(__doc__)
    with open(args[0], encoding="utf-8") as file:
        panels = read(file)
    print(table(panels))
    if len(args) == 3:
        with open(args[2], "w", encoding="utf-8") as file:
            file.write(draw(panels))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
