"""Files of identified plants: JSON with the scenario, the network, the model with its covariance, and the response."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from aqumen import _core
from aqumen._files import check_file
from aqumen.errors import ScenarioError
from aqumen.identification.fits import Model
from aqumen.identification.network import Network
from aqumen.identification.spectra import Spectrum
from aqumen.scenario import Scenario

if TYPE_CHECKING:
    from aqumen.custom import CustomClass

__all__ = ["packed", "unpacked"]

SCHEMA = 1
"""Version of the file; it grows when a key is removed or changes its meaning."""
NUMBERS = (
    "queue_pkts",
    "probability",
    "queue_std_pkts",
    "rtt_s",
    "law_period_s",
    "period_s",
    "amplitude",
    "at_bound",
)
"""Fields of a plant that are numbers."""


def packed(plant: Any) -> dict[str, Any]:
    """Return a plant for its file: `to_dict`, and under `identified` what `unpacked` needs besides.

    Args:
        plant: Result of `identify`.
    """
    model = plant.model
    return {
        "schema": SCHEMA,
        "aqumen": _core.__version__,
        **plant.to_dict(),
        "identified": {
            "scenario": plant.scenario.to_toml(),
            "network": asdict(plant.network),
            **{name: getattr(plant, name) for name in NUMBERS},
            "excite": plant.excite,
            "model": {
                "kind": model.kind,
                "markov": model.markov,
                "places": [place.tolist() for place in model.places],
                "covariance": model.covariance.tolist(),
            },
            "segments": plant.spectrum.segments,
        },
    }


def unpacked(path: Path, custom: Sequence[CustomClass]) -> dict[str, Any]:
    """Return the fields of a plant from its file.

    Args:
        path: The file.
        custom: Custom AQMs and traffic sources of its scenario.

    Raises:
        ScenarioError: The file is missing or not a plant; the message names the key.
    """
    check_file(path)
    try:
        data = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise ScenarioError(f"{path}: not a plant in JSON: {error}") from None
    schema = data.get("schema") if isinstance(data, dict) else None
    if schema != SCHEMA:
        raise ScenarioError(f"{path}: schema = {schema}: must be {SCHEMA}; `Plant.save` writes such a file")
    try:
        own, model, seen = data["identified"], data["model"], data["response"]
        fit = own["model"]
        outputs, inputs = (np.asarray(each, dtype=np.int64) for each in fit["places"])
        covariance, free = _floats(fit["covariance"]), len(outputs) + len(inputs)
        if covariance.shape != (free, free):
            raise ScenarioError(f"{path}: identified.model.covariance: must have the shape ({free}, {free})")
        return {
            "scenario": Scenario.parse(own["scenario"], str(path), custom),
            "aqm": data["aqm"],
            "network": Network(**own["network"]),
            **{name: float(own[name]) for name in NUMBERS},
            "excite": str(own["excite"]),
            "model": Model(
                kind=fit["kind"],
                order=int(model["order"]),
                markov=int(fit["markov"]),
                a=_floats(model["a"]),
                b=_floats(model["b"]),
                covariance=covariance,
                places=(outputs, inputs),
                noise_std=float(model["noise_std_pkts"]),
                samples=int(model["samples"]),
            ),
            "spectrum": Spectrum(
                w=_floats(seen["w_rad_s"]),
                response=_floats(seen["real"]) + 1j * _floats(seen["imaginary"]),
                std=_floats(seen["std"]),
                coherence=_floats(seen["coherence"]),
                segments=float(own["segments"]),
            ),
            "records": (),
        }
    except KeyError as error:
        raise ScenarioError(f"{path}: {error.args[0]} is missing; `Plant.save` writes it") from None
    except (TypeError, ValueError) as error:
        raise ScenarioError(f"{path}: not a plant: {error}") from None


def _floats(values: Any) -> Any:
    """Return an array; null, which stands for a number that is not finite, becomes NaN."""
    return np.asarray(values, dtype=np.float64)
