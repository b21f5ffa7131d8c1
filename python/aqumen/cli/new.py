"""`aqumen new aqm NAME`: a folder with a template of a custom AQM and a test; with `--rust` a crate (folder `rust`)."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import click

from aqumen.cli import talk
from aqumen.cli.options import PATH
from aqumen.errors import EngineError, OutputError, ScenarioError

__all__ = ["new"]

AQM = '''"""A custom AQM. Compare it with others:

    aqumen compare arm-pfc/exp1 --aqm pi --aqm red --aqm-from {module}.py:{cls} --seeds 20 --out out
"""

import aqumen
from aqumen import Param


class {cls}(aqumen.SampledLaw):
    """A proportional-integral law: the probability follows the queue's error and its change."""

    period = 0.01  # seconds between two steps

    gain = Param(2e-5, unit="1/pkt", low=0, doc="change of the probability per step and packet of error")
    damping = Param(1e-3, unit="1/pkt", low=0, doc="change of the probability per packet of queue growth")
    target = Param(None, unit="pkt", low=0, doc="target queue length; the network's by default")

    def start(self):
        """Called once, with parameters and network known: set derived values and initial state."""
        if self.target is None:
            self.target = self.network.target_pkts
        self.p = 0.0
        self.queue = 0.0

    def step(self, seen):
        """Return the probability that applies to each packet until the next step."""
        p = self.p + self.gain * (seen.queue_pkts - self.target) + self.damping * (seen.queue_pkts - self.queue)
        self.p = min(max(p, 0.0), 1.0)
        self.queue = seen.queue_pkts
        return self.p
'''

TEST = '''"""Tests of {cls}: the law by itself, and in the engines."""

from pathlib import Path

import pytest

import aqumen
from aqumen.custom import from_file

AQM = from_file(f"{{Path(__file__).with_name('{module}.py')}}:{cls}")


def test_a_queue_above_the_target_raises_the_probability():
    law = AQM()
    law.target = 100.0
    law.start()

    class Observation:
        queue_pkts = 150.0

    first = law.step(Observation)
    assert 0 < first < law.step(Observation)


@pytest.mark.parametrize("engine", ["packet", "fluid"])
def test_it_uses_the_link_and_keeps_the_queue_below_the_buffer(engine):
    run = aqumen.run("arm-pfc/exp1", AQM, engine=engine)
    bottleneck = run.data["links"]["bottleneck"]["steady"]
    assert bottleneck["utilization"] > 0.9
    assert bottleneck["queue_mean_pkts"] < 250
'''


TAKEN = """
abstract alloc as async await become box break build const continue core crate deps do dyn else enum examples extern
false final fn for gen if impl in incremental let loop macro match mod move mut override priv pub ref return self static
std struct super test trait true try type typeof unsafe unsized use virtual where while yield
"""
"""Names that cargo refuses for a crate."""


@click.command()
@click.argument("what", type=click.Choice(["aqm"]))
@click.argument("name")
@click.option("--rust", is_flag=True, help="A crate in Rust, which is Aqumen with the AQM compiled in.")
@click.option(
    "--checkout",
    type=PATH,
    help="With --rust: the folder with Aqumen's sources. Default: the one that Aqumen runs from.",
)
def new(what: str, name: str, rust: bool, checkout: Path | None) -> int:
    """Create a folder with a template of a custom AQM and a test.

    NAME consists of words of a-z and 0-9, joined by `-`: wave, my-pi.
    """
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise ScenarioError(f"{name}: a name consists of words of a-z and 0-9, joined by `-`, such as my-pi")
    if checkout is not None and not rust:
        raise ScenarioError("--checkout: belongs to --rust")
    from aqumen.scenario import Scenario

    if name in Scenario.load("arm-pfc/exp1").aqms:
        raise ScenarioError(f"{name}: an AQM of this name is built in; choose another")
    folder, module = Path(name), name.replace("-", "_")
    cls = "".join(word.capitalize() for word in name.split("-"))
    if rust:
        files = _crate(name, cls, checkout)
        following = f"cd {folder}; cargo test; cargo run --release -- compare arm-pfc/exp1 --aqm {name} --aqm pi"
    else:
        files = {f"{module}.py": AQM, f"test_{module}.py": TEST}
        files = {file: text.format(module=module, cls=cls) for file, text in files.items()}
        following = f"pytest {folder}; aqumen compare arm-pfc/exp1 --aqm pi --aqm-from {folder / module}.py:{cls}"
    _write(folder, files)
    for file in files:
        talk.say(f"wrote {folder / file}")
    talk.say(f"next: {following}")
    return 0


def _crate(name: str, title: str, checkout: Path | None) -> dict[str, str]:
    """Return the files of a crate with a law called `name`."""
    if name in TAKEN.split() or name.startswith("aqumen-"):
        raise ScenarioError(f"{name}: a crate cannot have this name; choose another")
    if shutil.which("cargo") is None:
        raise EngineError("--rust needs cargo: install Rust (https://rustup.rs)")
    sources = (checkout or Path(__file__).parents[3]).resolve()
    if not (sources / "crates/python/Cargo.toml").is_file():
        if checkout is not None:
            raise ScenarioError(f"--checkout {checkout}: not a folder with Aqumen's sources: crates/python is missing")
        raise EngineError(
            "--rust needs a checkout of Aqumen, since its crates are not published: name the folder with --checkout"
        )
    # A path as text of TOML.
    path = json.dumps(sources.as_posix())[1:-1]
    templates = Path(__file__).with_name("rust")

    def filled(file: str) -> str:
        text = (templates / file).read_text(encoding="utf-8")
        return text.replace("my-law", name).replace("MyLaw", title).replace("CHECKOUT", path)

    return {
        "Cargo.toml": filled("manifest.toml"),
        # The versions that Aqumen is tested with.
        "Cargo.lock": (sources / "Cargo.lock").read_text(encoding="utf-8"),
        "src/lib.rs": filled("lib.rs"),
        "src/law.rs": filled("law.rs"),
        "src/main.rs": filled("main.rs"),
        ".cargo/config.toml": filled("config.toml"),
        ".gitignore": "/target\n",
        "README.md": filled("README.md"),
    }


def _write(folder: Path, files: dict[str, str]) -> None:
    """Make a folder with these files, all or none."""
    if folder.exists():
        raise OutputError(f"{folder} already exists; choose another name, or remove it")
    part = Path(f".{folder}.{os.getpid()}.part")
    try:
        for file, text in files.items():
            (part / file).parent.mkdir(parents=True, exist_ok=True)
            (part / file).write_text(text, encoding="utf-8")
        part.rename(folder)
    except OSError as error:
        raise OutputError(f"cannot write to {folder}: {error.strerror}") from None
    finally:
        shutil.rmtree(part, ignore_errors=True)
