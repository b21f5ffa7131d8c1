"""DRED, dynamic RED: integral control of the filtered queue error.

Source: J. Aweya, M. Ouellette, D. Y. Montuno, "DRED: a random early detection algorithm for TCP/IP networks",
International Journal of Communication Systems 15 (4), 2002; first in "A control theoretic approach to active queue
management", Computer Networks 36, 2001. The texts were not at hand when this file was written: compare it with them
before you quote a figure.

Law: every ten packet transmission times, with the queue q, its target T and a buffer B,
    e(n) = q(n) - T
    f(n) = (1 - beta) f(n-1) + beta e(n)
    p(n) = min(max(p(n-1) + alpha f(n) / B, 0), theta)
A packet is dropped with probability p(n) while q >= L, with L = 0.9 T; below L none is.

Transfer function from q to p, without the limits, with the delay z^-1 of one sample:
    alpha beta / B / ((1 - (1 - beta) z^-1) (1 - z^-1))

Known answer: alpha = 0.1, beta = 0.5, T = 10, B = 20. The queues 20, 20 give e = 10, 10; f = 5, 7.5; p = 0.1 5/20 =
0.025, then 0.025 + 0.1 7.5/20 = 0.0625.

Deviations:
- The queue is compared with L at each sample, not at each arrival: between two samples ten packets leave at most.
- T is the network's target; the papers take half of the buffer. Set `target` for another one.
- Packets that can carry a mark are marked; `ecn=false` drops all, as the papers do.

aqumen compare arm-pfc/exp1 --aqm pi --aqm-from examples/aqms/dred.py:Dred --seeds 3 --out out
aqumen design --scenario arm-pfc/exp1 --aqm-from examples/aqms/dred.py:Dred
"""

import aqumen
from aqumen import Param

PACKETS = 10
"""Transmission times of packets between two samples."""


class Dred(aqumen.SampledLaw):
    """DRED: an integrator behind a first-order filter."""

    alpha = Param(0.00005, low=0, doc="gain of the integrator per buffer of filtered error")
    beta = Param(0.002, low=1e-9, high=1, doc="weight of a new error in the filter")
    theta = Param(1.0, low=0, high=1, doc="largest probability")
    target = Param(None, unit="pkt", low=0, doc="target queue length T; the network's by default")
    threshold = Param(None, unit="pkt", low=0, doc="queue length L below which no packet is dropped; 0.9 T by default")

    def start(self):
        """Derive period, target and transfer function; begin with no error."""
        if self.target is None:
            self.target = self.network.target_pkts
        if self.threshold is None:
            self.threshold = 0.9 * self.target
        self.period = PACKETS / self.network.capacity_pps
        self.gain = self.alpha / self.network.buffer_pkts
        self.error = self.p = 0.0
        self.transfer = ([self.gain * self.beta], [1.0, self.beta - 2.0, 1.0 - self.beta])

    def take_over(self, old):
        """Keep filter and probability when parameters change."""
        self.error, self.p = old.error, old.p

    def step(self, seen):
        """Return the probability until the next step."""
        self.error += self.beta * (seen.queue_pkts - self.target - self.error)
        self.p = min(max(self.p + self.gain * self.error, 0.0), self.theta)
        return self.p if seen.queue_pkts >= self.threshold else 0.0
