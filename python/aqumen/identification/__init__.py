"""Identification of the plant before a queue, from packets in closed loop.

plant = aqumen.identify("arm-pfc/exp1", "pi")
plant.loop("pi").margins["gain_margin"]
plant.loop("pi").plot("bode")
pi = robust_pi(plant, modulus_margin=0.5)
"""

from aqumen.identification.excited import Record
from aqumen.identification.fits import Model, RecursiveLeastSquares, armarkov, arx
from aqumen.identification.measure import identify, identify_points
from aqumen.identification.plant import IdentifiedLoop, Plant, RobustPi, robust_pi
from aqumen.identification.spectra import Spectrum

__all__ = [
    "IdentifiedLoop",
    "Model",
    "Plant",
    "Record",
    "RecursiveLeastSquares",
    "RobustPi",
    "Spectrum",
    "armarkov",
    "arx",
    "identify",
    "identify_points",
    "robust_pi",
]
