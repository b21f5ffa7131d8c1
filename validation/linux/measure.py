"""Each AQM that has a profile of Linux's beside that profile and its RFC: the tables in docs/aqms.

    python validation/linux/measure.py            # all that is not measured yet, then the tables
    python validation/linux/measure.py --tables   # the tables alone, from what is measured

Runs are kept one a line in validation/linux/measured.jsonl, so that a run that was stopped goes on where it was:
give --fresh after a change of an AQM or of a sender, with --aqm and --rate for some of the runs. Two processes at most.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aqumen

HERE = Path(__file__).parent
PAGES = HERE.parents[1] / "docs" / "aqms"
MEASURED = HERE / "measured.jsonl"

RATES = ("256kbit", "2Mbit", "20Mbit", "200Mbit")
ROUND_TRIPS_MS = (20, 100)
FLOWS = (1, 10, 50)
SEEDS = (1, 2)

SPECS: dict[str, dict[str, str]] = {
    "codel": {"ours": "codel", "Linux": "codel-linux:ecn=true"},
    "pie": {"ours": "pie", "Linux": "pie-linux:ecn=true"},
    "fq-codel": {
        "ours": "fq-codel",
        "Linux": "fq-codel-linux",
        "RFC": "fq-codel:backlog=queue,half=packets,count_drops=false,limit=10240pkt",
    },
    "fq-pie": {"ours": "fq-pie", "Linux": "fq-pie-linux:ecn=true"},
    "dualpi2": {"ours": "dualpi2", "Linux": "dualpi2-linux"},
    "red": {
        "ours": "red:thresholds=tc,weight_rule=tc,max_p=0.02",
        "Linux": "red-linux:ecn=true",
    },
    "sfq": {"ours": "sfq", "Linux": "sfq-linux"},
    "cake": {
        "ours": "cake",
        "Linux": "cake-linux",
        "no rate": "cake:rate=0bit",
    },
}
"""Comparisons, by page. Marks are on in all: how they differ by default is said in the pages. Ours is the RFC's
where no other is named; CAKE, RED and SFQ have none."""


def main() -> None:
    """Measure, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--tables", action="store_true", help="measure nothing")
    parser.add_argument("--fresh", action="store_true", help="forget what is measured of the pages and rates asked for")
    parser.add_argument("--aqm", choices=sorted(SPECS), action="append", help="of these pages alone")
    parser.add_argument("--rate", choices=RATES, action="append", help="at these rates alone")
    parser.add_argument("--processes", type=int, choices=(1, 2), default=2)
    arguments = parser.parse_args()
    pages, rates = arguments.aqm or list(SPECS), arguments.rate or list(RATES)
    if arguments.fresh:
        forgotten = {key_of(case) for case in cases(pages, rates)}
        kept = [row for row in measured() if key_of(row) not in forgotten]
        MEASURED.write_text("".join(json.dumps(row) + "\n" for row in kept))
    if not arguments.tables:
        known = {key_of(row) for row in measured()}
        left = [case for case in cases(pages, rates) if key_of(case) not in known]
        with multiprocessing.Pool(arguments.processes) as pool, MEASURED.open("a") as file:
            for number, row in enumerate(pool.imap_unordered(run, left), 1):
                print(json.dumps(row), file=file, flush=True)
                if number % 50 == 0 or number == len(left):
                    print(f"{number} of {len(left)}", flush=True)
    rows = measured()
    for page in pages:
        write_table(page, rows)


def cases(pages: list[str], rates: list[str]) -> Iterator[dict[str, Any]]:
    """Everything that is to be run, the fast ones first."""
    for rate in rates:
        for rtt_ms in ROUND_TRIPS_MS:
            for flows in FLOWS:
                for page in pages:
                    for spec in SPECS[page].values():
                        for seed in SEEDS:
                            yield {"rate": rate, "rtt_ms": rtt_ms, "flows": flows, "spec": spec, "seed": seed}


def key_of(row: dict[str, Any]) -> tuple[Any, ...]:
    """Key of a run."""
    return tuple(row[name] for name in ("rate", "rtt_ms", "flows", "spec", "seed"))


def measured() -> list[dict[str, Any]]:
    """Every run that is done."""
    return [json.loads(line) for line in MEASURED.read_text().splitlines()] if MEASURED.exists() else []


def run(case: dict[str, Any]) -> dict[str, Any]:
    """One run."""
    changes = [
        ("topology.bottleneck.rate", case["rate"]),
        # The access links have the rest of the way there and back.
        ("topology.bottleneck.delay", f"{case['rtt_ms'] / 2 - 2}ms"),
        ("flows.0.count", str(case["flows"])),
    ]
    if case["spec"].startswith("dualpi2"):
        text = (HERE / "scenario.toml").read_text()
        group = text[text.index("[[flows]]") :].replace('"cubic"', '"prague"')
        scenario = aqumen.Scenario.parse(text + "\n" + group, "scenario.toml")
        changes.append(("flows.1.count", str(case["flows"])))
    else:
        scenario = aqumen.Scenario.load(HERE / "scenario.toml")
    if case["rate"] == "256kbit":
        changes += [("duration", "120s"), ("windows.steady", "40s")]
    data = aqumen.run(scenario.set_all(changes), aqm=case["spec"], seed=case["seed"]).data
    link = data["links"]["bottleneck"]["steady"]
    flows = {name: group["steady"] for name, group in data["flows"].items()}
    dropped = link["early_dropped_pkts"] + link["overflow_dropped_pkts"]
    # Of those that left or were dropped: where packets wait for long, other numbers arrive within the window.
    gone = max(link["departures_pkts"] + dropped, 1)
    return case | {
        "utilization": link["utilization"],
        "sojourn_ms": 1e3 * link["sojourn_mean_s"],
        "p99_ms": 1e3 * link["sojourn_p99_s"],
        "start_p99_ms": 1e3 * data["links"]["bottleneck"]["all"]["sojourn_p99_s"],
        "marked": link["marked_pkts"] / gone,
        "dropped": dropped / gone,
        "timeouts": sum(group["timeouts"] for group in flows.values()),
        "goodput_mbps": {name: group["goodput_bps"] / 1e6 for name, group in flows.items()},
    }


def write_table(page: str, rows: list[dict[str, Any]]) -> None:
    """Put the table of a page where it belongs."""
    path = PAGES / f"{page}.md"
    text = path.read_text()
    begin, end = "<!-- measured: linux -->\n", "<!-- end -->"
    start = text.index(begin) + len(begin)
    path.write_text(text[:start] + table(page, rows) + text[text.index(end, start) :])


def table(page: str, rows: list[dict[str, Any]]) -> str:
    """Means over the seeds, one line for each network."""
    specs = SPECS[page]
    names = list(specs)
    signs = "goodput of CUBIC / Prague, Mbit/s" if page == "dualpi2" else "marked + dropped, %"
    lines = [
        f"Each cell: {', '.join(names)}. `python validation/linux/measure.py`; "
        + ", ".join(f"{name}: `{spec}`" for name, spec in specs.items())
        + ".",
        "",
        f"| rate | RTT, ms | flows | utilisation, % | mean sojourn, ms | 99th percentile, ms | {signs} | time-outs |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for rate in RATES:
        for rtt_ms in ROUND_TRIPS_MS:
            for flows in FLOWS:
                cells = []
                for spec in specs.values():
                    known = (rate, rtt_ms, flows, spec)
                    cells.append([row for row in rows if key_of(row)[:4] == known])
                if not all(cells):
                    continue
                columns = [
                    [f"{100 * mean(cell, 'utilization'):.1f}" for cell in cells],
                    [f"{mean(cell, 'sojourn_ms'):.1f}" for cell in cells],
                    [f"{mean(cell, 'p99_ms'):.0f}" for cell in cells],
                    [signals(page, cell) for cell in cells],
                    [f"{mean(cell, 'timeouts'):.0f}" for cell in cells],
                ]
                shown = flows if page != "dualpi2" else f"{flows} + {flows}"
                line = " | ".join(", ".join(each) for each in columns)
                lines.append(f"| {rate} | {rtt_ms} | {shown} | {line} |")
    return "\n".join(lines) + "\n"


def signals(page: str, cell: list[dict[str, Any]]) -> str:
    """How often packets are signalled; for DualPI2 what either kind gets."""
    if page == "dualpi2":
        return " / ".join(
            f"{statistics.mean(row['goodput_mbps'][name] for row in cell):.3g}" for name in ("cubic", "prague")
        )
    return f"{100 * mean(cell, 'marked'):.2f} + {100 * mean(cell, 'dropped'):.2f}"


def mean(cell: list[dict[str, Any]], name: str) -> float:
    """Over the seeds."""
    return statistics.mean(float(row[name]) for row in cell)


if __name__ == "__main__":
    main()
