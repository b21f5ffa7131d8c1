"""Input of the ns-3 program, line by line: AQMs, congestion controls, the network; and refusals."""

import json
import tomllib
from typing import Any

import numpy as np
import pytest
from test_ns3 import CODEL, FQ_CODEL, TRANSPORT, plan

from aqumen.engines.external.crosscheck import select
from aqumen.engines.external.ns3 import Ns3Unsupported
from aqumen.engines.external.ns3.crosscheck import CELLS, DRAWN_PACKETS, drawn
from aqumen.engines.external.ns3.describe import describe

PIE = {
    "target": 0.015,
    "interval": 0.016,
    "alpha": 0.125,
    "beta": 1.25,
    "burst": 0.15,
    "mean_packet": 900,
    "cap": True,
    "derandomize": False,
    "delay": "sojourn",
    "mark_p": 0.2,
    "ecn": True,
}
COBALT = {
    "target": 0.005,
    "interval": 0.1,
    "increment": 0.004,
    "decrement": 0.0003,
    "blue_threshold": 0.4,
    "ecn": False,
    "mtu": 0,
}
RED = {
    "min_th": 10.0,
    "max_th": 30.0,
    "max_p": 0.05,
    "weight": 0.002,
    "gentle": True,
    "wait": False,
    "mean_packet": 500,
    "above": "mark",
    "ecn": True,
}
DISCS: dict[str, tuple[dict[str, Any], str, dict[str, str]]] = {
    "droptail": ({"ns2_limit": False}, "FifoQueueDisc", {}),
    "codel": (
        {**CODEL["params"], "ce_threshold": 0.001},  # type: ignore[dict-item]
        "CoDelQueueDisc",
        {
            "Target": "0.005s",
            "Interval": "0.1s",
            "MinBytes": "1501",
            "UseEcn": "true",
            "UseL4s": "false",
            "CeThreshold": "0.001s",
        },
    ),
    "pie": (
        PIE,
        "PieQueueDisc",
        {
            "QueueDelayReference": "0.015s",
            "Tupdate": "0.016s",
            "A": "0.125",
            "B": "1.25",
            "MaxBurstAllowance": "0.15s",
            "MeanPktSize": "900",
            "UseCapDropAdjustment": "true",
            "UseDerandomization": "false",
            "UseDequeueRateEstimator": "false",
            "MarkEcnThreshold": "0.2",
            "UseEcn": "true",
            "UseL4s": "false",
        },
    ),
    "cobalt": (
        COBALT,
        "CobaltQueueDisc",
        {
            "Target": "0.005s",
            "Interval": "0.1s",
            "Increment": "0.004",
            "Decrement": "0.0003",
            "BlueThreshold": "0.4s",
            "UseEcn": "false",
            "UseL4s": "false",
        },
    ),
    "fq-codel": (
        FQ_CODEL,
        "FqCoDelQueueDisc",
        {
            "Flows": "1024",
            "DropBatchSize": "64",
            "Target": "0.005s",
            "Interval": "0.1s",
            "UseEcn": "true",
            "UseL4s": "false",
            "quantum": "1514",
            "MinBytes": "1501",
        },
    ),
    "red": (
        RED,
        "RedQueueDisc",
        {
            "MinTh": "10.0",
            "MaxTh": "30.0",
            "LInterm": "20.0",
            "QW": "0.002",
            "Gentle": "true",
            "Wait": "false",
            "MeanPktSize": "500",
            "Ns1Compat": "true",
            "LinkBandwidth": "8000000bps",
            "UseHardDrop": "false",
            "UseEcn": "true",
        },
    ),
}


@pytest.mark.parametrize("name", DISCS)
def test_every_aqm_is_handed_over_whole_and_nothing_else(name: str) -> None:
    params, kind, attributes = DISCS[name]
    lines = describe(plan({"name": name, "params": params})).text.splitlines()
    assert [line for line in lines if line.startswith("disc ")] == [f"disc 0 ns3::{kind}"]
    told = dict(line.removeprefix("set 0 ").split(" ", 1) for line in lines if line.startswith("set "))
    assert told == {"MaxSize": "300p", **attributes}


def test_red_reckons_idle_time_by_the_rate_that_its_link_begins_with() -> None:
    raw = plan({"name": "red", "params": RED})
    raw["links"][0]["rates"] += [[5.0, 1e6], [9.0, 2e6]]
    assert "set 0 LinkBandwidth 8000000bps" in describe(raw).text.splitlines()


@pytest.mark.parametrize("name", [name for name in DISCS if name != "droptail"])
def test_a_parameter_that_is_missing_or_strange_is_named(name: str) -> None:
    params, _, _ = DISCS[name]
    optional = {"ce_threshold", "mtu"} if name in ("codel", "cobalt") else set()
    for missing in set(params) - optional:
        rest = {key: value for key, value in params.items() if key != missing}
        with pytest.raises(Ns3Unsupported, match=f"^AQM '{name}' for ns-3 needs the parameter '{missing}'$"):
            describe(plan({"name": name, "params": rest}))
    with pytest.raises(Ns3Unsupported, match=f"^AQM '{name}' in ns-3 has no parameter 'more'$"):
        describe(plan({"name": name, "params": params | {"more": 0.0}}))
    # What has no value is not there.
    describe(plan({"name": name, "params": params | {"more": None}}))


@pytest.mark.parametrize(
    ("name", "built_in", "ignored"),
    [
        ("droptail", {"ns2_limit": True}, ()),
        ("codel", {"ce_threshold_selector": "ect1"}, ("schedule", "arithmetic")),
        (
            "pie",
            {
                "auto_tune": False,
                "delay_boost": True,
                "safeguards": "linux",
                "on_off": True,
                "anti_windup": "conditional",
            },
            (),
        ),
        ("cobalt", {"mtu": 1}, ("arithmetic",)),
        (
            "fq-codel",
            {
                "memory": 1,
                "backlog": "all",
                "half": "packets",
                "count_drops": True,
                "emptied": "gone",
                "ce_threshold_selector": "ect1",
            },
            ("truesize", "schedule", "arithmetic"),
        ),
        (
            "red",
            {"use_mark_p": True, "spacing": "uniform"},
            ("thresholds", "target_delay", "weight_rule", "link_delay", "mark_p"),
        ),
    ],
)
def test_what_ns3_has_built_in_is_refused_otherwise(name: str, built_in: dict[str, Any], ignored: Any) -> None:
    params = DISCS[name][0]
    for key, value in built_in.items():
        with pytest.raises(Ns3Unsupported, match=rf"^AQM '{name}' in ns-3 has {key} = .* built in, not {value}$"):
            describe(plan({"name": name, "params": params | {key: value}}))
    same = describe(plan({"name": name, "params": params | dict.fromkeys(ignored, "anything")}))
    assert same.text == describe(plan({"name": name, "params": params})).text


def test_what_ns3_has_built_in_may_be_said() -> None:
    usual = {
        "pie": {"auto_tune": True, "delay_boost": False, "safeguards": "rfc8033", "bytemode": False, "on_off": False},
        "fq-codel": {"memory": 32 * 1024 * 1024, "backlog": "queue", "half": "bytes", "count_drops": False},
        "red": {"bytes": False, "queue_in_bytes": False, "use_mark_p": False, "spacing": "ns2"},
    }
    for name, said in usual.items():
        params = DISCS[name][0]
        assert describe(plan({"name": name, "params": params | said})).text
    rate = dict(PIE, delay="rate")
    assert "set 0 UseDequeueRateEstimator true" in describe(plan({"name": "pie", "params": rate})).text
    dropping = dict(RED, above="drop")
    assert "set 0 UseHardDrop true" in describe(plan({"name": "red", "params": dropping})).text
    with pytest.raises(Ns3Unsupported, match=r"^AQM 'red' in ns-3 has max_p above 0, not 0$"):
        describe(plan({"name": "red", "params": dict(RED, max_p=0.0)}))


RENO = {
    "control GrowthLimit": "2",
    "pacing on": "false",
    "socket SegmentSize": "948",
    "socket InitialCwnd": "10",
    # Nor does slow start go on beyond that.
    "socket InitialSlowStartThreshold": "9480",
    # A window of ten segments; the receiver has room for twice as many, so that the sender's buffer limits it.
    "socket SndBufSize": "9480",
    "socket RcvBufSize": "18960",
    "socket DelAckCount": "1",
    "socket DelAckTimeout": "0.2s",
    "socket ConnTimeout": "1.0s",
    "socket ConnCount": "1000",
    "socket DataRetries": "100000",
    "socket MinRto": "1.0s",
    "socket ClockGranularity": "1ms",
    "socket Sack": "true",
    "socket Timestamp": "true",
    "socket WindowScaling": "true",
    "socket LimitedTransmit": "true",
    "socket UseEcn": "On",
    "rtt InitialEstimation": "1.0s",
}


def defaults(change: dict[str, Any]) -> dict[str, str]:
    raw = plan()
    raw["groups"][0]["transport"] = TRANSPORT | change
    lines = describe(raw).text.splitlines()
    told = [line.removeprefix("option 0 ").split(" ") for line in lines if line.startswith("option 0 ")]
    return {f"{kind} {name}": value for kind, name, value in told}


def test_senders_are_handed_over_whole() -> None:
    assert defaults({}) == RENO
    assert defaults({"delayed_ack_s": 0.1, "ecn": False, "limited_transmit": False}) == RENO | {
        "socket DelAckCount": "2",
        "socket DelAckTimeout": "0.1s",
        "socket UseEcn": "Off",
        "socket LimitedTransmit": "false",
    }
    # Without timestamps the headers are 12 bytes shorter and the segments as much longer.
    assert defaults({"timestamps": False, "header_bytes": 40, "pacing": True, "initial_rto_s": 3.0}) == RENO | {
        "socket SegmentSize": "960",
        "socket InitialSlowStartThreshold": "9600",
        "socket SndBufSize": "9600",
        "socket RcvBufSize": "19200",
        "socket ConnTimeout": "3.0s",
        "socket Timestamp": "false",
        "pacing on": "true",
        "rtt InitialEstimation": "3.0s",
    }


OWN = {"control GrowthLimit"}


@pytest.mark.parametrize(
    ("change", "own"),
    [
        (
            {"congestion": "cubic", "whole_windows": True, "reno_friendly": False, "growth_limit": 8},
            {
                "control GrowthLimit": "8",
                "control FastConvergence": "true",
                "control Beta": "0.7",
                "control C": "0.4",
                "control HyStart": "false",
            },
        ),
        (
            {"congestion": "dctcp"},
            {"control DctcpShiftG": "0.0625", "control DctcpAlphaOnInit": "1.0", "control UseEct0": "true"},
        ),
        (
            {"congestion": "bbr"},
            {
                "control HighGain": "2.89",
                "control BwWindowLength": "10",
                "control RttWindowLength": "10s",
                "control ProbeRttDuration": "200ms",
            },
        ),
        ({"congestion": "vegas"}, {"control Alpha": "2", "control Beta": "4", "control Gamma": "1"}),
        (
            {"congestion": "ledbat"},
            {
                "control TargetDelay": "100ms",
                "control Gain": "1.0",
                "control BaseHistoryLen": "10",
                "control NoiseFilterLen": "4",
                "control MinCwnd": "2",
                "control SSParam": "yes",
            },
        ),
    ],
)
def test_each_congestion_control_has_the_values_that_ours_has(change: dict[str, Any], own: dict[str, str]) -> None:
    # BBR turns pacing on itself.
    left_out = OWN | ({"pacing on"} if change["congestion"] == "bbr" else set())
    assert defaults(change) == {key: value for key, value in RENO.items() if key not in left_out} | own


@pytest.mark.parametrize(("threshold", "segments"), [(None, 1000), (5, 5)])
def test_slow_start_ends_where_ours_does(threshold: int | None, segments: int) -> None:
    told = defaults({"receive_window": 1000, "initial_threshold": threshold})
    assert told["socket InitialSlowStartThreshold"] == str(segments * (1000 - 52))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"congestion": "illinois"}, "ns-3 has no congestion control 'illinois'; it has reno, cubic, dctcp, bbr"),
        ({"timestamps": False}, "ns-3's headers are 40 bytes without timestamps"),
        ({"whole_windows": True}, "ns-3 has whole_windows = False built in, not True"),
        ({"syn": False}, "ns-3 has syn = True built in, not False"),
        ({"halve_flight": True}, "ns-3 has halve_flight = False built in, not True"),
        ({"max_burst": 3}, "ns-3 has max_burst = 0 built in, not 3"),
        ({"quick_acks": 16}, "ns-3 has quick_acks = 0 built in, not 16"),
        ({"ack_merging_s": 0.001}, "ns-3 has ack_merging_s = 0.0 built in, not 0.001"),
        ({"loss_detection": "rack"}, "ns-3 has loss_detection = rfc6675 built in, not rack"),
    ],
)
def test_senders_that_ns3_does_not_have_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(Ns3Unsupported) as refused:
        defaults(change)
    assert str(refused.value).startswith(f"group 'ftp': {message}")


def test_the_network_is_handed_over_line_by_line() -> None:
    raw = plan(CODEL, flows=2)
    raw["links"][0]["rates"].append([5.0, 4e6])
    raw["flows"][1] |= {"on": [[0.5, 9.0]], "transfer_bytes": 7000}
    described = describe(raw)
    lines = described.text.splitlines()
    assert lines[1:3] == ["duration 20.0", "nodes 6"]
    assert [line for line in lines if line.startswith(("link ", "rate "))] == [
        "link 0 0 1 8000000.0 0.02 300p",
        "rate 0 5.0 4000000.0",
        "link 1 1 0 8000000.0 0.02 100000p",
        *(
            f"link {number} {tail} {head} 100000000.0 0.04 100000p"
            for number, (tail, head) in enumerate(
                [(2, 0), (0, 2), (1, 3), (3, 1), (4, 0), (0, 4), (1, 5), (5, 1)], start=2
            )
        ),
    ]
    assert lines.index("disc 0 ns3::CoDelQueueDisc") == lines.index("rate 0 5.0 4000000.0") + 1
    assert [line for line in lines if line.startswith("route ")] == [
        # At 2 and 0 and 1 towards 3, back towards 2; the second flow's likewise.
        "route 2 3 2",
        "route 0 3 0",
        "route 1 3 4",
        "route 3 2 5",
        "route 1 2 1",
        "route 0 2 3",
        "route 4 5 6",
        "route 0 5 0",
        "route 1 5 8",
        "route 5 4 9",
        "route 1 4 1",
        "route 0 4 7",
    ]
    assert [line for line in lines if line.startswith("flow ")] == ["flow 2 4 0.0 -1 0 0", "flow 6 8 0.5 9.0 0 7000"]
    # Of 0, 10 and 20 s; at the very end the run stops first.
    assert lines[-2:] == ["snapshot 10.0", f"snapshot {20.0 - 1e-9!r}"]
    assert described.text.endswith("\n")
    assert (described.scenario, described.seed, described.duration_s) == ("test", 1, 20.0)
    assert described.snapshots_s == (10.0, 20.0)
    assert described.sample_interval_s == 0.1
    (group,) = described.groups
    assert (group.name, group.first, group.last) == ("ftp", 0, 2)


def test_seeds_are_spread_over_all_that_ns3_takes() -> None:
    seeds = [int(describe(plan(seed=seed)).text.split()[1]) for seed in range(200)]
    assert len(set(seeds)) == 200
    assert 1 <= min(seeds) < 2**26
    assert 2**32 - 2**26 < max(seeds) <= 2**32 - 2
    # The generator of a run on record: sha256 of its name, eight bytes from the lowest.
    import hashlib

    eight = hashlib.sha256(b"aqumen ns3 7").digest()[:8]
    assert int(describe(plan(seed=7)).text.split()[1]) == int.from_bytes(eight, "little") % (2**32 - 2) + 1


def test_targets_and_records_come_from_the_link_or_the_nominal_network() -> None:
    raw = plan()
    raw["nominal"] = {"target_pkts": 40}
    raw["links"][0]["target_pkts"] = 25
    del raw["links"][1]["target_pkts"]
    links = describe(raw).links
    assert [link.target_pkts for link in links[:3]] == [25.0, 40.0, None]
    assert [link.record for link in links[:2]] == [True, False]
    assert (links[0].tail, links[0].head, links[0].buffer_pkts) == (0, 1, 300)


def test_networks_that_ns3_does_not_run_are_refused() -> None:
    def refused(raw: dict[str, Any]) -> str:
        with pytest.raises(Ns3Unsupported) as error:
            describe(raw)
        return str(error.value)

    twice = plan()
    twice["links"].append(dict(twice["links"][0], name="again"))
    assert refused(twice) == "ns-3 needs at most one link between two nodes"
    one_way = plan()
    del one_way["links"][3]
    one_way["flows"] = []
    assert "link 'up0': ns-3's point-to-point links need equal delays in both directions" in refused(one_way)
    late = plan()
    late["flows"][0]["on"] = []
    assert "start once and stop at most once" in refused(late)


def test_two_ways_to_one_destination_are_refused() -> None:
    raw = plan(flows=2)
    # The second flow ends at the first one's sink, by the link that the other direction takes.
    raw["links"].append(dict(raw["links"][0], name="second", record=False, **{"from": 0, "to": 3}))
    raw["links"].append(dict(raw["links"][0], name="second back", record=False, **{"from": 3, "to": 0}))
    raw["flows"][1]["path"] = [6, len(raw["links"]) - 2]
    with pytest.raises(Ns3Unsupported, match="forwards by destination: two flows leave one node over different links"):
        describe(raw)


def test_hosts_may_be_shared_by_two_controls() -> None:
    raw = plan(flows=2)
    raw["groups"] = [
        {"name": "a", "transport": TRANSPORT, "flows": [0, 1]},
        {"name": "b", "transport": TRANSPORT | {"congestion": "vegas"}, "flows": [1, 2]},
    ]
    raw["flows"][1] |= {"group": 1, "path": raw["flows"][0]["path"], "return_path": raw["flows"][0]["return_path"]}
    lines = describe(raw).text.splitlines()
    assert [line for line in lines if line.startswith("flow")] == ["flow 2 4 0.0 -1 0 0", "flow 2 4 0.1 -1 1 0"]


def test_the_cells_are_what_the_page_says() -> None:
    counts: dict[str, int] = {}
    for cell in CELLS:
        counts[cell.experiment] = counts.get(cell.experiment, 0) + 1
    assert counts == {
        "small windows": 6,
        "large windows": 6,
        "CUBIC": 3,
        "DCTCP": 1,
        "BBR": 1,
        "CUBIC near ten": 1,
        "capacity drop": 1,
        "1500 B": 3,
        "200 ms": 3,
        "not gentle": 1,
        "two ways": 3,
        "wire": 1,
        "bytes": 3,
    }
    # COBALT alone settles late.
    assert [cell.name for cell in CELLS if ("windows.steady", "15s") in cell.settings] == ["small windows/COBALT"]
    assert all(dict(cell.settings)["flows.0.transport.min_rto"] == "200ms" for cell in select(CELLS, ["200 ms"]))


def test_cells_are_drawn_within_their_ranges() -> None:
    cells = drawn(5, 300)
    by_name = {cell.experiment: cell.settings for cell in cells}
    assert set(by_name) == {f"drawn 5.{number}" for number in range(1, 301)}
    # One draw is the beginning of a longer one.
    assert {cell.experiment for cell in drawn(5, 20)} == {f"drawn 5.{number}" for number in range(1, 21)}
    assert all(cell.settings == by_name[cell.experiment] for cell in drawn(5, 20))
    rates, rtts, flows = [], [], []
    met = dict.fromkeys(("cubic", "no ecn", "mixed", "back", "udp", "steps"), 0)

    def kbits(rate: str) -> float:
        return float(rate.removesuffix("kbit")) * 1e3

    def seconds(time: str) -> float:
        return float(time.removesuffix("s"))

    for cell in cells:
        said = dict(cell.settings)
        read = tomllib.loads(f"flows = {said['flows']}\nrate = {json.dumps(said['topology.bottleneck.rate'])}")
        groups = {group["name"]: group for group in read["flows"]}
        transport = groups["ftp"]["transport"]
        size = int(transport["packet"].removesuffix("B"))
        assert size in (500, 1000, 1500)
        assert transport["min_rto"] in ("200ms", "1s")
        duration = seconds(said["duration"])
        rate = said["topology.bottleneck.rate"]
        if rate.startswith("{"):
            (_, rate), (at, later) = tomllib.loads(f"rate = {rate}")["rate"]["steps"]
            assert 0.39 <= kbits(later) / kbits(rate) <= 1.61
            # Within the window that is compared.
            assert duration / 2 < seconds(at) < duration
            met["steps"] += 1
        rate = kbits(rate)
        rtt = 4 * seconds(said["topology.bottleneck.delay"])
        pipe = rate * rtt / 8 / size
        assert 2e6 <= rate <= 40e6
        assert 0.0199 <= rtt <= 0.2002
        # Five times the bottleneck; two of its delays and four of the access make half a round trip each.
        assert kbits(groups["ftp"]["access"]["rate"]) == pytest.approx(5 * rate, abs=3e3)
        delays = groups["ftp"]["access"]["delay"]
        if isinstance(delays, list):
            assert seconds(delays[0]) == 0
            met["mixed"] += 1
        mean = np.mean([seconds(delay) for delay in (delays if isinstance(delays, list) else [delays])])
        assert 2 * (rtt / 4 + 2 * mean) == pytest.approx(rtt, abs=5e-4)
        count = groups["ftp"]["count"]
        assert 2 <= count <= max(2.0, pipe * 1.02 / 4)
        assert count <= 40
        buffer = float(said["topology.bottleneck.buffer"].removesuffix("pkt"))
        assert buffer >= 20
        assert buffer == 20 or 0.48 * pipe <= buffer <= 3.05 * pipe
        assert duration == pytest.approx(np.clip(DRAWN_PACKETS * size * 8 / rate, 20, 60), abs=0.6)
        assert seconds(said["windows.steady"]) == pytest.approx(duration / 2, abs=0.6)
        if transport["preset"] == "cubic":
            assert (transport["hystart"], transport["whole_windows"]) == (False, True)
            met["cubic"] += 1
        met["no ecn"] += not transport["ecn"]
        if "back" in groups:
            assert 1 <= groups["back"]["count"] <= count
            assert (groups["back"]["from"], groups["back"]["transport"]) == ("r2", transport)
            met["back"] += 1
        if "udp" in groups:
            traffic = groups["udp"]["traffic"]
            mean = kbits(traffic["rate"]) * groups["udp"]["count"] * (0.5 if traffic["kind"] == "on-off" else 1.0)
            assert 0.04 * rate <= mean <= 0.26 * rate
            met["udp"] += 1
        rates.append(rate)
        rtts.append(rtt)
        flows.append(count)
    # Two of three are Reno, one in four has no ECN, one in two mixed round trips, one in three each of the others.
    expected = {"cubic": 100, "no ecn": 75, "mixed": 150, "back": 100, "udp": 100, "steps": 100}
    assert all(abs(met[what] - share) <= 30 for what, share in expected.items()), met
    # Logarithms of rate and round trip are even: a quarter lies below a quarter of the way.
    assert 45 <= sum(rate < 2e6 * 20**0.25 for rate in rates) <= 105
    assert 45 <= sum(rtt < 0.02 * 10**0.25 for rtt in rtts) <= 105
    assert min(flows) == 2
    assert max(flows) > 30
    assert {cell.label for cell in cells} == {"DropTail", "CoDel", "PIE", "COBALT", "FQ-CoDel", "RED"}
    by_label = {cell.label: cell.aqm for cell in CELLS if cell.experiment == "small windows"}
    assert all(cell.aqm == by_label[cell.label] for cell in cells)
