"""python -m pccl.master: a master alone; pccl-master --listen does more."""
from __future__ import annotations

import argparse

from pccl.run import Master


def main() -> None:
    """Serves until Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--listen-address", default="0.0.0.0:48148",
                        help="host:port")
    arguments = parser.parse_args()
    with Master(arguments.listen_address) as master:
        print(f"pccl master on {arguments.listen_address}", flush=True)
        try:
            master.join()
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    main()
