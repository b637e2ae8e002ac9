#!/usr/bin/env python3
"""report.py FOLDER - tables of the results that run.sh has left there.

Prints them as Markdown, and leaves them as FOLDER/RESULTS.md, with the plot
FOLDER/wan.svg.
"""
import json
import pathlib
import sys

SCENARIOS = ("europe", "america", "atlantic", "star", "two-sites", "firewall",
             "degrade", "loss")
KINDS = ("pool1", "pool8", "pool64", "auto", "codes", "mpich", "gloo")
NAMES = {"pool1": "1 connection", "pool8": "8 connections",
         "pool64": "64 connections", "auto": "automatic",
         "codes": "8-bit codes", "mpich": "MPICH", "gloo": "Gloo"}

HEAD = ("", "ring", "large", "s", "Mbit/s", "% of ring", "% of best", "wire MiB",
        "many s", "Mbit/s", "small ms", "late ms")

EXPLAIN = """\
Each group is one emulated network. *before* is the ring in the numbering of the
peers, *after* is the ring that `pcclOptimizeTopology` found. *large* is one
all-reduce of the given MiB per peer; *many* is 64 all-reduces of 64 KiB at once
(16 KiB over one transatlantic connection); *small* is 8 KiB, repeated without a
pause, time per operation. Mbit/s is bus bandwidth as in nccl-tests: 2(n-1)/n x
bytes / time, from the first launch to the last result, payload before
quantization. *% of ring* is this bandwidth divided by the capacity of the
slowest link of the ring in use, over that many connections (64 for automatic).
*% of best* is the same for the best possible ring. Both capacities include TCP
and IP headers, so 96.5 is the maximum. *wire* is the number of bytes that each
peer sent for the large all-reduce, with headers and retransmissions. *late* is
the mean delay that the emulator itself added to a packet: above one millisecond
the machine was overloaded. MPICH (its defaults, UCX over TCP) and Gloo (its
ring, blocking calls) use one connection per pair, in the numbering of the peers.
"""


def lines(path):
    """The JSON objects of a file; other lines are for people."""
    if not path.exists():
        return []
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("{"):
            found.append(json.loads(line))
    return found


def median(values):
    return sorted(values)[len(values) // 2]


def mbit(rate):
    return "-" if rate is None else f"{rate / 125e3:.1f}"


def share(part, whole):
    return f"{100 * part / whole:.0f}" if whole else "-"


def kind_of(load):
    if load["concurrent"] > 1:
        return "many"
    return "small" if load["row"] > 1 else "large"


class Run:
    """The results of one run."""

    def __init__(self, folder, name):
        self.name = name
        self.out = lines(folder / f"{name}.out")
        self.log = lines(folder / f"{name}.log")
        over = next((line for line in self.log if "over" in line), {})
        self.late = over.get("late_mean", 0)
        self.title = next((line["world"] for line in self.log
                           if "world" in line), name)

    def mark(self, name):
        return next((line for line in self.log if line.get("mark") == name),
                    {})

    def phases(self):
        """Measurements by phase and by kind of load."""
        found = {}
        for out in self.out:
            if "phase" not in out:
                continue
            mark = self.mark(f"{out['phase']} {out['load']}")
            n, calls = out["peers"], out["concurrent"] * out["row"]
            time = median(out["times"])
            sent = sum(map(sum, mark.get("bytes", [])))
            found.setdefault(out["phase"], {})[kind_of(out)] = {
                "n": n, "bytes": out["bytes"], "calls": calls, "time": time,
                "times": out["times"], "ring": mark.get("rate"),
                "best": mark.get("best"), "order": mark.get("ring", []),
                "busbw": out["bytes"] * calls * 2 * (n - 1) / n / time,
                "wire": sent / n / len(out["times"])}
        return found

    def optimized(self):
        return next((out for out in self.out if "optimize" in out), None)


def row(run, label, phase, kinds):
    large, many = kinds.get("large"), kinds.get("many")
    small = kinds.get("small")
    cells = [label, phase if phase in ("before", "after") else ""]
    if large:
        cells += [f"{large['bytes'] / 2**20:.3g}", f"{large['time']:.2f}",
                  mbit(large["busbw"]), share(large["busbw"], large["ring"]),
                  share(large["busbw"], large["best"]),
                  f"{large['wire'] / 2**20:.1f}"]
    else:
        cells += ["-"] * 6
    cells += [f"{many['time']:.2f}", mbit(many["busbw"])] if many else ["-"] * 2
    cells += [f"{1e3 * small['time'] / small['calls']:.1f}" if small else "-"]
    return cells + [f"{1e3 * run.late:.2f}"]


def markdown(head, rows):
    rows = [list(map(str, r)) for r in [head] + rows]
    width = [max(len(r[i]) for r in rows) for i in range(len(head))]

    def line(cells):
        return "| " + " | ".join(
            c.ljust(w) if i < 2 else c.rjust(w)
            for i, (c, w) in enumerate(zip(cells, width))) + " |"
    rule = "|" + "|".join("-" * (w + 1) + ("-" if i < 2 else ":")
                          for i, w in enumerate(width)) + "|"
    return [line(rows[0]), rule] + [line(r) for r in rows[1:]]


def notes(run, phases):
    """Remarks below a table: the rings and the times of each repetition."""
    parts = []
    took = run.optimized()
    if took:
        parts.append(f"optimizing took {took['time']:.2f} s"
                     if took["optimize"] == 0
                     else f"optimizing failed with {took['optimize']}")
    for phase in ("before", "after"):
        large = phases.get(phase, {}).get("large")
        if large and large["order"]:
            parts.append(f"{phase}: " + " ".join(map(str, large["order"])))
        if large and len(large["times"]) > 4:
            parts.append(f"each, {phase}: " + " ".join(
                f"{t:.2f}" for t in large["times"]) + " s")
    return "; ".join(parts)


def scenario(folder, name):
    rows, text, title = [], [], name
    wires = {}
    for kind in KINDS:
        run = Run(folder, f"{name}-{kind}")
        phases = run.phases()
        for phase, kinds in phases.items():
            rows.append(row(run, NAMES[kind], phase, kinds))
            title = run.title
            if "large" in kinds:
                wires[kind, phase] = kinds["large"]
        if kind == "auto" and phases:
            text.append(f"Automatic: {notes(run, phases)}.")
    same = [(wires["auto", p], wires["codes", p]) for p in ("before", "after")
            if ("auto", p) in wires and ("codes", p) in wires]
    if same and same[-1][1]["wire"]:
        plain, codes = same[-1]
        text.append(f"Codes: {plain['wire'] / codes['wire']:.2f} times fewer "
                    f"bytes, {plain['time'] / codes['time']:.2f} times as fast.")
    if not rows:
        return []
    return [f"## {title}", "", *markdown(HEAD, rows), "", *text, ""]


def faults(folder):
    rows = []
    for name in ("vanish", "partition"):
        for out in Run(folder, name).out:
            for word in ("recovered", "gathered"):
                if word in out:
                    rows.append((name, word, out["peers"],
                                 f"{out[word]:.2f}"))
    if not rows:
        return []
    return ["## Losses", "", "From the launch of the operation in which peers "
            "are lost to its result among the others,", "and from the healing "
            "of the network until all are back.", "",
            *markdown(("", "", "peers left", "s"), rows), ""]


def sweeps(folder):
    rows = []
    found = [int(p.stem.split("-")[1]) for p in folder.glob("sweep-*.out")]
    for n in sorted(found):
        run = Run(folder, f"sweep-{n}")
        took, mark = run.optimized(), run.mark("optimize")
        if not took or took["optimize"] != 0:
            continue
        sent = sum(map(sum, mark.get("bytes", [])))
        rows.append((n, n * (n - 1), f"{took['time']:.2f}",
                     f"{sent / n / 2**20:.2f}", f"{1e3 * run.late:.2f}"))
    if not rows:
        return []
    return ["## Sweep by size of the world", "", "A first optimization of peers "
            "20 ms apart, 50 Mbit/s for each pair.", "",
            *markdown(("peers", "links", "s", "MiB sent by a peer", "late ms"),
                      rows), ""]


def plain(folder, name, title):
    path = folder / f"{name}.out"
    if not path.exists():
        return []
    return [f"## {title}", "", "```",
            path.read_text(encoding="utf-8").rstrip(), "```", ""]


def report(folder):
    groups = [line for name in SCENARIOS for line in scenario(folder, name)]
    out = ["# What was measured over emulated networks", ""]
    if groups:
        out += [EXPLAIN] + groups
    out += faults(folder) + sweeps(folder)
    out += plain(folder, "solver", "Ring solver: quality and time by size")
    out += plain(folder, "codes", "Quantization: throughput and error")
    return "\n".join(out).rstrip() + "\n"


# --------------------------------------------------------------------- plot

def text_at(x, y, text, more=""):
    return f'<text x="{x:.0f}" y="{y:.0f}" {more}>{text}</text>'


def plot(folder):
    """A plot of the bandwidth of each run, beside the capacity of the links."""
    groups = []
    for name in SCENARIOS:
        found = []
        for kind in KINDS:
            for phase, kinds in Run(folder, f"{name}-{kind}").phases().items():
                if "large" in kinds:
                    found.append((kind, phase, kinds))
        if found:
            groups.append((Run(folder, f"{name}-{found[0][0]}").title, found))
    if not groups:
        return None
    left, width, step = 190, 460, 17
    height = 60 + sum(34 + step * len(found) for _, found in groups)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 130}"'
           f' height="{height}" font-family="sans-serif" font-size="11">',
           '<rect width="100%" height="100%" fill="#fff"/>',
           text_at(16, 20, "All-reduce over emulated links: what every link of "
                   "the ring carried, Mbit/s of payload", 'font-size="14"'),
           text_at(16, 38, "bar: one large vector; dot: 64 small ones at once; "
                   "light: slowest link of the ring in use; outline: of the "
                   "best ring; right: % of best, ms for 8 KiB")]
    y = 52
    for title, found in groups:
        most = max(max(k["busbw"], k["best"] or 0, k["ring"] or 0)
                   for _, _, kinds in found for k in kinds.values()
                   if k["calls"] == 1)
        scale = width / most
        y += 22
        out.append(text_at(16, y, title, 'font-weight="bold"'))
        y += 6
        for kind, phase, kinds in found:
            out += plot_row(left, y, scale, kind, phase, kinds)
            y += step
        y += 6
    out.append("</svg>")
    path = folder / "wan.svg"
    path.write_text("\n".join(out) + "\n", encoding="utf-8")
    return path


def plot_row(left, y, scale, kind, phase, kinds):
    large, many, small = (kinds.get(k) for k in ("large", "many", "small"))
    colour = {"mpich": "#b06a1f", "gloo": "#8a8a1f"}.get(
        kind, "#1f5f9f" if phase == "after" else "#6f8fb0")

    def bar(value, style, top, thick):
        return (f'<rect x="{left}" y="{y + top}" height="{thick}" '
                f'width="{scale * (value or 0):.1f}" {style}/>')
    label = NAMES[kind] + (f", {phase}" if phase in ("before", "after") else "")
    out = [text_at(left - 6, y + 11, label, 'text-anchor="end"'),
           bar(large["ring"], 'fill="#d5e4f3"', 1, 13),
           bar(large["busbw"], f'fill="{colour}"', 4, 7),
           bar(large["best"], 'fill="none" stroke="#999"', 1, 13)]
    end = max(large["best"] or 0, large["ring"] or 0, large["busbw"])
    if many:
        end = max(end, many["busbw"])
        out.append(f'<circle cx="{left + scale * many["busbw"]:.1f}" '
                   f'cy="{y + 7.5}" r="3.5" fill="#d33" stroke="#fff"/>')
    words = f"{share(large['busbw'], large['best'])} %"
    if small:
        words += f", {1e3 * small['time'] / small['calls']:.1f} ms"
    return out + [text_at(left + scale * end + 8, y + 11, words)]


def main():
    if len(sys.argv) != 2 or not pathlib.Path(sys.argv[1]).is_dir():
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    text = report(folder)
    (folder / "RESULTS.md").write_text(text, encoding="utf-8")
    print(text, end="")
    plot(folder)


if __name__ == "__main__":
    main()
