"""Explanations of results: prediction, oscillation, disagreement of engines, transients, calibration."""
