"""Step through a run: look inside, halve the link, and ask what another AQM would have done.

    python examples/session.py

It needs matplotlib for the picture (`pip install "aqumen[plot]"`).
"""

import aqumen


def main() -> None:
    """Play a run and print what it shows."""
    with aqumen.Session("arm-pfc/exp1", aqm="pi", seed=1) as run:
        run.advance("20s")
        link = run.link()
        print(f"at {run.now_s:g} s {link.queue_pkts} packets wait, p = {link.probability:.3f}")
        first = link.contents()[0]
        print(
            f"the next one is of flow {first.flow}, {first.bytes} bytes, {'marked' if first.marked else 'not marked'}"
        )

        futures = aqumen.what_if(
            run,
            {
                "pi": {"link": "bottleneck", "capacity": "4Mbit"},
                "codel": [
                    {"link": "bottleneck", "capacity": "4Mbit"},
                    {"link": "bottleneck", "aqm": "codel"},
                ],
            },
            horizon="10s",
            futures=10,
        )
        print("after the link has halved, for ten seconds:")
        for name, metrics in futures.items():
            delay = metrics["sojourn_mean_s"]
            low, high = delay["ci95"]
            print(f"  {name}: {delay['mean'] * 1e3:.0f} ms of delay ({low * 1e3:.0f} to {high * 1e3:.0f})")

        run.set("bottleneck.rate", "4Mbit")
        run.advance("20s")
        run.plot().savefig("session.svg")
        print("session.svg shows the first 40 s")


if __name__ == "__main__":
    main()
