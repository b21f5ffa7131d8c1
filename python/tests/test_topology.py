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
