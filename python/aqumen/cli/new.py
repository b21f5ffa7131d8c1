"""`aqumen new aqm NAME`: a folder with a template of a custom AQM and a test."""

from __future__ import annotations

import re
from pathlib import Path

import click

from aqumen.cli import talk
from aqumen.errors import OutputError, ScenarioError

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


@click.command()
@click.argument("what", type=click.Choice(["aqm"]))
@click.argument("name")
def new(what: str, name: str) -> int:
    """Create a folder with a template of a custom AQM and a test.

    NAME consists of words of a-z and 0-9, joined by `-`: wave, my-pi.
    """
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise ScenarioError(f"{name}: a name consists of words of a-z and 0-9, joined by `-`, such as my-pi")
    from aqumen.scenario import Scenario

    if name in Scenario.load("arm-pfc/exp1").aqms:
        raise ScenarioError(f"{name}: an AQM of this name is built in; choose another")
    folder, module = Path(name), name.replace("-", "_")
    cls = "".join(word.capitalize() for word in name.split("-"))
    files = {f"{module}.py": AQM, f"test_{module}.py": TEST}
    try:
        folder.mkdir()
        for file, text in files.items():
            (folder / file).write_text(text.format(module=module, cls=cls), encoding="utf-8")
    except FileExistsError:
        raise OutputError(f"{folder} already exists; choose another name, or remove it") from None
    except OSError as error:
        raise OutputError(f"cannot write to {folder}: {error.strerror}") from None
    for file in files:
        talk.say(f"wrote {folder / file}")
    talk.say(f"next: pytest {folder}; aqumen compare arm-pfc/exp1 --aqm pi --aqm-from {folder / module}.py:{cls}")
    return 0
