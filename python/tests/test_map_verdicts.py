"""Cell by cell of two stability maps: the verdict is that of the poles, found by other means."""

import numpy as np
import pytest

from aqumen.theory import design

ARM_PFC = "arm-pfc:variant=A,psi=0.83,h=7,flows=100,capacity=10Mbit,r0=280ms"
AQM_MO = "aqm-mo:flows=100,capacity=10Mbit,rtt=200ms"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spec", "flows", "rtts", "unstable"),
    [(ARM_PFC, (20, 400, 21), (0.05, 0.6, 11), 217), (AQM_MO, (5, 400, 19), (0.05, 0.6, 14), 143)],
    ids=["231 cells of ARM-PFC A", "266 cells of AQM-MO"],
)
def test_the_verdict_is_that_of_the_poles(spec, flows, rtts, unstable):
    found = 0
    for number in np.geomspace(*flows):
        for rtt in np.geomspace(*rtts):
            of = design(spec, capacity="10Mbit", flows=float(number), rtt=f"{rtt}s", target="100pkt", model="hollot")
            margins = of.data["margins"]
            found += not margins["stable"]
            at = f"{number:.1f} flows, {rtt:.4f} s"
            # The printed model by its spectral radius, where the loop has one period; the exact one by its rightmost
            # root.
            if margins["spectral_radius"] is not None:
                assert margins["stable"] == (margins["spectral_radius"] < 1), at
            assert margins["exact"]["stable"] == (margins["rightmost_root"][0] < 0), at
    assert found == unstable
