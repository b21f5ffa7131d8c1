"""Replay of a capture's packets into a queue, open loop.

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
    from aqumen.custom import CustomClass

__all__ = ["Capture", "Replay"]


@dataclass(frozen=True, slots=True)
class Replay:
    """Result of one AQM for a capture; `docs/replay.md` defines the keys."""

    spec: str
    """The AQM as given by the user."""
    json: str
    """Entry of this AQM in the output of `aqumen replay --json`."""

    @property
    def data(self) -> dict[str, Any]:
        """Result as a dictionary."""
        return dict(json.loads(self.json))

    def __repr__(self) -> str:
        total = self.data["total"]
        dropped = total["early_dropped_pkts"] + total["overflow_dropped_pkts"]
        return f"Replay({self.spec!r}, {total['arrivals_pkts']} packets, {dropped} dropped)"


class Capture:
    """A capture and the queue to replay it into."""

    def __init__(
        self,
        file: str | os.PathLike[str],
        *,
        rate: str | None = None,
        load: float | None = None,
        custom: Sequence[CustomClass] = (),
        on_progress: Callable[[float], bool] | None = None,
        **settings: str | float | None,
    ) -> None:
        """Read a capture: all of it if a load is given, else its first packets for their mean size.

        Args:
            file: A pcap or pcapng file, which may be compressed by gzip.
            rate: Rate of the link: "10Mbit".
            load: Offered load, such as 0.95, in place of the rate.
            custom: Custom AQM classes that SPECs may name.
            on_progress: Called with the fraction read, 0 to 1; returning `False` stops.
            settings: Other options of `aqumen replay`: `buffer="200pkt"`, `speedup=2`.

        Raises:
            ScenarioError: The file or a setting is invalid.
            Cancelled: `on_progress` returned `False`.
        """
        given = {"rate": rate, "load": load, **settings}
        pairs = [(key, value) for key, value in given.items() if value is not None]
        self.file = os.fspath(file)
        check_file(self.file)
        try:
            self._core = _core.survey(self.file, pairs, on_progress, _catalogue(custom))
        except _core.ScenarioError as error:
            raise ScenarioError(str(error)) from None
        except _core.Cancelled as error:
            raise Cancelled(str(error)) from None

    @property
    def setup(self) -> dict[str, Any]:
        """Settings in force."""
        return self._core.setup

    def check(self, spec: str) -> str | None:
        """Raise `ScenarioError` for an AQM that cannot run; return a warning of a long run, or `None`.

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
        """Replay the packets into a queue with an AQM.

        Args:
            spec: The AQM: "pie:target=15ms".
            out: A pcapng file to write: departing packets with departure times and marks.
            on_progress: Called with the fraction done, 0 to 1; returning `False` stops.
        """
        try:
            answer = self._core.run(spec, None if out is None else os.fspath(out), on_progress)
        except _core.ScenarioError as error:
            raise ScenarioError(str(error)) from None
        except _core.Cancelled as error:
            raise Cancelled(str(error)) from None
        return Replay(spec, answer)
