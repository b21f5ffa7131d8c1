"""Promises of `--help`, tables of a model, and ns-2's description of a queue."""

import re

import click
import pytest
from test_picture import BOX, dumbbell, numbers

import aqumen.cli
from aqumen.cli import main
from aqumen.cli.mmpp import tables_of
from aqumen.cli.verbs import GROUPS
from aqumen.engines.external.ns2 import Ns2Unsupported
from aqumen.engines.external.ns2.tcl import _AQMS
from aqumen.engines.external.plan import Aqm, Link
from aqumen.errors import Error, optional

DEFAULTS = {
    "run": {"--engine": "packet", "--seed": 1, "--threads": 1},
    "compare": {"--seeds": "20", "--series": "all"},
    "uplink": {
        **{
            "--rtt": "40ms",
            "--line": "measured",
            "--headroom": "5,10",
            "--target": "15ms",
        },
        **{"--seeds": 5, "--device": "eth0"},
    },
    "office": {
        **{"--rtt": "20ms", "--line": "measured", "--headroom": "5,10", "--target": "15ms"},
        **{"--seeds": 5, "--device": "eth0"},
    },
    "datacenter": {
        **{"--rate": "10Gbit", "--rtt": "100us", "--buffer": "1500kB", "--load": 30},
        **{"--seeds": 5, "--device": "eth0"},
    },
    "cell": {
        **{"--cqi": 10, "--resource-blocks": 50, "--share": 50, "--handover": "30s", "--rtt": "50ms"},
        **{"--duration": "120s", "--seeds": 5, "--device": "eth0"},
    },
    "backbone": {
        **{"--rate": "100Mbit", "--flows": 100, "--rtt": "200ms", "--load": 25},
        **{"--seeds": 5, "--device": "eth0"},
    },
    "reproduce": {"--series": "sampled"},
    "calibrate": {"--aqm": "droptail", "--seeds": 3, "--window": "steady"},
    "tune": {
        **{"--margin": 0.5, "--excite": "prbs"},
        **{"--candidates": 64, "--sampler": "tpe", "--hold-out": "0.25", "--seed": 1},
    },
    "break": {"--against": "droptail", "--budget": 60.0, "--seed": 1, "--out": "broken"},
    "design": {"--packet": "1000B", "--sender": "linux", "--kind": "nyquist"},
    "map": {"--packet": "1000B", "--sender": "linux", "--show": "gain_margin"},
    "robust": {"--packet": "1000B", "--sender": "linux", "--aim": "speed", "--margin": 0.5},
    "replay": {
        **{"--buffer": "1000pkt", "--delay": "0s", "--flows": 50, "--rtt": "100ms"},
        **{"--overhead": 0, "--speedup": 1, "--top": 10, "--seed": 1},
    },
}
SEVERAL = {
    "run": {"--set", "--aqm-from", "--traffic-from"},
    "compare": {"--aqm", "--engine", "--set", "--sweep", "--aqm-from", "--traffic-from"},
    **{key: {"--aqm", "--senders", "--weigh"} for key in ("uplink", "office", "datacenter", "cell", "backbone")},
    "reproduce": {"--aqm"},
    "report": {"--metric"},
    "calibrate": {"--set"},
    "tune": {"--set"},
    "break": {"--aqm-from"},
    "design": {"--aqm-from"},
    "map": {"--over", "--aqm-from"},
    "robust": {"--over", "--plant", "--aqm-from"},
    "mmpp": {"--set"},
    "replay": {"--aqm", "--aqm-from"},
    "validate": {"--cell"},
}
REQUIRED = {"uplink": {"--down", "--up"}, "office": {"--rate", "--people"}, "calibrate": {"--group", "--loss"}}
FLAGS = {
    **{key: {"--theory", "--force", "--wide", "--json"} for key in ("run", "compare")},
    **{key: {"--print", "--wide", "--json"} for key in ("uplink", "office", "datacenter", "cell", "backbone")},
    "reproduce": {"--quick", "--record", "--json"},
    "report": {"--theory"},
    "calibrate": {"--json"},
    "tune": {"--loop", "--relative", "--force", "--json"},
    "break": {"--json"},
    **{"design": {"--json"}, "map": {"--cycles", "--json"}, "robust": {"--json"}},
    "mmpp": {"--simulate", "--wide", "--json"},
    "replay": {"--wide", "--json"},
    "new": {"--rust"},
    "list": {"--json"},
    "validate": {"--list", "--json"},
    "studio": {"--open"},
}
GROUP = next(each for each in vars(aqumen.cli).values() if isinstance(each, click.Group))
CONTEXT = click.Context(GROUP)


def options(verb):
    command = GROUP.get_command(CONTEXT, verb)
    return {each.opts[0]: each for each in command.params if isinstance(each, click.Option)}


@pytest.mark.parametrize("verb", DEFAULTS)
def test_help_says_what_holds_without_an_option(verb, capsys):
    known = options(verb)
    assert {name: option.default for name, option in known.items() if option.show_default} == DEFAULTS[verb]
    assert main([verb, "--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    for name, value in DEFAULTS[verb].items():
        assert re.search(rf"{name} .*?\[default: {re.escape(str(value))}[\];]", said), name


@pytest.mark.parametrize("verb", GROUP.list_commands(CONTEXT))
def test_every_option_says_what_it_does(verb):
    for name, option in options(verb).items():
        assert option.help, name
        # Numbers and names that hold where nothing is said stand in the help.
        if isinstance(option.default, (int, float, str)) and not option.is_flag and option.metavar:
            assert option.show_default, name


@pytest.mark.parametrize("verb", GROUP.list_commands(CONTEXT))
def test_some_options_may_be_repeated_some_take_no_value_and_some_must_be_there(verb):
    for told, question in (
        (SEVERAL, lambda option: option.multiple),
        (FLAGS, lambda option: option.is_flag),
        (REQUIRED, lambda option: option.required),
    ):
        assert {name for name, option in options(verb).items() if question(option)} == told.get(verb, set())


@pytest.mark.parametrize("verb", GROUP.list_commands(CONTEXT))
def test_a_verb_has_the_first_line_of_its_help_in_the_list(verb, capsys):
    assert main(["--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    module, function, first = aqumen.cli.VERBS[verb]
    assert module
    assert function
    assert verb in said
    assert GROUP.get_command(CONTEXT, verb).get_short_help_str(300).rstrip(".").split()[:3] == first.split()[:3]


@pytest.mark.parametrize("verb", GROUP.list_commands(CONTEXT))
def test_a_verb_stands_in_one_section_of_the_list_and_has_two_examples(verb, capsys):
    assert sum(verb in verbs for verbs in GROUPS.values()) == 1
    assert main([verb, "--help"]) == 0
    examples = capsys.readouterr().out.partition("Examples:\n")[2].splitlines()
    assert len(examples) == len(set(examples)) == 2
    assert all(line.strip().startswith(f"aqumen {verb}") for line in examples)


def test_without_a_word_there_is_help(capsys, monkeypatch):
    assert main([]) == 0
    told = capsys.readouterr().out
    assert "Usage" in told
    monkeypatch.setattr("sys.argv", ["aqumen"])
    assert main() == 0
    assert capsys.readouterr().out == told
    monkeypatch.setattr("sys.argv", ["aqumen", "list", "papers"])
    assert main() == 0
    assert "arm-pfc" in capsys.readouterr().out


def test_an_extra_that_is_missing_says_how_to_get_it():
    with pytest.raises(Error, match=r"this needs nosuch, which is not installed.*pip install 'aqumen\[plot\]'"):
        optional("nosuch.part", "plot")


# A model's tables.

MODEL = {
    "title": "",
    "model": "two-sources",
    "states": 16,
    "queue": {"service_pps": 975.0, "stages": 4, "buffer_pkts": 20},
    "load": 0.71234,
    "utilization": 0.7012345678,
    "occupancy_mean_pkts": 3.14159,
    "occupancy_std_pkts": 2.71828,
    "warnings": ["slow"],
}


def stream(**more):
    ratios = {f"{key}_ratio": 0.0 for key in ("loss", "overflow_drop", "early_drop", "mark")}
    delays = {f"delay_{key}_s": None for key in ("mean", "std", "p50", "p95", "p99", "p999")}
    return {"offered_pps": 100.0, **ratios, **delays, **more}


def cells(table):
    return list(zip(*(list(column.cells) for column in table.columns), strict=True))


def test_a_model_s_answer_is_told_in_tables():
    voice = stream(loss_ratio=0.0123456789, delay_mean_s=0.0025, delay_p999_s=0.05, threshold_pkts=12.0)
    data = {**MODEL, "sources": {"voice": voice}, "total": stream(offered_pps=694.123)}
    told = tables_of(data)
    assert told[:3] == [
        "two-sources: 16 states",
        "server 975 packets/s, Erlang-4, buffer 20 packets; load 0.7123, utilisation 0.7012346",
        "in the system 3.1416 packets on average, standard deviation 2.7183",
    ]
    assert told[-1] == "\nNote: slow"
    first, last = cells(told[3])
    assert first == (
        *("voice", "100.00", "0.0123457", "0", "0", "0", "12.0"),
        *("2.5000", "–", "–", "–", "–", "50.0000"),
    )
    assert last[:2] == ("all", "694.12")
    assert last[6] == "–"
    assert tables_of({**data, "title": "Two"})[0] == "Two: 16 states"


def test_a_fit_is_told_with_what_it_misses():
    fit = {
        **{"packets": 5000, "duration_s": 12.5, "rate_pps": 400.0, "states": 4},
        "dispersion": {"window_s": [0.01, 1.0], "measured": [2.0, 8.0], "fitted": [2.5, 6.0]},
        "replay": {"loss_ratio": 0.001, "delay_mean_s": 0.0031, "utilization": 0.66666},
    }
    data = {**MODEL, "sources": {}, "total": stream(), "fits": {"trace": fit}}
    heading, table, replay = tables_of(data)[4:7]
    assert heading == "\ntrace: 5000 packets in 12.5 s, 400/s; 4 states fitted"
    assert cells(table) == [("0.01", "2.0000", "2.5000", "+25.0"), ("1", "8.0000", "6.0000", "-25.0")]
    assert replay == "the capture itself replayed into this queue: loss 0.001, mean delay 3.1000 ms, utilisation 0.6667"
    alone = {**data, "fits": {"trace": {**fit, "replay": None}}}
    assert len(tables_of(alone)) == len(tables_of(data)) - 1


def test_a_simulation_stands_beside_the_prediction():
    measures = {
        "loss_ratio": {"predicted": 0.01, "mean": 0.0102, "ci95": [0.0098, 0.0106], "inside": True},
        "delay_mean_s": {"predicted": 0.002, "mean": 0.003, "ci95": [0.0029, 0.0031], "inside": False},
        "mark_ratio": {"predicted": 0.0, "mean": 0.0, "ci95": None, "inside": None},
        "early_ratio": {"predicted": 0.5, "mean": None, "ci95": None, "inside": None},
    }
    simulation = {"seeds": 8, "duration_s": 1000.0, "total": measures, "sources": {}}
    data = {**MODEL, "sources": {}, "total": stream(), "simulation": simulation}
    table = tables_of(data)[4]
    assert "8 runs of 1000 s" in str(table.title) or "8 runs of 1000 s" in str(tables_of(data))
    assert cells(table) == [
        ("all, loss_ratio", "0.01", "0.0102", "0.0098 to 0.0106", "yes"),
        ("all, delay_mean_s", "0.002", "0.003", "0.0029 to 0.0031", "no"),
        ("all, early_ratio", "0.5", "–", "–", "–"),
    ]


# What ns-2 is told of a queue.


def told_ns2(name, params, buffer=50):
    link = Link("l", 0, 1, 0.01, ((0.0, 8e6),), buffer, Aqm(name, params), None, True)
    return _AQMS[name](link)


RED = {"min_th": 5, "max_th": 15, "weight": 0.002}


@pytest.mark.parametrize(
    ("name", "params", "kind", "limit", "settings"),
    [
        # These hold one packet fewer than their limit.
        ("droptail", {}, "DropTail", 51, {"queue_in_bytes_": False, "drop_front_": False, "mean_pktsize_": 1}),
        ("droptail", {"ns2_limit": True}, "DropTail", 50, {}),
        (
            *("rem", {}, "REM", 51),
            {
                **{"gamma_": 0.001, "phi_": 1.001, "inw_": 1.0, "pupdtime_": 0.002, "pbo_": 20.0},
                **{"mean_pktsize_": 1000, "markpkts_": True, "qib_": False},
            },
        ),
        ("rem", {"ns2_limit": True, "ecn": False}, "REM", 50, {"markpkts_": False, "qib_": False}),
        ("rem", {"ecn": True, "signal_at": "dequeue", "alpha": 0.1}, "REM", 51, {"markpkts_": True}),
        (
            *("pi", {"a": 2e-5, "b": 1e-5, "frequency": 160, "target": 20}, "PI", 50),
            {"a_": 2e-5, "b_": 1e-5, "w_": 160.0, "qref_": 20.0, "setbit_": True, "bytes_": False},
        ),
        ("pi", {"a": 2e-5, "b": 1e-5, "frequency": 160, "target": 20, "ecn": False}, "PI", 50, {"setbit_": False}),
        (
            *("red", RED, "RED", 50),
            {
                **{"thresh_": 5.0, "maxthresh_": 15.0, "q_weight_": 0.002, "linterm_": 10.0, "gentle_": True},
                **{"wait_": True, "bytes_": False, "mean_pktsize_": 1000, "setbit_": True, "adaptive_": 0},
                **{"use_mark_p_": False, "mark_p_": 0.1, "drop_tail_": True, "drop_front_": False, "cautious_": 0},
                **{"queue_in_bytes_": False, "feng_adaptive_": 0, "drop_rand_": False, "ns1_compat_": False},
            },
        ),
        ("red", {**RED, "max_p": 0.02, "gentle": False, "wait": False}, "RED", 50, {"linterm_": 50.0, "wait_": False}),
        (
            *("ared", RED, "RED", 50),
            {
                **{"adaptive_": 1, "alpha_": 0.01, "beta_": 0.9, "interval_": 0.5, "targetdelay_": 0.005},
                **{"top_": 0.5, "bottom_": 0.0},
            },
        ),
        (
            *("avq", {}, "Vq", 50),
            {
                **{"gamma_": 0.98, "ecnlim_": 0.8, "buflim_": 1.0, "queue_in_bytes_": False, "mean_pktsize_": 1000},
                **{"markpkts_": True, "markfront_": False, "drop_front_": False},
            },
        ),
        ("avq", {"ecn": False, "spare_not_ect": True}, "Vq", 50, {"markpkts_": False}),
    ],
)
def test_a_queue_of_ns2_has_our_parameters(name, params, kind, limit, settings):
    found_kind, found_limit, found = told_ns2(name, params)
    assert (found_kind, found_limit) == (kind, limit)
    assert found.items() >= settings.items()


@pytest.mark.parametrize(
    ("name", "params", "told"),
    [
        ("pi", {"a": 2e-5}, "needs the parameter 'b'"),
        ("rem", {"alpha": 0.2}, "has alpha = 0.1 built in, not 0.2"),
        ("rem", {"ecn": False, "signal_at": "dequeue"}, "signal_at = arrival built in"),
        ("red", {**RED, "spacing": "geometric"}, "spacing = ns2 built in"),
        ("red", {**RED, "above": "mark"}, "above = drop built in"),
        ("avq", {"alpha": 0.1}, "alpha = 0.15 built in"),
        ("avq", {"ecn": True, "spare_not_ect": False}, "spare_not_ect = True built in"),
        ("droptail", {"colour": "red"}, "has no parameter 'colour'"),
        ("red", {**RED, "top": 0.5}, "has no parameter 'top'"),
    ],
)
def test_what_ns2_does_not_have_is_refused(name, params, told):
    with pytest.raises(Ns2Unsupported, match=re.escape(told)):
        told_ns2(name, params)


def test_two_flows_are_a_pile():
    assert len(numbers(dumbbell(1), BOX)) == 2
    assert len(numbers(dumbbell(2), BOX)) == 6


NETWORK = ["--capacity", "30Mbit", "--flows", "60"]


def axes(first):
    return ["--over", first, "--over", "rtt=1:2"]


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["map", "pi", *NETWORK, "--rtt", "1s", "--over", "flows=1:9"], "a map has two axes: give --over AXIS=FROM:TO"),
        (["map", "pi", *NETWORK, "--rtt", "1s", *axes("flows=0:9")], "flows=0:9: the ends of a range must be above 0"),
        (["map", "pi", *NETWORK, "--rtt", "1s", *axes("flows=9:0")], "flows=9:0: the ends of a range must be above 0"),
        (["map", "pi", *NETWORK, "--rtt", "1s", *axes("luck=1:2")], "--over luck: there are flows, rtt, capacity, "),
        (["map", "pi", *NETWORK, "--rtt", "1s", *axes("flows=1:9"), "--show", "x"], "unknown quantity `x` of a map"),
        (["map", "pi", *NETWORK, *axes("flows=1:9")], "give --rtt TIME"),
        (["map", "pi", "--capacity", "1Mbit", "--rtt", "1s", *axes("flows=1:9")], "missing: --flows N; `aqumen map"),
        (["robust", "pi", *NETWORK, "--rtt", "1s"], "give --over AXIS=FROM:TO"),
        (
            ["robust", "pi", *NETWORK, "--rtt", "1s", "--over", "luck=1:2"],
            "--over luck: there are flows, rtt, capacity",
        ),
        (["robust", "pi", *NETWORK, "--rtt", "1s", "--over", "flows=1"], "flows=1: write it as AXIS=FROM:TO, for"),
        (["robust", "pi", *NETWORK, "--rtt", "1s", "--over", "flows=a:b"], "flows=a:b: write it as AXIS=FROM:TO with"),
        (["robust", "pi", *NETWORK, "--rtt", "1s", "--over", "rtt=1ly:2ly"], 'round trip = "1ly": unknown unit'),
        (["robust", *NETWORK, "--rtt", "1s", "--over", "flows=1:9"], "name one AQM: aqumen robust SPEC"),
        (["robust", "pi", "--plant", "x.json", "--flows", "5"], "--flows does not go with --plant"),
        (["robust", "--plant", "x.json"], "name one AQM: aqumen robust SPEC --plant FILE"),
        (["robust", "pi", "--plant", "x.json"], "x.json: no such file"),
        (["design", "pi", *NETWORK, "--r0", "246ms", "--plot", "no/x.svg"], "cannot write no/x.svg"),
        (["design", "pi", *NETWORK, "--r0", "246ms", "--plot", "x.nothing"], "cannot write x.nothing"),
        (["design", "pi", "--scenario", "x", "--rtt", "1s"], "--rtt and --scenario exclude each other"),
        (["design", "pi", "--scenario", "x", "--kind", "bode"], "--kind and --scenario exclude each other"),
        (["design", "pi"], "give --capacity and --flows of a network, or --scenario FILE"),
        (["design", "pi", "--flows", "5"], "missing: --capacity RATE"),
        (["design", "pi", "--capacity", "5Mbit"], "missing: --flows N"),
        (["design", "pi", *NETWORK, "--r0", "1s", "--kind", "bode"], "--kind needs --plot FILE"),
        (["design", "pi", *NETWORK], "give either --rtt (without queueing) or --r0 (at the target)"),
        (["design", *NETWORK, "--rtt", "1s"], "name one AQM: aqumen design SPEC"),
        (
            ["uplink", "--down", "9Mbit", "--up", "1Mbit", "--headroom", "1,2,3"],
            "--headroom 1,2,3: must be one percentage",
        ),
        (
            ["uplink", "--down", "9Mbit", "--up", "1Mbit", "--headroom", "some"],
            "--headroom some: must be percentages, such as 5,10",
        ),
        (["uplink", "--down", "9Mbit", "--up", "1Mbit", "--weigh", "upload"], "--weigh upload: write it as METRIC=X"),
        (["mmpp", "x.pcap"], "x.pcap: a capture needs a queue: give --buffer 100pkt and --link 10Mbit"),
        (["mmpp", "x.pcap", "--buffer", "9pkt"], "x.pcap: a capture needs a queue"),
        (["mmpp", "x.toml", "--save", "no/x.toml"], "cannot write no/x.toml: the folder no does not exist"),
        (["mmpp", "x.toml", "--load-within", "2"], "--load-within 2: must be above 0 and below 1, such as 0.01"),
        (["mmpp", "x.toml", "--threshold-within", "0"], "--threshold-within 0: must be above 0 and below 1"),
        (
            ["mmpp", "x.toml", "--load-within", "0.1", "--threshold-within", "0.1"],
            "--load-within and --threshold-within exclude each other",
        ),
        (["mmpp", "x.toml", "--set", "=3"], "--set =3: write it as KEY=VALUE"),
        (["replay", "x.pcap"], "no AQM given: add --aqm, such as --aqm codel"),
        (
            ["replay", "x.pcap", "--aqm", "pie", "--out", "left.pcapng"],
            "--out left.pcapng: must be a folder; the command",
        ),
        (["study", "export", "s", "csv", "--out", "runs.csv"], "--out runs.csv: must be a folder"),
        (["run", "arm-pfc/exp1", "--target", "50"], "--target 50: must be packets or a time, above 0 and with a unit"),
        (["design", "pi", "--target", "0pkt"], "--target 0pkt: must be packets or a time, above 0"),
        (["reproduce", "rfc7928", "--target", "5kB"], "--target 5kB: must be packets or a time"),
        (["office", "--rate", "9Mbit", "--people", "0"], "--people 0: must be 1 to 1000"),
        (["office", "--rate", "9", "--people", "5"], "--rate 9: needs a unit"),
        (["office", "--rate", "9Mbit", "--up", "1kbit", "--people", "5"], "--up 1kbit: must be at least 64kbit"),
        (
            ["replay", "x.pcap", "--aqm", "pie:target=5ms", "--aqm", "pie-target=5ms", "--out", "x"],
            "cannot write into x: two AQMs would share a file; replay them one at a time",
        ),
        (["run", "arm-pfc/exp1", "--pcap", "no/x"], "cannot write no/x: the folder no does not exist"),
        (["run", "arm-pfc/exp1", "--until", "3"], "--until 3: needs a unit: 3s for seconds, or 3ms"),
    ],
)
def test_a_slip_is_told_before_anything_is_done(args, told, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert main(args) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert told in " ".join(err.split())
    assert list(tmp_path.iterdir()) == []


REQUIRED = {"uplink": {"--down", "--up"}, "office": {"--rate", "--people"}, "calibrate": {"--group", "--loss"}}


@pytest.mark.parametrize("verb", GROUP.list_commands(CONTEXT))
def test_what_a_verb_cannot_do_without_is_asked_for(verb):
    known = options(verb)
    assert {name for name, option in known.items() if option.required} == REQUIRED.get(verb, set())
    # What says nothing of a value takes none.
    for name, option in known.items():
        takes_none = option.metavar is None and isinstance(option.type, click.types.BoolParamType)
        assert option.is_flag == takes_none, name
