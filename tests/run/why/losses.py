#!/usr/bin/env python3
"""losses.py - a loss is told with rank, host, process and reason, without -v.

usage: losses.py MASTER RANK

MASTER is pccl-master, RANK is why_rank. Rank 1 of three is lost, in one way after
the other, while the others wait for it.
"""
import re
import subprocess
import sys

WAYS = {
    "kill": r"rank 1 \(pid \d+ on \S+\) was killed by signal 9 ",
    "vanish": r"rank 1 \(pid \d+ on \S+\) exited with status 0, but without "
              r"MPI_Finalize; ending the job$",
    "stop": r"rank 1 \(\S+, pid \d+\) evicted: was stopped by a signal for ",
}


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    failed = False
    for way, wanted in WAYS.items():
        job = subprocess.run([sys.argv[1], "-n", "3", sys.argv[2], way, "1"],
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE, check=False)
        said = job.stderr.decode()
        told = re.search(wanted, said, re.MULTILINE)
        false = "called MPI_Abort" in said
        print("%s: status %d\n%s" % (way, job.returncode, said))
        if not told or false or job.returncode == 0:
            print("FAILED: %s" % ("nobody called MPI_Abort" if false else wanted))
            failed = True
    sys.exit(failed)


if __name__ == "__main__":
    main()
