"""Typed scenarios become TOML that says the same."""

import dataclasses
import tomllib

import pytest

import aqumen

UPLINK = aqumen.Dumbbell(
    name="uplink",
    title='A "quoted" title',
    rate_bps=8e6,
    delay_s=0.02,
    buffer_pkts=300,
    target_pkts=100,
    access_rate_bps=1.5e9,
    access_delay_s=(0.035, 0.0455),
    flows=[
        aqumen.Flows(name="ftp", count=12, start_s=(0, 1), transport=aqumen.Transport(ecn=True, packet_bytes=1000)),
        aqumen.Flows(name="short", start_s=1e-9, stop_s=80, transfer_bytes=10**6),
    ],
    events=[aqumen.Event(at_s=40, name="half", capacity_bps=4e6), aqumen.Event(at_s=60, stop="ftp", count=3)],
    windows_s={"early": (5, 7.5)},
)


def test_every_field_is_written_with_its_unit():
    toml = tomllib.loads(UPLINK.to_toml())
    assert (toml["name"], toml["title"], toml["duration"]) == ("uplink", 'A "quoted" title', "100s")
    assert toml["topology"] == {
        "preset": "dumbbell",
        "bottleneck": {"rate": "8Mbit", "delay": "20ms", "buffer": "300pkt"},
        "access": {"rate": "1500Mbit", "delay": ["35ms", "45500us"]},
    }
    ftp, short = toml["flows"]
    assert ftp["transport"] == {"preset": "linux", "ecn": True, "packet": "1000B"}
    assert (ftp["count"], ftp["start"]) == (12, ["0s", "1s"])
    assert (short["start"], short["stop"], short["transfer"]) == ("1ns", "80s", "1000000B")
    half, stop = toml["events"]
    assert half == {"at": "40s", "name": "half", "capacity": "4Mbit"}
    assert stop == {"at": "60s", "stop": "ftp", "count": 3}
    assert toml["windows"] == {"early": ["5s", "7500ms"]}
    assert toml["nominal"] == {"target": "100pkt"}


def test_scenarios_are_frozen_and_take_keywords_only():
    with pytest.raises(dataclasses.FrozenInstanceError):
        UPLINK.rate_bps = 1
    with pytest.raises(TypeError):
        aqumen.Flows("ftp")


def written(**more):
    """The plainest scenario, with these fields set, as TOML says it."""
    plain = {"name": "plain", "rate_bps": 8e6, "delay_s": 0.02, "buffer_pkts": 300, "flows": [aqumen.Flows(name="ftp")]}
    return tomllib.loads(aqumen.Dumbbell(**{**plain, **more}).to_toml())


def test_what_is_not_said_is_what_the_documentation_says():
    toml = written()
    assert toml == {
        "name": "plain",
        "duration": "100s",
        "aqm": "droptail",
        "topology": {
            "preset": "dumbbell",
            "bottleneck": {"rate": "8Mbit", "delay": "20ms", "buffer": "300pkt"},
            "access": {"rate": "1Gbit", "delay": "10ms"},
        },
        "flows": [{"name": "ftp", "count": 1, "transport": {"preset": "linux"}, "start": "0s", "extra_rtt": "0s"}],
        "record": {"interval": "100ms"},
        "nominal": {},
    }


def test_what_is_said_is_written_where_the_format_has_it():
    transport = aqumen.Transport(preset="ns2", variant="sack", ecn=False, receive_window_pkts=64)
    flows = [aqumen.Flows(name="two words", transport=transport, extra_rtt_s=(0.001, 0.25))]
    events = [aqumen.Event(at_s=2, name="on", resume="two words", count=2)]
    nominal = {"nominal_flows": 60, "base_rtt_s": 0.2, "target_pkts": 12.5}
    toml = written(
        flows=flows, events=events, windows_s={"a-b_c": (0, 1), "d.e": (1, 2)}, sample_interval_s=0.01, **nominal
    )
    (group,) = toml["flows"]
    assert group["transport"] == {"preset": "ns2", "variant": "sack", "ecn": False, "receive_window": "64pkt"}
    assert (group["name"], group["extra_rtt"]) == ("two words", ["1ms", "250ms"])
    assert toml["events"] == [{"at": "2s", "name": "on", "resume": "two words", "count": 2}]
    assert toml["nominal"] == {"flows": 60, "base_rtt": "200ms", "target": "12.5pkt"}
    assert toml["record"] == {"interval": "10ms"}
    assert toml["windows"] == {"a-b_c": ["0s", "1s"], "d.e": ["1s", "2s"]}


@pytest.mark.parametrize(
    ("bps", "rate"),
    [(10e9, "10Gbit"), (622e6, "622Mbit"), (64_500, "64500bit"), (56e3, "56kbit"), (1e9 + 1, "1000000001bit")],
)
def test_a_rate_has_the_largest_unit_that_leaves_it_whole(bps, rate):
    assert written(rate_bps=bps)["topology"]["bottleneck"]["rate"] == rate
