"""Three people on their first hour, each in an empty environment outside the checkout: what README and docs tell them.

The wheel is the newest in `dist` (`make wheels`), else one is built. What a page says is typed as it stands there,
shortened only in seeds and length. `AQUMEN_PICTURES=DIR` keeps what the terminal printed in 80 columns and pictures of
the pages, to be looked at.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from browser import judged, screen
from test_pages import FENCE, ROOT, words_of

pytestmark = pytest.mark.slow

SHORTER = {
    "uplink": ["--seeds", "2", "--senders", "cubic", "--duration", "20s"],
    "office": ["--seeds", "2", "--senders", "cubic", "--duration", "20s"],
    "cell": ["--seeds", "2", "--senders", "cubic", "--duration", "20s"],
    "backbone": ["--seeds", "2", "--senders", "cubic", "--duration", "6s"],
    "datacenter": ["--seeds", "2", "--duration", "50ms"],
}


@pytest.fixture(scope="session")
def installed(tmp_path_factory):
    """The folder with the programs of an environment that has nothing but the wheel and what it needs."""
    wheels = sorted((ROOT / "dist").glob("*.whl"), key=lambda wheel: wheel.stat().st_mtime)
    if not wheels:
        build = ["maturin", "build", "--release", "--locked", "--out", "dist"]
        subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
        wheels = sorted((ROOT / "dist").glob("*.whl"))
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    pip = [str(folder / "bin" / "pip"), "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, f"{wheels[-1]}[plot,control]"], check=True)
    return folder / "bin"


class Desk:
    """An empty folder, a shell of 80 columns, a clock."""

    def __init__(self, programs, folder, name):
        self.programs, self.folder, self.name = programs, folder, name
        self.began = time.monotonic()
        self.pictures = Path(os.environ["AQUMEN_PICTURES"]) if "AQUMEN_PICTURES" in os.environ else None

    def types(self, line):
        """Terminal output of a command, which must succeed with no line wider than the terminal."""
        environment = {
            "PATH": f"{self.programs}:/usr/bin:/bin",
            "HOME": str(self.folder),
            "COLUMNS": "80",
            "MPLCONFIGDIR": str(self.folder / ".matplotlib"),
        }
        done = subprocess.run(
            ["bash", "-c", line], cwd=self.folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (line, done.stderr)
        assert "Traceback" not in done.stderr
        self.keep(f"$ {line}\n{done.stdout}{done.stderr}")
        if not any(word in line for word in (">", "--json", "--format")):
            # Commands to be copied are not broken.
            wide = [each for each in done.stdout.splitlines() if len(each) > 80 and not each.startswith("  ")]
            assert wide == [], line
        return done.stdout

    def reads(self, page):
        """Do a page of the docs from top to bottom: its files written, its commands typed, its Python run."""
        text = (ROOT / page).read_text()
        for file, body in re.findall(r"<!-- file: (\S+) -->\n```\w+\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
            (self.folder / file).write_text(body)
        shown = []
        for kind, body in FENCE.findall(text):
            if kind == "sh":
                for line in body.splitlines():
                    command, _, _ = line.partition("#")
                    verb = words_of(command)[0]
                    before, arrow, after = command.strip().partition(" > ")
                    more = " ".join(SHORTER.get(verb, []))
                    if "--seeds 5" in before:
                        more = "--seeds 2 --until 12s"
                    shown.append(self.types(f"{before} {more}{arrow}{after}"))
            elif kind == "python":
                (self.folder / "snippet.py").write_text(body)
                shown.append(self.types("python snippet.py"))
        return shown

    def looks_at(self, page, tmp_path):
        """A page in the browser: on a screen and on a phone, by day and by night. What a program finds wrong in it."""
        wrong = []
        for scheme in ("light", "dark"):
            for width in (1280, 400):
                wrong += judged(page.read_text(), tmp_path, scheme, width)
                if self.pictures is not None:
                    self.photograph(page, tmp_path, scheme, width)
        return wrong

    def photograph(self, page, tmp_path, scheme, width):
        shot = self.pictures / f"{self.name}-{page.stem}-{scheme}-{width}.png"
        subprocess.run(
            [
                "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                "--hide-scrollbars", f"--user-data-dir={tmp_path / 'camera'}", *screen(width, 3000),
                f"--blink-settings=preferredColorScheme={0 if scheme == 'dark' else 1}",
                "--virtual-time-budget=8000", f"--screenshot={shot}",
                page.as_uri(),
            ],
            capture_output=True, timeout=120, check=False,
        )  # fmt: skip

    def keep(self, text):
        if self.pictures is not None:
            self.pictures.mkdir(parents=True, exist_ok=True)
            with (self.pictures / f"{self.name}.txt").open("a") as file:
                file.write(f"[{time.monotonic() - self.began:.1f} s]\n{text}\n")


@pytest.fixture
def desk(installed, tmp_path, request):
    folder = tmp_path / "desk"
    folder.mkdir()
    return Desk(installed, folder, request.node.name.removeprefix("test_").split("_")[1])


@pytest.mark.needs("chromium")
def test_an_operator_gets_an_answer_with_commands_and_a_page(desk, tmp_path):
    assert "engines _core" in desk.types("aqumen doctor")
    shown = desk.reads("docs/everyday.md")
    assert all("Ranked by a score" in each for each in shown)
    # From an answer to a router: the commands are a script that a shell takes.
    script = next(path for path in (desk.folder / "home").glob("*.sh"))
    assert 'tc qdisc add dev "$device" root' in script.read_text()
    desk.types(f"bash -n home/{script.name}")
    assert desk.looks_at(desk.folder / "home" / "report.html", tmp_path) == []


@pytest.mark.needs("chromium")
def test_a_researcher_gets_tables_figures_and_an_own_aqm(desk, tmp_path):
    shown = desk.reads("docs/tutorial.md")
    assert any("Ranked by delay at utilisation" in each for each in shown)
    assert (desk.folder / "figures" / "queue.pdf").read_bytes().startswith(b"%PDF")
    assert "\\begin{tabular}" in (desk.folder / "tables.tex").read_text()
    page = desk.folder / "out" / "report.html"
    assert "@software{aqumen" in page.read_text() or "@misc{aqumen" in page.read_text()
    assert desk.looks_at(page, tmp_path) == []
    desk.types("aqumen new aqm wave")
    ranked = desk.types("aqumen compare arm-pfc/exp1 --aqm pi --aqm-from wave/wave.py:Wave --seeds 2 --until 20s")
    assert re.search(r"^\d=? +\w+ +wave ", ranked, re.MULTILINE)


def test_a_control_engineer_gets_margins_a_plot_and_matlab(desk):
    said = desk.types("aqumen design pi --capacity 10Mbit --flows 100 --rtt 200ms --target 100pkt --plot bode.png")
    assert re.search(r"textbook plant +exact plant", said)
    assert (desk.folder / "bode.png").read_bytes().startswith(b"\x89PNG")
    (snippet,) = (
        body for kind, body in FENCE.findall((ROOT / "docs/theory/design.md").read_text()) if kind == "python"
    )
    (desk.folder / "snippet.py").write_text("import control\n" + snippet)
    desk.types("python snippet.py")
    assert "InputDelay" in (desk.folder / "loop.m").read_text()


def test_what_an_installation_lacks_is_said_with_what_to_get(desk):
    for line, expect in (
        ("aqumen validate vectors", r"a checkout of Aqumen and cargo: clone it, and install Rust"),
        ("aqumen validate ns3", r"needs a checkout of Aqumen, .*--engine ns[23]$|apt-get install"),
        ("aqumen validate ns2", r"needs a checkout of Aqumen, .*--engine ns[23]$|apt-get install"),
    ):
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=desk.folder,
            env={"PATH": f"{desk.programs}:/usr/bin:/bin", "HOME": str(desk.folder)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.count("\n") == 1
        assert re.search(expect, done.stderr), done.stderr
    if shutil.which("g++") and Path("/usr/include/ns3/core-module.h").is_file():
        # The program comes with the package, and is compiled into the user's cache.
        told = desk.types(f"aqumen run {ROOT}/validation/ns3/cubic.toml --until 3s --engine ns3 --json")
        assert json.loads(told)["engine"] == "ns3"
        assert list((desk.folder / ".cache" / "aqumen" / "ns3").glob("dumbbell-*"))
