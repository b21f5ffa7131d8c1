"""The scripts that set a discipline up, run in a network namespace: twice, with another rate, and undone."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from aqumen.cli import main
from aqumen.shaping import LINES, host, shaper
from aqumen.situations import KERNEL_AQMS

pytestmark = pytest.mark.needs("tc", "ip", "unshare")

NAMESPACE = ["unshare", "--map-root-user", "--net"]
# A peer in the same namespace: the interface is up and carries nothing else.
SETTING = """set -eu
ip link add wan type veth peer name far
ip link set wan up
ip link set far up
shown() { echo "== $1"; tc qdisc show; tc class show dev wan; ip -o link | cut -d, -f1; }
"""


def within(folder, commands):
    """Run shell commands in a namespace with an interface `wan`; what they print, by the name of each part."""
    ran = subprocess.run(
        [*NAMESPACE, "sh", "-c", SETTING + commands], cwd=folder, capture_output=True, text=True, timeout=60
    )
    assert ran.returncode == 0, ran.stderr
    parts = re.split(r"^== (\w+)\n", ran.stdout, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.fixture(scope="module")
def known():
    """Disciplines that the kernel has."""
    names = " ".join(
        sorted({shaper(aqm, LINES["measured"], 1e6, 1e6, "wan").add[3].split()[-1] for aqm in KERNEL_AQMS})
    )
    tries = f"for each in {names}; do tc qdisc add dev wan root $each 2>/dev/null && echo $each; "
    ran = subprocess.run(
        [*NAMESPACE, "sh", "-c", SETTING + tries + "tc qdisc del dev wan root 2>/dev/null || true; done"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode == 0, ran.stderr
    return set(ran.stdout.split())


def written(folder, name, text, known):
    """A script as it is written, with `pfifo` in the place of what the kernel lacks."""

    def plain(match):
        return match[0] if match[2] in known else f"{match[1]} pfifo"

    words = r"((?:parent 1:1|root)) (fq_codel|codel|fq_pie|pie|sfq|dualpi2)\b.*$"
    text = re.sub(words, plain, text, flags=re.MULTILINE)
    if "cake" not in known:
        text = re.sub(
            r"root cake bandwidth (\d+kbit).*$", r"root handle 1: tbf rate \1 burst 5k limit 1m", text, flags=re.M
        )
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)


@pytest.mark.parametrize("aqm", KERNEL_AQMS)
def test_a_script_may_run_twice_with_another_rate_and_is_undone(tmp_path, known, aqm):
    for name, line, up, down in (("slow.sh", "measured", 1.9e6, 18e6), ("fast.sh", "docsis", 19e6, 180e6)):
        written(tmp_path, name, shaper(aqm, LINES[line], up, down, "wan").script("a line"), known)
    shown = within(
        tmp_path,
        """shown before
./slow.sh >first; ./slow.sh start >second; shown slow
./fast.sh >third; shown fast
./slow.sh stop; shown after
./slow.sh stop; shown again
""",
    )
    for name, rate in (("slow", "1900Kbit"), ("fast", "19Mbit")):
        assert re.findall(r"rate (\d+[MK]bit)", shown[name])[0] == rate
        # Both ways, each once.
        assert shown[name].count("ifb4wan:") == 1
        assert len(re.findall(r"^qdisc (?:htb|cake|tbf) \S+ dev (?:wan|ifb4wan) root", shown[name], re.M)) == 2
        assert len(re.findall(r"^qdisc ingress", shown[name], re.M)) == 1
    assert shown["after"] == shown["again"] == shown["before"]
    # Each says at its end what stands, with counters.
    for name in ("first", "second", "third"):
        counters = (tmp_path / name).read_text()
        assert len(re.findall(r"^qdisc \S+ \S+ root", counters, re.M)) == 2
        assert counters.count("Sent ") >= 3


def test_what_comes_in_goes_through_the_shaper(tmp_path, known):
    written(tmp_path, "line.sh", shaper("fq-codel-linux", LINES["measured"], 1e6, 1e6, "wan").script("a line"), known)
    # What `far` sends comes in at `wan`, and leaves `ifb4wan`.
    shown = within(
        tmp_path,
        """./line.sh >started
ip addr add 192.0.2.1/24 dev far
python3 -c 'import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
for _ in range(20): s.sendto(b"x" * 100, ("192.0.2.255", 9))'
echo "== came"; tc -s class show dev ifb4wan
""",
    )
    assert int(re.search(r"Sent \d+ bytes (\d+) pkt", shown["came"])[1]) > 0


def test_a_host_s_script_is_undone_too(tmp_path, known):
    written(tmp_path, "port.sh", host("fq-codel-linux", "lo").script("a port"), known)
    shown = within(
        tmp_path,
        "export DEVICE=wan\nshown before\n./port.sh >told\n./port.sh >told\nshown now\n./port.sh stop\nshown after",
    )
    assert re.search(r"^qdisc (?:fq_codel|pfifo) \S+ dev wan root", shown["now"], re.M)
    assert shown["after"] == shown["before"]


def test_nothing_stays_half_done(tmp_path):
    text = shaper("fq-codel-linux", LINES["measured"], 1e6, 1e6, "wan").script("a line")
    broken = tmp_path / "line.sh"
    broken.write_text(text.replace("parent 1:1 fq_codel", "parent 1:1 nosuch"))
    broken.chmod(0o755)
    shown = within(
        tmp_path,
        "shown before\nif ./line.sh 2>/dev/null; then exit 9; fi\nshown after\n"
        "if DEVICE=nosuch ./line.sh 2>/dev/null; then exit 9; fi\nif ./line.sh begin 2>/dev/null; then exit 9; fi",
    )
    assert shown["after"] == shown["before"]


def test_a_line_break_in_a_title_is_no_command(tmp_path):
    text = shaper("codel-linux", LINES["measured"], 1e6, 1e6, "wan").script("a\nrm -rf /")
    assert text.splitlines()[1] == "# a rm -rf /"


@pytest.mark.parametrize("name", ["eth0; rm -rf /", "", "a" * 16, "eth0\n", "$(id)", "../x", "wan lan"])
@pytest.mark.parametrize(
    "verb",
    [
        ["uplink", "--down", "20Mbit", "--up", "2Mbit"],
        ["office", "--rate", "9Mbit", "--people", "5"],
        ["datacenter"],
        ["backbone"],
        ["cell"],
    ],
)
def test_no_other_words_than_a_name_are_printed_for_root(capsys, verb, name):
    assert main([*verb, "--device", name]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("aqumen: --device ")
    assert told.err.count("\n") == 1


def test_what_is_written_may_be_executed(tmp_path):
    quick = ["--seeds", "1", "--senders", "cubic", "--aqm", "fq-codel-linux:target=6ms", "--duration", "12s"]
    line = ["uplink", "--down", "4Mbit", "--up", "1Mbit", "--device", "ppp0.7@wan"]
    assert main([*line, *quick, "--out", str(tmp_path)]) == 0
    script = Path(tmp_path / "fq-codel-linux-target-6ms.sh")
    assert script.stat().st_mode & 0o777 == 0o755
    assert 'device="${DEVICE:-ppp0.7@wan}"' in script.read_text()
    assert "fq_codel target 6ms" in script.read_text()


# What the scripts print for systemd and OpenWrt.


def printed(folder, aqm, line, argument):
    script = folder / "aqm.sh"
    script.write_text(shaper(aqm, LINES[line], 1e6, 10e6, "wan").script("A line of 100 % use"))
    script.chmod(0o755)
    ran = subprocess.run([script, argument], capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout


def test_the_service_of_a_script_is_one_that_systemd_reads(tmp_path):
    text = printed(tmp_path, "fq-codel-linux", "measured", "systemd")
    unit = tmp_path / "aqumen-shaper.service"
    unit.write_text(text)
    assert f"ExecStart={tmp_path / 'aqm.sh'} start\n" in text
    assert "Environment=DEVICE=wan\n" in text
    if shutil.which("systemd-analyze"):
        ran = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, timeout=60)
        assert "aqumen-shaper" not in ran.stderr, ran.stderr


@pytest.mark.parametrize(
    ("aqm", "line", "expected"),
    [
        (
            "fq-codel-linux:target=23ms,quantum=300B",
            "ethernet",
            {
                **{"download": "10000", "upload": "1000", "qdisc": "fq_codel", "script": "simplest.qos"},
                **{"eqdisc_opts": "target 23ms quantum 300", "egress_ecn": "ECN", "interface": "wan"},
                # 38 bytes of a frame without the 14 that the kernel counts.
                **{"linklayer": "ethernet", "overhead": "24", "tcMPU": "84"},
            },
        ),
        # 64 of 65 bytes carry data.
        ("codel-linux", "vdsl", {"download": "9846", "upload": "985", "egress_ecn": "NOECN", "overhead": "16"}),
        (
            "cake-linux",
            "docsis",
            {"qdisc": "cake", "script": "piece_of_cake.qos", "overhead": "18", "eqdisc_opts": "nat"},
        ),
        ("cake-linux", "vdsl", {"upload": "1000", "linklayer": "none", "eqdisc_opts": "nat pppoe-ptm"}),
        ("pie-linux", "adsl", {"linklayer": "atm", "overhead": "26"}),
        ("sfq-linux", "measured", {"linklayer": "none", "qdisc": "sfq"}),
    ],
)
def test_a_script_prints_the_section_of_openwrt(tmp_path, aqm, line, expected):
    first, *options = printed(tmp_path, aqm, line, "openwrt").splitlines()
    assert first == "config queue 'aqumen'"
    found = dict(re.fullmatch(r"\toption (\w+) '(.*)'", option).groups() for option in options)
    assert found.items() >= expected.items()


def test_a_port_without_a_shaper_has_nothing_for_openwrt():
    assert "config queue" not in host("codel-linux", "eth0").script("A port")
