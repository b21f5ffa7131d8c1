"""The papers' networks beside recorded runs of ns-2: a table of ours and theirs, as Markdown.

    python validation/ns2/networks.py [--seeds N] [--only TEXT]

`networks.csv` has the runs of ns-2. ns-2 counts a mark where the packet was not marked before, a mark of ours is every
decision to mark: behind the first of several bottlenecks the two differ.
"""

import argparse
import csv
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean

import aqumen

HERE = Path(__file__).parent
# Our experiment and AQM for the labels of the recorded runs; the window that they were measured over.
EXPERIMENTS = {
    "arm_exp7": "arm-pfc/exp7",
    "arm_exp8_20kbit": "arm-pfc/exp8",
    "arm_parkinglot": "arm-pfc/parking-lot",
    "paqm_n3": "paqm/load@n3",
    "paqm_n7": "paqm/load@n7",
    "mo_rtt22ms": "aqm-mo/rtt@22ms",
    "mo_rtt100ms": "aqm-mo/rtt@100ms",
    "mo_rtt464ms": "aqm-mo/rtt@464ms",
    "staqm_1over40": "self-tuning/fortieth",
}
AQMS = {
    "DropTail": "droptail:ns2_limit=true",
    "RED": "red-ns2",
    "RED50mk": "red50",
    "PIpaper": "pi-printed",
    "PIx1000": "pi-x1000",
    "ARED": "ared-ns2:ns2_stale_gentle=true",
}
OWN = {
    ("paqm_n3", "PI"): "pi-c",
    ("paqm_n7", "PI"): "pi-c",
    # The recorded runs had RED gentle.
    ("paqm_n3", "RED"): "red-r:gentle=true",
    ("paqm_n7", "RED"): "red-r:gentle=true",
    # ns-2's automatic weight follows from the delay of the link. That RED counted packets, not bytes, and with
    # which delay is not recorded with the runs: it is inferred from the fit.
    ("mo_rtt22ms", "RED"): "red-ns2:link_delay=10ms,bytes=false,queue_in_bytes=false",
    ("mo_rtt100ms", "RED"): "red-ns2:link_delay=49ms,bytes=false,queue_in_bytes=false",
    ("mo_rtt464ms", "RED"): "red-ns2:link_delay=231ms,bytes=false,queue_in_bytes=false",
    # Inferred likewise: acknowledgements share the queue.
    ("staqm_1over40", "ARED"): "ared-ns2:queue_in_bytes=false,bytes=false",
}
METRICS = ("utilization", "queue_mean_pkts", "queue_std_pkts", "signal_ratio", "drop_ratio")


def recorded(only: str = "") -> dict[tuple[str, str, str], list[dict[str, float]]]:
    """The runs of ns-2: lists of measures by (experiment, AQM, link)."""
    runs: dict[tuple[str, str, str], list[dict[str, float]]] = {}
    with (HERE / "networks.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            key = (row["experiment"], row["aqm"], row["link"])
            if only in " ".join(key):
                runs.setdefault(key, []).append({metric: float(row[metric]) for metric in METRICS})
    return runs


def simulated(experiment: str, aqm: str, seeds: int) -> list[dict[str, dict[str, float]]]:
    """Ours: for each seed the measures of every link from 10 s on."""
    scenario = aqumen.Scenario.load(EXPERIMENTS[experiment])
    # The recorded runs over the round-trip time lasted for a minute.
    shorter = [("duration", "60s")] if experiment.startswith("mo_") else []
    scenario = scenario.set_all([*shorter, ("windows.steady", "10s")])
    spec = OWN.get((experiment, aqm)) or AQMS[aqm]
    runs = []
    for seed in range(1, seeds + 1):
        links = aqumen.run(scenario, spec, seed).data["links"]
        runs.append({link: measures(windows["steady"]) for link, windows in links.items()})
    return runs


def measures(metrics: Mapping[str, float]) -> dict[str, float]:
    """The compared metrics: `signal_ratio` counts marks and early drops, `drop_ratio` all drops."""
    drops = metrics["early_drop_ratio"] + metrics["overflow_drop_ratio"]
    own = {"signal_ratio": metrics["mark_ratio"] + metrics["early_drop_ratio"], "drop_ratio": drops}
    return {metric: own[metric] if metric in own else metrics[metric] for metric in METRICS}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", default="", help="only rows that have this text in experiment, AQM or link")
    given = parser.parse_args()
    print("| experiment | AQM | link | utilisation | queue pkt | its std | signalled | dropped |")
    print("|---|---|---|---|---|---|---|---|")
    cache = {}
    for (experiment, aqm, link), theirs in recorded(given.only).items():
        if (experiment, aqm) not in cache:
            cache[experiment, aqm] = simulated(experiment, aqm, given.seeds)
        ours = [run[link] for run in cache[experiment, aqm]]
        cells = []
        for metric, digits in zip(METRICS, (4, 1, 1, 4, 4), strict=True):
            pair = (fmean(run[metric] for run in ours), fmean(run[metric] for run in theirs))
            cells.append(" / ".join(f"{value:.{digits}f}" for value in pair))
        print(f"| {EXPERIMENTS[experiment]} | {aqm} | {link} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
