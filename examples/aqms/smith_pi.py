"""PI with a Smith predictor: the controller sees the queue one round-trip time ahead, as a model of TCP predicts it.

A change of the marking probability p reaches the queue one round-trip time R later, which limits a PI controller to a
crossover frequency well below 1/R. Smith's predictor adds to the measured queue the difference of the model's queue
without and with that delay. With an exact model the delay leaves the loop, and only the plant without delay remains.

Source: O. J. M. Smith, "A controller to overcome dead time", ISA Journal 6 (2), 1959, for the predictor; C. V. Hollot,
V. Misra, D. Towsley, W. Gong, "On designing improved controllers for AQM routers supporting TCP flows", IEEE INFOCOM
2001, for model and PI controller. Smith predictors with a PI controller for AQM: S. Xiang, B. Xu, S. Wu, D. Peng,
WCICA 2006.

Law: N flows, capacity C in packets per second, round-trip time R at the target; K = C^2/(2N), a = 2N/(R^2 C), b = 1/R.
    model     g(s) = -K / ((s + a) (s + b)), delay exp(-s R)
    predicted e(t) = q(t) - T + y(t) - y(t - R), y = g p
    PI        p = k (1/a + 1/s) e: its zero cancels the pole at a
    design    without delay the loop is k K / (a s (s + b)); w = speed / R is the crossover frequency for
              k = a w sqrt(w^2 + b^2) / K, and its phase margin is 90 degrees - arctan(speed)

Known answer: C = 1000, N = 50, R = 0.2, speed = 1: K = 10^4, a = 2.5, b = w = 5, so k = 2.5 5 5 sqrt(2) / 10^4 =
0.0088388. At 5 rad/s the loop without delay is 1 at -135 degrees, so the queue follows its target with the gain 1/|1 +
exp(-j 135 degrees)| = 1.3066, one round-trip time late. PI alone would have a phase margin of 45 degrees - 1 rad = -12
degrees: unstable.

Deviations:
- Xiang et al. adapt the model's gain with a rule derived from Lyapunov's theorem; here the model is fixed.
- The model's two lags step exactly, the second with the first's output held constant over a step; R is rounded to
  whole steps.
- `speed` and its default are a choice of this file: 0.5 is 1.9 times the crossover frequency at which PI alone keeps
  60 degrees.

aqumen compare arm-pfc/exp1 --aqm pi --aqm-from examples/aqms/smith_pi.py:SmithPi --seeds 3 --out out
aqumen design --scenario arm-pfc/exp1 --aqm-from examples/aqms/smith_pi.py:SmithPi
"""

import math
from collections import deque

import aqumen
from aqumen import Param


class SmithPi(aqumen.SampledLaw):
    """PI on the queue that a linear model of TCP predicts for one round-trip time ahead."""

    speed = Param(0.5, low=1e-3, high=100, doc="crossover frequency without delay, in units of 1/R")
    frequency = Param(100, unit="Hz", low=1e-3, high=1e6, doc="samples per second")
    target = Param(None, unit="pkt", low=0, doc="target queue length; the network's by default")

    def start(self):
        """Derive gains and model from the nominal network."""
        if self.target is None:
            self.target = self.network.target_pkts
        self.period = 1.0 / self.frequency
        rtt, capacity = self.network.r0_s, self.network.capacity_pps
        slow, fast = 2.0 * self.network.flows / (rtt * rtt * capacity), 1.0 / rtt
        plant = capacity * capacity / (2.0 * self.network.flows)
        crossover = self.speed / rtt
        self.integral = slow * crossover * math.hypot(crossover, fast) / plant
        self.proportional = self.integral / slow
        self.keep_1, self.keep_2 = math.exp(-slow * self.period), math.exp(-fast * self.period)
        self.into_1 = -plant * (1.0 - self.keep_1) / slow
        self.into_2 = (1.0 - self.keep_2) / fast
        self.lag_1 = self.lag_2 = self.p = self.old_error = 0.0
        self.delayed = deque([0.0] * max(1, round(rtt * self.frequency)))

    def take_over(self, old):
        """Keep probability and error when parameters change; the model begins anew, at rest at that probability."""
        self.p, self.old_error = old.p, old.old_error
        self.lag_1 = self.into_1 / (1.0 - self.keep_1) * self.p
        self.lag_2 = self.into_2 / (1.0 - self.keep_2) * self.lag_1
        self.delayed = deque([self.lag_2] * len(self.delayed))

    def step(self, seen):
        """Return the probability until the next step."""
        # The model, up to now: `p` was in force since the last step.
        lag_1 = self.keep_1 * self.lag_1 + self.into_1 * self.p
        self.lag_2 = self.keep_2 * self.lag_2 + self.into_2 * self.lag_1
        self.lag_1 = lag_1
        self.delayed.append(self.lag_2)
        error = seen.queue_pkts - self.target + self.lag_2 - self.delayed.popleft()
        p = self.p + self.proportional * (error - self.old_error) + self.integral * self.period * error
        self.p, self.old_error = min(max(p, 0.0), 1.0), error
        return self.p
