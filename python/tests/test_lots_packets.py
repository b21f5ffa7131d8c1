"""Flows over several full links, a parking lot: what the theory predicts, held against packets."""

import random

import numpy as np
import pytest
from test_laws_packets import log, within

import aqumen
from aqumen import theory
from aqumen.errors import ScenarioError

PRESETS = ("modern", "cubic", "dctcp")


def lot(preset: str, rates: list[int], base: float, target: int, through: int, cross: list[int], extra: str = ""):
    hops = len(rates)

    def group(name: str, count: int, start: int, end: int) -> str:
        transport = f'{{ preset = "{preset}"{extra} }}'
        where = f'from = "r{start}"\nto = "r{end}"\nstart = ["0s", "1s"]'
        return f'[[flows]]\nname = "{name}"\ncount = {count}\n{where}\ntransport = {transport}\n'

    groups = group("through", through, 0, hops) + "".join(group(f"cross{k}", n, k, k + 1) for k, n in enumerate(cross))
    delay, length = 500 * base / (hops + 1), 60 + 250 * base
    return aqumen.Scenario.parse(f"""
name = "lot"
duration = "{length:g}s"
aqm = "pi"
record = {{ interval = "20ms" }}
windows = {{ steady = ["{0.35 * length:g}s", "{length:g}s"] }}
{groups}
[topology]
preset = "parking-lot"
rate = [{", ".join(f'"{rate}bit"' for rate in rates)}]
delay = "{delay:.4f}ms"
buffer = "{max(60, 4 * target)}pkt"
access = {{ rate = "{8 * max(rates)}bit", delay = ["{0.45 * delay:.4f}ms", "{0.55 * delay:.4f}ms"] }}
[nominal]
capacity = "{min(rates)}bit"
flows = {through + cross[0]}
base_rtt = "{base:g}s"
target = "{target}pkt"
packet = "1500B"
""")


def lots(seed: int, count: int, presets=PRESETS):
    """Two or three links of similar rates, flows over all of them and over each."""
    draw, found = random.Random(seed), 0
    while found < count:
        hops, preset = draw.choice([2, 3]), draw.choice(presets)
        pps, base, window, share = log(draw, 800, 4000), log(draw, 0.04, 0.2), log(draw, 5, 20), draw.uniform(0.2, 0.5)
        rates = [round(12000 * pps * draw.uniform(0.8, 1.25)) for _ in range(hops)]
        flows, target = round(pps * base / (1 - share) / window), round(pps * base * share / (1 - share))
        through = max(4, round(flows * draw.uniform(0.3, 0.7)))
        if 8 <= flows <= 150 and target >= 15:
            found += 1
            extra = ", ecn = true" if preset == "ns2" else ""
            yield lot(preset, rates, base, target, through, [max(4, flows - through)] * hops, extra)


def held_against_packets(seed: int, count: int):
    """Predicted over measured: of each queue its mean, share and deviation; of each group its rate."""
    queues, rates = [], []
    for made in lots(seed, count):
        at, told, seen = theory.predict(made, "pi"), aqumen.run(made, "pi", engine="theory"), aqumen.run(made, "pi")
        for name, windows in at.items():
            here, link = windows["steady"], seen.link(name, "steady")
            assert here["several"]["stable"]
            noise = here["analysis"]["noise"]
            deviation = noise["queue_std_pkts"] / link["queue_std_pkts"] if noise["valid"] else np.nan
            queues.append(
                (here["queue_pkts"] / link["queue_mean_pkts"], here["probability"] / link["mark_ratio"], deviation)
            )
        for name, windows in seen.data["flows"].items():
            rates.append(told.data["flows"][name]["steady"]["goodput_bps"] / windows["steady"]["goodput_bps"])
    return np.array(queues), np.array(rates)


def fluid_against_packets(seed: int, count: int, aqm: str, preset: str):
    """The fluid engine's over measured: of each queue its mean and share, of each group its rate."""
    queues, rates = [], []
    for made in lots(seed, count, (preset,)):
        fluid, seen = aqumen.run(made, aqm, engine="fluid"), aqumen.run(made, aqm)
        for name, windows in seen.data["links"].items():
            ours, link = fluid.link(name, "steady"), windows["steady"]
            # PIE drops packets where its probability is above mark_p.
            told, signals = (at["mark_ratio"] + at["early_drop_ratio"] for at in (ours, link))
            queues.append([ours["queue_mean_pkts"] / link["queue_mean_pkts"], told / signals])
        for name, windows in seen.data["flows"].items():
            rates.append(fluid.data["flows"][name]["steady"]["goodput_bps"] / windows["steady"]["goodput_bps"])
    return np.array(queues), np.array(rates)


def known(column):
    return column[~np.isnan(column)]


def test_a_parking_lot_rests_and_swings_as_packets_do():
    queues, rates = held_against_packets(1618, 3)
    assert within(queues[:, 0], 0.05) == 1
    assert within(queues[:, 1], 0.1) >= 0.8
    assert within(known(queues[:, 2]), 0.25) >= 0.7
    assert within(rates, 0.1) >= 0.8


@pytest.mark.slow
def test_parking_lots_rest_and_swing_as_packets_do_on_twenty_four_networks():
    queues, rates = held_against_packets(4711, 24)
    for what, column in zip(("queue", "share", "deviation"), queues.T, strict=True):
        ratios = known(column)
        shares = ", ".join(f"{within(ratios, share):.2f}" for share in (0.1, 0.15, 0.25))
        print(f"{what} {len(ratios)}: {np.median(ratios):.2f}, {shares}")
    print(f"rates {len(rates)}: {np.median(rates):.2f}, {within(rates, 0.1):.2f}")
    assert within(queues[:, 0], 0.1) >= 0.95
    assert within(queues[:, 1], 0.1) >= 0.9
    assert within(known(queues[:, 2]), 0.15) >= 0.75
    assert within(rates, 0.1) >= 0.9


def test_a_wide_link_keeps_no_queue_and_one_full_link_is_as_ever():
    rates = [12_000_000, 96_000_000]
    made = lot("modern", rates, 0.1, 60, 20, [5])
    at = theory.predict(made, "pi")
    assert "several" not in at["link1"]["steady"]
    assert at["link1"]["steady"]["queue_pkts"] == pytest.approx(60)
    assert at["link2"]["steady"]["queue_pkts"] < 1


def test_what_is_not_known_of_several_links_is_refused():
    lossy = lot("modern", [12_000_000, 12_000_000], 0.1, 60, 20, [20, 20], ", ecn = false")
    with pytest.raises(ScenarioError, match="link1, link2, which flows share: signals are losses"):
        theory.predict(lossy, "pi")
