"""Several engines on one AQM: how far they are apart, on queues drawn by hand and on the command line."""

import json
import re

import numpy as np
import pytest

import aqumen
from aqumen.explain.disagreement import averaged, disagreement


class Drawn:
    """A run whose queue was drawn by hand: packets each 0.1 s."""

    def __init__(self, label, queue, mean=0.0, std=0.0):
        self.spec, self.label, self.links, self.windows = "pi", label, ["one"], {"all": (0.0, len(queue) / 10)}
        self._queue = np.array(queue, dtype=float)
        self._metrics = {"queue_mean_pkts": mean, "queue_std_pkts": std}

    def link(self, name, window):
        assert (name, window) == ("one", "all")
        return self._metrics

    def series(self, link):
        assert link == "one"
        t = np.arange(1, len(self._queue) + 1) / 10
        return aqumen.Series(t_s=t, queue_pkts=self._queue, probability=np.zeros_like(t))


def test_curves_are_averaged_over_runs_and_the_last_second():
    # Two runs, 0 and 20 then 40 packets: 10 for a second, then 20; the second after the step climbs by one each sample.
    runs = [Drawn("a", [0] * 20), Drawn("a", [20] * 10 + [40] * 10)]
    t, queue = averaged(runs, "one")
    assert t[9] == pytest.approx(1.0)
    assert queue[9] == pytest.approx(10.0)
    assert queue[10:] == pytest.approx(np.arange(11, 21))


def test_a_curve_that_is_five_higher_is_five_apart():
    runs = [Drawn("a", [10] * 30, mean=10.0, std=2.0), Drawn("b", [15] * 30, mean=15.5, std=1.0)]
    (found,) = disagreement(runs).values()
    assert found["reference"] == "a"
    assert found["links"]["one"]["all"] == {
        "queue_mean_difference_pkts": 5.5,
        "queue_std_difference_pkts": -1.0,
        "curve_rms_pkts": pytest.approx(5.0),
    }


def test_swings_faster_than_a_second_do_not_count():
    wave = [100 + (5 if k % 2 else -5) for k in range(40)]
    (found,) = disagreement([Drawn("a", [100] * 40), Drawn("b", wave)]).values()
    # The first sample alone is 5 off, of the others every second mean of an odd number of samples a little.
    first = [5 / n if n % 2 else 0.0 for n in range(1, 11)]
    assert found["links"]["one"]["all"]["curve_rms_pkts"] == pytest.approx(np.sqrt(sum(x * x for x in first) / 40))


def test_one_engine_disagrees_with_none():
    assert disagreement([Drawn("pi", [1, 2]), Drawn("pi", [3, 4])]) == {}


def test_compare_sets_engines_side_by_side(aqumen_cli, scenario_file, tmp_path):
    out = tmp_path / "out"
    args = ("compare", scenario_file, "--aqm", "pi", "--engine", "packet", "--engine", "fluid", "--seeds", 3)
    code, printed, _ = aqumen_cli(*args, "--out", out)
    assert code == 0
    assert "engines packet, fluid" in printed
    # The fake fluid's queue is ten packets above that of the packets throughout.
    assert "pi (fluid) differs from pi (packet) by 10.0 packets (root mean square of the queue);" in printed
    assert re.search(r"pi \(fluid\) against pi \(packet\) +bottleneck +10\.0 +-?0\.0 +10\.0", printed)
    data = json.loads((out / "compare.json").read_text())
    assert data["engine"] == "packet, fluid"
    assert [(name, entry["engine"]) for name, entry in data["aqms"].items()] == [
        ("pi (packet)", "packet"), ("pi (fluid)", "fluid"),
    ]  # fmt: skip
    assert data["mismatch"]["pi (fluid)"]["links"]["bottleneck"]["steady"]["curve_rms_pkts"] == pytest.approx(10.0)
    # One AQM on two engines is no ranking, and nothing is called the best.
    assert [each["aqm"] for each in data["ranking"]["order"]] == ["pi (packet)"]
    assert "place" not in printed
    assert "Ranked" not in printed
    # What is said first is how far the engines are apart.
    assert printed.index("differs from") < printed.index("Disagreement of the engines") < printed.index("Utilisation")
    page = (out / "report.html").read_text()
    assert page.index("Comparison of engines") < page.index("<h2>The AQM on each engine</h2>")
    assert "10.0 packets (root mean square of the queue)" in re.search(r'class="verdict">(.*?)</p>', page)[1]
    assert 'class="badge' not in page
    numbers = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL).group(1))
    curves = numbers["links"]["bottleneck"]["time"]
    assert np.subtract(curves["pi (fluid)"]["averaged"], curves["pi (packet)"]["averaged"]) == pytest.approx(10.0)


def test_aqms_on_several_engines_are_ranked_on_the_first_alone(aqumen_cli, scenario_file):
    several = ("--engine", "packet", "--engine", "fluid", "--seeds", 3)
    args = ("compare", scenario_file, "--aqm", "pi,red,droptail")
    both = json.loads(aqumen_cli(*args, *several, "--json")[1])["ranking"]
    alone = json.loads(aqumen_cli(*args, "--seeds", 3, "--json")[1])["ranking"]
    assert both["engine"] == "packet"
    assert [each["aqm"] for each in both["order"]] == [f"{each['aqm']} (packet)" for each in alone["order"]]
    for key in ("place", "group", "clearly_best"):
        assert [each[key] for each in both["order"]] == [each[key] for each in alone["order"]]
    # In the table each AQM on the other engine stands below it, without place and letter.
    table = aqumen_cli(*args, *several)[1].partition("AQM ")[2].partition("\n\n")[0].splitlines()[1:7]
    assert [row.split()[-9:] for row in table if "packet" in row] != []
    assert [bool(re.match(r"\d +[a-z]+ +\w+ \(packet\)", row)) for row in table] == [True, False] * 3
    assert all(re.match(r" +\w+ \(fluid\)", row) for row in table[1::2])


def test_runs_of_several_engines_are_taken_from_disk(aqumen_cli, scenario_file, tmp_path, fake_core, monkeypatch):
    args = ("compare", scenario_file, "--aqm", "pi", "--engine", "packet", "--engine", "fluid", "--seeds", 2)
    _, first, _ = aqumen_cli(*args, "--out", tmp_path / "out", "--json")
    from aqumen import _core

    for name in ("run_many", "run_fluid_many"):
        monkeypatch.setattr(_core, name, lambda *_: pytest.fail("nothing was left to run"))
    code, second, err = aqumen_cli(*args, "--out", tmp_path / "out", "--json")
    assert (code, second) == (0, first)
    assert "4 of 4 runs are already in" in err


def test_an_engine_named_twice_is_refused(aqumen_cli, scenario_file):
    code, out, err = aqumen_cli("compare", scenario_file, "--aqm", "pi", "--engine", "fluid", "--engine", "fluid")
    assert (code, out) == (2, "")
    assert "engine `fluid` is named twice" in err
