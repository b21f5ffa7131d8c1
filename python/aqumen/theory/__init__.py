"""Analysis without packets: design, margins, stability maps and predictions.

from aqumen import theory

design = theory.design("pi", capacity="30Mbit", flows=60, r0="246ms")
design.gains["a"], design.margins["phase_margin_deg"]
design.plot("nyquist")
theory.stability_map(design, "flows", range(10, 200), "rtt", [0.05, 0.1, 0.2, 0.4]).plot()
"""

from aqumen.explain.oscillation import Oscillation, oscillation
from aqumen.explain.prediction import Prediction, explain, predict
from aqumen.theory.coupled import coupled
from aqumen.theory.design import Design, design
from aqumen.theory.interop import nu_gap
from aqumen.theory.maps import (
    Boundary,
    RobustAqm,
    RobustPi,
    StabilityMap,
    boundary,
    robust,
    robust_pi,
    stability_map,
)
from aqumen.theory.over_plants import RobustOverPlants

__all__ = [
    "Boundary",
    "Design",
    "Oscillation",
    "Prediction",
    "RobustAqm",
    "RobustOverPlants",
    "RobustPi",
    "StabilityMap",
    "boundary",
    "coupled",
    "design",
    "explain",
    "nu_gap",
    "oscillation",
    "predict",
    "robust",
    "robust_pi",
    "stability_map",
]
