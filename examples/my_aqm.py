"""AQMs of one's own: a control law that is sampled, and an algorithm that decides packet by packet.

aqumen compare arm-pfc/exp1 --aqm pi --aqm-from examples/my_aqm.py:MyPi --seeds 20 --out out
aqumen run arm-pfc/exp1 --aqm-from examples/my_aqm.py:Impatient
"""

import aqumen
from aqumen import Param


class MyPi(aqumen.SampledLaw):
    """PI on the queue length, as the built-in `pi` has it: with the same gains it gives the same bits.

    Its gains are published ones, for 60 flows at 3750 packets/s. The built-in `pi` designs its own for the network at
    hand, and `aqumen run` prints them: `my-pi:a=0.000918501,b=0.00090686,frequency=160Hz` is `pi` on arm-pfc/exp1.
    """

    a = Param(1.822e-5, unit="1/pkt", low=0, doc="weight of the present error")
    b = Param(1.816e-5, unit="1/pkt", low=0, doc="weight of the previous error, below a")
    frequency = Param(150, unit="Hz", low=1e-3, high=1e6, doc="samples per second")
    target = Param(None, unit="pkt", low=0, doc="target queue length; the network's by default")

    def start(self):
        """Called once, with parameters and network known: set derived values and initial state."""
        if self.target is None:
            self.target = self.network.target_pkts
        self.period = 1.0 / self.frequency
        self.p = 0.0
        self.old_queue = 0.0

    def step(self, seen):
        """The probability until the next step."""
        queue = seen.queue_pkts
        p = self.p + self.a * (queue - self.target) - self.b * (self.old_queue - self.target)
        # Faster than min() and max(), each of which is a call.
        if p < 0.0:
            p = 0.0
        elif p > 1.0:
            p = 1.0
        self.p, self.old_queue = p, queue
        return p

    def take_over(self, old):
        """Parameters changed during the run: what is state stays."""
        self.p, self.old_queue = old.p, old.old_queue


class Impatient(aqumen.PacketAqm):
    """Marks a packet at the head that waited longer than a limit, the more surely the longer it did."""

    limit = Param(0.05, unit="s", low=0, doc="sojourn time from which packets are marked")
    steepness = Param(2.0, low=0, doc="probability of a mark per limit beyond it")

    def on_dequeue(self, packet, queue):
        """Decide about the packet at the head of the queue."""
        excess = queue.sojourn_s / self.limit - 1.0
        return "mark" if queue.uniform < self.steepness * excess else "pass"
