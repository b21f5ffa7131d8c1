"""The kernel's own codel, pie, fq_codel, cake and red beside ours: the same arrivals, in a virtual machine.

The machine (`validation/kernel/init.c`) has the kernel of Debian's cloud image, and a clock that counts instructions,
so that a busy host changes nothing. What it says arrived is offered to our AQMs by `aqumen replay`; nobody answers to
marks or drops, so that all differences are those of the AQMs.
"""

import gzip
import json
import math
import os
import random
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

VALIDATION = Path(__file__).parents[2] / "validation" / "kernel"
MODULES = ("tun", "sch_htb", "sch_codel", "sch_pie", "sch_fq_codel", "sch_cake", "sch_red")
KERNELS = [Path(os.environ.get("AQUMEN_KERNEL", "/")), Path("/")]
"""Where a cloud kernel of Debian may be unpacked (linux-image-cloud-amd64)."""

RATE_BPS = 4_000_000
SECONDS = 24
SIZE_BYTES = 1000


def cloud_kernel():
    """A kernel's image and the folder of its modules; `None`: there is none."""
    for root in KERNELS:
        for image in sorted((root / "boot").glob("vmlinuz-*-cloud-*"), reverse=True):
            modules = root / "lib" / "modules" / image.name.removeprefix("vmlinuz-")
            if modules.is_dir():
                return image, modules
    return None


needed = pytest.mark.skipif(
    sys.platform != "linux" or None in (shutil.which("qemu-system-x86_64"), shutil.which("gcc"), cloud_kernel()),
    reason="needs Debian's qemu-system-x86, linux-image-cloud-amd64 and gcc",
)


def trace(seed=1):
    """Arrivals as (ns, flow, bytes, ECN-capable): Poisson, 1.3 of the rate, then half of it, then a little above it."""
    rng = random.Random(seed)
    arrivals, t = [], 0.0
    while t < SECONDS:
        load = 1.3 if t < 10 else 0.5 if t < 14 else 1.1
        t += rng.expovariate(load * RATE_BPS / (8 * SIZE_BYTES))
        flow = rng.randrange(4)
        # Two flows can carry marks, two cannot.
        arrivals.append((int(t * 1e9), flow, SIZE_BYTES, int(flow < 2)))
    return arrivals


def cpio(entries):
    """An archive in the kernel's own format: (path, mode, bytes)."""
    out = bytearray()
    for number, (path, mode, content) in enumerate([*entries, ("TRAILER!!!", 0, b"")], 1):
        name = path.encode() + b"\0"
        fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name), 0)
        out += b"070701" + "".join(f"{field:08x}" for field in fields).encode() + name
        out += bytes(-len(out) % 4) + content
        out += bytes(-len(out) % 4)
    return bytes(out)


def machine(folder, qdiscs):
    """Boot it with these disciplines; what it printed."""
    image, modules = cloud_kernel()
    program = folder / "init"
    subprocess.run(["gcc", "-static", "-O2", "-Wall", "-Werror", "-o", program, VALIDATION / "init.c"], check=True)
    names = {path.name.split(".")[0].replace("-", "_"): path for path in modules.rglob("*.ko*")}
    wanted = [names[name] for name in MODULES if name in names]
    tc = shutil.which("tc") or "/sbin/tc"
    linked = subprocess.run(["ldd", tc], check=True, capture_output=True, text=True).stdout
    libraries = re.findall(r"(/\S+) \(0x", linked)
    lines = [f"{RATE_BPS}bit", *(" ".join(map(str, arrival)) for arrival in trace())]
    files = [
        ("init", program.read_bytes()),
        ("sbin/tc", Path(tc).read_bytes()),
        *((library.lstrip("/"), Path(library).read_bytes()) for library in libraries),
        *((f"modules/{path.name}", path.read_bytes()) for path in wanted),
        ("modules.txt", "".join(f"/modules/{path.name}\n" for path in wanted).encode()),
        ("trace.txt", "\n".join(lines).encode()),
        ("qdiscs.txt", "".join(f"{line}\n" for line in qdiscs).encode()),
    ]
    parents = {str(parent) for path, _ in files for parent in Path(path).parents if str(parent) != "."}
    folders = sorted(parents | {"proc", "sys", "dev"}, key=lambda path: path.count("/"))
    entries = [(path, 0o040755, b"") for path in folders] + [(path, 0o100755, content) for path, content in files]
    (folder / "initrd.gz").write_bytes(gzip.compress(cpio(entries), 1))
    command = ["qemu-system-x86_64", "-machine", "pc,accel=tcg", "-m", "256", "-smp", "1", "-nographic", "-no-reboot"]
    command += ["-icount", "shift=2,sleep=off", "-nic", "none", "-kernel", str(image)]
    command += ["-initrd", str(folder / "initrd.gz"), "-append", "console=ttyS0 quiet panic=-1 tsc=unstable"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=280)
    assert "\nEND" in done.stdout.replace("\r", ""), done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout.replace("\r", "")


def told(text):
    """By discipline: the arrivals, ns, and the departures, (ns, CE), by number."""
    found = {}
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["Q"]:
            arrived, left = found.setdefault(words[1], ({}, {}))
        elif words[:1] == ["A"] and len(words) == 3 and found:
            arrived[int(words[1])] = int(words[2])
        elif words[:1] == ["D"] and len(words) == 4 and found:
            left[int(words[1])] = (int(words[2]), words[3] == "1")
    return found


def capture(path, arrived):
    """What arrived, as a capture of bare IP packets with nanoseconds."""
    out = bytearray(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 101))
    for number, (_, flow, size, ect) in enumerate(trace()):
        header = struct.pack(
            ">BBHHHBBH4s4s", 0x45, 2 if ect else 0, size, number & 0xFFFF, 0, 64, 17, 0, b"\n\0\0\1", b"\n\0\0\2"
        )
        packet = header + struct.pack(">HHHH", 5000 + flow, 7000 + flow, size - 20, 0)
        seconds, nanos = divmod(arrived[number], 10**9)
        out += struct.pack("<IIII", seconds, nanos, len(packet), size) + packet
    path.write_bytes(out)


def ours(path, spec, buffer="500pkt"):
    """The queue's figures by `aqumen replay`."""
    command = ["replay", str(path), "--aqm", spec, "--rate", f"{RATE_BPS}bit", "--buffer", buffer, "--json"]
    done = subprocess.run([sys.executable, "-m", "aqumen", *command], check=True, capture_output=True, text=True)
    total = json.loads(done.stdout)["aqms"][0]["total"]
    dropped = total["early_dropped_pkts"] + total["overflow_dropped_pkts"]
    return {"marked": total["marked_pkts"], "dropped": dropped, "delay_mean_s": total["sojourn_mean_s"]}


def theirs(arrived, left):
    """The same figures of the kernel's queue."""
    delays = sorted(at - arrived[number] for number, (at, _) in left.items())
    return {
        "marked": sum(ce for _, ce in left.values()),
        "dropped": len(arrived) - len(left),
        "delay_mean_s": sum(delays) * 1e-9 / len(delays),
    }


QDISCS = {
    "codel limit 500 ecn": ("codel-linux:ecn=true", "500pkt"),
    "pie limit 500 target 15ms ecn": ("pie-linux:ecn=true,interval={pie_update}", "500pkt"),
    "fq_codel limit 500 ecn": ("fq-codel-linux", "500pkt"),
    "cake unlimited besteffort flows": ("cake-linux:rate=0bit,tins=besteffort,isolation=flows", "15000pkt"),
    # tc makes a weight of 1/16 of this burst.
    "red limit 500000 min 15000 max 45000 avpkt 1000 burst 25 probability 0.1 ecn bandwidth 4mbit": (
        "red-linux:min_th=15pkt,max_th=45pkt,max_p=0.1,weight=0.0625,ecn=true",
        "500pkt",
    ),
}
"""What `tc` says of the kernel's, and ours with the buffer."""


def pie_update():
    """What lies between updates of this kernel's PIE: 15 ms in whole jiffies, and its timer fires in the one after."""
    image, _ = cloud_kernel()
    config = (image.parent / image.name.replace("vmlinuz", "config")).read_text()
    hertz = int(re.search(r"^CONFIG_HZ=(\d+)$", config, re.MULTILINE)[1])
    return f"{(math.ceil(0.015 * hertz) + 1) / hertz}s"


@pytest.mark.slow
@needed
def test_the_kernels_disciplines_and_ours_do_the_same_to_the_same_arrivals(tmp_path):
    found = told(machine(tmp_path, list(QDISCS)))
    for line, (spec, buffer) in QDISCS.items():
        arrived, left = found[line.split()[0]]
        assert len(arrived) == len(trace())
        capture(tmp_path / "arrivals.pcap", arrived)
        kernel = theirs(arrived, left)
        own = ours(tmp_path / "arrivals.pcap", spec.format(pie_update=pie_update()), buffer)
        print(line.split()[0], kernel, own)
        # Of some 13 000 packets: 5 % of those that were marked or dropped, or what chance makes of a few.
        for fate in ("marked", "dropped"):
            assert own[fate] == pytest.approx(kernel[fate], rel=0.05, abs=20)
        # The kernel's ends with the packet's turn, and its tokens come in bursts of two packets, 2 ms each.
        assert own["delay_mean_s"] == pytest.approx(kernel["delay_mean_s"], rel=0.05, abs=0.002)


def test_the_archive_is_what_the_kernel_reads(tmp_path):
    if shutil.which("cpio") is None:
        pytest.skip("needs cpio")
    archive = cpio([("a", 0o040755, b""), ("a/b", 0o100644, b"hello")])
    subprocess.run(["cpio", "-id", "--quiet"], input=archive, cwd=tmp_path, check=True)
    assert (tmp_path / "a" / "b").read_text() == "hello"
