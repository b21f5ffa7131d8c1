"""AQMs of one's own in Python: the same bits as built in, errors that say where, runs that are known again."""

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import ClassVar

import pytest

import aqumen
from aqumen import CustomError, PacketAqm, Param, SampledLaw, Scenario, ScenarioError, custom
from aqumen._store import Digests
from aqumen.cli import main

ROOT = Path(__file__).parents[2]
MY_AQM = ROOT / "examples/my_aqm.py"
MY_PI = custom.from_file(f"{MY_AQM}:MyPi")
SAME = "pi:a=1.822e-5,b=1.816e-5,frequency=150Hz"


def short(seconds=20):
    return Scenario.load("arm-pfc/exp1").until(f"{seconds}s")


def answers(result):
    return result.data["links"], result.data["flows"], result.series("bottleneck").queue_pkts.tolist()


@pytest.mark.parametrize("engine", ["packet", "fluid", "fluid:hollot"])
def test_pi_in_python_gives_the_bits_of_the_built_in_one(engine):
    built_in, mine = (aqumen.run(short(), aqm, 3, engine) for aqm in (SAME, MY_PI))
    assert answers(built_in) == answers(mine)
    assert mine.data["aqm"]["name"] == "my-pi"
    assert mine.params == {"a": 1.822e-5, "b": 1.816e-5, "frequency": 150.0, "target": 100.0, "ecn": True}


def test_it_is_compared_on_several_threads():
    seeds = [1, 2, 3, 4]
    compared = aqumen.compare(short(10), [SAME, MY_PI, "my-pi:a=4e-5,ecn=false"], seeds, threads=4)
    by_seed = {(run.spec, run.seed): run.data["links"] for run in compared.results}
    assert all(by_seed[SAME, seed] == by_seed["my-pi", seed] for seed in seeds)
    assert by_seed["my-pi", 1] != by_seed["my-pi:a=4e-5,ecn=false", 1]


def test_a_scenario_names_it_and_keeps_it():
    text = (ROOT / "experiments/arm-pfc/exp1.toml").read_text().replace('"arm-pfc-repaired"', '"my-pi:target=50pkt"', 1)
    with pytest.raises(ScenarioError, match="my-pi"):
        Scenario.parse(text)
    scenario = Scenario.parse(text, custom=[MY_PI]).set("duration", "30s").until("10s")
    assert "my-pi" in scenario.aqms
    assert answers(aqumen.run(scenario)) == answers(aqumen.run(short(10), f"{SAME},target=50pkt"))


def test_its_memory_is_its_own_affair():
    scenario = short().knowing([MY_PI])
    assert scenario.qdisc_memory("pi") is not None
    assert scenario.qdisc_memory("my-pi") is None
    with pytest.raises(ScenarioError, match="nosuch"):
        scenario.qdisc_memory("nosuch")


class Forgets(SampledLaw):
    """An AQM whose state is invalid under other parameters."""

    level = Param(0.0, low=0, high=1)

    def step(self, seen):
        return self.level


class Remembers(Forgets):
    """That counts its steps, over a change of parameters too."""

    steps: ClassVar[list[int]] = []

    def start(self):
        self.count = 0

    def take_over(self, old):
        self.count = old.count

    def step(self, seen):
        self.count += 1
        self.steps.append(self.count)
        return self.level


def test_parameters_that_change_during_a_run_reach_it_with_its_state():
    event = '[[events]]\nat = "2s"\naqm = { level = 0.5 }\n'
    text = (ROOT / "experiments/arm-pfc/exp1.toml").read_text()
    scenario = Scenario.parse(text + event, custom=[Remembers, Forgets]).until("4s")
    Remembers.steps.clear()
    run = aqumen.run(scenario, "remembers")
    # Every 10 ms over 4 s, counted through the change.
    assert Remembers.steps[-1] == len(Remembers.steps) == 400
    series = run.series("bottleneck")
    assert series.probability[series.t_s < 2.0].max() == 0
    assert series.probability[series.t_s > 2.1].min() == 0.5


class Shown(SampledLaw):
    """That keeps what it saw."""

    period = (0.5, 0.2)
    seen: ClassVar[list[tuple[float, int, float]]] = []

    def step(self, seen):
        self.seen.append((round(seen.now_s, 9), seen.loop, round(seen.interval_s, 9)))
        return 0.1 if seen.loop else 0.2


class Keeps(SampledLaw):
    """That keeps now and then what it is shown."""

    kept: ClassVar[list[tuple[float, object]]] = []

    def step(self, seen):
        if round(seen.now_s * 100) % 3 == 0:
            self.kept.append((seen.now_s, seen))
        return 0.0


def test_what_a_law_keeps_of_a_step_stays_as_it_was():
    Keeps.kept.clear()
    aqumen.run(short(2), Keeps)
    # Every third of 200 steps.
    assert len({id(seen) for _, seen in Keeps.kept}) == len(Keeps.kept) == 66
    assert [now_s for now_s, _ in Keeps.kept] == [seen.now_s for _, seen in Keeps.kept]


def test_a_law_with_two_periods_is_told_which_loop_steps():
    Shown.seen.clear()
    aqumen.run(short(2).until("1.1s"), Shown)
    assert Shown.seen == [
        (0.2, 1, 0.2),
        (0.4, 1, 0.2),
        (0.5, 0, 0.5),
        (0.6, 1, 0.2),
        (0.8, 1, 0.2),
        (1.0, 0, 0.5),
        (1.0, 1, 0.2),
    ]


class Third(PacketAqm):
    """Drops each third packet; marks at the head what its timer says."""

    period = 0.5

    def start(self):
        self.arrived = 0
        self.marks = False

    def on_arrival(self, packet, queue):
        assert (packet.bytes, packet.ect, queue.full) in [(40, False, False), (1000, True, False)]
        assert 0 <= queue.uniform < 1
        self.arrived += 1
        return "drop" if self.arrived % 3 == 0 else "pass"

    def on_dequeue(self, packet, queue):
        assert queue.sojourn_s >= 0
        return "mark" if self.marks and packet.ect else None

    def on_timer(self, queue):
        self.marks = queue.now_s > 0.9


def test_packets_are_decided_one_by_one():
    bottleneck = aqumen.run(short(3), Third).data["links"]["bottleneck"]["all"]
    assert bottleneck["early_dropped_pkts"] == bottleneck["arrivals_pkts"] // 3
    assert bottleneck["marked_pkts"] > 0
    assert bottleneck["overflow_dropped_pkts"] == 0
    assert answers(aqumen.run(short(3), Third)) == answers(aqumen.run(short(3), Third))
    # In the fluid engine it meets evenly spaced packets.
    assert aqumen.run(short(3), Third, engine="fluid").data["engine"] == "fluid"


def test_a_capture_is_replayed_before_both_kinds():
    from aqumen.replay import Capture

    class Head(PacketAqm):
        def on_dequeue(self, packet, queue):
            return "drop" if queue.sojourn_s > 0.001 else "pass"

    capture = Capture(ROOT / "examples/captures/home.pcap", rate="2Mbit", buffer="100pkt", custom=[MY_PI, Head])
    mine, built_in = capture.run("my-pi:target=5pkt").data, capture.run(f"{SAME},target=5pkt").data
    assert {**mine, "aqm": 0, "cpu_s": 0, "spec": 0} == {**built_in, "aqm": 0, "cpu_s": 0, "spec": 0}
    assert capture.run("head").data["total"]["early_dropped_pkts"] > 0


class Raises(SampledLaw):
    def step(self, seen):
        if seen.now_s > 1.005:
            raise KeyError("gone")
        return 0.0


@pytest.mark.parametrize("engine", ["packet", "fluid"])
def test_what_it_raises_stops_the_run_and_says_when(engine):
    with pytest.raises(CustomError, match=r"^raises at 1.01 s: KeyError: 'gone'$") as told:
        aqumen.run(short(), Raises, engine=engine)
    assert isinstance(told.value.__cause__, KeyError)
    assert told.value.__cause__.__traceback__.tb_frame.f_code.co_name == "step"
    # The next run of the same class begins anew.
    with pytest.raises(CustomError, match=r"at 1\.01 s"):
        aqumen.compare(short(5), [MY_PI, Raises], seeds=3, engine=engine, threads=3)
    assert aqumen.run(short(1).until("0.9s"), Raises, engine=engine).data["seed"] == 1


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (float("nan"), "bad at 0.01 s: step() returned NaN; a probability is from 0 to 1"),
        (1.5, "bad at 0.01 s: step() returned 1.5; a probability is from 0 to 1"),
        (-1e-9, "bad at 0.01 s: step() returned -0.000000001; a probability is from 0 to 1"),
        (None, "bad at 0.01 s: step() returned None; a probability is a number from 0 to 1"),
        ("0.1", "bad at 0.01 s: step() returned '0.1'; a probability is a number from 0 to 1"),
    ],
)
def test_no_probability_is_an_error_that_names_it_and_the_time(answer, told):
    class Bad(SampledLaw):
        def step(self, seen):
            return answer

    with pytest.raises(CustomError) as error:
        aqumen.run(short(1), Bad)
    assert str(error.value) == told


def wrong(**members):
    kind = members.pop("kind", SampledLaw)
    return type("Wrong", (kind,), members)


@pytest.mark.parametrize(
    ("aqm", "told"),
    [
        (wrong(), "Wrong decides nothing; define step()"),
        (wrong(kind=PacketAqm), "define on_arrival() or on_dequeue() or on_timer()"),
        (
            wrong(step=lambda self, seen: 0, name="Not A Name"),
            "the name `Not A Name` must consist of words of a-z and 0-9",
        ),
        (wrong(step=lambda self, seen: 0, name="pi"), "an AQM called pi is built in"),
        (wrong(step=lambda self, seen: 0, gain=Param(1, unit="furlong")), 'Wrong.gain: unknown unit "furlong"'),
        (wrong(step=lambda self, seen: 0, period=1e-9), "period = 1e-9: must be from 1e-6 to 1e9 seconds"),
    ],
)
def test_a_class_that_does_not_fit_is_refused_before_a_run(aqm, told):
    with pytest.raises(ScenarioError) as error:
        aqumen.run(short(1), aqm)
    assert told in str(error.value)


def test_the_shortest_period_is_one_that_there_is():
    class Quick(SampledLaw):
        period = 1e-6
        steps = 0

        def step(self, seen):
            Quick.steps += 1
            return 0.0

    aqumen.run(short(1).until("1ms"), Quick)
    assert 999 <= Quick.steps <= 1001


@pytest.mark.parametrize(
    ("members", "told"),
    [
        ({"start": lambda self: self.network.nothing}, "wrong: cannot be made: AttributeError"),
        ({"gain": Param(None)}, "parameter gain has no default, and start() gave it no value"),
        ({"initial": 2.0}, "initial = 2.0: must be 0 to 1"),
        ({"transfer": ([1.0], [0.0, 1.0])}, "finite coefficients in powers of 1/z, the denominator's first not 0"),
        ({"period": (1, 2, 3)}, "must be one period, or two"),
        ({"period": "10ms"}, "period = '10ms': must be a number of seconds, such as 0.01"),
    ],
)
def test_an_instance_that_cannot_be_made_says_why(members, told):
    with pytest.raises(CustomError) as error:
        aqumen.run(short(1), wrong(step=lambda self, seen: 0, **members))
    assert told in str(error.value)


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("my-pi:a=-1", "of at least 0"),
        ("my-pi:frequency=5ms", "frequency"),
        ("my-pi:gain=1", "not a parameter of my-pi"),
    ],
)
def test_its_parameters_have_units_and_ranges(spec, told):
    with pytest.raises(ScenarioError, match=told):
        aqumen.run(short(1).knowing([MY_PI]), spec)


def test_a_run_is_known_by_the_source_of_its_aqm(tmp_path):
    def digest(source, other=""):
        (tmp_path / "mine.py").write_text("import aqumen\nfrom gain_of import GAIN\n" + textwrap.dedent(source))
        (tmp_path / "gain_of.py").write_text(f"GAIN = 1e-5{other}\n")
        # A new process: a module is imported once.
        code = (
            "import sys; from aqumen import custom, Scenario; from aqumen._store import Digests;"
            f"scenario = Scenario.load('arm-pfc/exp1', [custom.from_file({str(tmp_path / 'mine.py')!r})]);"
            "print(Digests(scenario, 'packet').of(('mine', 1)))"
        )
        told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert told.returncode == 0, told.stderr
        return told.stdout

    law = "class Mine(aqumen.SampledLaw):\n    def step(self, seen):\n        return GAIN * {}\n"
    first = digest(law.format(1))
    assert digest(law.format(1)) == first
    assert len({first, digest(law.format(2)), digest(law.format(1), other=" * 2")}) == 3
    assert Digests(short(), "packet").of(("pi", 1)) != Digests(short().knowing([MY_PI]), "packet").of(("pi", 1))


@pytest.mark.parametrize("gain", ["1e-5", "GAIN"])
def test_a_class_from_a_prompt_is_known_by_its_code_in_any_process(gain):
    def digest(step, value="1e-5"):
        code = (
            f"import aqumen\nfrom aqumen.custom import digest\nGAIN = {value}\n"
            f"class Mine(aqumen.SampledLaw):\n    def step(self, seen):\n        return {step}\n"
            "print(digest([Mine]))\n"
        )
        return subprocess.run([sys.executable], input=code, capture_output=True, text=True, check=True).stdout

    first = digest(f"{gain} * seen.queue_pkts")
    assert digest(f"{gain} * seen.queue_pkts") == first
    assert digest(f"{gain} * seen.queue_pkts + 1") != first
    if gain == "GAIN":
        assert digest("GAIN * seen.queue_pkts", "2e-5") != first
        # Something that cannot be told by a value belongs to its process.
        assert digest("GAIN * seen.queue_pkts", "object()") != digest("GAIN * seen.queue_pkts", "object()")


def test_the_command_line_takes_it_from_a_file(tmp_path, capsys):
    take = ["--aqm-from", f"{MY_AQM}:MyPi", "--until", "5s"]
    assert main(["run", "arm-pfc/exp1", *take, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["aqm"]["name"] == "my-pi"
    compare = ["compare", "arm-pfc/exp1", "--aqm", SAME, *take, "--seeds", "2", "--out", str(tmp_path), "--json"]
    assert main(compare) == 0
    told = json.loads(capsys.readouterr().out)["aqms"]
    assert list(told) == [SAME, "my-pi"]
    assert told[SAME]["links"] == told["my-pi"]["links"]
    assert "my-pi" in (tmp_path / "report.html").read_text()
    assert main(compare) == 0
    assert "4 of 4 runs are already in" in capsys.readouterr().err
    replay = ["replay", str(ROOT / "examples/captures/home.pcap"), "--rate", "2Mbit", "--aqm-from"]
    assert main([*replay, f"{MY_AQM}:Impatient", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["aqms"][0]["spec"] == "impatient"


def test_it_is_designed_and_analysed_as_the_built_in_one(capsys):
    place = ["--capacity", "10Mbit", "--flows", "100", "--r0", "280ms", "--target", "100pkt", "--json"]
    take = ["--aqm-from", f"{MY_AQM}:MyPi"]
    gains = "a=9.2e-4,b=9.1e-4"
    told = []
    for named in ([f"pi:{gains},frequency=150Hz"], [f"my-pi:{gains}", *take], ["my-pi", *take], take):
        assert main(["design", *named, *place]) == 0
        told.append(json.loads(capsys.readouterr().out))
    built_in, mine, usual, alone = told
    # Its loop is found by trying it: the same margins, to rounding.
    for key in ("phase_margin_deg", "gain_margin", "modulus_margin"):
        assert mine["margins"]["exact"][key] == pytest.approx(built_in["margins"]["exact"][key], rel=1e-3)
    assert (alone["aqm"], alone["gains"]) == ("my-pi", usual["gains"])
    assert usual["gains"]["a"] == 1.822e-5
    assert main(["design", *place]) == 2
    assert "name one AQM" in capsys.readouterr().err


def test_the_command_line_shows_the_lines_that_raised(tmp_path, capsys):
    file = tmp_path / "mine.py"
    file.write_text("import aqumen\nclass Mine(aqumen.SampledLaw):\n    def step(self, seen):\n        return 1 / 0\n")
    assert main(["run", "arm-pfc/exp1", "--aqm-from", str(file)]) == 2
    told = capsys.readouterr().err.splitlines()
    assert told[0] == "Traceback (most recent call last):"
    assert told[1] == f'  File "{file}", line 4, in step'
    assert told[-1] == "aqumen: mine at 0.01 s: ZeroDivisionError: division by zero"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("absent.py:Mine", "absent.py: no such file"),
        ("absent", "name a Python file and a class in it"),
        (
            f"{MY_AQM}:Nobody",
            "no AQM class Nobody (of SampledLaw, PacketAqm or from_control); choose from: MyPi, Impatient",
        ),
        (f"{MY_AQM}", "several classes or none"),
    ],
)
def test_a_file_without_the_class_is_one_clear_line(given, told, capsys):
    assert main(["run", "arm-pfc/exp1", "--aqm-from", given]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert told in lines[0]


def test_a_new_aqm_comes_with_a_test_that_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["new", "aqm", "slow-wave"]) == 0
    assert sorted(path.name for path in (tmp_path / "slow-wave").iterdir()) == ["slow_wave.py", "test_slow_wave.py"]
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "slow-wave"]
    ran = subprocess.run(tests, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout
    assert "3 passed" in ran.stdout
    for name, told in [
        ("slow-wave", "already exists"),
        ("pi", "is built in"),
        ("../x", "a name consists of words of a-z"),
    ]:
        capsys.readouterr()
        assert main(["new", "aqm", name]) == 2
        assert told in capsys.readouterr().err


def test_stred_over_ns2s_filter_holds_what_stred_holds(capsys):
    # 80 ms of 1250 packets/s are 100 packets, in the middle of RED's range.
    seen = []
    for aqm in ("stred-ns2:target_delay=80ms,patient=1", "stred:target_delay=80ms"):
        run = ["run", "arm-pfc/exp1", "--json", "--aqm", aqm]
        own = ["--aqm-from", f"{ROOT}/examples/stred_ns2.py:StredNs2"] if "ns2" in aqm else []
        assert main([*run, *own]) == 0
        seen.append(json.loads(capsys.readouterr().out)["links"]["bottleneck"]["steady"])
    ours, theirs = seen
    assert ours["queue_mean_pkts"] == pytest.approx(theirs["queue_mean_pkts"], rel=0.1)
    assert ours["utilization"] > 0.98


def test_a_file_that_raises_as_it_is_read_is_named(tmp_path, capsys):
    file = tmp_path / "broken.py"
    file.write_text("import beside\nbeside.answer / 0\n")
    (tmp_path / "beside.py").write_text("answer = 42\n")
    with pytest.raises(CustomError, match=r"^broken\.py: cannot be read: ZeroDivisionError: division by zero$"):
        custom.from_file(str(file))
    # What stands beside it was found, and is no longer looked for there.
    assert str(tmp_path) not in sys.path
    file.write_text("def half(:\n")
    with pytest.raises(CustomError, match=r"^broken\.py: cannot be read: SyntaxError: "):
        custom.from_file(f"{file}:Half")
    assert main(["run", "arm-pfc/exp1", "--aqm-from", f"{file}:Half"]) != 0
    assert "broken.py: cannot be read: SyntaxError" in capsys.readouterr().err


@pytest.mark.parametrize("where", [{"__name__": "typed"}, {}])
def test_a_source_that_nobody_keeps_is_known_for_this_process_alone(where):
    def typed(answer):
        names = dict(where)
        exec(
            f"from aqumen import SampledLaw\nclass Made(SampledLaw):\n    def step(self, seen): return {answer}\n",
            names,
        )
        return names["Made"]

    one, other = typed(0.1), typed(0.2)
    # It is not taken for another, whatever that one does.
    assert custom.digest([one]) == custom.digest([one])
    assert len({custom.digest([each]) for each in (one, other, MY_PI)}) == 3


@pytest.mark.parametrize(
    ("members", "told"),
    [
        ({"period": (0.01, 0.02, 0.03)}, r"period = (0.01, 0.02, 0.03): must be one period, or two"),
        ({"period": ()}, "period = (): must be one period, or two"),
        ({"initial": 1.5}, "initial = 1.5: must be 0 to 1"),
        ({"initial": -0.1}, "initial = -0.1: must be 0 to 1"),
        ({"period": "fast"}, "period = 'fast': must be a number of seconds, such as 0.01"),
    ],
)
def test_what_a_law_says_of_itself_is_checked_before_the_run(members, told):
    law = type("Odd", (SampledLaw,), {"step": lambda self, seen: 0.0, "period": 0.01, **members})
    with pytest.raises(aqumen.Error) as refused:
        aqumen.run(short(2), law)
    assert told in str(refused.value)


def test_a_parameter_that_nobody_gave_a_value_is_named():
    law = type("Odd", (SampledLaw,), {"step": lambda self, seen: 0.0, "period": 0.01, "gain": Param(None)})
    with pytest.raises(aqumen.Error, match=r"parameter gain has no default, and start\(\) gave it no value"):
        aqumen.run(short(2), law)


def test_two_classes_of_one_name_are_told_apart_by_a_name():
    one, two = (type("Same", (SampledLaw,), {"step": lambda self, seen: 0.0, "period": 0.01}) for _ in range(2))
    with pytest.raises(ScenarioError, match="two custom classes are named `same`; set `name` in one of them"):
        short(2).knowing([one, two])


def test_a_network_tells_its_round_trip_at_the_target():
    # 8 Mbit/s are 1000 packets of 1000 B a second, and 50 of them wait 50 ms.
    network = custom.Network(
        capacity_bps=8e6, flows=10, base_rtt_s=0.1, target_pkts=50, packet_bytes=1000, link_bps=8e6, buffer_pkts=100
    )
    assert network.capacity_pps == 1000
    assert network.r0_s == pytest.approx(0.15)


def test_a_run_has_one_aqm_of_two_that_are_brought(capsys, tmp_path):
    other = tmp_path / "other.py"
    other.write_text(MY_AQM.read_text() + "\n\nclass Other(MyPi):\n    pass\n")
    two = ["--aqm-from", f"{MY_AQM}:MyPi", "--aqm-from", f"{other}:Other"]
    assert main(["run", "arm-pfc/exp1", *two]) == 2
    assert "run takes one AQM: choose --aqm my-pi or --aqm other" in capsys.readouterr().err


def test_a_class_takes_no_name_that_a_profile_has():
    mine = type("Wave", (SampledLaw,), {"step": lambda self, seen: 0.0, "period": 0.01})
    with pytest.raises(ScenarioError, match="a profile needs another"):
        short(2).set("aqms.wave", '{algorithm = "pi"}').knowing([mine])


def test_a_folder_that_cannot_be_made_is_told_in_one_line(tmp_path, monkeypatch, capsys):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert main(["new", "aqm", "slow-wave"]) == 2
    assert capsys.readouterr().err == "aqumen: cannot write to slow-wave: No such file or directory\n"
