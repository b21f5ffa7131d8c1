"""Everyday networks by numbers: what each option changes in the scenario, what the answer says of runs made up for it,
and how figures are shown."""

import collections
import json
import math
import re
import tomllib
from dataclasses import replace
from types import SimpleNamespace

import pytest

from aqumen.cli import main
from aqumen.errors import ScenarioError
from aqumen.experience import ExperienceMetric, scores
from aqumen.shaping import LINES, shaper
from aqumen.situations import Study, backbone, cell, datacenter, office, study, uplink
from aqumen.situations.numbers import read_time
from aqumen.view import columns, tables


def text(situation):
    return tomllib.loads(situation.scenario.to_toml())


UNITS = {"bit": 1, "kbit": 1e3, "Mbit": 1e6, "Gbit": 1e9, "us": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "B": 1, "kB": 1e3}


def plain(text):
    """A quantity of a scenario file in bit/s, seconds or bytes."""
    number, unit = re.fullmatch(r"([\d.]+)(\w+)", text).groups()
    return pytest.approx(float(number) * UNITS[unit])


def by_name(each):
    return {one["name"]: one for one in each}


def household(*args, **more):
    data = text(uplink(*args, **more))
    return data, by_name(data["topology"]["links"]), by_name(data["flows"])


# Down, up; seconds of a run; bytes of a page's first object, of the others' mean and deviation, of 4 s of film; codec.
LINES_BY_RATE = [
    ("20Mbit", "2Mbit", 120, 10, 30000, 35000, 105000, 2500000, "g711"),
    # 120 (20 / 1)^0.75 is above 600; 1e6 / 2 of 2.3e6 bytes; a quarter of the rate is film.
    ("1Mbit", "256kbit", 600, 10, 6522, 7609, 22826, 125000, "g729"),
    # 120 (20 / 40)^0.75.
    ("40Mbit", "500kbit", 71, 10, 30000, 35000, 105000, 2500000, "g711"),
    ("10Mbit", "499kbit", 202, 10, 30000, 35000, 105000, 1250000, "g729"),
    # 120 / 50^0.75 is below 15, of which a quarter is the beginning.
    ("1Gbit", "1Gbit", 15, 3.75, 30000, 35000, 105000, 2500000, "g711"),
]


@pytest.mark.parametrize(("down", "up", "length", "begin", "main_", "mean", "std", "film", "codec"), LINES_BY_RATE)
def test_what_is_done_suits_the_line(down, up, length, begin, main_, mean, std, film, codec):
    data, _, flows = household(down, up)
    assert (plain(data["duration"]), plain(data["windows"]["steady"])) == (length, begin)
    page = flows["web"]["traffic"]
    sizes = [page["main"], page["embedded"]["mean"], page["embedded"]["std"], flows["film"]["traffic"]["size"]]
    assert [plain(each) for each in sizes] == [main_, mean, std, film]
    assert {flows[name]["traffic"].get("codec", "g711") for name in ("call-up", "call-down")} == {codec}


def test_shapers_stand_below_the_line_and_buffers_hold_what_it_says():
    _, links, flows = household("20Mbit", "2Mbit")
    assert {name: plain(link["rate"]) for name, link in links.items()} == {
        "up": 1.9e6,
        "down": 18e6,
        "line-up": 2e6,
        "line-down": 20e6,
    }
    # Half a second: 2e6 / 8 / 2.
    assert (plain(links["line-up"]["buffer"]), plain(links["line-down"]["buffer"])) == (125e3, 1250e3)
    assert {flow["rtt"] for flow in flows.values()} == {"40ms"}
    data, links, flows = household("20Mbit", "1Mbit", rtt="70ms", headroom=(0, 50), bloat="2s", duration="30s")
    assert (plain(links["up"]["rate"]), plain(links["down"]["rate"])) == (1e6, 10e6)
    assert (plain(links["line-up"]["buffer"]), plain(links["line-down"]["buffer"])) == (250e3, 5e6)
    assert {flow["rtt"] for flow in flows.values()} == {"70ms"}
    assert (plain(data["duration"]), plain(data["windows"]["steady"])) == (30, 7.5)
    # 64 kB at the least, unless it is said: then 15 kB, ten packets.
    assert plain(household("20Mbit", "100kbit")[1]["line-up"]["buffer"]) == 64e3
    assert plain(household("20Mbit", "100kbit", bloat="1ms")[1]["line-up"]["buffer"]) == 15e3
    now = household("20Mbit", "2Mbit")[0]["variants"]["now"]
    assert {key: plain(rate) for key, rate in now.items()} == {
        f"topology.links.{way}.rate": 200e6 for way in ("up", "down")
    }


def test_a_household_knows_the_rates_to_set():
    plain = uplink("20Mbit", "2Mbit")
    assert plain.rates == {"up": 1.9e6, "down": 18e6}
    assert plain.sent_bps == 1.9e6
    assert plain.before == "now"
    # The shaper counts what the line counts; what waits is IP packets: 1500 of 1538 bytes.
    framed = uplink("20Mbit", "2Mbit", line="ethernet", headroom=(10, 20))
    assert framed.rates == {"up": 1.8e6, "down": 16e6}
    assert framed.sent_bps == pytest.approx(1.8e6 * 1500 / 1538)
    said = " ".join(uplink("1Mbit", "256kbit", bloat="3s").assumed)
    for words in ("5 % (up) and 10 % (down)", "base RTT 40ms", "a buffer of 3s", "traffic over 600s"):
        assert words in said
    # Pages of 2.3 MB times 0.2174; a quarter of the rate is film.
    for words in ("pages of 0.5 MB", "a call (g729)", "video of 0.25 Mbit/s"):
        assert words in said
    assert "500 ms, at least 64 kB" in " ".join(plain.assumed)


def test_the_traffic_of_an_office_grows_with_its_people():
    data = text(office("1Gbit", 40))
    flows, links = by_name(data["flows"]), by_name(data["topology"]["links"])
    # Of 40: half read, a tenth phone, a fifth meet, a twentieth back up and download.
    expected = {"web": 20, "call-up": 4, "call-down": 4, "meeting-up": 8, "meeting-down": 8, "backup": 2, "files": 2}
    assert {name: flow["count"] for name, flow in flows.items()} == expected
    assert {name: plain(link["rate"]) for name, link in links.items()} == {
        **{"up": 950e6, "down": 900e6},
        **{"line-up": 1e9, "line-down": 1e9},
    }
    # 100 ms of 1 Gbit/s.
    assert plain(links["line-up"]["buffer"]) == 12.5e6
    small = office("50Mbit", 1, up="10Mbit", rtt="50ms", target="30pkt")
    flows, links = by_name(text(small)["flows"]), by_name(text(small)["topology"]["links"])
    assert {flow.get("count", 1) for flow in flows.values()} == {1}
    assert {flow["rtt"] for flow in flows.values()} == {"50ms"}
    assert small.rates == {"up": 9.5e6, "down": 45e6}
    assert {links[way]["target"] for way in ("up", "down")} == {"30pkt"}
    assert {metric.weight for metric in small.metrics} == {1}


def test_a_target_is_packets_or_their_time_at_the_shaper():
    # 10 ms of 1.9 and 18 Mbit/s, in packets of 1500 bytes.
    _, links, _ = household("20Mbit", "2Mbit", target="10ms")
    assert [float(links[way]["target"].removesuffix("pkt")) for way in ("up", "down")] == [2, 15]
    _, links, _ = household("20Mbit", "2Mbit", target="40pkt")
    assert [links[way]["target"] for way in ("up", "down")] == ["40pkt", "40pkt"]


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"headroom": (90, 5)}, "--headroom 90: must be at least 0 and below 90"),
        ({"headroom": (5, -1)}, "--headroom -1: "),
        ({"line": "isdn"}, "--line isdn: choose from: measured, ethernet"),
        ({"bloat": "1"}, '--bloat 1: needs a unit, such as "1ms" or "1s"'),
        ({"bloat": "0.9ms"}, "--bloat 0.9ms: must be at least 0.001s"),
        ({"duration": "0.9s"}, "--duration 0.9s: must be at least 1s"),
        ({"rtt": "fast"}, "--rtt fast: "),
    ],
)
def test_numbers_out_of_range_name_their_option(more, told):
    with pytest.raises(ScenarioError) as error:
        uplink("20Mbit", "2Mbit", **more)
    assert str(error.value).startswith(told)


def test_the_least_that_is_accepted_is_accepted():
    assert uplink("64kbit", "64kbit", headroom=(0, 89.9)).rates["up"] == 64e3
    with pytest.raises(ScenarioError, match="--up 63kbit: must be at least 64kbit"):
        uplink("64kbit", "63kbit")
    assert plain(household("20Mbit", "2Mbit", bloat="1ms", duration="1s")[0]["duration"]) == 1
    assert plain(text(datacenter("1Gbit", load=1))["flows"][0]["traffic"]["load"]) == 10e6
    assert plain(text(datacenter("1Gbit", load=90))["flows"][0]["traffic"]["load"]) == 900e6
    for load in (0.9, 90.1):
        with pytest.raises(ScenarioError, match=f"--load {load:g}: must be 1 to 90 %"):
            datacenter("1Gbit", load=load)
    for quality in (1, 15):
        assert by_name(text(cell(quality))["topology"]["links"])["down"]["channel"]["cqi"] == quality
    for quality in (0.9, 15.1):
        with pytest.raises(ScenarioError, match=f"--cqi {quality:g}: must be 1 to 15"):
            cell(quality)
    assert text(cell(share=100))["topology"]["links"]
    for share in (0, 100.1):
        with pytest.raises(ScenarioError, match=f"--share {share:g}: must be above 0 and at most 100 %"):
            cell(share=share)


@pytest.mark.parametrize(
    ("said", "seconds"),
    [("1ns", 1e-9), ("5us", 5e-6), ("40ms", 0.04), ("1.5s", 1.5), (".5s", 0.5), ("2min", 120), ("3 h", 10800)],
)
def test_times_have_units(said, seconds):
    assert read_time("x", said, 0) == pytest.approx(seconds)


# Rate and round trip; how long, after which beginning; half a round trip but 12 packets' time, ten round trips.
PORTS = [
    ("10Gbit", "100us", "0.2s", 0.02, "50us", "1000us"),
    # 12 packets at 1 Gbit/s are 144 us.
    ("1Gbit", "100us", "2s", 0.2, "144us", "1000us"),
    ("100Mbit", "1ms", "20s", 2, "1440us", "10000us"),
    ("1Mbit", "2ms", "60s", 6, "144000us", "20000us"),
    # A thousand round trips.
    ("10Gbit", "10ms", "10s", 1, "5000us", "100000us"),
    ("10Gbit", "1s", "60s", 6, "500000us", "10000000us"),
]


@pytest.mark.parametrize(("rate", "rtt", "length", "begin", "target", "interval"), PORTS)
def test_a_port_is_run_for_as_long_as_it_is_slow(rate, rtt, length, begin, target, interval):
    port = datacenter(rate, rtt=rtt, load=20, buffer="90kB")
    data = text(port)
    assert (plain(data["duration"]), plain(data["windows"]["steady"])) == (float(length[:-1]), begin)
    assert data["title"].startswith(f"A switch port of {rate}")
    (link,) = data["topology"]["links"]
    assert (plain(link["buffer"]), link["rate"], data["topology"]["access"]["rate"]) == (90e3, rate, rate)
    assert {(flow["rtt"], flow["access"]["rate"]) for flow in data["flows"]} == {(rtt, rate)}
    assert f"fq-codel-linux:ce_threshold={target}" in port.aqms
    assert f"fq-codel-linux:target={target},interval={interval}" in port.aqms
    assert f"codel-linux:target={target},interval={interval},ecn=true" in port.aqms
    assert {"droptail", "fq-codel-linux", "dualpi2-linux", "pie-linux"} <= set(port.aqms)
    bps = {"Gbit": 1e9, "Mbit": 1e6}[rate[-4:]] * float(rate[:-4])
    assert port.rates == {"port": bps}
    assert plain(data["flows"][0]["traffic"]["load"]) == bps / 5
    assert [f.worst for f in port.metrics] == [1000 * float(length[:-1])] * 2 + [0]
    said = " ".join(port.assumed)
    for words in (
        f"base RTT {rtt}",
        "buffer 90kB",
        f"runs of {length}",
        "20 % of the rate",
        f"Linux's defaults: {target}",
    ):
        assert words in said


def test_a_subscriber_sends_with_less_power():
    data = text(cell(7, resource_blocks=25, share=40, handover="12s", rtt="60ms", duration="30s"))
    links = by_name(data["topology"]["links"])
    common = {"resource_blocks": 25, "handover_interval": "12s"}
    assert links["down"]["channel"].items() >= {**common, "cqi": 7.0, "share": 0.4}.items()
    # Two steps less, and half of the share.
    assert links["up"]["channel"].items() >= {**common, "cqi": 5.0, "share": 0.2}.items()
    assert {flow["rtt"] for flow in data["flows"]} == {"60ms"}
    assert data["duration"] == "30s"
    assert data["title"] == "A subscriber with 40 % of an LTE cell, channel quality 7"
    assert by_name(text(cell(2.5))["topology"]["links"])["up"]["channel"]["cqi"] == 1.0
    assert cell(handover=None).assumed[0].count("no handovers")
    assert cell().aqms[0] == "droptail"
    assert cell().before is None
    for more, told in (({"cqi": 40}, "--cqi 40: "), ({"resource_blocks": 0}, "--resource-blocks 0: ")):
        with pytest.raises(ScenarioError, match=told):
            cell(**more)


@pytest.mark.parametrize(("rate", "bps"), [("100Mbit", 1e8), ("1Gbit", 1e9)])
def test_a_link_of_a_provider_has_its_buffer_and_round_trips(rate, bps):
    data = text(backbone(rate, flows=30, rtt="100ms", load=50))
    assert plain(data["topology"]["bottleneck"]["buffer"]) == 0.1 * bps / 8
    flows = by_name(data["flows"])
    assert (flows["long"]["count"], flows["long"]["rtt"]) == (30, ["10ms", "100ms"])
    assert plain(flows["short"]["traffic"]["load"]) == bps / 2
    for more, told in (
        ({"flows": 0}, "--flows 0: must be 1 to 10000"),
        ({"load": 95}, "--load 95: must be 1 to 90 %"),
        ({"rtt": "1us"}, "--rtt 1us: must be at least"),
        ({"buffer": "ten"}, "--buffer ten: "),
    ):
        with pytest.raises(ScenarioError, match=told):
            backbone(rate, **more)


def test_a_link_of_a_provider_is_scored_by_four_metrics():
    link = backbone("100Mbit", rtt="200ms")
    run = Run({"short": {"fct_10kB_100kB_mean_s": 0.5}, "long": {"jain_fairness": 0.9}})
    of_link = {"sojourn_mean_s": 0.04, "utilization": 0.75, "early_drop_ratio": 0.02, "overflow_drop_ratio": 0.01}
    run.data["links"] = {"bottleneck": {"steady": of_link}}
    assert {f.key: f.of(run) for f in link.metrics} == {
        "short": pytest.approx(500),
        "fairness": 0.9,
        # A mean round trip of 110 ms without queueing, and 40 ms in the queue.
        "response": pytest.approx(150 / 0.75),
        "lost": pytest.approx(3),
        "used": pytest.approx(75),
    }
    assert [f.key for f in link.metrics if f.weight] == ["short", "fairness", "response", "lost"]
    lost = replace(next(f for f in link.metrics if f.key == "lost"), of=lambda run: run)
    assert score_beside(lost, 1, 4) == pytest.approx(25)
    assert score_beside(lost, 0.01, 0.9) == pytest.approx(100)


# What people feel.


class Run:
    """A run with figures made up."""

    def __init__(self, groups, spec="droptail", seed=1):
        self.spec, self.seed = spec, seed
        self.data = {"flows": collections.defaultdict(lambda: {"steady": {}})}
        self.data["flows"].update({name: {"steady": metrics} for name, metrics in groups.items()})

    def flow_group(self, name, window):
        return self.data["flows"][name][window]


def felt_of(situation, groups):
    return {f.key: f.of(Run(groups)) for f in situation.metrics}


def test_people_feel_the_worse_of_two_directions():
    home = uplink("20Mbit", "2Mbit")
    groups = {
        "web": {"page_load_mean_s": 2.5},
        "call-up": {"mos": 4.1},
        "call-down": {"mos": 3.2},
        "game-up": {"delay_p95_s": 0.03},
        "game-down": {"delay_p95_s": 0.05},
        "upload": {"goodput_bps": 1.7e6},
        "update": {"goodput_bps": 4.5e6},
        "film": {
            "fct_over_1MB_mean_s": 1.5,
            "fct_over_1MB_count": 9,
            "fct_100kB_1MB_mean_s": 7,
            "fct_100kB_1MB_count": 0,
        },
    }
    told = felt_of(home, groups)
    assert told == {
        "calls": 3.2,
        "pages": 2.5,
        "game": pytest.approx(80),
        "upload": pytest.approx(1.7),
        "film": 1.5,
        "update": pytest.approx(4.5),
    }
    assert felt_of(home, {}) == dict.fromkeys(told)
    assert felt_of(home, {"call-up": {"mos": 4.0}, "game-up": {"delay_p95_s": 1.0}}) == {
        **dict.fromkeys(told),
        "calls": 4.0,
    }
    # What is not defined took the whole run; a call that is not heard has MOS 1, what does not come no rate.
    assert {f.key: f.worst for f in home.metrics} == {
        **{"calls": 1, "pages": 120, "game": 120000, "upload": 0, "film": 120, "update": 0},
    }
    assert {f.weight for f in home.metrics} == {1}
    assert {f.key for f in home.metrics if f.more} == {"calls", "upload", "update"}
    assert [(f.unit, f.digits) for f in home.metrics] == [
        *(("MOS", 2), ("s", 2), ("ms", 0), ("Mbit/s", 2), ("s", 2), ("Mbit/s", 2)),
    ]
    port = datacenter()
    groups = {
        "requests": {"fct_10kB_100kB_p99_s": 0.004, "fct_10kB_100kB_mean_s": 0.0005, "fct_10kB_100kB_count": 7},
        "bulk": {"goodput_bps": 6.5e9},
    }
    assert felt_of(port, groups) == {
        "requests": pytest.approx(4),
        "mean": pytest.approx(0.5),
        "bulk": pytest.approx(6.5),
    }
    assert [(f.unit, f.digits) for f in port.metrics] == [("ms", 3), ("ms", 3), ("Gbit/s", 2)]


def test_quality_of_calls_counts_from_one():
    (calls,) = [f for f in uplink("20Mbit", "2Mbit").metrics if f.key == "calls"]
    told = replace(calls, of=lambda run: run)
    # Of a MOS of 3, two above none at all; below 0.05 ratios mean nothing.
    assert score_beside(told, 3, 2) == pytest.approx(50)
    assert score_beside(told, 3, 1.01) == score_beside(told, 3, 1) == score_beside(told, 3, None) == pytest.approx(2.5)
    time = ExperienceMetric(key="t", title="", unit="s", digits=1, of=lambda run: run, worst=8)
    assert (score_beside(time, 2, 4), score_beside(time, 2, None)) == (pytest.approx(50), pytest.approx(25))
    assert score_beside(time, 0, 1) == score_beside(time, 1e-4, 1) == pytest.approx(0.1)


def score_beside(metric, best, value):
    """The score of a run beside one with the best value."""
    runs = {"best": {"x": {1: best}}, "other": {"x": {1: value}}}
    (other,) = (each for each in scores(runs, metrics=[metric], weights={metric.key: 1}) if each.aqm == "other")
    return other.score


def test_scores_of_senders_and_seeds():
    metrics = [
        ExperienceMetric(key="t", title="", unit="s", digits=1, of=lambda run: run, worst=8),
        ExperienceMetric(key="r", title="", unit="bit/s", digits=1, of=lambda run: 1.0, more=True),
    ]
    runs = {"a": {"x": {1: 1, 2: 2}, "y": {1: 4, 2: 4, 3: 9}}, "b": {"x": {1: 2, 2: 4}, "y": {1: 1, 2: 1}}}
    one, other = scores(runs, metrics, {"t": 3, "r": 1})
    # b is half as good with x, four times with y; a quarter of the weight makes no difference.
    assert (one.aqm, one.score) == ("b", pytest.approx(100 * math.exp(0.75 * (-math.log(2) / 2))))
    assert other.score == pytest.approx(100 * math.exp(0.75 * (-math.log(4) / 2)))
    assert dict(one.by_senders) == {"x": pytest.approx(100 * 0.5**0.75), "y": pytest.approx(100)}
    assert one.values["t"]["mean"] == pytest.approx(2)
    assert one.values["t"]["n"] == 2
    assert (one.place, other.place) == (1, 2)
    # With the same difference for each seed there is no doubt.
    assert one.score_half == pytest.approx(0, abs=1e-9) or one.score_half > 0
    assert one.alone == {"t"} or one.alone == {"t", "r"}


# The verbs, with runs made up.

FIGURES = {
    # p99 in ms, mean in ms, rate of the transfers in Gbit/s.
    "droptail": (8, 4, 8),
    "fq-codel-linux": (1, 1, 8),
    "pie-linux": (2, 1, 8),
}


@pytest.fixture
def made_up(monkeypatch):
    """Runs whose figures are those of `FIGURES`; seeds differ a little, senders do not."""

    class Gathering:
        def __init__(self, scenario, specs, seeds, engine, out=None):
            del scenario, engine, out
            self.jobs = [(spec, seed) for spec in specs for seed in range(1, seeds + 1)]
            self.answers, self.resumed, self.store, self.threads = {}, 0, None, 1

        def work(self, on_progress):
            for i, job in enumerate(self.jobs):
                self.answers[job] = 1
                if not on_progress(i + 1, len(self.jobs)):
                    return

        def comparison(self):
            results = []
            for spec, seed in self.answers:
                p99, mean, rate = FIGURES[spec]
                requests = {"p99_s": p99 * seed / 1000, "mean_s": mean / 1000, "count": 5}
                groups = {
                    "requests": {f"fct_10kB_100kB_{key}": value for key, value in requests.items()},
                    "bulk": {"goodput_bps": rate * 1e9},
                }
                results.append(Run(groups, spec, seed))
            return SimpleNamespace(results=results)

    monkeypatch.setattr(study, "Gathering", Gathering)
    monkeypatch.setenv("COLUMNS", "120")


def told(capsys, *args):
    assert main(["datacenter", "--aqm", "droptail,fq-codel-linux,pie-linux", *args]) == 0
    return capsys.readouterr().out


@pytest.mark.usefixtures("made_up")
def test_a_switch_s_operator_is_told_the_order(capsys):
    data = json.loads(told(capsys, "--seeds", "2", "--json"))
    assert (data["schema"], data["scenario"], data["seeds"]) == (1, "datacenter", 2)
    assert data["weights"] == {"requests": 1, "mean": 1, "bulk": 1}
    order = {each["aqm"]: each for each in data["order"]}
    assert list(order) == ["fq-codel-linux", "pie-linux", "droptail"]
    # p99 twice, mean and rate as the best: the third root of 1/2; an eighth and a quarter: that of 1/32.
    assert [each["score_percent"] for each in data["order"]] == [
        pytest.approx(100 * ratio ** (1 / 3)) for ratio in (1, 1 / 2, 1 / 32)
    ]
    assert [each["place"] for each in data["order"]] == [1, 2, 3]
    assert order["pie-linux"]["score_by_senders"] == {
        who: pytest.approx(100 * 0.5 ** (1 / 3)) for who in ("cubic", "cubic-ecn", "dctcp")
    }
    # Seeds 1 and 2: 2 and 4 ms.
    assert order["pie-linux"]["felt"]["requests"]["mean"] == pytest.approx(3)
    assert order["pie-linux"]["felt"]["requests"]["unit"] == "ms"
    assert order["droptail"]["commands"] == [
        "tc qdisc del dev eth0 root 2>/dev/null || true",
        "tc qdisc add dev eth0 root pfifo",
    ]
    assert data["first_place_changes_with"] == {}
    assert "capture" not in data
    assert data["goal"].startswith("Ranked by a score: the geometric mean over 99th percentile of")
    assert "and total rate of the long transfers, each relative to the best AQM, all with equal weight" in data["goal"]
    assert data["goal"].endswith("Scores within 2 % count as equal.")


@pytest.mark.usefixtures("made_up")
def test_the_order_is_told_as_a_table(capsys):
    out = told(capsys, "--seeds", "2", "--device", "swp1")
    assert "3 AQMs, senders cubic, cubic-ecn, dctcp, 2 seeds" in out
    rows = [line.split() for line in out.splitlines() if re.match(r" *[123] +[a-z]+ ", line)]
    # Two seeds: the quantile is 12.706, the difference of requests 1, 2 and 8 ms. Scores of the seeds are a factor of
    # 2^(1/3) apart: half of the interval of their logarithms is 12.706 ln 2 / 6: from 1/4.34 to 4.34 times.
    # Student's intervals of times are cut at 0.
    assert rows[0] == [
        "1",
        "a",
        "fq-codel-linux",
        "100.0−77.0/+334.0",
        "1.500−1.500/+6.353",
        "1.000±0.000",
        "8.00±0.00",
    ]
    assert rows[1] == ["2", "b", "pie-linux", "79.4−61.1/+265.1", "3.000−3.000/+12.706", "1.000±0.000", "8.00±0.00"]
    assert rows[2][:4] == ["3", "c", "droptail", "31.5−24.2/+105.2"]
    assert "Means over the seeds and 95 % intervals." in out
    assert "Halving or doubling any one weight does not change the first place." in " ".join(out.split())
    assert "Score by kind of senders, %" in out
    assert "fq-codel-linux, Linux 3.5 and later, as root:" in out
    assert "  tc qdisc add dev swp1 root fq_codel" in out
    expected = out.partition("What to expect")[2]
    assert "with fq-codel-linux" in expected
    assert "Request, p99, ms" in expected
    assert "12.000 −12.000/+50.825" in expected
    one = told(capsys, "--seeds", "1", "--senders", "dctcp")
    assert "3 AQMs, senders dctcp, 1 seed\n" in one
    assert "One seed gives no confidence intervals" in one
    assert "Score with each kind of senders" not in one


@pytest.mark.usefixtures("made_up")
def test_weights_that_decide_are_named(capsys, monkeypatch):
    # Five times the delay, four times the rate: with the rate's weight doubled DropTail leads.
    monkeypatch.setitem(FIGURES, "fq-codel-linux", (1, 4, 2))
    monkeypatch.setitem(FIGURES, "droptail", (5, 4, 8))
    monkeypatch.setitem(FIGURES, "pie-linux", (9, 9, 1))
    data = json.loads(told(capsys, "--seeds", "2", "--json"))
    assert data["order"][0]["aqm"] == "fq-codel-linux"
    assert data["first_place_changes_with"] == {"requests halved": "droptail", "bulk doubled": "droptail"}
    out = told(capsys, "--seeds", "2")
    assert "First place changes with requests halved: droptail, bulk doubled: droptail." in " ".join(out.split())
    heavy = told(capsys, "--seeds", "2", "--weigh", "bulk=2, mean=0").split()
    heavy = " ".join(heavy)
    assert "99th percentile of the request time (weight 1) and total rate of the long transfers (weight 2)" in heavy
    assert "weights by --weigh" in heavy
    assert main(["datacenter", "--weigh", "bulk=-1"]) == 2
    assert "--weigh bulk=-1: must be a number of at least 0" in capsys.readouterr().err
    assert main(["datacenter", "--weigh", "bulk=0,mean=0,requests=0"]) == 2
    assert "at least one weight must be above 0" in capsys.readouterr().err


@pytest.mark.usefixtures("made_up")
def test_progress_counts_all_runs():
    study = Study(datacenter(), ["droptail", "pie-linux"], ["cubic", "dctcp"], 2, {})
    seen = []
    study.work(lambda finished, wanted: seen.append((finished, wanted)) or True)
    assert study.total == 8
    assert seen == [(i, 8) for i in range(1, 9)]
    stopped = Study(datacenter(), ["droptail", "pie-linux"], ["cubic", "dctcp"], 2, {})
    stopped.work(lambda finished, wanted: finished < 3)
    # A seed counts where all have it, with all senders.
    assert stopped.answer() is None


# Commands and columns.


def test_commands_shape_both_ways():
    vdsl = shaper("codel-linux:target=10ms", LINES["vdsl"], 6.5e6, 65e6, "wan").commands
    # 64 of 65 bytes, 30 of 14 bytes known; 64 Mbit/s are 8000 bytes in a millisecond, 6.4 Mbit/s less than a packet.
    assert vdsl == [
        "tc qdisc del dev wan root 2>/dev/null || true",
        "tc qdisc del dev wan ingress 2>/dev/null || true",
        "ip link del ifb4wan 2>/dev/null || true",
        "# upstream",
        "tc qdisc add dev wan root handle 1: stab overhead 16 linklayer ethernet htb default 1",
        "tc class add dev wan parent 1: classid 1:1 htb rate 6400kbit burst 1600 cburst 1600 quantum 1514",
        "tc qdisc add dev wan parent 1:1 codel target 10ms",
        "# downstream, through an intermediate device",
        "ip link show ifb4wan >/dev/null 2>&1 || ip link add ifb4wan type ifb",
        "ip link set ifb4wan up",
        "tc qdisc add dev wan handle ffff: ingress",
        "tc filter add dev wan parent ffff: protocol all u32 match u32 0 0 action mirred egress redirect dev ifb4wan",
        "tc qdisc add dev ifb4wan root handle 1: stab overhead 16 linklayer ethernet htb default 1",
        "tc class add dev ifb4wan parent 1: classid 1:1 htb rate 64000kbit burst 8000 cburst 8000 quantum 1514",
        "tc qdisc add dev ifb4wan parent 1:1 codel target 10ms",
    ]
    adsl = shaper("pie-linux", LINES["adsl"], 1e6, 1e6, "wan").add
    assert "stab overhead 26 linklayer atm " in adsl[1]
    assert "rate 1000kbit" in adsl[2]
    assert "stab overhead 4 mpu 64 linklayer ethernet " in shaper("pie-linux", LINES["docsis"], 1e6, 1e6, "w").add[1]
    assert "stab" not in " ".join(shaper("pie-linux", LINES["measured"], 1e6, 1e6, "wan").add)
    cake = shaper("cake-linux:isolation=flow-blind", LINES["adsl"], 1e6, 2e6, "wan").add
    assert cake[1] == "tc qdisc add dev {device} root cake bandwidth 1000kbit flowblind nat pppoe-llcsnap"


FACTORS = {"Mbit/s": 1e-6, "ms": 1000, "%": 100, "% of the time": 100}


@pytest.mark.parametrize(
    "column", [*columns.LINK_COLUMNS, *columns.FLOW_COLUMNS, *columns.TRANSFER_COLUMNS], ids=lambda each: each[0]
)
def test_a_column_s_factor_is_that_of_its_unit(column):
    key, title, unit, factor, digits = column
    assert factor == FACTORS.get(unit, 1)
    assert title
    # What is counted has no fraction; shares and rates have as many digits as differ between AQMs.
    shown = {
        **dict.fromkeys(("count", "refused", "loss_run_max_pkts"), "12"),
        **dict.fromkeys((f"queue_{each}" for each in ("p5_pkts", "p50_pkts", "p95_pkts")), "12"),
        **dict.fromkeys(("queue_iae_pkts_s", "queue_ise_pkts2_s"), "12"),
        **dict.fromkeys(("convergence_s", "rtt_mean_s", "delay_mean_s", "delay_p95_s", "delay_p99_s"), "12.3"),
        **dict.fromkeys(("sojourn_mean_s", "sojourn_p99_s", "delay_variation_p95_s", "startup_mean_s"), "12.3"),
        **dict.fromkeys(("loss_interval_mean_s", "loss_sync_ratio"), "12.3"),
        **dict.fromkeys(("queue_empty_ratio", "queue_below_target_ratio", "video_stalled_ratio"), "12.3"),
        **dict.fromkeys(("video_stalls", "video_switches"), "12"),
        "video_startup_mean_s": "12.3",
        **dict.fromkeys(("sync_index", "fairness_mean", "jain_fairness", "goodput_bps", "throughput_bps"), "12.346"),
        **dict.fromkeys(("mean_s", "p50_s", "p95_s", "p99_s"), "12.346"),
    }.get(key, "12.35")
    assert tables.number(12.3456 / factor * factor, digits) == shown


def test_only_what_some_row_has_is_a_column():
    rows = [{key: {"n": int(key == "mos")} for key, *_ in columns.FLOW_COLUMNS} for _ in range(2)]
    rows[1]["loss_ratio"] = {"n": 3}
    assert [column[0] for column in columns.defined(columns.FLOW_COLUMNS, iter(rows))] == ["mos", "loss_ratio"]
    keys = [column[0] for column in columns.TRANSFER_COLUMNS]
    metrics = {f"fct_{size}_{key}": {"mean": None} for size, _ in columns.SIZES for key in keys}
    metrics["fct_100kB_1MB_count"] = {"mean": 0.5}
    metrics["fct_over_1MB_count"] = {"mean": 0}
    ((title, of_size),) = columns.transfers_by_size(metrics)
    assert title == "100 kB to 1 MB"
    assert list(of_size) == keys
    assert of_size["count"] == {"mean": 0.5}
