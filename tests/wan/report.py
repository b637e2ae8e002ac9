#!/usr/bin/env python3
"""report.py NAME... - table lines from NAME.out and NAME.log of runs.

report.py --head         the table's head
report.py --plot FOLDER  draws FOLDER/wan.svg from all results in it

busbw is what every link of the ring carries, 2(n-1)/n of the vectors' bytes by
the time from the first launch to the last result, in Mbit/s of payload. `ring`
is what the slowest link of the ring in use can carry, `best` that of the best
ring, both with TCP's and IP's headers, so that 96.5 % is the most there is.
`late` is how long packets waited for the emulator itself: figures with more
than a millisecond are those of an overloaded machine.
"""
import json
import pathlib
import sys

HEAD = ("run", "phase", "n", "MiB", "ops", "pool", "time s", "busbw", "ring",
        "% ring", "best", "% best", "late ms")
FORM = "{:<16} {:<7} {:>3} {:>6} {:>4} {:>4} {:>8} {:>7} {:>7} {:>6} {:>7} " \
       "{:>6} {:>7}"


def lines(path):
    """The JSON objects of a file; other lines are people's."""
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
    return f"{100 * part / whole:.1f}" if whole else "-"


def rows(name):
    """One dictionary for each measured phase of a run."""
    log = lines(pathlib.Path(f"{name}.log"))
    marks = {line["mark"]: line for line in log if "mark" in line}
    over = next((line for line in log if "over" in line), {})
    for out in lines(pathlib.Path(f"{name}.out")):
        if "phase" not in out:
            continue
        mark = marks.get(out["phase"], {})
        size = out["bytes"] * out["concurrent"]
        n = out["peers"]
        time = median(out["times"])
        yield {"name": pathlib.Path(name).name, "phase": out["phase"], "n": n,
               "mib": out["bytes"] / 2**20, "ops": out["concurrent"],
               "pool": out["pool"], "time": time, "times": out["times"],
               "busbw": size * 2 * (n - 1) / n / time,
               "ring": mark.get("rate"), "best": mark.get("best"),
               "order": mark.get("ring", []),
               "late": over.get("late_mean", 0)}


def events(name):
    """What is not a measured phase, in words."""
    for out in lines(pathlib.Path(f"{name}.out")):
        if "optimize" in out:
            ok = "adopted" if out["optimize"] == 0 else \
                f"failed with {out['optimize']}"
            yield f"optimizing took {out['time']:.2f} s and {ok}"
        for word in ("recovered", "gathered"):
            if word in out:
                yield f"{word} after {out[word]:.2f} s: {out['peers']} peers"


def table(name):
    for r in rows(name):
        print(FORM.format(
            r["name"], r["phase"], r["n"], f"{r['mib']:.4g}", r["ops"],
            r["pool"], f"{r['time']:.3f}", mbit(r["busbw"]), mbit(r["ring"]),
            share(r["busbw"], r["ring"]), mbit(r["best"]),
            share(r["busbw"], r["best"]), f"{1e3 * r['late']:.2f}"))
        if len(r["times"]) > 4:
            print("    each: " + " ".join(f"{t:.2f}" for t in r["times"]))
        print("    ring: " + " ".join(map(str, r["order"])))
    for text in events(name):
        print(f"    {pathlib.Path(name).name}: {text}")


def plot(folder):
    """Bars of what was reached over bars of what the links can carry."""
    found = [r for log in sorted(folder.glob("*.log"))
             for r in rows(str(log)[:-4]) if r["best"]]
    if not found:
        return
    left, width, step = 210, 560, 26
    most = max(r["best"] for r in found)
    height = step * len(found) + 60
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 90}"'
           f' height="{height}" font-family="sans-serif" font-size="12">',
           '<rect width="100%" height="100%" fill="#fff"/>',
           f'<text x="{left}" y="20">All-reduce over emulated links, Mbit/s: '
           'dark what every link carried, light the slowest link of the ring, '
           'outlined that of the best ring</text>']
    for i, r in enumerate(found):
        y = 36 + step * i
        label = f"{r['name']} {r['phase']}"

        def bar(value, style, top=0, thick=18):
            return (f'<rect x="{left}" y="{y + top}" height="{thick}" '
                    f'width="{width * value / most:.1f}" {style}/>')
        out.append(f'<text x="{left - 8}" y="{y + 13}" text-anchor="end">'
                   f'{label}</text>')
        out.append(bar(r["ring"] or 0, 'fill="#bcd6f0"'))
        out.append(bar(r["busbw"], 'fill="#1f5f9f"', 4, 10))
        out.append(bar(r["best"], 'fill="none" stroke="#444"'))
        out.append(f'<text x="{left + width * r["best"] / most + 6:.1f}" '
                   f'y="{y + 13}">{share(r["busbw"], r["best"])} %</text>')
    out.append("</svg>")
    (folder / "wan.svg").write_text("\n".join(out) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:] == ["--head"]:
        print(FORM.format(*HEAD))
    elif len(sys.argv) == 3 and sys.argv[1] == "--plot":
        plot(pathlib.Path(sys.argv[2]))
    elif len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
        for argument in sys.argv[1:]:
            table(argument)
    else:
        sys.exit(__doc__)
