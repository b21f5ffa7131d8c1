"""Networks drawn at random: valid for every seed, within their laws, the same everywhere."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import aqumen
from aqumen.cli import main
from aqumen.errors import ScenarioError
from aqumen.scenario import Scenario
from aqumen.study.drawn import FAMILIES, PACKETS_MAX, draw, laws

ROOT = Path(__file__).parents[2]
FAMILY = st.sampled_from(sorted(FAMILIES))


@settings(max_examples=150, deadline=None)
@given(FAMILY, st.integers(0, 2**64 - 1))
def test_each_network_of_each_seed_is_a_valid_scenario_within_its_laws(family, seed):
    law, (each,) = FAMILIES[family], draw(family, seed, 1)
    scenario = Scenario.parse(each.text, f"{each.name}.toml")
    plan, given_ = scenario.plan(), tomllib.loads(each.text)
    rate, longest = plan["nominal"]["capacity_bps"], max(map(longest_rtt, given_["flows"]))
    if "rate" in given_["topology"]["bottleneck"]:
        assert law.rate[0] <= rate <= law.rate[1]
    assert 64e3 <= rate <= 10e9
    assert law.rtt[0] <= longest <= law.rtt[1] + 1e-9
    assert min(map(shortest_rtt, given_["flows"])) >= 1e-3
    long = sum(group["count"] for group in given_["flows"] if group["name"].startswith("long"))
    assert 1 <= long <= law.flows[1]
    # Both hold at once: round trips give way on fast links.
    assert plan["duration_s"] >= 40 * longest * 0.999
    assert plan["duration_s"] * rate / 12000 <= PACKETS_MAX
    for aqm in ("droptail", "codel", "pie", "red", "fq-codel", "dualpi2"):
        scenario.check_aqm(aqm)


def longest_rtt(group):
    return seconds(group["rtt"][1] if isinstance(group["rtt"], list) else group["rtt"])


def shortest_rtt(group):
    return seconds(group["rtt"][0] if isinstance(group["rtt"], list) else group["rtt"])


def seconds(text):
    return float(text.removesuffix("ms").removesuffix("us")) * (1e-6 if text.endswith("us") else 1e-3)


def test_a_run_takes_no_more_packets_than_the_law_says():
    for family in FAMILIES:
        for each in draw(family, 5, 4):
            run = aqumen.run(Scenario.parse(each.text, f"{each.name}.toml"), aqm="droptail")
            assert 100 < run.link(window="all")["departures_pkts"] <= PACKETS_MAX


def test_a_network_depends_on_family_seed_and_number_alone():
    some, more = draw("any", 3, 5), draw("any", 3, 9)
    assert more[:5] == some
    assert len({each.text for each in [*more, *draw("any", 4, 9), *draw("access", 3, 9)]}) == 27
    # The bits of the first release of these laws: any machine draws them.
    assert draw("provider", 1, 1)[0].text == (Path(__file__).parent / "snapshots" / "drawn.toml").read_text()


def test_any_covers_rates_round_trips_flows_media_and_l4s():
    told = [tomllib.loads(each.text)["title"].split(", ") for each in draw("any", 11, 300)]
    assert {each[0] for each in told} == {"wired", "wifi", "lte", "umts", "shared"}
    assert {each[4] for each in told} == {"cubic", "cubic-ecn", "reno", "bbr", "mixed", "l4s", "dctcp"}
    trips = sorted(seconds(each[2]) for each in told)
    flows = sorted(int(each[3].split()[0]) for each in told)
    assert (trips[0] < 2e-3, trips[-1] > 0.4) == (True, True)
    assert (flows[0], flows[-1] > 500) == (1, True)


@pytest.mark.parametrize(
    ("family", "seed", "count", "told"),
    [
        ("home", 1, 1, "family home: choose from: "),
        ("any", -1, 1, r"seed -1: must be 0 to 2\^64 - 1"),
        ("any", 1, 0, "count 0: must be 1 to 10000"),
    ],
)
def test_what_cannot_be_drawn_is_told(family, seed, count, told):
    with pytest.raises(ScenarioError, match=told):
        draw(family, seed, count)


def test_the_verb_writes_files_that_run(tmp_path, capsys):
    out = tmp_path / "nets"
    command = ["study", "draw", "--seed", "7", "--count", "3", "--family", "access", "--out", str(out)]
    assert main(command) == 0
    assert [path.name for path in sorted(out.iterdir())] == [f"access-7-{k:03}.toml" for k in (1, 2, 3)]
    assert main(command) == 0
    capsys.readouterr()
    assert main(["study", "draw", "--seed", "8", "--count", "3", "--out", str(out)]) == 2
    assert "has another scenario, access-7-001.toml" in capsys.readouterr().err
    assert main(["run", str(out / "access-7-002.toml"), "--aqm", "codel", "--until", "1s"]) == 0


def test_the_page_has_the_laws_of_the_code():
    assert laws() in (ROOT / "docs" / "ranking.md").read_text()
