"""Finite transfers on their way to ns-2 and back, and a program in its place: by hand, without ns-2."""

from types import SimpleNamespace
from typing import Any

import pytest

from aqumen.engines.external.ns2 import Ns2Failed, Ns2Unsupported, run
from aqumen.engines.external.ns2.plan import Plan, Transport
from aqumen.engines.external.ns2.requests import ASKS_MAX, Requests, RequestStep, read_requests
from aqumen.engines.external.ns2.runner import execute, find_ns
from aqumen.engines.external.ns2.tcl import _sets
from aqumen.engines.external.ns2.transfers import ServedRequests, request_metrics, source_lines

ASKS = [(0.0, "page", 0, False), (0.01, "transfer", 1921, True), (0.5, "read", 0, False)]


def raw_group(**more: Any) -> dict[str, Any]:
    return {
        "name": "g",
        "transport": {"preset": "ns2"},
        "traffic": {"kind": "transfers", "think": "1s"},
        "requests": [ASKS, ASKS[:1]],
        **more,
    }


def test_requests_are_read_source_by_source() -> None:
    requests = read_requests(raw_group())
    assert requests == Requests(False, (tuple(RequestStep(*ask) for ask in ASKS), (RequestStep(*ASKS[0]),)))
    assert requests.sources[0][1] == RequestStep(wait_s=0.01, what="transfer", size_bytes=1921, fresh=True)
    # One source for all flows asks whether or not the last was served.
    assert read_requests(raw_group(traffic={"kind": "transfers", "rate": "20/s"})).shared
    assert not read_requests(raw_group(traffic={"kind": "web", "connections": 1})).shared
    # Without a preset it is ns-2's.
    assert read_requests(raw_group(transport={})) is not None


@pytest.mark.parametrize(
    "other",
    [{"traffic": "bulk"}, {"traffic": {"kind": "cbr"}}, {"transport": {"preset": "modern"}}],
)
def test_other_traffic_has_no_requests(other: dict[str, Any]) -> None:
    assert read_requests(raw_group(**other)) is None


def test_no_traffic_said_is_bulk() -> None:
    raw = raw_group()
    del raw["traffic"]
    assert read_requests(raw) is None


def test_more_requests_than_are_worked_out_are_refused() -> None:
    class Long(list):  # type: ignore[type-arg]
        def __init__(self, length: int) -> None:
            self.length = length

        def __len__(self) -> int:
            return self.length

    with pytest.raises(Ns2Unsupported, match=r"^group 'g': ns-2 runs at most 1000000 requests of a source$"):
        read_requests(raw_group(requests=[[], Long(ASKS_MAX)]))
    assert read_requests(raw_group(requests=[[], Long(ASKS_MAX - 1)])) is not None


TRANSPORT = Transport(packet_bytes=1000, header_bytes=40)


def flows(*starts: float, group: int = 2) -> list[Any]:
    return [SimpleNamespace(on=((start, None),), group=group, path=(0, 1)) for start in starts]


def test_sources_in_a_closed_loop_ask_one_by_one() -> None:
    requests = Requests(False, (tuple(RequestStep(*ask) for ask in ASKS), (RequestStep(0.25, "transfer", 960, False),)))
    assert source_lines(range(4, 6), flows(0.5, 0.125), requests, TRANSPORT, ["x y", "z"]) == [
        "serve 4 40 x y",
        "serve 5 40 z",
        # 1921 bytes are two packets of 960 and a third one; 960 just one.
        "set asks(4) {{0.0 page 0 0 0} {0.01 transfer 3 1921 1} {0.5 read 0 0 0}}",
        "set asks(5) {{0.25 transfer 1 960 0}}",
        '$ns at 0.5 "ask 4"',
        '$ns at 0.125 "ask 5"',
    ]


def test_a_source_of_a_group_gives_transfers_to_the_first_idle_flow() -> None:
    requests = Requests(True, ((RequestStep(0.25, "transfer", 961, True),),))
    silent = Transport(packet_bytes=1000, header_bytes=40, syn=False)
    assert source_lines(range(4, 6), flows(0.5, 0.125), requests, silent, ["x", "z"]) == [
        "serve 4 0 x",
        "serve 5 0 z",
        "set asks(g4) {{0.25 transfer 2 961 1}}",
        '$ns at 0.5 "rest 4 4"',
        "set pool(4) 4",
        '$ns at 0.125 "rest 5 4"',
        "set pool(5) 4",
        "set group_of(4) 2",
        # From the first flow's start on.
        '$ns at 0.125 "ask g4"',
    ]


@pytest.mark.parametrize("on", [((0.0, 5.0),), ((0.0, 1.0), (2.0, None)), ()])
def test_a_source_that_stops_is_refused(on: Any) -> None:
    stopped = [SimpleNamespace(on=on, group=0, path=(0,))]
    with pytest.raises(Ns2Unsupported, match=r"^ns-2 cannot stop a source of transfers$"):
        source_lines(range(1), stopped, Requests(False, ((),)), TRANSPORT, ["x"])


LINKS: Any = [
    SimpleNamespace(delay_s=0.010, rates=((0.0, 8e6), (5.0, 1e6))),
    SimpleNamespace(delay_s=0.020, rates=((0.0, 80e6),)),
]


def test_what_was_served_is_told_by_size() -> None:
    served = ServedRequests(
        transfers={
            0: [(1.0, 9_999, 1.1), (2.0, 10_000, 2.2), (1.5, 5_000, 12.0)],
            1: [(3.0, 99_999, 3.4), (4.0, 100_000, 4.8), (5.0, 1_000_000, 8.0), (1.0, 500, 1.3), (1.0, 600, 1.7)],
            7: [(1.0, 500, 1.2)],
        },
        pages={0: [(1.0, 3.0), (0.0, 0.5)], 1: [(2.0, 6.0), (2.0, 9.999)], 9: [(1.0, 2.0)]},
        refused={2: [0.99, 1.0, 5.0, 10.0], 3: [2.0]},
    )
    found = request_metrics(served, range(2), 2, flows(0.0, 0.0), LINKS, (1.0, 10.0))
    # From the window's start on, its end not counted.
    assert found["refused"] == 2
    sizes = ("under_10kB", "10kB_100kB", "100kB_1MB", "over_1MB")
    assert [found[f"fct_{size}_count"] for size in sizes] == [3, 2, 1, 1]
    assert found["fct_under_10kB_mean_s"] == pytest.approx((0.1 + 0.3 + 0.7) / 3)
    quantiles = [found[f"fct_under_10kB_p{percent}_s"] for percent in (50, 95, 99)]
    assert quantiles == pytest.approx([0.3, 0.7, 0.7])
    # An unloaded network takes 30 ms and the size over the slowest link at the start.
    ideal = [0.030 + 8 * size / 8e6 for size in (9_999, 500, 600)]
    slow = [time / of for time, of in zip((0.1, 0.3, 0.7), ideal, strict=True)]
    assert found["fct_under_10kB_slowdown"] == pytest.approx(sum(slow) / 3)
    assert found["fct_over_1MB_slowdown"] == pytest.approx(3.0 / 1.03)
    assert found["fct_10kB_100kB_mean_s"] == pytest.approx(0.3)
    assert found["fct_100kB_1MB_mean_s"] == pytest.approx(0.8)
    # Pages that were there within: 2, 4 and 7.999 s.
    assert found["pages"] == 3
    assert found["page_load_mean_s"] == pytest.approx(13.999 / 3)
    assert [found[f"page_load_p{percent}_s"] for percent in (50, 95, 99)] == pytest.approx([4.0, 7.999, 7.999])


def test_what_was_not_asked_for_has_no_figures() -> None:
    found = request_metrics(ServedRequests(), range(2), 0, flows(0.0, 0.0), LINKS, (0.0, 10.0))
    sizes = ("under_10kB", "10kB_100kB", "100kB_1MB", "over_1MB")
    expected: dict[str, Any] = {"refused": 0}
    for size in sizes:
        expected |= {f"fct_{size}_count": 0, f"fct_{size}_slowdown": None}
        expected |= {f"fct_{size}_{what}_s": None for what in ("mean", "p50", "p95", "p99")}
    assert found == expected


# A program in the place of ns-2.


def program(tmp_path: Any, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    path = tmp_path / "ns"
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="ascii")
    path.chmod(0o755)
    monkeypatch.setenv("AQUMEN_NS2", str(path))
    assert find_ns() == str(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("echo 'S 1.0'; echo ' all lost' >&2; echo more >&2; exit 3", "status 3 and said: all lost"),
        ("echo 'S 1.0'; exit 3", "status 3 and said: S 1.0"),
        ("exit 1", "status 1 and said: nothing"),
        # Whatever its status: what does not say END has not come to its end.
        ("echo 'S 1.0'", "status 0 and said: S 1.0"),
        ("true", "status 0 and said: nothing"),
        ("echo END; exit 2", "status 2 and said: END"),
    ],
)
def test_a_program_that_breaks_off_is_quoted(tmp_path: Any, monkeypatch: Any, text: str, said: str) -> None:
    program(tmp_path, monkeypatch, text)
    with pytest.raises(Ns2Failed) as failed:
        execute("", tmp_path)
    assert str(failed.value) == f"ns-2 stopped with {said}"


def test_answers_are_read_from_their_file_where_there_is_one(tmp_path: Any, monkeypatch: Any) -> None:
    program(tmp_path, monkeypatch, "cat run.tcl; printf 'S 4.0\\nEND\\n' > answers")
    output = execute("S 2.0\nEND\n", tmp_path)
    assert output.times_s == [4.0]
    (tmp_path / "answers").unlink()
    program(tmp_path, monkeypatch, "cat run.tcl")
    output = execute("S 2.0\nEND\n", tmp_path)
    assert output.times_s == [2.0]
    assert 0 <= output.user_s <= output.cpu_s <= output.wall_s + 1


LINE = "{what} {time} 0 1 tcp 1000 {flags} 0 0.0 1.0 1 1"


def trace(*events: tuple[str, float, str]) -> str:
    return "\\n".join(LINE.format(what=what, time=time, flags=flags) for what, time, flags in events) + "\\n"


def lone_plan() -> dict[str, Any]:
    link = {"delay_s": 0.05, "rates": [[0.0, 8e6]], "buffer_pkts": 50, "target_pkts": None}
    aqm = {"name": "droptail", "params": {"ns2_limit": True}}
    return {
        "scenario": "lone",
        "seed": 7,
        "duration_s": 2.0,
        "nodes": ["a", "b"],
        "links": [
            link | {"name": "core", "from": 0, "to": 1, "record": True, "aqm": aqm},
            link | {"name": "back", "from": 1, "to": 0, "aqm": aqm},
        ],
        "groups": [{"name": "g", "transport": {"preset": "ns2"}, "flows": [0, 1]}],
        "flows": [{"group": 0, "path": [0], "return_path": [1], "on": [[0.0, None]], "transfer_bytes": None}],
        "windows": {"all": [0.0, 2.0], "late": [1.0, 2.0]},
        "sample_interval_s": 0.5,
    }


def test_what_a_program_prints_becomes_a_result(tmp_path: Any, monkeypatch: Any) -> None:
    # Three packets of 1000 bytes come; the second is marked here, the third is dropped; each takes 1 ms of the link.
    events = trace(
        ("+", 0.5, "-------"),
        ("-", 0.5, "-------"),
        ("+", 0.5, "-------"),
        ("-", 0.501, "----E--"),
        ("+", 1.5, "-------"),
        ("d", 1.5, "-------"),
    )
    printed = "\\n".join(
        [
            "S 1.0", "L 0 0.001", "F 0 3000 4 1 0", "S 2.0", "L 0 0.003", "F 0 5000 7 2 1",
            "P 0 0.5 1 -", "P 0 1.0 0 0.25", "END",
        ]
    )  # fmt: skip
    program(tmp_path, monkeypatch, f"printf '{events}' > link0.tr; printf '{printed}\\n'")
    result = run(lone_plan())
    assert (result["schema"], result["engine"], result["scenario"], result["seed"]) == (1, "ns2", "lone", 7)
    assert result["windows"] == {"all": [0.0, 2.0], "late": [1.0, 2.0]}
    assert list(result["links"]) == ["core"]
    assert result["aqm"]["name"] == "droptail"
    whole, late = result["links"]["core"]["all"], result["links"]["core"]["late"]
    assert (whole["arrivals_pkts"], whole["departures_pkts"], whole["marked_pkts"]) == (3, 2, 1)
    assert (late["arrivals_pkts"], late["departures_pkts"], late["overflow_dropped_pkts"]) == (1, 0, 1)
    # Its own integral of the queue: 3 packet-milliseconds in 2 s, 2 of them in the second.
    assert whole["queue_mean_pkts"] == pytest.approx(0.0015)
    assert late["queue_mean_pkts"] == pytest.approx(0.002)
    # A wire that loses nothing has no figure of its own.
    assert not whole.get("wire_lost_pkts")
    assert result["series"] == {"core": {"t": [0.5, 1.0], "queue_pkts": [1, 0], "p": [None, 0.25]}}
    # 5 and 2 packets of 960 bytes.
    group = result["flows"]["g"]
    assert group["all"]["goodput_bps"] == pytest.approx(5 * 960 * 8 / 2)
    assert group["late"]["goodput_bps"] == pytest.approx(2 * 960 * 8)
    assert (group["late"]["retransmitted_ratio"], group["late"]["timeouts"]) == (pytest.approx(1 / 3), 1)
    assert result["cost"]["bottleneck_packets"] == 2
    assert result["cost"]["events"] is None
    # A plan that is read already is run as it is.
    assert run(Plan.from_dict(lone_plan()))["links"] == result["links"]
    timed = run(lone_plan(), timing=True)
    assert (timed["links"], timed["flows"], timed["series"]) == ({}, {}, {})
    assert timed["cost"]["bottleneck_packets"] is None
    unrecorded = lone_plan()
    unrecorded["links"][0]["record"] = False
    assert run(unrecorded)["aqm"] is None


@pytest.mark.parametrize("variant", ["reno", "newreno", "sack"])
def test_newreno_alone_is_told_how_it_leaves_recovery(variant: str) -> None:
    for by_flight, said in ((True, "exit_recovery_fix_ 1 "), (False, "exit_recovery_fix_ 0 ")):
        told = _sets(Transport(variant=variant, exit_by_flight=by_flight))
        assert (said in told, "exit_recovery_fix_" in told) == (variant == "newreno", variant == "newreno")


def test_a_delayed_acknowledgement_is_the_sinks_affair() -> None:
    sender, receiver = _sets(Transport(delayed_ack_s=0.25, ack_bytes=52)).split(" -- ")
    assert receiver == "packetSize_ 52 interval_ 0.25"
    assert "interval_" not in sender
    assert _sets(Transport(delayed_ack_s=None, ack_bytes=52)).endswith(" -- packetSize_ 52")
