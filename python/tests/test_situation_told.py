"""Output of the verbs for everyday networks for an invented answer: order, ties, advice, commands."""

import json
import re
from dataclasses import replace
from types import SimpleNamespace

import pytest

from aqumen.cli import situation as verb
from aqumen.cli import talk
from aqumen.errors import ScenarioError
from aqumen.experience import AqmScore, ExperienceMetric
from aqumen.shaping import Setup
from aqumen.situations import AS_IT_IS, Answer, Situation, Study, uplink

FELT = (
    ExperienceMetric(key="calls", title="Calls", unit="MOS", digits=2, of=lambda run: None, more=True),
    ExperienceMetric(key="pages", title="Page", unit="s", digits=1, of=lambda run: None),
    ExperienceMetric(key="upload", title="Upload", unit="Mbit/s", digits=1, of=lambda run: None, more=True),
)


def summary(mean, half=None):
    ci95 = None if half is None else [mean - half, mean + half]
    return {"mean": mean, "std": half, "ci95": ci95, "n": 5}


def scored(aqm, place, score, *, group=None, tied=(), alone=(), half=1.5, values=(4.0, 1.5, 2.0)):
    return AqmScore(
        aqm=aqm,
        place=place,
        tied_with=tuple(tied),
        score=score,
        score_half=half,
        by_senders={"cubic": score + 1, "bbr": score - 1},
        values={f.key: summary(value, 0.25) for f, value in zip(FELT, values, strict=True)},
        alone=frozenset(alone),
        group=group,
    )


FIRST = scored("fq-codel-linux", 1, 98.04, group="a", tied=("cake-linux",), alone=("calls", "pages"))
EACH = frozenset({"calls", "pages", "upload"})
SECOND = scored("cake-linux", 1, 97.0, group="a", tied=("fq-codel-linux",), values=(3.9, 1.75, 2.0))
THIRD = scored("pi", 3, 55.0, group="b", alone=("upload",), values=(3.0, 2.5, 2.5))
LAST = scored(AS_IT_IS, 4, 12.345, group="c", values=(1.5, 9.25, 2.25))

SITUATION = Situation(
    scenario=SimpleNamespace(name="home", title="A home", to_toml=lambda: "name\n"),
    aqms=("fq-codel-linux",),
    metrics=FELT,
    assumed=("a round trip of 40 ms (--rtt)", "no more"),
    rates={"up": 1.9e6, "down": 18e6},
    sent_bps=1.9e6,
    delay="pages",
)
ANSWER = Answer(
    score=(FIRST, SECOND, THIRD, LAST),
    weights={"calls": 1.0, "pages": 1.0, "upload": 0.0},
    senders=("cubic", "bbr"),
    seeds=5,
    leader_changes={},
)


def setup(spec):
    return Setup(device="eth0", remove=(), add=(f"tc one {spec}", "tc two {device}"), show=())


def told(capsys, situation=SITUATION, answer=ANSWER, wide=True):
    talk.show(*verb._tables(situation, answer, setup), wide=wide)
    return capsys.readouterr().out


def rows_of(text, head):
    lines = text.split("\n\n")
    (block,) = [block for block in lines if head in block]
    return block.splitlines()


def test_the_answer_is_told_in_order(capsys):
    out = told(capsys)
    lines = out.splitlines()
    # What to do comes first, then what to expect, how it was found, and the commands at the end.
    assert lines[0] == "Use fq_codel, shaped to 1.9 Mbit/s up and 18 Mbit/s down."
    found = lines.index("home: A home")
    assert lines[found + 1] == "4 AQMs, senders cubic, bbr, 5 seeds"
    assert lines[found + 2].startswith("Ranked by a score: the geometric mean over ")
    assumed = lines.index("Assumed: a round trip of 40 ms (--rtt).")
    assert lines[assumed + 1] == "Assumed: no more."
    assert lines.index("What to expect") < found < assumed < lines.index("  tc two eth0")
    table = rows_of(out, "Score  ")
    assert table[0].split() == ["Score", "Calls", "Page", "Upload"]
    assert table[1].split() == ["group", "AQM", "%", "MOS", "s", "Mbit/s"]
    assert [line.split() for line in table[2:]] == [
        ["1", "a", "fq-codel-linux", "98.0±1.5", "4.00±0.25", "1.5±0.2", "2.0±0.2"],
        ["1", "a", "cake-linux", "97.0±1.5", "3.90±0.25", "1.8±0.2", "2.0±0.2"],
        ["3", "b", "pi", "55.0±1.5", "3.00±0.25", "2.5±0.2", "2.5±0.2"],
        ["4", "c", "as", "it", "is", "12.3−1.4/+1.6", "1.50±0.25", "9.2±0.2", "2.2±0.2"],
    ]
    assert "Means over the seeds and 95 % intervals. AQMs that share a letter of their groups do not differ" in out
    by_senders = out.partition("\nScore by kind of senders, %\n")[2].splitlines()
    assert by_senders[0].split() == ["AQM", "cubic", "bbr"]
    assert by_senders[1].split() == ["fq-codel-linux", "99.0", "97.0"]


def test_what_weighs_nothing_stands_last(capsys):
    answer = replace(ANSWER, weights={"calls": 0.0, "pages": 2.0, "upload": 1.0})
    table = rows_of(told(capsys, answer=answer), "Score  ")
    assert table[0].split() == ["Score", "Page", "Upload", "Calls"]


def test_one_seed_and_one_kind_of_senders(capsys):
    alone = replace(ANSWER, seeds=1, senders=("cubic",), score=(replace(FIRST, score_half=None, alone=EACH), LAST))
    out = told(capsys, answer=alone)
    assert "2 AQMs, senders cubic, 1 seed\n" in out
    assert "One seed gives no confidence intervals; use --seeds 5 for a ranking." in out
    assert "Score with each kind" not in out
    # Ties of one seed say nothing.
    row = rows_of(out, "Score  ")[2].split()
    assert row[:3] == ["1", "fq-codel-linux", "98.0"]
    assert "Not significantly different" not in out


def test_the_goal_is_said_in_words():
    words = verb.goal(SITUATION, ANSWER)
    calls, pages, upload = (verb.WORDS[key] for key in ("calls", "pages", "upload"))
    assert words == (
        f"Ranked by a score: the geometric mean over {calls} and {pages}, each relative to the best AQM, all with "
        "equal weight (--weigh). Kinds of senders have equal weight. Scores within 2 % count as equal."
    )
    weighed = verb.goal(SITUATION, replace(ANSWER, weights={"calls": 1.0, "pages": 0.5, "upload": 2.0}))

    assert f"over {calls} (weight 1), {pages} (weight 0.5) and {upload} (weight 2), each relative to" in weighed
    assert "best AQM, with weights by --weigh. Kinds" in weighed
    one = verb.goal(SITUATION, replace(ANSWER, weights={"calls": 0.0, "pages": 3.0, "upload": 0.0}))
    assert f"over {pages}, each relative to the best AQM, all with equal weight" in one


def test_what_the_weights_decide(capsys):
    assert verb._sensitivity(SITUATION, ANSWER) == (
        "Best by a single metric: calls fq-codel-linux, pages fq-codel-linux, upload pi. "
        "Halving or doubling any one weight does not change the first place."
    )
    swinging = replace(ANSWER, leader_changes={"upload doubled": "pi", "calls halved": "cake-linux"})
    assert verb._sensitivity(SITUATION, swinging).endswith(
        " First place changes with upload doubled: pi, calls halved: cake-linux."
    )


def test_the_delay_before_and_after_is_drawn(capsys):
    lines = told(capsys).splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("Delay under load, s: "))
    # 9.25 s are 30 columns, 1.5 s 4.86 of them: 4 and 7 eighths.
    assert lines[at + 1] == f"  as it is             {'█' * 30}  9.2 ± 0.2"
    assert lines[at + 2] == f"  with fq-codel-linux  {'████▉':30}  1.5 ± 0.2"


@pytest.mark.parametrize(
    ("spec", "rates", "sentence"),
    [
        ("fq-codel-linux:target=6ms", {"up": 64e3, "down": 1.5e6}, "target 6ms, shaped to 64 kbit/s up and 1.5 Mbit/s"),
        ("pie-linux", {"port": 1e9}, "Use pie."),
        ("pi", {"up": 1e6, "down": 1e6}, "Best: pi, which no Linux kernel implements."),
    ],
)
def test_the_answer_is_a_sentence(spec, rates, sentence):
    answer = replace(ANSWER, score=(replace(FIRST, aqm=spec, tied_with=()), THIRD, LAST))
    assert sentence in verb.headline(replace(SITUATION, rates=rates), answer)


def test_the_first_is_advised_with_its_commands(capsys):
    out = told(capsys)
    assert "no AQM is better" not in out
    assert "\nNot significantly different from fq-codel-linux: cake-linux. More seeds may separate them.\n" in out
    since = verb.KERNEL["fq-codel-linux"][1]
    advice = f"\nfq-codel-linux, Linux {since} and later, as root:\n  tc one fq-codel-linux\n  tc two eth0\n"
    assert advice in out
    expect = rows_of(out, "What to expect")
    assert expect[1].split() == ["as", "it", "is", "with", "fq-codel-linux"]
    assert [line.split("  ")[0] for line in expect[2:]] == ["Calls, MOS", "Page, s", "Upload, Mbit/s"]
    assert expect[2].split()[2:] == ["1.50", "±", "0.25", "4.00", "±", "0.25"]


def test_a_line_that_is_best_as_it_is(capsys):
    answer = replace(ANSWER, score=(replace(LAST, place=1), replace(FIRST, place=2, tied_with=()), THIRD))
    out = told(capsys, answer=answer)
    assert out.startswith("Leave the line as it is: no AQM scores better.\n")
    assert verb.leader(answer) == "fq-codel-linux"
    assert "Not significantly different" not in out
    assert "as root" in out
    # With no AQM at all there is nothing to expect.
    bare = replace(ANSWER, score=(replace(LAST, alone=EACH),))
    assert verb.leader(bare) == AS_IT_IS
    out = told(capsys, answer=bare)
    assert "What to expect" not in out
    assert "as root" not in out


def test_what_the_kernel_lacks_has_no_commands(capsys):
    answer = replace(ANSWER, score=(replace(THIRD, alone=EACH), SECOND))
    out = told(capsys, answer=answer)
    assert "as root" not in out
    # Nothing stands for today.
    assert "What to expect" not in out
    with_droptail = replace(answer, score=(*answer.score, replace(LAST, aqm="droptail")))
    assert "droptail" in rows_of(told(capsys, answer=with_droptail), "What to expect")[1]
    # Parameters do not matter for whether the kernel has it.
    given = replace(FIRST, aqm="fq-codel-linux:target=3ms", alone=EACH)
    assert "fq-codel-linux:target=3ms, Linux" in told(capsys, answer=replace(ANSWER, score=(given,)))


def test_the_answer_as_data():
    data = verb._dict(SITUATION, ANSWER, setup, None)
    assert {key: value for key, value in data.items() if key not in ("order", "goal")} == {
        "schema": 1,
        "scenario": "home",
        "weights": ANSWER.weights,
        "senders": ["cubic", "bbr"],
        "seeds": 5,
        "assumed": list(SITUATION.assumed),
        "rates_to_set_bps": {"up": 1.9e6, "down": 18e6},
        "first_place_changes_with": {},
        "answer": "Use fq_codel, shaped to 1.9 Mbit/s up and 18 Mbit/s down.",
    }
    assert [each["aqm"] for each in data["order"]] == ["fq-codel-linux", "cake-linux", "pi", AS_IT_IS]
    assert [each["commands"] is None for each in data["order"]] == [False, False, True, True]
    first = data["order"][0]
    assert (first["place"], first["tied_with"], first["score_percent"]) == (1, ["cake-linux"], 98.04)
    assert (first["score_half_interval"], first["score_by_senders"]) == (1.5, {"cubic": 99.04, "bbr": 97.04})
    assert first["felt"]["pages"] == {"unit": "s", **summary(1.5, 0.25)}
    assert first["commands"] == ["tc one fq-codel-linux", "tc two eth0"]
    offered = [{"spec": "pi", "total": {}}]
    assert verb._dict(SITUATION, ANSWER, setup, offered)["capture"] == offered
    assert json.dumps(data)


def test_weights_are_read():
    assert verb._weights([]) == {}
    assert verb._weights(["upload=2, calls=0.5", "pages=0"]) == {"upload": 2.0, "calls": 0.5, "pages": 0.0}
    for slip in ("upload", "upload=", "upload=two", "=", ""):
        with pytest.raises(ScenarioError, match=f"--weigh {slip}: write it as METRIC=X"):
            verb._weights([slip])


def test_how_long_it_takes_is_said_at_once(capsys):
    study = Study(uplink("20Mbit", "2Mbit", duration="60s"), ["codel-linux"], ["cubic", "bbr"], 3, {})
    for gathering in study.gatherings.values():
        gathering.threads = 2
    # Two kinds of senders, the line as it is and one AQM, three seeds each.
    verb.announce_duration(study)
    said = capsys.readouterr().err
    assert re.fullmatch(r"aqumen: 12 runs, about \d+ s on 2 cores\n", said)
    # Twice as long and half the cores take four times as long.
    longer = Study(uplink("20Mbit", "2Mbit", duration="120s"), ["codel-linux"], ["cubic", "bbr"], 3, {})
    for gathering in longer.gatherings.values():
        gathering.threads = 1
    assert longer.seconds() == pytest.approx(4 * study.seconds(), rel=0.1)
    # What is finished does not count.
    next(iter(longer.gatherings.values())).resumed = 3
    assert longer.seconds() < 0.9 * 4 * study.seconds()


def test_a_capture_is_told_apart_from_the_ranking(capsys):
    assert verb._capture_table(None) == []
    total = {
        "arrivals_pkts": 200,
        "early_dropped_pkts": 3,
        "overflow_dropped_pkts": 5,
        "marked_pkts": 10,
        "sojourn_mean_s": 0.0015,
        "sojourn_p95_s": 0.02,
        "sojourn_p99_s": None,
    }
    empty = {**total, "arrivals_pkts": 0, "early_dropped_pkts": 0, "overflow_dropped_pkts": 0, "marked_pkts": 0}
    table, note = verb._capture_table([{"spec": "pi", "total": total}, {"spec": "red", "total": empty}])
    cells = [list(column.cells) for column in table.columns]
    assert cells[0] == ["pi", "red"]
    assert cells[1:3] == [["1.5", "1.5"], ["20.0", "20.0"]]
    # Of 200 packets 8 were dropped, 10 marked; where none came none is.
    assert [float(cell) for cell in cells[-2]] == [4.0, 0.0]
    assert [float(cell) for cell in cells[-1]] == [5.0, 0.0]
    # Nobody knows the 99th percentile, so it has no column.
    assert [column.header for column in table.columns] == ["AQM", "Sojourn, mean ms", "p95 ms", "Dropped %", "Marked %"]
    assert "Not part of the ranking." in note


def test_a_capture_meets_each_aqm_at_the_rate_to_set(monkeypatch, tmp_path):
    asked = []

    class Made:
        def __init__(self, file, rate, buffer):
            asked.append((file, rate, buffer))

        def run(self, spec):
            return SimpleNamespace(data={"total": {"of": spec}})

    monkeypatch.setattr(verb, "Capture", Made)
    offered = verb._replay_capture(tmp_path / "c", SITUATION, ["pi", "red"])
    assert asked == [(tmp_path / "c", "1900000bit", "20000pkt")]
    assert offered == [{"spec": "pi", "total": {"of": "pi"}}, {"spec": "red", "total": {"of": "red"}}]


@pytest.mark.parametrize(("finished", "code"), [(True, 0), (False, 130)])
def test_what_is_finished_at_ctrl_c_is_told_and_the_rest_left_for_later(capsys, monkeypatch, tmp_path, finished, code):
    class Stopped:
        def __init__(self, situation, aqms, senders, seeds, weights, out):
            self.asked = (aqms, senders, seeds, weights, out)
            self.aqms, self.gatherings, self.total = ("pi",), {"all": SimpleNamespace(resumed=0, threads=2)}, 4
            made.append(self)

        def seconds(self):
            return 3.0

        def work(self, advance):
            assert advance(1, 4)
            if not finished:
                raise KeyboardInterrupt

        def answer(self):
            return ANSWER if answered else None

    made, answered = [], True
    monkeypatch.setattr(verb, "Study", Stopped)
    asked = {"aqm": ("pi,codel",), "senders": ("cubic,bbr",), "seeds": 3, "weigh": ("upload=2",), "print_": False}
    more = {"wide": False, "as_json": True}
    assert verb._run_study(SITUATION, setup, out=None, **asked, **more) == code
    out = capsys.readouterr().out
    told = json.loads(out)
    assert told["scenario"] == "home"
    # Laid out for people, as by the other verbs.
    assert out == json.dumps(told, indent=2, ensure_ascii=False) + "\n"
    assert made[0].asked == (["pi", "codel"], ["cubic", "bbr"], 3, {"upload": 2.0}, None)
    # Where no AQM was run with all senders, there is nothing to tell.
    answered = False
    for out, later in ((None, ""), (tmp_path, "; repeat the command to continue")):
        assert verb._run_study(SITUATION, setup, out=out, **asked, **more) == 130
        told = capsys.readouterr()
        assert told.out == ""
        assert f"stopped before any AQM was run with all senders{later}" in " ".join(told.err.split())
    assert verb._run_study(SITUATION, setup, out=None, **{**asked, "print_": True}, **more) == 0
    assert capsys.readouterr().out == "name\n"
