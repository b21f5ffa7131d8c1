"""`aqumen new aqm NAME`: a folder with an AQM of one's own, and a test of it that runs."""

from __future__ import annotations

import re
from pathlib import Path

import click

from aqumen.cli import talk
from aqumen.errors import OutputError, ScenarioError

__all__ = ["new"]

AQM = '''"""An AQM of my own. Compare it with others:

    aqumen compare arm-pfc/exp1 --aqm pi --aqm red --aqm-from {module}.py:{cls} --seeds 20 --out out
"""

import aqumen
from aqumen import Param


class {cls}(aqumen.SampledLaw):
    """Moves the probability of a mark by the queue's error and by how the queue changed."""

    period = 0.01  # seconds between two steps

    gain = Param(2e-5, unit="1/pkt", low=0, doc="change of the probability per packet of error and step")
    damping = Param(1e-3, unit="1/pkt", low=0, doc="change of the probability per packet by which the queue grew")
    target = Param(None, unit="pkt", low=0, doc="target queue length; without one the network's")

    def start(self):
        """Parameters and the network are there: choose what follows from them."""
        if self.target is None:
            self.target = self.network.target_pkts
        self.p = 0.0
        self.queue = 0.0

    def step(self, seen):
        """The probability that applies to each packet until the next step."""
        p = self.p + self.gain * (seen.queue_pkts - self.target) + self.damping * (seen.queue_pkts - self.queue)
        self.p = min(max(p, 0.0), 1.0)
        self.queue = seen.queue_pkts
        return self.p
'''

TEST = '''"""{cls} by itself, and in the engines."""

from pathlib import Path

import pytest

import aqumen
from aqumen.custom import from_file

AQM = from_file(f"{{Path(__file__).with_name('{module}.py')}}:{cls}")


def test_a_queue_above_the_target_raises_the_probability():
    law = AQM()
    law.target = 100.0
    law.start()

    class Seen:
        queue_pkts = 150.0

    first = law.step(Seen)
    assert 0 < first < law.step(Seen)


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
    """Write a folder with an AQM of your own, and a test of it that runs.

    NAME is words of a-z and 0-9 with `-` between them: wave, my-pi.
    """
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise ScenarioError(f"{name}: a name is words of a-z and 0-9 with `-` between them, such as my-pi")
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
        raise OutputError(f"{folder} is there already; choose another name, or remove it") from None
    except OSError as error:
        raise OutputError(f"cannot write to {folder}: {error.strerror}") from None
    for file in files:
        talk.say(f"wrote {folder / file}")
    talk.say(f"now: pytest {folder}; aqumen compare arm-pfc/exp1 --aqm pi --aqm-from {folder / module}.py:{cls}")
    return 0
