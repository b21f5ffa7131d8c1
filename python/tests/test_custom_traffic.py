"""Traffic sources of one's own in Python: the same bits as built in, errors that say when, refusals by name."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import pytest

import aqumen
from aqumen import CustomError, EngineError, Param, SampledLaw, Scenario, ScenarioError, TrafficSource, custom, engines
from aqumen.cli import main

ROOT = Path(__file__).parents[2]
MY_SOURCE = ROOT / "examples/my_source.py"
GAME = custom.from_file(f"{MY_SOURCE}:Game", traffic=True)

TEXT = """
name = "own"
duration = "5s"
aqm = "droptail"
[topology]
preset = "dumbbell"
bottleneck = {{ rate = "10Mbit", delay = "10ms", buffer = "50pkt" }}
access = {{ rate = "1Gbit", delay = "1ms" }}
[[flows]]
name = "mine"
count = 2
transport = "{transport}"
traffic = {traffic}
[[flows]]
name = "bulk"
transport = "modern"
"""


def scenario(traffic, *classes, transport="udp"):
    return Scenario.parse(TEXT.format(traffic=traffic, transport=transport), "own.toml", custom=classes)


def answers(result):
    return result.data["links"], result.data["flows"], result.series("bottleneck").queue_pkts.tolist()


class Steady(TrafficSource):
    """Packets at a constant rate, the first at once."""

    gap = Param(0.008, unit="s", low=1e-6, doc="time between two packets")
    packet = Param(1000, unit="B", low=1, doc="bytes of a packet")

    def start(self):
        self.wait = 0.0

    def next(self):
        wait, self.wait = self.wait, self.gap
        return wait, int(self.packet)


class Random(TrafficSource):
    """A Poisson process of packets."""

    def next(self):
        return self.random.expovariate(200), self.random.choice([100, 700])


@pytest.mark.parametrize("transport", ["udp", "modern"])
def test_a_constant_rate_in_python_gives_the_bits_of_the_built_in_one(transport):
    mine = aqumen.run(scenario('"steady"', Steady, transport=transport))
    # 1000 B each 8 ms are 1 Mbit/s.
    built_in = aqumen.run(scenario('{ kind = "cbr", rate = "1Mbit", packet = "1000B" }', transport=transport))
    assert answers(mine) == answers(built_in)


def test_its_parameters_have_units_and_reach_it():
    mine = aqumen.run(scenario('{ kind = "steady", gap = "4ms", packet = "500B" }', Steady))
    assert answers(mine) == answers(aqumen.run(scenario('{ kind = "cbr", rate = "1Mbit", packet = "500B" }')))
    text = scenario('{ kind = "steady", gap = "4ms" }', Steady).to_toml()
    assert answers(aqumen.run(Scenario.parse(text, custom=[Steady]))) != answers(mine)


@pytest.mark.parametrize(
    ("traffic", "told"),
    [
        ('"stead"', 'own.toml:13: flows.0.traffic = "stead": no such kind of traffic; did you mean steady?'),
        ('{ kind = "nobody" }', 'own.toml:13: flows.0.traffic.kind = "nobody": no such kind of traffic'),
        ('{ kind = "steady", gap = "5kB" }', 'own.toml:13: flows.0.traffic.gap = "5kB": '),
        ('{ kind = "steady", gap = "0s" }', 'own.toml:13: flows.0.traffic.gap = "0s": '),
        ('{ kind = "steady", gaps = "1s" }', 'flows.0.traffic.gaps = "1s": not a parameter of steady'),
        ('{ kind = "steady", gap = ["1s"] }', "flows.0.traffic.gap = "),
    ],
)
def test_what_a_scenario_says_of_it_is_checked(traffic, told):
    with pytest.raises(ScenarioError) as error:
        scenario(traffic, Steady)
    assert told in str(error.value)


def test_chances_follow_the_seed_and_the_flow_whatever_the_threads_and_the_aqm():
    known = scenario('"random"', Random)
    compared = aqumen.compare(known, ["droptail", "pi"], seeds=[1, 2, 3], threads=3)
    sent = {(run.spec, run.seed): run.data["flows"]["mine"]["all"]["goodput_bps"] for run in compared.results}
    alone = {seed: aqumen.run(known, "pi", seed) for seed in (1, 2, 3)}
    for run in compared.results:
        if run.spec == "pi":
            assert answers(run) == answers(alone[run.seed])
    assert len({sent["pi", seed] for seed in (1, 2, 3)}) == 3
    # 200 packets a second of 400 bytes for two flows: within 4 standard deviations of 5 s.
    assert all(abs(bps - 2 * 200 * 400 * 8) < 0.2 * 2 * 200 * 400 * 8 for bps in sent.values())


class Ends(TrafficSource):
    """Three packets after a silence in two parts, then no more."""

    def start(self):
        self.answers = iter([(0.5, 0), (0.5, 300), (0, 300), (1.0, 300)])

    def next(self):
        return next(self.answers, None)


def test_it_may_wait_without_sending_send_at_once_and_end():
    text = TEXT.format(traffic='"ends"', transport="udp") + (
        '[windows]\nsilent = ["0s", "1s"]\nburst = ["1s", "1.9s"]\nlast = ["1.9s", "2.9s"]\nover = ["2.9s", "5s"]\n'
    )
    flows = aqumen.run(Scenario.parse(text, custom=[Ends])).data["flows"]["mine"]
    packets = {
        window: round(flows[window]["goodput_bps"] * seconds / 8 / 300)
        for window, seconds in [("silent", 1.0), ("burst", 0.9), ("last", 1.0), ("over", 2.1)]
    }
    # Of each of the two flows: two at 1 s, one at 2 s.
    assert packets == {"silent": 0, "burst": 4, "last": 2, "over": 0}


def test_what_it_raises_stops_the_run_and_says_when():
    class Raises(TrafficSource):
        count = 0

        def next(self):
            self.count += 1
            if self.count > 100:
                raise KeyError("gone")
            return 0.01, 100

    # Asked for the 101st after the 100th, at 1 s.
    with pytest.raises(CustomError, match=r"^raises at 1 s: KeyError: 'gone'$") as told:
        aqumen.run(scenario('"raises"', Raises))
    assert told.value.__cause__.__traceback__.tb_frame.f_code.co_name == "next"
    with pytest.raises(CustomError, match="at 1 s"):
        aqumen.compare(scenario('"raises"', Raises), ["droptail"], seeds=3, threads=3)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ((-0.1, 100), "next() returned (-0.1, 100); a wait is from 0 to 1e9 seconds"),
        ((float("nan"), 100), "next() returned (nan, 100); a wait is from 0 to 1e9 seconds"),
        ((float("inf"), 100), "next() returned (inf, 100); a wait is from 0 to 1e9 seconds"),
        (("1s", 100), "next() returned ('1s', 100); a wait is from 0 to 1e9 seconds"),
        ((0.1, -1), "next() returned (0.1, -1); bytes are a whole number from 0 to 16777216"),
        ((0.1, 10.5), "next() returned (0.1, 10.5); bytes are a whole number from 0 to 16777216"),
        ((0.1, 1 << 40), "bytes are a whole number from 0 to 16777216"),
        (0.1, "next() returned 0.1; it must return (wait, bytes), or None at the end"),
        ((0.1, 0), "next() returned 100000 times in a row without a byte"),
        ((0, 0), "next() returned 100000 times in a row without a"),
        ((1e-12, 100), "next() returned 100000 times in a row without a wait"),
    ],
)
def test_an_answer_that_is_none_is_an_error_with_its_moment(answer, told):
    class Bad(TrafficSource):
        asked = 0

        def next(self):
            self.asked += 1
            return (0.25, 100) if self.asked == 1 else answer

    with pytest.raises(CustomError) as error:
        aqumen.run(scenario('"bad"', Bad))
    assert str(error.value).startswith("bad at 0.25 s: ")
    assert told in str(error.value)


def test_a_class_that_does_not_fit_is_refused_before_a_run():
    with pytest.raises(ScenarioError, match=r"Idle sends nothing; define next\(\)"):
        scenario('"idle"', type("Idle", (TrafficSource,), {}))
    named = type("Cbr", (TrafficSource,), {"next": lambda self: None})
    with pytest.raises(ScenarioError, match="cbr is a built-in kind of traffic"):
        scenario('"cbr"', named)
    broken = type("Broken", (TrafficSource,), {"next": lambda self: None, "start": lambda self: 1 / 0})
    with pytest.raises(CustomError, match="broken: cannot be made: ZeroDivisionError"):
        scenario('"broken"', broken)
    with pytest.raises(ScenarioError, match="Steady: is a traffic source, not an AQM"):
        aqumen.run(scenario('"steady"', Steady), Steady)


@pytest.mark.parametrize("engine", ["fluid", "fluid:hollot", "theory", "live", "ns2", "ns3"])
def test_other_engines_refuse_it_by_name(engine):
    known = scenario('"steady"', Steady)
    told = f"engine `{engine}` cannot run custom traffic: group mine has steady; use engine `packet`"
    with pytest.raises(EngineError) as error:
        engines.find(engine).check(known)
    assert str(error.value) == told
    if engine in ("fluid", "theory"):
        with pytest.raises(EngineError, match="group mine has steady"):
            aqumen.run(known, engine=engine)
        with pytest.raises(EngineError, match="group mine has steady"):
            aqumen.compare(known, ["pi"], seeds=1, engine=["packet", engine])


class Law(SampledLaw):
    """A constant."""

    seen: ClassVar[int] = 0

    def step(self, seen):
        return 0.01


def test_it_runs_beside_an_aqm_of_ones_own():
    result = aqumen.run(scenario('"game"', GAME, Law), Law)
    assert result.data["aqm"]["name"] == "law"
    # 60 updates a second of 80 to 400 bytes, of two players, less one in a hundred.
    assert 2 * 60 * 80 * 8 * 0.9 < result.data["flows"]["mine"]["all"]["goodput_bps"] < 2 * 60 * 400 * 8


def test_the_command_line_takes_it_from_a_file(tmp_path, capsys):
    file = tmp_path / "own.toml"
    file.write_text(TEXT.format(traffic='{ kind = "cbr", rate = "1Mbit" }', transport="udp"))
    take = ["--traffic-from", f"{MY_SOURCE}:Game", "--set", "flows.mine.traffic=game"]
    out = ["--out", str(tmp_path / "out")]
    assert main(["compare", str(file), "--aqm", "pi", *take, "--seeds", "2", *out]) == 0
    assert "game" in (tmp_path / "out/report.html").read_text()
    capsys.readouterr()
    assert main(["compare", str(file), "--aqm", "pi", *take, "--seeds", "2", *out]) == 0
    assert "2 of 2 runs are already in" in capsys.readouterr().err
    assert main(["run", str(file), *take[:2], "--json"]) == 2
    told = capsys.readouterr().err
    assert told == "aqumen: --traffic-from: no flow group has traffic = game; add --set flows.mine.traffic=game\n"
    assert main(["run", str(file), "--engine", "fluid", *take]) == 2
    assert "group mine has game" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("absent.py:Mine", "absent.py: no such file"),
        ("absent", "name a Python file and a class in it: my_source.py:MySource"),
        (f"{MY_SOURCE}:Nobody", "no source class Nobody (of TrafficSource); choose from: Game"),
        (f"{ROOT}/examples/my_aqm.py:MyPi", "MyPi is not a source, use --aqm-from; choose from: none"),
        (f"{ROOT}/examples:MyPi", "examples: a folder"),
    ],
)
def test_a_file_without_the_class_is_one_clear_line(given, told, capsys):
    assert main(["run", "arm-pfc/exp1", "--traffic-from", given]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert told in lines[0]


@pytest.mark.parametrize("name", ["source", "so:urce.py", "source.txt"])
def test_a_path_with_a_folder_may_have_any_name(name, tmp_path):
    shutil.copy(MY_SOURCE, tmp_path / name)
    assert custom.from_file(f"{tmp_path / name}:Game", traffic=True).__name__ == "Game"
    assert custom.from_file(f"{tmp_path / name}", traffic=True).__name__ == "Game"


def test_a_run_is_known_by_its_source(tmp_path):
    def digest(bytes_):
        (tmp_path / "mine.py").write_text(
            f"import aqumen\nclass Mine(aqumen.TrafficSource):\n    def next(self):\n        return 1, {bytes_}\n"
        )
        (tmp_path / "own.toml").write_text(TEXT.format(traffic='"mine"', transport="udp"))
        code = (
            "from aqumen import custom, Scenario; from aqumen._store import Digests;"
            f"mine = custom.from_file({str(tmp_path / 'mine.py')!r}, traffic=True);"
            f"scenario = Scenario.load({str(tmp_path / 'own.toml')!r}, [mine]);"
            "print(Digests(scenario, 'packet').of(('pi', 1)))"
        )
        told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert told.returncode == 0, told.stderr
        return told.stdout

    assert digest(100) == digest(100) != digest(200)
