#!/usr/bin/env python3
"""compare_newest.py DATA - table for compare_newest.sh.

DATA has a line "RANKS TRANSPORT CASE LIBRARY MICROSECONDS" for each round; a
case is NAME:BYTES or NAME:BYTES:dirty. What is shown is the median of the
rounds, and ours by the best of the others.
"""
import statistics
import sys

OURS = "pccl"


def read(lines):
    """{(ranks, transport): {(name, bytes, dirty): {library: median}}}"""
    panels = {}
    for number, line in enumerate(lines, 1):
        words = line.split()
        try:
            ranks, transport, case, library, time = words
            name, size, *rest = case.split(":")
            key = (name, int(size), bool(rest))
            cases = panels.setdefault((int(ranks), transport), {})
            cases.setdefault(key, {}).setdefault(library, []).append(
                float(time))
        except ValueError:
            raise SystemExit(f"compare_newest.py: line {number} is no figure: {line}")
    for cases in panels.values():
        for key, libraries in cases.items():
            cases[key] = {library: statistics.median(times)
                          for library, times in libraries.items()}
    return panels


def ratio(times):
    peers = [time for library, time in times.items() if library != OURS]
    return times[OURS] / min(peers) if OURS in times and peers else None


def table(panels):
    for (ranks, transport), cases in sorted(panels.items()):
        libraries = sorted({one for times in cases.values() for one in times},
                           key=lambda one: (one != OURS, one))
        yield f"{ranks} ranks, {transport}: median, us"
        yield (f"{'':>16}{'bytes':>9}" + "".join(f"{one:>11}" for one in libraries)
               + f"{'/ best':>8}{'dirty':>8}")
        for name, size, dirty in sorted(cases):
            if dirty:
                continue
            times = cases[name, size, False]
            row = f"{name:>16}{size:>9}"
            for one in libraries:
                row += f"{times[one]:>11.2f}" if one in times else f"{'-':>11}"
            for found in (times, cases.get((name, size, True), {})):
                by = ratio(found)
                row += f"{by:>8.2f}" if by else f"{'-':>8}"
            yield row


def main():
    if len(sys.argv) != 2:
        raise SystemExit("usage: compare_newest.py DATA")
    with open(sys.argv[1], encoding="utf-8") as data:
        print("\n".join(table(read(data))))


if __name__ == "__main__":
    main()
