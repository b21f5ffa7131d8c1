"""The kernel's own codel, pie, fq_codel, cake and red, recorded in a virtual machine: ours do the same to each packet.

The machine (`validation/kernel/init.c`) has the kernel of Debian's cloud image. Its clock stands still between ticks of
4 ms, so that the kernel's discipline and the recording read the same moments, and counts instructions, so that a busy
host changes nothing. Nobody answers to marks or drops. `crates/aqm/tests/all/kernel.rs` repeats the recordings with our
disciplines; those checked in are in `crates/aqm/vectors/kernel`. To write them anew:

    AQUMEN_BLESS=1 pytest python/tests/test_kernel_qdiscs.py
"""

import gzip
import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
VALIDATION = ROOT / "validation" / "kernel"
CHECKED_IN = ROOT / "crates" / "aqm" / "vectors" / "kernel"
MODULES = ("tun", "sch_htb", "sch_codel", "sch_pie", "sch_fq_codel", "sch_cake", "sch_red")
KERNELS = [Path(os.environ.get("AQUMEN_KERNEL", "/")), Path("/")]
"""Where a cloud kernel of Debian may be unpacked (linux-image-cloud-amd64)."""

RATE_BPS = 2_000_000
SIZES_BYTES = (500, 1000)

QDISCS = {
    "codel": "codel limit 60 target 5ms interval 98ms ecn",
    "fq-codel": "fq_codel limit 60 target 5ms interval 98ms ecn",
    "cake": "cake unlimited besteffort flows rtt 98ms",
    "pie": "pie limit 500 target 15ms ecn",
    # tc makes a weight of 1/16 of this burst.
    "red": "red limit 400000 min 11250 max 33750 avpkt 750 burst 25 probability 0.1 ecn bandwidth 2mbit",
}
"""`tc` output for each. No interval is a multiple of the ticks: which of two equal moments is later would be a matter
of rounding."""

LOADS = {"codel": 1.3, "fq-codel": 1.3, "cake": 1.3, "pie": 1.12, "red": 1.1}
"""Offered in the first half. More, and PIE's probability goes above 1: in the kernel, which has 8 bits for that, but
not here."""


def cloud_kernel():
    """A kernel's image and the folder of its modules; `None`: there is none."""
    for root in KERNELS:
        for image in sorted((root / "boot").glob("vmlinuz-*-cloud-*"), reverse=True):
            modules = root / "lib" / "modules" / image.name.removeprefix("vmlinuz-")
            if modules.is_dir():
                return image, modules
    return None


needed = pytest.mark.skipif(
    sys.platform != "linux"
    or None in (shutil.which("qemu-system-x86_64"), shutil.which("gcc"), shutil.which("cargo"), cloud_kernel()),
    reason="needs Debian's qemu-system-x86, linux-image-cloud-amd64, gcc and cargo",
)


def trace(load, seed=1):
    """Arrivals as (ns, flow, bytes, ECN-capable): Poisson, `load` of the rate, then half of it, then a bit above it."""
    rng = random.Random(seed)
    arrivals, t = [], 0.0
    while t < 5:
        now = load if t < 2.5 else 0.5 if t < 3.5 else 1.08
        t += rng.expovariate(now * RATE_BPS / (8 * sum(SIZES_BYTES) / 2))
        flow = rng.randrange(4)
        # Two flows can carry marks, two cannot.
        arrivals.append((int(t * 1e9), flow, rng.randint(*SIZES_BYTES), int(flow < 2)))
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


def machine(folder, qdisc, arrivals):
    """Boot it with this discipline; what it printed."""
    image, modules = cloud_kernel()
    program = folder / "init"
    subprocess.run(["gcc", "-static", "-O2", "-Wall", "-Werror", "-o", program, VALIDATION / "init.c"], check=True)
    names = {path.name.split(".")[0].replace("-", "_"): path for path in modules.rglob("*.ko*")}
    wanted = [names[name] for name in MODULES if name in names]
    tc = shutil.which("tc") or "/sbin/tc"
    linked = subprocess.run(["ldd", tc], check=True, capture_output=True, text=True).stdout
    libraries = re.findall(r"(/\S+) \(0x", linked)
    lines = [f"{RATE_BPS}bit", *(" ".join(map(str, arrival)) for arrival in arrivals)]
    files = [
        ("init", program.read_bytes()),
        ("sbin/tc", Path(tc).read_bytes()),
        *((library.lstrip("/"), Path(library).read_bytes()) for library in libraries),
        *((f"modules/{path.name}", path.read_bytes()) for path in wanted),
        ("modules.txt", "".join(f"/modules/{path.name}\n" for path in wanted).encode()),
        ("trace.txt", "\n".join(lines).encode()),
        ("qdiscs.txt", f"{qdisc}\n".encode()),
    ]
    parents = {str(parent) for path, _ in files for parent in Path(path).parents if str(parent) != "."}
    folders = sorted(parents | {"proc", "sys", "dev"}, key=lambda path: path.count("/"))
    entries = [(path, 0o040755, b"") for path in folders] + [(path, 0o100755, content) for path, content in files]
    # Without IPv6: its own packets would be among those that wait, and nobody would know of them.
    words = "console=ttyS0 quiet panic=-1 clocksource=jiffies nohz=off highres=off ipv6.disable=1"
    (folder / "initrd.gz").write_bytes(gzip.compress(cpio(entries), 1))
    command = ["qemu-system-x86_64", "-machine", "pc,accel=tcg", "-m", "256", "-smp", "1", "-nographic", "-no-reboot"]
    command += ["-icount", "shift=2,sleep=off", "-nic", "none", "-kernel", str(image)]
    command += [
        "-initrd",
        str(folder / "initrd.gz"),
        "-append",
        words,
    ]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=280)
    assert "\nEND" in done.stdout.replace("\r", ""), done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout.replace("\r", "")


def recording(text, arrivals, heading):
    """The machine's output as a file of vectors: a line for each tick with an event."""
    words, lines = [], []

    def flush():
        if len(words) > 1:
            lines.append(" ".join(words))

    for line in text[text.index("\nQ ") :].splitlines():
        match line.split():
            case ["LATE", late]:
                pytest.fail(f"the machine needed {late} ns more than a tick")
            case ["S", _, to]:
                words = [to, "s"]
            case ["T", at]:
                flush()
                words = [at]
            case ["a", number]:
                words.append("a{},{},{}".format(*arrivals[int(number)][1:]))
            case ["d", number, ce]:
                words.append(("d", "m")[int(ce)] + number)
            case ["p", parts]:
                words.append(f"p{parts}")
    flush()
    return "".join(f"{line}\n" for line in [*(f"# {line}" for line in heading), *lines])


@pytest.mark.slow
@needed
def test_the_kernels_disciplines_and_ours_do_the_same_to_each_packet(tmp_path):
    image, _ = cloud_kernel()
    bless = "AQUMEN_BLESS" in os.environ
    out = CHECKED_IN if bless else tmp_path
    for name, qdisc in QDISCS.items():
        arrivals = trace(LOADS[name], seed=1 if bless else 2)
        text = machine(tmp_path, qdisc, arrivals)
        heading = [
            f"Linux {image.name.removeprefix('vmlinuz-')}: tc qdisc add dev t0 parent 1:10 {qdisc}",
            "README.md says how to read it",
        ]
        (out / f"{name}.txt").write_text(recording(text, arrivals, heading))
    command = ["cargo", "test", "-q", "--locked", "-p", "aqumen-aqm", "--test", "all", "kernel", "--", "--nocapture"]
    environment = {**os.environ, "AQUMEN_KERNEL_RECORDINGS": str(out)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.needs("cpio")
def test_the_archive_is_what_the_kernel_reads(tmp_path):
    archive = cpio([("a", 0o040755, b""), ("a/b", 0o100644, b"hello")])
    subprocess.run(["cpio", "-id", "--quiet"], input=archive, cwd=tmp_path, check=True)
    assert (tmp_path / "a" / "b").read_text() == "hello"
