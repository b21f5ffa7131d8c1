"""Scenario files of the papers' experiments, found by name.

A checkout has them in the folder `experiments`. An installed package has them compiled in.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from aqumen import _core
from aqumen.errors import meant

__all__ = ["FORMER", "PAPERS", "Experiment", "cell_of", "data", "experiments", "find", "folder", "suggestion"]

PAPERS = {
    "arm-pfc": "N. Bigdeli, M. Haeri: ARM-PFC, an optimized AQM congestion controller in TCP/IP networks (2007)",
    "paqm": "S. Ryu: PAQM, an adaptive and proactive queue management for end-to-end TCP congestion control",
    "aqm-mo": "A. Radwa: Queue management using optimal margin method to improve bottleneck link performance (2015)",
    "aaqm": "R. Rahmani, C. Ahlund, T. Kanter: Design of active queue management for robust control on access router"
    " for heterogeneous networks (2011)",
    "self-tuning": "H. Zhang, D. Towsley, C. V. Hollot, V. Misra: A self-tuning structure for adaptation in TCP/AQM"
    " networks (2003)",
    "rfc7928": "N. Kuhn, P. Natarajan, N. Khademi, D. Ros: Characterization guidelines for active queue management,"
    " RFC 7928 (2016)",
}
"""Papers by the name of their folder. The folder `everyday` holds networks that belong to no paper."""


FORMER = {
    **{f"arm-pfc/exp3-n{n}": f"arm-pfc/exp3@n{n}" for n in (50, 100, 200)},
    "arm-pfc/exp8-20kbyte": "arm-pfc/exp8@20kbyte",
    **{f"arm-pfc/parking-lot-{load}": f"arm-pfc/parking-lot@{load}" for load in ("light", "heavy", "cross")},
    **{f"paqm/n{n}": f"paqm/load@n{n}" for n in (3, 5, 7, 10, 14)},
    **{f"aqm-mo/rtt{rtt}": f"aqm-mo/rtt@{rtt}ms" for rtt in (10, 22, 46, 100, 215, 464, 1000)},
    **{f"aaqm/n{n}": f"aaqm/load@n{n}" for n in (10, 25, 50, 70, 100)},
}
"""Former names of experiments and the sweep cells that replaced them; both can be run."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """A scenario file that comes with Aqumen."""

    name: str
    """Name on the command line: `arm-pfc/exp1`."""
    text: str
    """TOML text."""
    file: Path | None
    """Path in a checkout; `None` if compiled in."""

    def row(self) -> dict[str, Any]:
        """Return its row of `aqumen list scenarios`."""
        import tomllib

        said = tomllib.loads(self.text)
        return {
            "name": self.name,
            "title": said.get("title"),
            "paper": self.name.partition("/")[0],
            "file": None if self.file is None else str(self.file),
            "duration": said.get("duration"),
            "aqm": said.get("aqm", "droptail"),
        }


def folder() -> Path | None:
    """Return the folder `experiments` of the working directory, else of the checkout of this package, else `None`."""
    for candidate in (Path("experiments"), Path(__file__).parents[2] / "experiments"):
        if candidate.is_dir():
            return candidate
    return None


BESIDE = ("claims", "verdicts")
"""Names of files in an experiment's folder that are not scenarios."""


def experiments() -> list[Experiment]:
    """Return all experiments, by name: from the folder, else those compiled in."""
    found = folder()
    if found is None:
        known = [Experiment(name, text, None) for name, text in _core.experiments()]
    else:
        named = ((path.relative_to(found).with_suffix("").as_posix(), path) for path in sorted(found.glob("*/*.toml")))
        known = [Experiment(name, path.read_text(encoding="utf-8"), path) for name, path in named]
    return [one for one in known if one.name.partition("/")[2] not in BESIDE]


def data(name: str) -> str | None:
    """Return the text of another file in an experiment's folder, such as `arm-pfc/claims`; `None` if absent.

    Args:
        name: Folder and name, without ending.
    """
    found = folder()
    if found is None:
        return dict(_core.experiments()).get(name)
    path = found / f"{name}.toml"
    return path.read_text(encoding="utf-8") if path.is_file() else None


def find(name: str | os.PathLike[str]) -> Experiment | None:
    """Find an experiment by name: `arm-pfc/exp1`, `arm-pfc/exp1.toml` or `experiments/arm-pfc/exp1.toml`.

    Args:
        name: Name or path.
    """
    wanted = _plain(name)
    return next((one for one in experiments() if one.name == wanted), None)


def cell_of(name: str | os.PathLike[str]) -> str | None:
    """Return the sweep cell for a former name: `paqm/load@n7` for `paqm/n7`; `None` for other names.

    Args:
        name: Name or path.
    """
    return FORMER.get(_plain(name))


def suggestion(name: str | os.PathLike[str]) -> str:
    """Return the error text for a name that is neither a file nor an experiment.

    Args:
        name: Name or path.
    """
    known = [*(one.name for one in experiments()), *FORMER]
    return (
        f"no such file or experiment{meant(_plain(name), known) or ';'} `aqumen list scenarios` lists the experiments"
    )


def _plain(name: str | os.PathLike[str]) -> str:
    text = PurePosixPath(os.fspath(name)).as_posix()
    return text.removeprefix("experiments/").removesuffix(".toml")
