"""AQMs ranked over many networks: ranks, fronts, picks and the page, from runs made up by hand."""

import json
from dataclasses import replace

import pytest

from aqumen.cli import main
from aqumen.cli import reproduce as verb
from aqumen.ranking import networks
from aqumen.scenario import Scenario
from aqumen.view import advice


def made(delay_s, used, flows=None, lost=0.01):
    """A run of one link with this mean delay, and half as much again at p95."""
    link = {
        "utilization": used,
        "sojourn_mean_s": delay_s,
        "sojourn_p95_s": 1.5 * delay_s,
        "early_drop_ratio": lost,
        "overflow_drop_ratio": 0.0,
    }
    groups = {name: {"steady": group} for name, group in (flows or {}).items()}
    return {"aqm": {"nominal": {"base_rtt_s": 0.1}}, "links": {"l": {"steady": link}}, "flows": groups}


NETWORKS = [
    networks.Network(cell="rfc7928/aggressive", target="25ms"),
    networks.Network(cell="rfc7928/bursts", target="25ms", slow=True),
    networks.Network(cell="everyday/backbone@cubic", target="20ms"),
]
PROVIDED = {"short": {"fct_10kB_100kB_mean_s": 0.2}, "long": {"jain_fairness": 0.9}}
# As they come PIE is the quickest; at one target CoDel is, by a little.
DELAYS = {"droptail": 0.1, "pie": 0.005, "codel": 0.02, "pie:target": 0.03, "codel:target": 0.02}


class Made:
    def __init__(self, wanted, seeds, folder, prepare, once):
        self.once = once
        self.scenarios = {cell: prepare(cell, None) for cell in wanted}
        self.wanted, self.seeds, self.folder = wanted, list(seeds), folder
        self.resumed = self.left = 0
        self.work_left = 1.0

    def work(self, advance):
        pass

    def of(self, cell, spec):
        assert spec in self.wanted[cell]
        delay = DELAYS[spec.partition("=")[0]]
        used = {"droptail": 1.0, "pie": 0.9, "codel": 0.8}[spec.partition(":")[0]]
        return [(seed, made(delay + 0.001 * seed, used, PROVIDED)) for seed in self.seeds]


@pytest.fixture
def study(monkeypatch):
    monkeypatch.setattr(networks, "Records", Made)
    monkeypatch.setattr(networks, "DRAWN", 1)
    return networks.Study([1, 2, 3], aqms=["pie", "codel"], places=NETWORKS)


def test_each_aqm_runs_as_it_comes_and_at_the_target_of_the_place(study):
    wanted = study.records.wanted
    assert wanted["rfc7928/aggressive"] == ["droptail", "pie", "pie:target=25ms", "codel", "codel:target=25ms"]
    assert wanted["everyday/backbone@cubic"][2] == "pie:target=20ms"
    # A profile that says its target keeps it; one that does not takes the other.
    assert networks.at_target("rem-ns2", "15ms") == "rem-ns2"
    assert networks.at_target("red50", "15ms") == "red50"
    assert networks.at_target("pie-linux", "15ms") == "pie-linux:target=15ms"
    assert networks.at_target("droptail", "15ms") == "droptail"


def test_an_aqm_whose_target_equals_that_of_the_network_runs_once(monkeypatch):
    monkeypatch.setattr(networks, "Records", Made)
    bursts = networks.Network(cell="rfc7928/bursts", target="15ms")
    # Its capacity changes, which some AQMs answer by what they were given.
    varying = networks.Network(cell="rfc7928/varying-capacity", target="15ms")
    study = networks.Study([1, 2], aqms=["pie", "codel"], places=[bursts, varying])
    # PIE's target is 15 ms, CoDel's 5 ms.
    assert study.records.wanted[bursts.cell] == ["droptail", "pie", "codel", "codel:target=15ms"]
    assert study.runs(bursts, "pie", networks.TARGET) == study.runs(bursts, "pie", networks.OWN)
    assert study.records.wanted[varying.cell] == ["droptail", "pie", "pie:target=15ms", "codel", "codel:target=15ms"]


def test_seeds_beyond_the_first_are_for_what_a_situation_compares_and_for_drawn_networks(study):
    wanted, own = study.records.wanted, ("droptail", "pie", "codel")
    (drawn,) = study.drawn
    (other,) = {"rfc7928/aggressive", "rfc7928/bursts"} - {drawn}
    assert study.records.once == {
        drawn: [spec for spec in wanted[drawn] if spec not in own],
        other: wanted[other],
        "everyday/backbone@cubic": ["pie:target=20ms", "codel:target=20ms"],
    }
    assert {place["cell"]: place["seeds"] for place in study.to_dict()["places"]} == {
        drawn: 3,
        other: 1,
        "everyday/backbone@cubic": 3,
    }
    # The ranking is of the first seed everywhere: 5 ms of `DELAYS` and 1 ms.
    told = study.figures(networks.OWN)["everyday/backbone@cubic"]["pie"]["sojourn_mean_s"]
    assert (told["n"], told["mean"]) == (1, pytest.approx(0.006))


def test_a_household_without_an_aqm_is_its_line_as_it_is(monkeypatch):
    """Nobody has a shaper with a buffer of 20 000 packets and no AQM."""
    monkeypatch.setattr(networks, "Records", Made)
    uplink = next(place for place in networks.NETWORKS if place.cell == "everyday/uplink@cubic")
    study = networks.Study([1, 2], aqms=["pie", "codel"], places=[uplink])
    wanted = study.records.wanted
    assert wanted["everyday/uplink@cubic"] == ["pie", "codel", "codel:target=15ms"]
    assert wanted["everyday/uplink@now,cubic"] == ["droptail"]
    # With all seeds, as the others of a situation.
    assert study.records.once["everyday/uplink@now,cubic"] == []
    links = {link["name"]: link for link in study.records.scenarios["everyday/uplink@now,cubic"].plan()["links"]}
    assert links["up"]["rates"][0][1] == 100 * links["line-up"]["rates"][0][1]

    def of(cell, spec):
        delay = 0.5 if "now" in cell else DELAYS[spec.partition("=")[0]]
        run = made(0.0001 if "now" in cell else delay, 0.9)
        run["links"]["line-up"] = made(delay, 0.9)["links"]["l"]
        return [(seed, run) for seed in (1, 2)]

    study.records.of = of
    told = study.figures(networks.OWN)["everyday/uplink@cubic"]
    # It is judged where its packets wait: before the line.
    assert {aqm: one["sojourn_mean_s"]["mean"] for aqm, one in told.items()} == {
        "droptail": 0.5,
        "pie": 0.005,
        "codel": 0.02,
    }


def test_how_alike_seeds_rank_is_told(study):
    # `Made` adds the same to all with each seed: every pair of seeds agrees.
    agreed = study.agreement()["situations"]
    assert agreed["power"] == agreed["utilization"]
    assert agreed["power"]["mean"] == 1

    def of(cell, spec):
        # With seed 2 PIE and CoDel change places: of three pairs two stand as before, (2 - 1) / 3. Seed 3 is as seed 1,
        # so that of the three pairs of seeds one agrees in all: (1/3 + 1 + 1/3) / 3.
        delay = {"pie": (0.01, 0.02), "codel": (0.02, 0.01), "droptail": (0.1, 0.1)}[spec]
        return [(seed, made(delay[seed == 2], 0.9, PROVIDED)) for seed in (1, 2, 3)]

    study.records.of = of
    agreed = study.agreement()
    # A situation's networks and those drawn are told apart; here one of each.
    assert [agreed[where]["sojourn_p95_s"]["n"] for where in ("situations", "drawn")] == [1, 1]
    assert agreed["situations"]["sojourn_p95_s"]["mean"] == pytest.approx(5 / 9)


def test_a_quick_ranking_leaves_out_what_is_slow(monkeypatch):
    monkeypatch.setattr(networks, "Records", Made)
    quick = networks.Study([1], quick=True, aqms=["pie"], places=NETWORKS)
    assert list(quick.records.wanted) == ["rfc7928/aggressive", "everyday/backbone@cubic"]
    assert quick.drawn == []
    # Those that take long are the papers' but two, and half of RFC 7928's.
    assert [place.cell for place in networks.NETWORKS if not place.slow] == [
        "rfc7928/tcp-friendly",
        "rfc7928/unresponsive@udp-half,beside",
        "rfc7928/bursts",
        "rfc7928/congestion@mild",
        "rfc7928/congestion@heavy",
        "rfc7928/congestion@heavy,ecn",
        "rfc7928/mix@x1",
        "rfc7928/mix@x4",
        "rfc7928/bidirectional",
        "arm-pfc/exp1",
        "arm-pfc/exp6-large",
        "everyday/uplink@cubic",
        "everyday/uplink@cubic-ecn",
        "everyday/datacenter@cubic",
        "everyday/datacenter@dctcp",
        "everyday/backbone@cubic",
        "everyday/backbone@cubic-ecn",
    ]
    # Each situation is run in a quick one, too.
    cells = {place.cell for place in networks.NETWORKS if not place.slow}
    assert all(cells & set(situation.cells) for situation in networks.SITUATIONS)
    assert all(set(situation.cells) <= {place.cell for place in networks.NETWORKS} for situation in networks.SITUATIONS)


def test_the_target_alone_can_turn_the_order(study):
    own, target = (study.ranking(which) for which in (networks.OWN, networks.TARGET))
    # Utilisation over response time with the first seed: PIE 0.9 / 0.106, CoDel 0.8 / 0.121, DropTail 1 / 0.201.
    assert own["by"]["power"]["means"] == {"pie": 1, "codel": 2, "droptail": 3}
    # At the target 0.9 / 0.131 is still more than 0.8 / 0.121, but CoDel waits less.
    assert target["by"]["sojourn_p95_s"]["means"] == {"codel": 1, "pie": 2, "droptail": 3}
    assert own["by"]["utilization"]["means"] == {"droptail": 1, "pie": 2, "codel": 3}
    assert own["by"]["loss_ratio"]["means"] == {"droptail": 2, "pie": 2, "codel": 2}
    # CoDel waits longer than PIE and carries less; at the target it waits less.
    assert (own["front"], target["front"]) == (["pie", "droptail"], ["codel", "pie", "droptail"])
    assert own["tradeoff"]["pie"] == pytest.approx({"delay_of_droptail": 6 / 101, "utilization": 0.9})


def test_a_pick_is_the_first_by_mean_rank_of_what_counts(study):
    situation = next(each for each in networks.SITUATIONS if each.key == "backbone")
    picked = study.pick(situation)
    # Delay: PIE, CoDel, DropTail; utilisation: DropTail, PIE, CoDel; the rest alike: (1 + 2 + 2 + 2 + 2) / 5.
    assert picked["pick"] == "pie"
    assert picked["ranks"]["means"] == pytest.approx({"pie": 1.8, "droptail": 2.0, "codel": 2.2})
    assert picked["kernel"] == "droptail"
    delay = next(row for row in picked["figures"] if row["measure"] == "delay")
    assert delay["figures"]["pie"]["mean"] == pytest.approx(1.5 * 7)
    # Where nothing came to pass, it is as bad as can be.
    missing = {**PROVIDED, "short": {"fct_10kB_100kB_mean_s": None}}
    study.records.of = lambda cell, spec: [(1, made(0.01, 0.9, missing if spec == "pie" else PROVIDED))]
    short = {**study.pick(situation)}["ranks"]["means"]
    assert short["pie"] == max(short.values())
    assert short["codel"] < short["pie"] > short["droptail"]
    # A situation none of whose cells ran has no pick.
    assert study.pick(networks.SITUATIONS[0])["pick"] is None


def measured(key):
    """Value of each measure of a situation in a run, by name, with its number of digits."""
    link = {"sojourn_p95_s": 0.0123, "utilization": 0.75, "early_drop_ratio": 0.02, "overflow_drop_ratio": 0.01}
    flows = {
        "call-up": {"mos": 4.2},
        "game-up": {"delay_p99_s": 0.05},
        "web": {"page_load_mean_s": 1.5},
        "upload": {"goodput_bps": 2e6},
        "update": {"goodput_bps": 15e6},
        "requests": {"fct_10kB_100kB_p99_s": 0.002, "fct_10kB_100kB_mean_s": 0.0005},
        "bulk": {"goodput_bps": 7e9},
        "short": {"fct_10kB_100kB_mean_s": 0.3},
        "long": {"jain_fairness": 0.9},
    }
    run = {"links": {"l": {"steady": link}}, "flows": {name: {"steady": told} for name, told in flows.items()}}
    situation = next(each for each in networks.SITUATIONS if each.key == key)
    return {each.key: (pytest.approx(each.of(run)), each.more, each.digits) for each in situation.measures}


def test_what_people_feel_is_told_in_the_unit_that_the_page_names():
    # Mbit/s, Gbit/s, ms, s and % of what `measured` made up.
    assert measured("uplink") == {
        "call": (4.2, True, 2),
        "game": (50, False, 1),
        "page": (1.5, False, 2),
        "upload": (2, True, 2),
        "update": (15, True, 2),
    }
    assert measured("datacenter") == {"p99": (2, False, 2), "mean": (0.5, False, 3), "bulk": (7, True, 2)}
    assert measured("backbone") == {
        "delay": (12.3, False, 1),
        "used": (75, True, 1),
        "lost": (3, False, 2),
        "short": (300, False, 0),
        "fair": (0.9, True, 3),
    }


def test_what_a_run_does_not_tell_is_no_figure():
    told = {"utilization": 0.9, "sojourn_mean_s": None, "sojourn_p95_s": None}
    lost = {"early_drop_ratio": None, "overflow_drop_ratio": 0.1}
    run = {"links": {"l": {"steady": told | lost}}, "aqm": {"nominal": {"base_rtt_s": 0.1}}}
    assert networks._judged(run, None) == {
        "power": None,
        "sojourn_mean_s": None,
        "sojourn_p95_s": None,
        "utilization": 0.9,
        "loss_ratio": None,
    }
    run["links"]["l"]["steady"] |= {"utilization": None, "sojourn_mean_s": 0.1, "early_drop_ratio": 0.2}
    # Losses are early drops and overflows: .2 and .1 of the packets.
    judged = networks._judged(run, "l")
    assert (judged["power"], judged["loss_ratio"]) == (None, pytest.approx(0.3))
    run["links"]["l"]["steady"]["overflow_drop_ratio"] = None
    assert networks._judged(run, "l")["loss_ratio"] is None


def test_a_pick_that_every_second_seed_turns_round_is_told_apart_from_none(study):
    situation = next(each for each in networks.SITUATIONS if each.key == "backbone")

    def of(cell, spec):
        # PIE waits less than CoDel with odd seeds, more with even ones; DropTail carries as much as they do.
        delay = {"pie": (0.03, 0.01), "codel": (0.02, 0.02), "droptail": (0.1, 0.1)}[spec]
        return [(seed, made(delay[seed % 2], 0.9, PROVIDED)) for seed in (1, 2, 3, 4)]

    study.records.seeds, study.records.of = [1, 2, 3, 4], of
    ranked = study.pick(situation)["ranks"]
    assert ranked["means"] == pytest.approx({"pie": 1.9, "codel": 1.9, "droptail": 2.2})
    assert ranked["seeds"] == 4
    assert set(ranked["tied_with_best"]) >= {"pie", "codel"}
    # A seed that one of them lacks does not count.
    study.records.of = lambda cell, spec: of(cell, spec)[: 3 if spec == "pie" else 4]
    assert study.pick(situation)["ranks"]["seeds"] == 3


def test_an_aqm_that_a_place_refuses_is_named_and_not_ranked(monkeypatch):
    monkeypatch.setattr(networks, "Records", Made)

    def check(self, aqm):
        if aqm == "codel" and "aggressive" in self.name:
            raise verb.ScenarioError("no")

    monkeypatch.setattr(Scenario, "check_aqm", check)
    study = networks.Study([1, 2], aqms=["codel", "pie"], places=NETWORKS)
    assert study.refused == {"codel": "rfc7928/aggressive: no"}
    assert study.aqms == ["droptail", "pie"]


def test_a_place_may_end_before_its_scenario_and_judge_another_link(monkeypatch):
    monkeypatch.setattr(networks, "Records", Made)
    place = networks.Network(cell="arm-pfc/parking-lot", target="53ms", until="20s", link="link2")
    study = networks.Study([1], aqms=["pie"], places=[place])
    assert study.records.scenarios[place.cell].plan(1, "pie")["duration_s"] == 20
    idle, busy = made(0.001, 0.1)["links"]["l"], made(0.02, 0.9)["links"]["l"]
    study.records.of = lambda cell, spec: [(1, {**made(0, 0), "links": {"link1": idle, "link2": busy}})]
    found = study.figures(networks.OWN)[place.cell]["pie"]
    # The base round trip of `made` is 100 ms.
    assert found["power"]["mean"] == pytest.approx(0.9 / 0.12)
    assert found["sojourn_p95_s"]["mean"] == pytest.approx(0.03)


def test_each_network_is_compared_once_and_its_link_under_test():
    cells = [place.cell for place in networks.NETWORKS]
    assert len(set(cells)) == len(cells)
    papers = {cell.partition("/")[0] for cell in cells}
    assert papers >= {"rfc7928", "arm-pfc", "paqm", "aqm-mo", "aaqm", "self-tuning", "everyday"}
    for place in networks.NETWORKS:
        if place.link is not None:
            links = Scenario.load(place.cell).plan(1, "droptail")["links"]
            assert any(link["name"] == place.link and link["record"] for link in links)


def test_all_but_the_constant_probability_are_candidates():
    names = networks.candidates()
    assert names[0] == "droptail"
    assert "fixed" not in names
    assert {"pie", "fq-codel-linux", "arm-pfc-printed"} <= set(names)


def test_the_page_has_a_pick_for_each_situation_and_both_orders(study):
    text = advice.page(study.to_dict(), "aqumen reproduce ranking --seeds 3", "2026-11-22")
    assert "Written by `aqumen reproduce ranking --seeds 3 --record` on 2026-11-22" in text
    # All seeds rank them alike.
    assert (
        "Pick: **`pie`**, mean rank 1.8 over 5 metrics (critical difference 0.0), significantly better than every "
        "other. Among the AQMs of the Linux kernel, `droptail` (mean rank 2.0) is best.\n" in text
    )
    # Student's quantile for two degrees is 4.303; of 9, 10.5 and 12 ms the deviation is 1.5 ms.
    assert "| `pie` | 1.8 | a | 10.5 ± 3.7 | 90.0 ± 0.0 |" in text
    assert text.index("### AQMs with their defaults") < text.index("### AQMs at the target of each network")
    assert "| `everyday/backbone@cubic` | 20ms | its end |" in text
    assert text.count("Not run.") == 2
    # Every line of a table has as many columns as its head.
    for block in text.split("\n\n"):
        rows = [line for line in block.splitlines() if line.startswith("|")]
        assert len({line.count("|") for line in rows}) <= 1


def lines_of(text, begin):
    return [line for line in text.splitlines() if line.startswith(begin)]


def test_a_ranking_is_a_table_by_every_criterion_with_delay_and_utilisation(study):
    data = study.to_dict()
    text = advice.page(data, "c", "2026-11-22")
    assert lines_of(text, "| AQM | rank by")[0] == (
        "| AQM | rank by utilisation over response time | rank by queueing delay, p95 | rank by utilisation"
        " | rank by losses | group by utilisation over response time | delay / DropTail's | utilisation |"
    )
    own, target = lines_of(text, "| `pie` | 1.0 |")
    # Delays with the first seed: 6 of DropTail's 101 ms as it comes, 31 at the target.
    assert own == "| `pie` | 1.0 | 1.0 | 2.0 | 2.0 | a | 0.06 | 90.0 % |"
    assert target == "| `pie` | 1.0 | 2.0 | 2.0 | 2.0 | a | 0.31 | 90.0 % |"
    assert "|---|---|---|---|---|---|---|---|" in text
    # Three alike places rank alike: 12 3 / (3 4) (1 + 4 + 9 - 3 16 / 4) is 6; q is 2.343, over 3 places sqrt(12 / 18).
    assert text.count("\n\nIn order of utilisation over response time (Kleinrock's power). Critical") == 2
    assert "Friedman's statistic of the first: 6 over 3 networks" in text
    assert "Critical differences: utilisation over response time 1.9, queueing delay, p95 1.9" in text
    assert "front of delay and utilisation: `pie`, `droptail`." in text
    # In one place two seeds always agree: no interval, and so no word of it.
    assert "Kendall's tau" not in text
    told = {key: {"mean": 0.875, "ci95": [0.75, 1.0]} for key, _, _ in networks.CRITERIA}
    none = {key: {"mean": 1.0, "ci95": None} for key in told}
    last = networks.CRITERIA[-1][0]
    one_less = {**told, last: none[last]}
    text = advice.page({**data, "agreement": {"situations": one_less, "drawn": none}}, "c", "d")
    assert (
        "with the 95 % interval over the networks: in a network of a situation utilisation over response time"
        " 0.88 ± 0.12, queueing delay, p95 0.88 ± 0.12, utilisation 0.88 ± 0.12." in text
    )
    text = advice.page({**data, "agreement": {"situations": none, "drawn": told}}, "c", "d")
    assert "over the networks: in a random network utilisation over response time 0.88 ± 0.12," in text
    assert "3 seeds each in the situations and in 1 random other networks, one in all" in text


def test_what_there_is_too_little_of_is_told_as_such(study):
    data = study.to_dict()
    own = data["rankings"][networks.OWN]
    main, losses = networks.CRITERIA[0][0], networks.CRITERIA[-1][0]
    assert losses == "loss_ratio"
    some = {**own, "by": {**own["by"], losses: None}, "tradeoff": {}}
    text = advice.page({**data, "rankings": {**data["rankings"], networks.OWN: some}}, "c", "d")
    assert lines_of(text, "| `pie` | 1.0 |")[0] == "| `pie` | 1.0 | 1.0 | 2.0 | – | a | – | – |"
    assert "losses" not in lines_of(text, "In order of")[0]
    none = {**own, "by": {**own["by"], main: None}}
    refused = {"rem": "paqm/load@n3: no"}
    text = advice.page({**data, "rankings": {**data["rankings"], networks.OWN: none}, "refused": refused}, "c", "d")
    assert text.count("Not enough networks.") == 1
    assert "Who moves most" not in text
    assert text.endswith("\nNot ranked, since it cannot run in a network:\n\n- `rem`: paqm/load@n3: no\n")
    assert "Not ranked" not in advice.page(data, "c", "d")


def test_a_pick_is_told_with_eight_aqms_linux_best_and_droptail(study):
    situation = next(each for each in networks.SITUATIONS if each.key == "backbone")
    names = [f"a{k}" for k in range(9)]
    means = {name: 1 + 0.25 * k for k, name in enumerate([*names, "droptail", "codel"])}
    told = {name: {"n": 3, "mean": 10 + k, "ci95": [8 + k, 12 + k]} for k, name in enumerate(means)}
    once, none = {"n": 1, "mean": 7.25, "ci95": None}, {"n": 0, "mean": None, "ci95": None}
    figures = [
        {"cell": "net", "measure": "delay", "figures": told},
        {"cell": "net", "measure": "fair", "figures": {**told, "a0": once, "a1": none}},
        {"cell": "other", "measure": "short", "figures": told},
    ]
    groups = {name: "a" if name in ("a0", "a1") else "b" for name in means}
    ranked = {"means": means, "figures": 3, "critical_difference": None, "tied_with_best": ["a0", "a1"]}
    ranked |= {"groups": groups}
    picked = {"pick": "a0", "kernel": "codel", "ranks": ranked, "figures": figures}
    situation = replace(situation, title="A link")
    text = "\n".join(advice._situation(situation, dict.fromkeys(situation.cells), picked))
    assert text.startswith(
        "## A link\n\nA tie of 2 among 11: `a0`, mean rank 1.0 over 3 metrics, does not differ significantly"
    )
    # Eight, then the kernel's first and DropTail, which the order would leave out.
    rows = lines_of(text, "| `")
    assert [row.split("`")[1] for row in rows] == [*names[:8], "codel", "droptail"] * 2
    assert rows[0] == "| `a0` | 1.0 | a | 10.0 ± 2.0 | 7.250 |"
    assert rows[1] == "| `a1` | 1.2 | a | 11.0 ± 2.0 | none |"
    assert rows[10] == "| `a0` | 1.0 | a | 10 ± 2 |"
    heads = lines_of(text, "| AQM")
    assert heads == [
        "| AQM | mean rank | group | queueing delay, p95, ms | fairness of the long ones, Jain |",
        "| AQM | mean rank | group | transfer of 10 to 100 kB, ms |",
    ]
    assert lines_of(text, "|---") == ["|---|---|---|---|---|", "|---|---|---|---|"]
    assert lines_of(text, "`") == ["`net`:", "`other`:"]
    # Where DropTail is another network, that is said.
    home = "\n".join(advice._situation(situation, {situation.cells[0]: "net@now"}, picked))
    assert "`droptail` is the line without shapers" in home


def test_who_is_not_told_apart_is_a_tie_and_no_pick():
    means = {"a": 1.5, "b": 1.75, "c": 2.0, "d": 4.0}
    ranked = {"means": means, "figures": 5, "critical_difference": 0.3, "tied_with_best": ["a", "b"]}
    picked = {"pick": "a", "kernel": "b", "ranks": ranked}
    assert advice._ahead(picked, ranked) == (
        "A tie of 2 among 4: `a`, mean rank 1.5 over 5 metrics (critical difference 0.3), does not differ "
        "significantly from `b`."
        " Among the AQMs of the Linux kernel, `b` (mean rank 1.8) is in the tie."
    )
    outside = advice._ahead({**picked, "kernel": "d"}, ranked)
    assert outside.endswith("`d` (mean rank 4.0) is best, outside the tie.")
    # The kernel's own needs no second mention.
    assert advice._ahead({**picked, "kernel": "a"}, ranked).endswith("significantly from `b`.")
    all_alike = {**ranked, "tied_with_best": list(means)}
    assert advice._ahead(picked, all_alike).startswith("No pick: none of the 4 differ significantly over 5 metrics")
    many = {name: 1 + k / 100 for k, name in enumerate("abcdefghij")}
    told = advice._ahead(picked, {**ranked, "means": many, "tied_with_best": list("abcdefghi")})
    assert "A tie of 9 among 10: `a`" in told
    assert "significantly from `b`, `c`, `d`, `e`, `f`, `g` and 2 more." in told


def test_the_command_tells_both_orders_and_the_picks(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(networks, "Records", Made)
    monkeypatch.setattr(
        networks.Study.__init__, "__kwdefaults__", {**networks.Study.__init__.__kwdefaults__, "places": NETWORKS}
    )
    command = ["reproduce", "ranking", "--aqm", "pie", "--aqm", "codel", "--seeds", "2"]
    assert main([*command, "--json", "--out", str(tmp_path)]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["rankings"]["own"]["by"]["power"]["means"]["pie"] == 1
    assert json.loads((tmp_path / "ranking.json").read_text()) == told
    assert (tmp_path / "ranking.md").read_text().startswith("# AQMs ranked over many networks")
    assert main(command) == 0
    out = capsys.readouterr().out
    assert "AQMs with their defaults" in out
    assert "AQMs at the target of each network" in out
    assert main([*command, "--record"]) == 2
    assert "--record needs a checkout of Aqumen with its folder `experiments`, and all AQMs" in capsys.readouterr().err
    assert main([*command, "--figures", str(tmp_path)]) == 2


def test_who_moves_is_told_by_the_measure_that_counts():
    first, last = networks.CRITERIA[0][0], networks.CRITERIA[-1][0]

    def ranking(order, other):
        return {"by": {first: {"means": dict.fromkeys(order)}, last: {"means": dict.fromkeys(other)}}}

    rankings = {networks.OWN: ranking("abc", "abc"), networks.TARGET: ranking("cba", "abc")}
    (line, _) = advice._moved(rankings)
    assert line.endswith("due to the target: `a` from 1 to 3, `c` from 3 to 1.")
    # Of many those are named that move furthest, six of them.
    rankings = {networks.OWN: ranking("abcdefghi", "x"), networks.TARGET: ranking("ihgfedcba", "x")}
    assert advice._moved(rankings)[0].partition("to the target: ")[2] == (
        "`a` from 1 to 9, `i` from 9 to 1, `b` from 2 to 8, `h` from 8 to 2, `c` from 3 to 7, `g` from 7 to 3."
    )
    # The others say nothing: in theirs nobody moves.
    assert advice._moved({networks.OWN: ranking("abc", "abc"), networks.TARGET: ranking("abc", "cab")}) == []


def test_eight_networks_beside_those_of_the_situations_run_with_every_seed(monkeypatch):
    monkeypatch.setattr(networks, "Records", Made)
    compared = {cell for situation in networks.SITUATIONS for cell in situation.cells}
    others = [place for place in networks.NETWORKS if place.cell not in compared][:12]
    cells = {place.cell for place in others}
    drawn = networks.Study([1, 2], aqms=["pie"], places=others).drawn
    assert len(set(drawn)) == len(drawn) == 8
    assert set(drawn) < cells
    # The same ones whoever asks; of fewer all.
    assert networks.Study([1, 2, 3], aqms=["codel"], places=others).drawn == drawn
    assert len(networks.Study([1], aqms=["pie"], places=others[:3]).drawn) == 3
