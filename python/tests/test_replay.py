"""`aqumen replay`: captures made byte by byte, with outcomes worked out by hand, and a real one from the loopback."""

import json
import os
import re
import resource
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

import pytest

from aqumen import Cancelled, ScenarioError
from aqumen.cli import main
from aqumen.cli.replay import tables_of
from aqumen.replay import Capture

ROOT = Path(__file__).parents[2]
HOME = ROOT / "examples" / "captures" / "home.pcap"
EPOCH_NS = 1_700_000_000_000_000_000
NOT_ECT, ECT1, ECT0, CE = range(4)


def ones_sum(words: bytes) -> int:
    total = sum(struct.unpack(f"!{len(words) // 2}H", words))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def ipv4(host: int, ecn: int, dscp: int = 0, protocol: int = 17, port: int = 5001) -> bytes:
    """A packet from 10.0.0.`host` to port 53 of 10.0.0.99, with the right checksum."""
    head = struct.pack("!BBHHHBBH", 0x45, dscp << 2 | ecn, 28, 0, 0, 64, protocol, 0)
    head += bytes((10, 0, 0, host, 10, 0, 0, 99))
    return head[:10] + struct.pack("!H", 0xFFFF - ones_sum(head)) + head[12:] + struct.pack("!HHHH", port, 53, 8, 0)


def ipv6(ecn: int) -> bytes:
    head = struct.pack("!IHBB", 6 << 28 | ecn << 20, 8, 17, 64)
    return head + bytes(15) + b"\x01" + bytes(15) + b"\x02" + struct.pack("!HHHH", 5001, 53, 8, 0)


def pcap(packets: list[tuple[int, int, bytes]], link: int = 101) -> bytes:
    """Packets of (time in ns, size, data) as a pcap with nanoseconds; raw IP unless told."""
    records = []
    for at_ns, size, data in packets:
        seconds, rest = divmod(EPOCH_NS + at_ns, 10**9)
        records.append(struct.pack("<IIII", seconds, rest, len(data), size) + data)
    return struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 96, link) + b"".join(records)


def read_pcapng(file: Path) -> list[tuple[int, int, bytes]]:
    """Packets of (time in ns since 1970, original length, data) of a little-endian pcapng."""
    data, at, packets = file.read_bytes(), 0, []
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        assert struct.unpack_from("<I", data, at + length - 4) == (length,)
        if kind == 6:
            _, high, low, captured, original = struct.unpack_from("<IIIII", data, at + 8)
            packets.append((high << 32 | low, original, data[at + 28 : at + 28 + captured]))
        at += length
    return packets


@pytest.fixture
def cli(capsys):
    def run(*args):
        code = main(["replay", *map(str, args)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def answer(cli, tmp_path):
    """Replay packets of (time in ns, size, data): the answer's data for one AQM."""

    def run(packets, *args):
        file = tmp_path / "made.pcap"
        file.write_bytes(pcap(packets))
        code, out, err = cli(file, *args, "--json")
        assert code == 0, err
        data = json.loads(out)
        return data | data["aqms"][0]

    return run


def test_each_packet_of_a_burst_waits_for_those_ahead_of_it(answer, tmp_path):
    # 8 Mbit/s: 1000 bytes take 1 ms. A burst of four waits 0, 1, 2, 3 ms; at 10 ms the link is idle.
    out = tmp_path / "out"
    burst = [(0, 1000, ipv4(1, NOT_ECT))] * 4 + [(10_000_000, 1000, ipv4(1, NOT_ECT))]
    data = answer(burst, "--rate", "8Mbit", "--aqm", "droptail", "--delay", "20ms", "--out", out)
    assert data["total"]["sojourn_mean_s"] == pytest.approx(0.0012)
    assert data["link"] == {
        "elapsed_s": 0.011,
        "utilization": pytest.approx(5 / 11),
        "queue_mean_pkts": pytest.approx(6 / 11),
        "queue_std_pkts": pytest.approx((14 / 11 - 36 / 121) ** 0.5),
        "queue_max_pkts": 3,
        "left_pkts": 0,
    }
    # They leave at the ends of their transmissions, and the link takes 20 ms.
    ends_ms = [1, 2, 3, 4, 11]
    written = read_pcapng(next(out.iterdir()))
    assert [at_ns - EPOCH_NS for at_ns, _, _ in written] == [(ms + 20) * 1_000_000 for ms in ends_ms]
    assert {(original, data) for _, original, data in written} == {(1000, ipv4(1, NOT_ECT))}


def test_a_full_buffer_overflows_and_drops_are_left_out_of_what_is_written(answer, tmp_path):
    # One on the link, two waiting; the fourth and fifth find no room. At 1 ms a transmission has ended: there is room.
    out = tmp_path / "out"
    offered = [(0, 1000, ipv4(host, NOT_ECT)) for host in range(1, 6)] + [(1_000_000, 1000, ipv4(6, NOT_ECT))]
    data = answer(offered, "--rate", "8Mbit", "--aqm", "droptail", "--buffer", "2pkt", "--out", out)
    total = data["total"]
    assert (total["arrivals_pkts"], total["departures_pkts"], total["overflow_dropped_pkts"]) == (6, 4, 2)
    lost = {flow["flow"] for flow in data["flows"] if flow["overflow_dropped_pkts"]}
    assert lost == {"udp 10.0.0.4:5001 > 10.0.0.99:53", "udp 10.0.0.5:5001 > 10.0.0.99:53"}
    assert [data[15] for _, _, data in read_pcapng(next(out.iterdir()))] == [1, 2, 3, 6]


def test_marks_are_in_the_header_with_a_right_checksum(answer, tmp_path):
    # RED's curve from 1 to 2 packets on a queue that stands at 40: every ECT packet behind the first few is marked.
    out = tmp_path / "out"
    make = {0: lambda i: ipv4(i % 7, ECT0, dscp=46), 1: lambda i: ipv6(ECT1), 2: lambda i: ipv4(9, NOT_ECT)}
    offered = [(i * 900_000, 1000, make[i % 3](i)) for i in range(3000)]
    data = answer(offered, "--rate", "8Mbit", "--aqm", "codel:ecn=true", "--buffer", "5000pkt", "--out", out)
    total = data["total"]
    written = read_pcapng(next(out.iterdir()))
    assert len(written) == total["departures_pkts"]
    marked4 = [each for _, _, each in written if each[0] >> 4 == 4 and each[1] & 3 == CE]
    marked6 = [each for _, _, each in written if each[0] >> 4 == 6 and each[1] >> 4 & 3 == CE]
    assert len(marked4) + len(marked6) == total["marked_pkts"]
    assert marked4
    assert marked6
    assert {each[1] for each in marked4} == {46 << 2 | CE}
    assert {ones_sum(each[:20]) for _, _, each in written if each[0] >> 4 == 4} == {0xFFFF}
    # Nothing else of them changed.
    assert {bytes((each[0], each[1] & 0xCF)) + each[2:] for each in marked6} == {ipv6(NOT_ECT)}
    classes = {row["name"]: row for row in data["traffic_classes"]}
    assert set(classes) == {"EF ECT(0)", "CS0 ECT(1)", "CS0 Not-ECT"}
    assert classes["CS0 Not-ECT"]["marked_pkts"] == 0 < classes["CS0 Not-ECT"]["early_dropped_pkts"]
    assert classes["EF ECT(0)"]["early_dropped_pkts"] == 0 < classes["EF ECT(0)"]["marked_pkts"]


def test_every_aqm_keeps_every_packet_in_the_books(cli):
    names = ("droptail", "red", "codel", "pie", "fq-codel", "dualpi2", "cake")
    code, out, _ = cli(HOME, "--load", "1.2", "--json", *(word for name in names for word in ("--aqm", name)))
    assert code == 0
    data = json.loads(out)
    assert data["schema"] == 1
    assert [each["spec"] for each in data["aqms"]] == list(names)
    arrivals = data["capture"]["packets"]
    offered = data["capture"]["offered_bps"]
    assert offered / data["setup"]["rate_bps"] == pytest.approx(1.2, rel=1e-6)
    for each in data["aqms"]:
        for rows in ([each["total"]], each["services"], each["traffic_classes"], [*each["flows"], each["other_flows"]]):
            assert sum(row["arrivals_pkts"] for row in rows) == arrivals
            fates = ("departures_pkts", "early_dropped_pkts", "overflow_dropped_pkts")
            assert sum(row[fate] for row in rows for fate in fates) == arrivals
        link = each["link"]
        assert link["left_pkts"] == 0
        busy_s = link["utilization"] * link["elapsed_s"]
        assert busy_s * data["setup"]["rate_bps"] == pytest.approx(8 * each["total"]["departed_bytes"], rel=1e-6)
    # Open loop: the mean wait behind a FIFO of the same packets is shorter with an AQM that drops.
    waits = {each["spec"]: each["total"]["sojourn_mean_s"] for each in data["aqms"]}
    assert waits["codel"] < waits["droptail"]
    services = {row["name"] for row in data["aqms"][0]["services"]}
    assert {"udp/16384", "udp/443", "tcp/443", "tcp/80", "udp/53", "icmp"} == services


def test_tables_for_people(cli):
    code, out, err = cli(HOME, "--rate", "1.5Mbit", "--buffer", "50pkt", "--aqm", "droptail", "--aqm", "fq-codel")
    assert (code, err) == (0, "")
    assert "open loop: senders do not react" in out
    voice = [line.split() for line in out.splitlines() if line.startswith("udp/16384")]
    assert [line[1] for line in voice] == ["droptail", "fq-codel"]
    # Voice in a queue of its own waits less, at the median and at the 99th percentile.
    assert float(voice[1][3]) < float(voice[0][3])
    assert float(voice[1][5]) < float(voice[0][5])
    assert re.search(r"^EF Not-ECT +droptail", out, re.MULTILINE)


def test_the_example_is_what_its_script_makes(tmp_path):
    made = tmp_path / "home.pcap"
    subprocess.run([sys.executable, HOME.parent / "make.py", made], check=True, capture_output=True)
    assert made.read_bytes() == HOME.read_bytes()
    assert HOME.stat().st_size < 100_000


def test_several_aqms_write_a_file_each(cli, tmp_path):
    out = tmp_path / "left"
    code, _, err = cli(HOME, "--rate", "2Mbit", "--aqm", "droptail", "--aqm", "codel:target=9ms", "--out", out)
    assert code == 0
    names = ["codel-target=9ms.pcapng", "droptail.pcapng"]
    assert sorted(path.name for path in out.iterdir()) == names
    assert err.count("wrote") == 2


def test_the_page_names_every_key_of_the_answer(cli):
    page = (ROOT / "docs" / "replay.md").read_text()
    _, out, _ = cli(HOME, "--rate", "2Mbit", "--aqm", "codel", "--json")
    missing = set()

    def look(value):
        if isinstance(value, dict):
            for key, below in value.items():
                if f"`{key}`" not in page:
                    missing.add(key)
                if key != "params":
                    look(below)
        elif isinstance(value, list):
            for below in value:
                look(below)

    look(json.loads(out))
    assert missing == set()


def test_the_python_interface():
    offered = Capture(HOME, rate="2Mbit", buffer="40pkt", speedup=2, target="10ms")
    setup = offered.setup
    assert (setup["rate_bps"], setup["buffer_pkts"], setup["speedup"]) == (2_000_000, 40, 2.0)
    # 10 ms at 2 Mbit/s are 2500 bytes.
    assert setup["target_pkts"] == pytest.approx(2500 / setup["nominal_packet_bytes"])
    replayed = offered.run("pie:target=10ms")
    assert replayed.data["capture"]["duration_s"] == pytest.approx(5, abs=0.05)
    assert replayed.data["aqm"]["params"]["target"] == 0.01
    assert repr(replayed).startswith("Replay('pie:target=10ms', ")
    # The same seed gives the same answer.
    again = offered.run("pie:target=10ms").data
    assert {**again, "cpu_s": 0} == {**replayed.data, "cpu_s": 0}
    with pytest.raises(ScenarioError, match='no AQM "pye"; did you mean pie'):
        offered.check("pye")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("absent.pcap", "--rate", "1Mbit", "--aqm", "codel"), "absent.pcap: no such file"),
        ((".", "--rate", "1Mbit", "--aqm", "codel"), ".: is a folder, not a file"),
        ((HOME, "--rate", "1Mbit"), "no AQM given: add --aqm"),
        ((HOME, "--aqm", "codel"), "--rate: give the rate of the link, such as --rate 10Mbit, or the load"),
        ((HOME, "--aqm", "codel", "--rate", "1Mbit", "--load", "1"), "and not both"),
        ((HOME, "--aqm", "codel", "--rate", "fast"), '--rate = "fast": must be a rate'),
        ((HOME, "--aqm", "codel", "--rate", "1Mbit", "--buffer", "0pkt"), '--buffer = "0pkt": must be a whole number'),
        ((HOME, "--aqm", "codel", "--rate", "1Mbit", "--speedup", "0"), "--speedup = 0: must be 0.000001 to 1000000"),
        ((HOME, "--aqm", "codel", "--rate", "1Mbit", "--interface", "3"), "no packets of interface 3 to replay"),
        ((HOME, "--aqm", "codle", "--rate", "1Mbit"), 'aqm = "codle": no AQM "codle"; did you mean codel?'),
        ((HOME, "--aqm", "codel:target=0ms", "--rate", "1Mbit"), "target"),
        ((HOME, "--aqm", "codel", "--rate", "1Mbit", "--out", "out.pcapng"), "must be a folder"),
        ((HOME, "--aqm", "codel", "--rate", "1Mbit", "--out", HOME), "must be a folder"),
    ],
)
def test_bad_arguments_are_one_line_and_exit_code_2(cli, monkeypatch, tmp_path, args, message):
    monkeypatch.chdir(tmp_path)
    code, out, err = cli(*args)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert message in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: b"", "bad.pcap: the file is empty"),
        (lambda data: b"\x1f\x8b" + data, "bad.pcap: cannot be unpacked"),
        (lambda data: b"text" + data, "bad.pcap: not a pcap or pcapng"),
        # The captured length of the second packet, 24 + 16 + 28 + 8 bytes from the start.
        (lambda data: data[:76] + b"\xff" * 4 + data[80:], "bad.pcap: at byte 68: a packet of 4294967295 bytes"),
    ],
)
def test_a_bad_capture_is_one_line_and_leaves_nothing_behind(cli, tmp_path, damage, message):
    file = tmp_path / "bad.pcap"
    file.write_bytes(damage(pcap([(i, 100, ipv4(1, NOT_ECT)) for i in range(3)])))
    code, out, err = cli(file, "--rate", "1Mbit", "--aqm", "droptail", "--out", tmp_path / "out")
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert message in err
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(
    ("head", "message"),
    [
        # 200 MB of zeros: no capture, and one that begins as a capture does.
        (b"", "bomb.pcap.gz: not a pcap or pcapng"),
        (pcap([]), "bomb.pcap.gz: cannot be unpacked: more than 500 times its size"),
    ],
)
def test_a_file_that_unpacks_to_far_more_than_it_is_takes_no_room(cli, monkeypatch, tmp_path, head, message):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", None)
    temporary.chmod(0o500)
    packer = zlib.compressobj(9, wbits=31)
    zeros = bytes(10**6)
    file = tmp_path / "bomb.pcap.gz"
    file.write_bytes(b"".join([packer.compress(head), *(packer.compress(zeros) for _ in range(200)), packer.flush()]))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    code, out, err = cli(file, "--rate", "1Mbit", "--aqm", "droptail")
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert f"{tmp_path}/{message}" in err
    assert list(temporary.iterdir()) == []
    # Kilobytes: it is read block by block.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000


def test_what_is_odd_about_a_capture_is_said(cli, tmp_path):
    file = tmp_path / "odd.pcap"
    hour_ns = 3600 * 10**9
    stamps = [0, 5, 3, 2 * hour_ns]
    data = pcap([(at_ns, 65_000, ipv4(1, NOT_ECT)) for at_ns in stamps], link=147)
    file.write_bytes(data[:-1])
    code, out, _ = cli(file, "--rate", "1Mbit", "--aqm", "droptail")
    assert code == 0
    notes = [line for line in out.splitlines() if line.startswith("Note: ")]
    assert len(notes) == 4
    assert "1 packets have an earlier timestamp than the one before" in notes[0]
    assert "3 packets have an unknown link type" in notes[1]
    assert "3 packets are larger than any frame" in notes[2]
    assert "the file ends within a packet" in notes[3]
    file.write_bytes(data)
    assert "1 pauses of more than an hour were shortened to one" in cli(file, "--rate", "1Mbit", "--aqm", "droptail")[1]


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
def test_ctrl_c_keeps_what_is_finished(tmp_path):
    # PIE works through pauses of an hour, 240 000 updates each: minutes. DropTail has no timers.
    file = tmp_path / "pauses.pcap"
    file.write_bytes(pcap([(i * 3600 * 10**9, 100, ipv4(1, NOT_ECT)) for i in range(20_000)]))
    foreground = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    command = [sys.executable, "-c", f"{foreground}; import sys; from aqumen.cli import main; sys.exit(main())"]
    options = ["--rate", "1Mbit", "--aqm", "droptail", "--aqm", "pie", "--out", tmp_path / "out", "--json"]
    process = subprocess.Popen(
        [*command, "replay", file, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path
    )
    try:
        said = process.stderr.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    assert said.endswith(b"droptail.pcapng\n"), said
    assert (process.returncode, b"Traceback" in err) == (130, False), err
    assert b"stopped: 1 of 2 AQMs are finished" in err
    assert [each["spec"] for each in json.loads(out)["aqms"]] == ["droptail"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "pauses.pcap"]


def may_capture() -> str | None:
    """Why this process cannot capture on the loopback; None if it can."""
    if os.name != "posix" or os.geteuid() != 0:
        return "capturing on the loopback needs root"
    probe = subprocess.run(["tshark", "-i", "lo", "-a", "duration:1", "-c", "1"], capture_output=True, text=True)
    return None if probe.returncode == 0 else f"tshark cannot capture: {probe.stderr.strip().splitlines()[-1:]}"


@pytest.mark.slow
@pytest.mark.needs("tshark")
def test_a_real_capture_of_the_loopback(cli, tmp_path):
    reason = may_capture()
    if reason is not None:
        pytest.skip(reason)
    file, port = tmp_path / "lo.pcapng", 47_123
    tshark = subprocess.Popen(
        ["tshark", "-i", "lo", "-f", f"udp port {port}", "-a", "packets:400", "-a", "duration:30", "-w", file],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        for line in tshark.stderr:
            if "Capturing on" in line:
                break
        time.sleep(1)
        with (
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sink,
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as source,
        ):
            sink.bind(("127.0.0.1", port))
            source.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 46 << 2 | ECT0)
            for _ in range(400):
                source.sendto(bytes(972), ("127.0.0.1", port))
                time.sleep(0.001)
        tshark.communicate(timeout=60)
    finally:
        tshark.kill()
        tshark.communicate()
    out = tmp_path / "out"
    code, printed, err = cli(
        file, "--load", "1.5", "--buffer", "2000pkt", "--aqm", "codel:ecn=true,interval=20ms", "--out", out, "--json"
    )
    assert code == 0, err
    data = json.loads(printed)
    assert data["capture"]["packets"] == 400
    # 972 bytes of payload, 8 of UDP, 20 of IP, 14 of Ethernet.
    assert data["capture"]["bytes"] == 400 * 1014
    total = data["aqms"][0]["total"]
    assert [row["name"] for row in data["aqms"][0]["services"]] == ["udp/ephemeral"]
    assert [row["name"] for row in data["aqms"][0]["traffic_classes"]] == ["EF ECT(0)"]
    fields = ["-e", "ip.dsfield.ecn", "-e", "ip.checksum.status"]
    command = ["tshark", "-r", next(out.iterdir()), "-o", "ip.check_checksum:TRUE", "-T", "fields", *fields]
    rows = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")[:-1]
    assert len(rows) == total["departures_pkts"]
    assert sum(row == "3\t1" for row in rows) == total["marked_pkts"] > 0
    assert {row.split("\t")[1] for row in rows} == {"1"}


def counts(**more):
    times = {
        f"sojourn_{key}_s": seconds for key, seconds in (("mean", 0.0012), ("p50", 0.001), ("p95", 0.0456), ("max", 1))
    }
    fates = {"marked_pkts": 3, "early_dropped_pkts": 4, "overflow_dropped_pkts": 5, "departures_pkts": 91}
    return {**times, "sojourn_p99_s": None, **fates, "arrivals_pkts": 100, "arrived_bytes": 64000, **more}


def replayed(spec, **more):
    """Invented result of one AQM."""
    link = {"utilization": 0.98765, "queue_mean_pkts": 12.34, "queue_std_pkts": 5.67}
    flows = [counts(flow="a > b"), counts(flow="c > d", marked_pkts=9)]
    own = {"spec": spec, "link": link, "total": counts(), "flows": flows}
    return {**own, "services": [counts(name="udp 53")], "traffic_classes": [counts(name="EF, ECT(0)")], **more}


CAPTURED = {
    **{"file": "x.pcap", "packets": 100, "flows": 2, "duration_s": 1.23456789, "offered_bps": 9.876e6},
    **{"reordered_pkts": 0, "pauses_shortened": 2, "timeless_pkts": 0, "unknown_link_pkts": 0, "super_pkts": 0},
    "cut_off": True,
}
SETUP = {"rate_bps": 10e6, "buffer_pkts": 1000, "buffer_bytes": None}


def cells(table):
    return list(zip(*(list(column.cells) for column in table.columns), strict=True))


def test_aqms_stand_side_by_side_then_classes_and_flows():
    answer = {"capture": CAPTURED, "setup": SETUP, "aqms": [replayed("pie"), replayed("codel")]}
    about, link, overall, services, classes, flows, *notes = tables_of(answer)
    for column in (column for table in (overall, services, classes, flows) for column in table.columns):
        # Figures stand flush right, so that their digits are below each other, names flush left.
        figures = all(re.fullmatch(r"–|[0-9.]+", cell) for cell in column.cells)
        assert column.justify == ("right" if figures else "left"), column.header
    # 9.876 of 10 Mbit/s.
    assert about == "x.pcap: 100 packets of 2 flows in 1.23457 s, 9.876 Mbit/s offered (load 0.988)"
    assert link == "link: 10 Mbit/s, buffer: 1000 packets; open loop: senders do not react"
    heads = [column.header for column in overall.columns]
    assert heads == [
        *("AQM", "utilisation %", "sojourn ms", "p50", "p95", "p99", "marked", "early drops", "overflows"),
        *("queue pkt", "std", "departed"),
    ]
    pie, codel = cells(overall)
    assert pie == ("pie", "98.77", "1.200", "1.000", "45.600", "–", "3", "4", "5", "12.3", "5.7", "91")
    assert codel == ("codel", *pie[1:])
    for table, name in ((services, "udp 53"), (classes, "EF, ECT(0)")):
        first, second = cells(table)
        assert first == (name, "pie", "1.200", "1.000", "45.600", "–", "3", "4", "5", "100", "64000")
        # A class is named once.
        assert second[:2] in ((name, "codel"), ("", "codel"))
    assert [row[1:] for row in cells(flows)] == [
        (aqm, "1.200", "1000.000", marked, "4", "5", "100", "64000")
        for marked in ("3", "9")
        for aqm in ("pie", "codel")
    ]
    assert notes == [
        "\nNote: 2 pauses of more than an hour were shortened to one",
        "\nNote: the file ends within a packet; the packets before it were used",
    ]


def test_a_room_in_bytes_and_a_capture_of_a_moment():
    captured = {**CAPTURED, "offered_bps": None, "cut_off": False, "pauses_shortened": 0}
    answer = {"capture": captured, "setup": {**SETUP, "buffer_bytes": 64000}, "aqms": [replayed("pie")]}
    about, link, *rest = tables_of(answer)
    assert about.endswith("100 packets of 2 flows in 1.23457 s")
    assert "buffer: 64000 bytes;" in link
    assert len(rest) == 4
    for key, words in (
        ("reordered_pkts", "7 packets have an earlier timestamp than the one before"),
        ("timeless_pkts", "7 packets have no timestamp"),
        ("unknown_link_pkts", "7 packets have an unknown link type"),
        ("super_pkts", "7 packets are larger than any frame"),
    ):
        note = tables_of({**answer, "capture": {**captured, key: 7}})[-1]
        assert note.startswith(f"\nNote: {words}")


def test_who_hears_how_far_it_is_can_stop_it(tmp_path):
    file = tmp_path / "long.pcap"
    file.write_bytes(pcap([(i * 10**6, 100, ipv4(1, NOT_ECT)) for i in range(10_000)]))
    heard = []
    assert Capture(file, load=0.5, on_progress=lambda share: heard.append(share) or True).setup["rate_bps"] > 0
    assert heard == sorted(heard)
    assert 0 < heard[0] < 1
    with pytest.raises(Cancelled):
        Capture(file, load=0.5, on_progress=lambda _: False)
    with pytest.raises(Cancelled):
        Capture(file, rate="1Mbit").run("droptail", on_progress=lambda _: False)
