"""The queueing analysis as it is told: tables, plot and warnings, from an answer written by hand."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from aqumen import mmpp
from aqumen.cli import main
from aqumen.cli import mmpp as verb
from aqumen.errors import ScenarioError


def stream(**more):
    return {
        "offered_pps": 100.0,
        "loss_ratio": 0.02,
        "overflow_drop_ratio": 0.015,
        "early_drop_ratio": 0.005,
        "mark_ratio": 0.0,
        **{f"delay_{key}_s": k / 1000 for k, key in enumerate(("mean", "std", "p50", "p95", "p99", "p999"), 1)},
        **more,
    }


DATA = {
    "model": "made",
    "title": "",
    "states": 12,
    "queue": {"buffer_pkts": 20, "service_pps": 975.5, "stages": 4},
    "load": 0.75,
    "utilization": 0.5,
    "occupancy_mean_pkts": 2.5,
    "occupancy_std_pkts": 1.25,
    "occupancy": [0.5, 0.25, 0.25],
    "sources": {"web": stream(threshold_pkts=7.0), "ftp": stream(delay_p999_s=None, mark_ratio=None)},
    "total": stream(offered_pps=200.0),
    "warnings": ["of something"],
    "delay_distribution": {
        "delay_s": [0.0, 0.001, 0.002],
        "share_longer": {"total": [1.0, 0.5, 0.1], "sources": {"web": [1.0, 0.4, 0.2], "ftp": [1.0, 0.6, 0.0]}},
    },
    "fits": {
        "trace": {
            "packets": 5000,
            "duration_s": 12.5,
            "rate_pps": 400.0,
            "states": 6,
            "dispersion": {"window_s": [0.01, 0.1], "measured": [1.5, 4.0], "fitted": [1.2, 5.0]},
            "autocorrelation": {"lag_s": [0.1, 0.2], "measured": [0.5, 0.25], "fitted": [0.4, 0.3], "window_s": 0.0125},
            "replay": {"loss_ratio": 0.0, "delay_mean_s": 0.0025, "utilization": 0.625},
        }
    },
    "simulation": {
        "seeds": 5,
        "duration_s": 100.0,
        "total": {
            "loss_ratio": {"predicted": 0.02, "mean": 0.021, "ci95": [0.019, 0.023], "inside": True},
            "mark_ratio": {"predicted": 0.0, "mean": 0.0, "ci95": None, "inside": None},
        },
        "sources": {
            "web": {
                "loss_ratio": {"predicted": 0.02, "mean": 0.05, "ci95": [0.04, 0.06], "inside": False},
                "mark_ratio": {"predicted": None, "mean": 0.5, "ci95": None, "inside": None},
                "early_drop_ratio": {"predicted": 0.25, "mean": 0.0, "ci95": None, "inside": None},
            }
        },
    },
}


def cells(table):
    return [
        [column.header for column in table.columns],
        *map(list, zip(*(c.cells for c in table.columns), strict=True)),
    ]


def test_what_is_served_stands_above_the_packets():
    shown = verb.tables_of(DATA)
    assert shown[:3] == [
        "made: 12 states",
        "server 975.5 packets/s, Erlang-4, buffer 20 packets; load 0.7500, utilisation 0.5000000",
        "in the system 2.5000 packets on average, standard deviation 1.2500",
    ]
    assert verb.tables_of({**DATA, "title": "A name"})[0] == "A name: 12 states"
    heads, web, ftp, all_ = cells(shown[3])
    assert heads[:7] == ["source", "offered/s", "loss", "overflow", "early", "marked", "threshold"]
    assert heads[7:] == ["delay ms", "std ms", "p50", "p95", "p99", "p99.9"]
    assert web == ["web", "100.00", "0.02", "0.015", "0.005", "0", "7.0"] + [f"{k}.0000" for k in range(1, 7)]
    assert ftp[5:7] == ["–", "–"]
    assert ftp[12] == "–"
    assert all_[:2] == ["all", "200.00"]
    assert shown[-1] == "\nNote: of something"


def test_fits_and_simulations_stand_below():
    shown = verb.tables_of(DATA)
    assert shown[4] == "\ntrace: 5000 packets in 12.5 s, 400/s; 6 states fitted"
    assert cells(shown[5]) == [
        ["window s", "index of dispersion", "fitted", "error %"],
        ["0.01", "1.5000", "1.2000", "-20.0"],
        ["0.1", "4.0000", "5.0000", "+25.0"],
    ]
    assert shown[6] == "the capture itself replayed into this queue: loss 0, mean delay 2.5000 ms, utilisation 0.6250"
    assert shown[7].title == "\nPacket-level simulation: 5 runs of 100 s"
    # What is zero on both sides is left out; what one side alone knows is not.
    assert cells(shown[7])[1:] == [
        ["all, loss_ratio", "0.02", "0.021", "0.019 to 0.023", "yes"],
        ["web, loss_ratio", "0.02", "0.05", "0.04 to 0.06", "no"],
        ["web, mark_ratio", "–", "0.5", "–", "–"],
        ["web, early_drop_ratio", "0.25", "0", "–", "–"],
    ]
    assert len(shown) == 9
    plain = {key: value for key, value in DATA.items() if key not in ("fits", "simulation")}
    assert len(verb.tables_of(plain)) == 5
    without = {**DATA["fits"]["trace"], "replay": None}
    assert len(verb.tables_of({**plain, "fits": {"trace": without}, "warnings": []})) == 6


@pytest.mark.parametrize(
    ("seconds", "megabytes", "said"),
    [
        (0.1, 1, ""),
        (1.0, 100, ""),
        (1.4, 30, "aqumen: this takes about 1 s and 30 MB of memory\n"),
        (0.5, 101, "aqumen: this takes about 1 s and 101 MB of memory\n"),
        (100.0, 0, "aqumen: this takes about 100 s and 1 MB of memory\n"),
        (150.0, 2000, "aqumen: this takes about 2 minutes and 2000 MB of memory\n"),
        (600.0, 5, "aqumen: this takes about 10 minutes and 5 MB of memory\n"),
    ],
)
def test_what_takes_long_or_much_memory_is_said_beforehand(capsys, seconds, megabytes, said):
    verb.Remaining()(seconds, megabytes * 1_000_000)
    assert capsys.readouterr().err == said


def test_what_is_left_is_said_every_ten_seconds(capsys):
    now = [0.0]
    hear = verb.Remaining(lambda: now[0])
    for now[0], left in ((0.0, 0.5), (9.0, 40.0), (18.0, 35.0), (19.0, 31.0), (29.5, 20.0)):
        hear(left, 5_000_000)
    assert capsys.readouterr().err.splitlines() == [
        "aqumen: this takes about 40 s and 5 MB of memory",
        "aqumen: about 31 s left",
        "aqumen: about 20 s left",
    ]
    # Foreseen to be short, and is not.
    now[0] = 0.0
    hear = verb.Remaining(lambda: now[0])
    for now[0], left in ((0.0, 0.8), (10.5, 0.9)):
        hear(left, 5_000_000)
    assert capsys.readouterr().err == "aqumen: this takes about 1 s and 5 MB of memory\n"


def test_what_is_admitted_stands_above_the_packets():
    load = {"find": "load", "loss_ratio_max": 0.01, "rate_factor": 1.25, "threshold_pkts": None}
    assert verb.tables_of({**DATA, "admission": load})[3] == (
        "highest admissible load: 0.750000, all rates times 1.250000; no source loses more than 0.01"
    )
    threshold = {**load, "find": "threshold", "rate_factor": 1.0, "threshold_pkts": 12.5}
    assert verb.tables_of({**DATA, "admission": threshold})[3] == (
        "lowest admissible threshold: early drops from 12.5 packets; no source loses more than 0.01"
    )


def lines(axes):
    return [(line.get_label(), [float(x) for x in line.get_xdata()]) for line in axes.lines]


def test_the_plot_holds_the_answer():
    pytest.importorskip("matplotlib")
    figure = mmpp._plot(DATA)
    occupancy, delay, dispersion, correlation = figure.axes
    assert figure.get_size_inches().tolist() == [10.0, 7.2]
    (steps,) = occupancy.lines
    assert (list(steps.get_xdata()), list(steps.get_ydata())) == ([0, 1, 2], [0.5, 0.25, 0.25])
    assert (occupancy.get_title(), occupancy.get_yscale(), occupancy.get_xscale()) == ("made", "log", "linear")
    assert (occupancy.get_xlabel(), occupancy.get_ylabel()) == ("Packets in the system", "Probability")
    # All packets first, then by source, in milliseconds.
    assert lines(delay) == [(name, [0.0, 1.0, 2.0]) for name in ("all", "web", "ftp")]
    assert [list(line.get_ydata()) for line in delay.lines] == [[1.0, 0.5, 0.1], [1.0, 0.4, 0.2], [1.0, 0.6, 0.0]]
    assert len({line.get_color() for line in delay.lines}) == 3
    assert (delay.get_yscale(), delay.get_ylim(), delay.get_xlabel()) == ("log", (5e-5, 1.1), "Delay, ms")
    assert [text.get_text() for text in delay.get_legend().get_texts()] == ["all", "web", "ftp"]
    assert lines(dispersion) == [("measured", [0.01, 0.1]), ("fitted", [0.01, 0.1])]
    assert lines(correlation) == [("measured", [0.1, 0.2]), ("fitted", [0.1, 0.2])]
    assert [list(line.get_ydata()) for line in dispersion.lines] == [[1.5, 4.0], [1.2, 5.0]]
    assert [dispersion.lines[k].get_linestyle() for k in (0, 1)] == ["None", "-"]
    # The same colours in both: what was measured, and what was fitted to it.
    by_name = [{line.get_label(): line.get_color() for line in axes.lines} for axes in (dispersion, correlation)]
    assert by_name == [{"measured": mmpp.COLOURS[0], "fitted": mmpp.COLOURS[1]}] * 2
    assert steps.get_color() == delay.lines[0].get_color() == mmpp.COLOURS[0]
    assert (dispersion.get_title(), dispersion.get_xscale(), dispersion.get_yscale()) == ("trace", "log", "log")
    assert [list(line.get_ydata()) for line in correlation.lines] == [[0.5, 0.25], [0.4, 0.3]]
    assert correlation.get_ylabel() == "Autocorrelation, windows of 0.0125 s"
    assert (correlation.get_title(), correlation.get_xscale(), correlation.get_xlabel()) == (
        "trace",
        "linear",
        "Lag, s",
    )
    for axes in figure.axes:
        seen = {side: spine.get_visible() for side, spine in axes.spines.items()}
        assert seen == {"top": False, "right": False, "left": True, "bottom": True}
    plain = mmpp._plot({**DATA, "fits": {}, "title": "A name"})
    assert len(plain.axes) == 2
    assert plain.axes[0].get_title() == "A name"
    assert plain.get_size_inches().tolist() == [10.0, 3.6]


def test_ten_sources_have_their_colours_again():
    pytest.importorskip("matplotlib")
    shares = {f"s{k}": [1.0, 0.5, 0.1] for k in range(12)}
    curves = {"delay_s": [0.0, 0.1, 0.2], "share_longer": {"total": [1.0, 0.5, 0.1], "sources": shares}}
    delay = mmpp._plot({**DATA, "fits": {}, "delay_distribution": curves}).axes[1]
    assert len(delay.lines) == 13
    colours = [line.get_color() for line in delay.lines]
    period = len(mmpp.COLOURS)
    assert colours == [mmpp.COLOURS[k % period] for k in range(13)]


def test_a_model_hears_how_long_it_takes_and_is_not_stopped_by_that():
    heard = []
    goes_on = mmpp._without_stop(lambda *left: heard.append(left))
    assert goes_on(3.5, 1000) is True
    assert heard == [(3.5, 1000)]
    assert mmpp._without_stop(None) is None


@pytest.fixture
def solved(monkeypatch):
    """The core's answers, at once; notes what it was asked."""
    asked = SimpleNamespace(calls=[])

    def answer(*args):
        asked.calls.append(args)
        return '{"model": "x", "total": {"loss_ratio": 0.0123456789}}', "name = 1\n"

    monkeypatch.setattr(mmpp._core, "mmpp_solve", answer)
    monkeypatch.setattr(mmpp._core, "mmpp_solve_text", answer)
    return asked


def test_a_capture_becomes_a_model_by_its_name(solved, tmp_path):
    path = tmp_path / "ä b-c_d.2.pcap"
    path.write_bytes(b"x")
    answer = mmpp.predict(path, {"queue.buffer": '"9pkt"'})
    assert repr(answer) == "QueueAnalysis('x', loss_ratio=0.0123457)"
    assert answer.toml == "name = 1\n"
    text, where, overrides, simulate, goes_on = solved.calls[0]
    assert (text, where, simulate, goes_on) == ("", str(path), False, None)
    assert overrides == [
        ("name", '"--b-c_d-2"'),
        ("sources", '[{name = "trace", trace = {file = "ä b-c_d.2.pcap"}}]'),
        ("queue.buffer", '"9pkt"'),
    ]
    long = tmp_path / ("y" * 80 + ".csv")
    long.write_bytes(b"x")
    mmpp.predict(long, {})
    assert solved.calls[1][2][0] == ("name", f'"{"y" * 64}"')
    packed = tmp_path / "z.pcap.gz"
    packed.write_bytes(b"\x1f\x8b1")
    with pytest.raises(ScenarioError, match=r"z\.pcap\.gz: is compressed; unpack it first: gunzip -k .*z\.pcap\.gz$"):
        mmpp.predict(packed, {})


def test_a_model_is_solved_as_it_stands(solved, tmp_path):
    heard = []
    model = tmp_path / "m.toml"
    model.touch()
    mmpp.solve(model)
    mmpp.solve(model, {"a": "1", "b": "2"}, True, heard.append)
    assert solved.calls[0] == (str(model), [], False, None)
    assert solved.calls[1][:3] == (str(model), [("a", "1"), ("b", "2")], True)


def test_options_become_settings(solved, tmp_path, capsys):
    model, out = str(tmp_path / "given.toml"), tmp_path / "m.toml"
    Path(model).touch()
    args = ["mmpp", model, "--buffer", "9pkt", "--link", "1Mbit", "--set", " queue.stages = 2 ", "--json"]
    assert main([*args, "--save", str(out)]) == 0
    captured = capsys.readouterr()
    assert captured.out == '{"model": "x", "total": {"loss_ratio": 0.0123456789}}\n'
    assert captured.err == f"aqumen: wrote {out}\n"
    assert out.read_text() == "name = 1\n"
    assert solved.calls[0][1] == [("queue.buffer", '"9pkt"'), ("queue.link", '"1Mbit"'), ("queue.stages", "2")]
    assert main(["mmpp", model, "--load-within", "0.02", "--json"]) == 0
    assert main(["mmpp", model, "--threshold-within", "1e-3", "--json"]) == 0
    assert [call[1] for call in solved.calls[1:]] == [
        [("admit", '{find = "load", loss = 0.02}')],
        [("admit", '{find = "threshold", loss = 0.001}')],
    ]
    capsys.readouterr()
    assert main(["mmpp", model, "--threshold-within", "1e-3", "--load-within", "0.02"]) == 2
    assert "exclude each other" in capsys.readouterr().err
    for option in ("--load-within", "--threshold-within"):
        for loss in ("0", "1", "-0.1", "2", "nan"):
            assert main(["mmpp", model, option, loss]) == 2
            assert f"{option} {loss}: must be above 0 and below 1" in capsys.readouterr().err
    for wrong in ("=1", "key"):
        assert main(["mmpp", model, "--set", wrong]) == 2
        assert f"--set {wrong}: write it as KEY=VALUE" in capsys.readouterr().err
    # A capture needs both a buffer and a rate of either kind.
    (tmp_path / "c.pcap").write_bytes(b"x")
    capture = str(tmp_path / "c.pcap")
    for some in (["--buffer", "9pkt"], ["--link", "1Mbit"], ["--service", "5pkt/s"], []):
        assert main(["mmpp", capture, *some]) == 2
        assert "a capture needs a queue" in capsys.readouterr().err
    for rate in (["--link", "1Mbit"], ["--service", "5pkt/s"]):
        assert main(["mmpp", capture, "--buffer", "9pkt", *rate, "--json"]) == 0
