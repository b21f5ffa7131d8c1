"""STRED over RED's own filter, as a simulation in ns-2 has it, in place of one that is sampled.

The average moves with each arrival and falls over idle times, signals keep their distance. What tunes it is that of
`stred`; `patient` and `spread` are 0 or 1. docs/aqms/stred.md compares the two:

    aqumen run SCENARIO --aqm stred-ns2:target_delay=5ms --aqm-from examples/stred_ns2.py:StredNs2
"""

import math

import aqumen


class StredNs2(aqumen.PacketAqm):
    """RED as in ns-2 that tunes itself as STRED does."""

    target_delay = aqumen.Param(0.005, unit="s", low=0, doc="T_d")
    patient = aqumen.Param(0.0, low=0, high=1, doc="the load's estimate waits for the average")
    spread = aqumen.Param(1.0, low=0, high=1, doc="signals keep their distance: ns-2's count and wait_")
    period = 0.05
    tau_c, tau_l = 5.0, 10.0

    def start(self):
        """Begin with the nominal network and an average of 0."""
        self.capacity = self.network.capacity_pps
        self.rtt = self.network.base_rtt_s + self.target_delay
        self.load = self.network.flows / (self.rtt * self.capacity)
        self.average = self.p = 0.0
        self.departed = self.count = 0
        self.above = self.was_idle = False
        self.idle_since = None
        self.tune()

    def tune(self):
        """Thresholds, slope and weight from the estimates: the equations of docs/aqms/stred.md."""
        load = min(max(self.load, 0.00707), 0.707)
        queue = self.target_delay * self.capacity
        self.min_th = max(queue / 2, 5.0)
        self.max_th = max(1.5 * queue, self.min_th)
        self.max_p = min(4 * load * load, 1.0)
        crossover = 0.5 * min(2 * load, 1.0) / self.rtt
        gain, fastest = self.max_p / (4 * load * load) * self.rtt / self.target_delay, 10 / self.rtt
        slow = gain * gain > 1 + (crossover / fastest) ** 2
        self.pole = crossover / math.sqrt(gain * gain - 1) if slow else fastest
        self.weight = -math.expm1(-self.pole / self.capacity)

    def curve(self):
        """RED's gentle curve."""
        average, low, high = self.average, self.min_th, self.max_th
        if average < low:
            return 0.0
        if average < high:
            return self.max_p * (average - low) / (high - low)
        return min(self.max_p + (1 - self.max_p) * (average - high) / high, 1.0)

    def on_arrival(self, packet, queue):
        """Average, then decide."""
        waiting = queue.packets
        if self.idle_since is not None:
            self.average *= (1 - self.weight) ** (self.capacity * (queue.now_s - self.idle_since))
            self.idle_since = None
        self.average += self.weight * (waiting - self.average)
        p = self.p = self.curve()
        if p <= 0 or waiting <= 1:
            self.above, self.count = False, 0
            return None
        if p >= 1:
            self.count = 0
            return "drop"
        if self.spread:
            if not self.above:
                self.above, self.count = True, 1
                return None
            self.count += 1
            passed = self.count * p
            p = 0.0 if passed < 1 else p / (2 - passed) if passed < 2 else 1.0
        if queue.uniform >= p:
            return None
        self.count = 0
        return "mark"

    def on_dequeue(self, packet, queue):
        """Notice that the queue runs empty."""
        if queue.packets == 0 and self.idle_since is None:
            self.idle_since, self.was_idle = queue.now_s, True

    def on_timer(self, queue):
        """Estimate capacity, where the queue never was empty, and load."""
        departed, self.departed = queue.departures_pkts - self.departed, queue.departures_pkts
        if not self.was_idle and self.idle_since is None:
            self.capacity -= math.expm1(-self.period / self.tau_c) * (departed / self.period - self.capacity)
        self.was_idle = False
        pole = 1 / self.tau_l
        if self.patient:
            pole = min(pole, self.pole) if self.average > self.min_th else 0.0
        self.load -= math.expm1(-self.period * pole) * (math.sqrt(self.p / 2) - self.load)
        self.tune()
