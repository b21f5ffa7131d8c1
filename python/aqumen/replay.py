"""Captures replayed: what a queue would have done to these packets, offered open loop.

from aqumen import replay

offered = replay.Capture("office.pcapng", rate="10Mbit", buffer="200pkt")
answer = offered.run("codel:ecn=true")
answer.data["total"]["sojourn_p99_s"]
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aqumen import _core
from aqumen._files import check_file
from aqumen.errors import Cancelled, ScenarioError
from aqumen.scenario import _catalogue

if TYPE_CHECKING:
    from aqumen.custom import Own

__all__ = ["Capture", "Replay"]


@dataclass(frozen=True, slots=True)
class Replay:
    """What one AQM did to a capture; `docs/replay.md` defines every key of its data."""

    spec: str
    """The AQM as it was asked for."""
    json: str
    """The entry of this AQM in what `aqumen replay --json` prints."""

    @property
    def data(self) -> dict[str, Any]:
        """The answer as Python data."""
        return dict(json.loads(self.json))

    def __repr__(self) -> str:
        total = self.data["total"]
        dropped = total["early_dropped_pkts"] + total["overflow_dropped_pkts"]
        return f"Replay({self.spec!r}, {total['arrivals_pkts']} packets, {dropped} dropped)"


class Capture:
    """A capture and the queue to which its packets are offered."""

    def __init__(
        self,
        file: str | os.PathLike[str],
        *,
        rate: str | None = None,
        load: float | None = None,
        own: Sequence[Own] = (),
        on_progress: Callable[[float], bool] | None = None,
        **settings: str | float | None,
    ) -> None:
        """Look at a capture. With a load all of it is read for the rate, else its first packets for their mean size.

        Args:
            file: A pcap or pcapng, or either compressed by gzip.
            rate: Rate of the link: "10Mbit".
            load: In its place the offered load, from which the rate follows: 0.95.
            own: Classes of your own AQMs, which SPECs may name.
            on_progress: Hears the share read; false from it stops.
            settings: Others by the names of the options of `aqumen replay`: `buffer="200pkt"`, `speedup=2`.
        """
        given = {"rate": rate, "load": load, **settings}
        pairs = [(key, value) for key, value in given.items() if value is not None]
        self.file = os.fspath(file)
        check_file(self.file)
        try:
            self._core = _core.survey(self.file, pairs, on_progress, _catalogue(own))
        except _core.ScenarioError as error:
            raise ScenarioError(str(error)) from None
        except _core.Cancelled as error:
            raise Cancelled(str(error)) from None

    @property
    def setup(self) -> dict[str, Any]:
        """The settings in force."""
        return self._core.setup

    def check(self, spec: str) -> str | None:
        """Refuse an AQM that cannot run on this queue; say in a line how long it will take, where that is long.

        Args:
            spec: The AQM: "pie:target=15ms".
        """
        try:
            self._core.check_aqm(spec)
            return self._core.check_cost(spec)
        except _core.ScenarioError as error:
            raise ScenarioError(str(error)) from None

    def run(
        self,
        spec: str,
        out: str | os.PathLike[str] | None = None,
        on_progress: Callable[[float], bool] | None = None,
    ) -> Replay:
        """Offer the packets to a queue that an AQM looks after.

        Args:
            spec: The AQM: "pie:target=15ms".
            out: A pcapng to be written: the packets that leave, when they leave, with their marks.
            on_progress: Hears the share done; false from it stops.
        """
        try:
            answer = self._core.run(spec, None if out is None else os.fspath(out), on_progress)
        except _core.ScenarioError as error:
            raise ScenarioError(str(error)) from None
        except _core.Cancelled as error:
            raise Cancelled(str(error)) from None
        return Replay(spec, answer)
