"""SRED, stabilized RED: drops by the queue and by the number of active flows, which a list of past packets tells.

Each arriving packet is compared with one entry, chosen at random, of a list of M past packets (the *zombie list*). A
*hit* is a packet of the entry's flow. N flows with equal rates hit with probability 1/N, so the inverse of the hit
frequency estimates the number of active flows, without state for each flow.

Source: T. J. Ott, T. V. Lakshman, L. H. Wong, "SRED: Stabilized RED", IEEE INFOCOM 1999; the defaults are the paper's.

Law: at the arrival number t, with the queue q in a buffer B,
    no hit: with probability `overwrite`, the packet replaces the entry
    P(t) = (1 - a) P(t-1) + a Hit(t), a = overwrite / M, P(0) = 0
    p_sred(q) = p_max if B/3 <= q, p_max/4 if B/6 <= q < B/3, else 0
    p_zap = p_sred min(1, 1 / (256 P(t)^2))                       (simple SRED)
    p_zap = p_sred min(1, 1 / (256 P(t)^2)) (1 + Hit(t)/P(t))     (full SRED)
The first M packets fill the list; none of them is dropped early.

Known answer: four equal flows hit with probability 1/4; q >= B/3 gives p_zap = 0.15 / (256 / 16) = 0.15 / 16 = 0.0094,
with sixteen flows or more 0.15. From 16 flows on the probability thus no longer grows with their number.

Deviations:
- An entry keeps the flow alone: count and timestamp, which the paper uses to suspect misbehaving flows, decide nothing
  here.
- q and B are counted in packets, the paper's in bytes: its packets have one size.
- Packets that can carry a mark are marked; `ecn=0` drops all, as the paper does.
- The three random decisions about a packet (entry, overwriting, drop) use parts of one random number: its 53 bits
  suffice.

aqumen compare arm-pfc/exp1 --aqm red --aqm-from examples/aqms/sred.py:Sred --seeds 3 --out out
"""

import aqumen
from aqumen import Param


class Sred(aqumen.PacketAqm):
    """SRED: a drop probability of three levels of the queue, scaled by the estimated number of flows."""

    p_max = Param(0.15, low=0, high=1, doc="largest drop probability of simple SRED")
    zombies = Param(1000, unit="pkt", low=1, doc="length M of the list of past packets")
    overwrite = Param(0.25, low=0, high=1, doc="probability that a packet without a hit replaces the entry")
    full = Param(1, low=0, high=1, doc="1: full SRED, a hit raises the probability; 0: simple SRED")
    ecn = Param(1, low=0, high=1, doc="1: mark packets that can carry a mark; 0: drop them")

    def start(self):
        """Empty list, hit frequency 0."""
        self.list = []
        self.hit_frequency = 0.0

    def take_over(self, old):
        """Keep list and hit frequency when parameters change."""
        self.list, self.hit_frequency = old.list[: int(self.zombies)], old.hit_frequency

    def on_arrival(self, packet, queue):
        """Compare the packet with one of the list, then mark or drop it with the probability p_zap."""
        size = int(self.zombies)
        if len(self.list) < size:
            self.list.append(packet.flow)
            return "pass"
        draw = queue.uniform * size
        index = int(draw)
        draw -= index
        hit = self.list[index] == packet.flow
        if not hit:
            replaces = draw < self.overwrite
            # What remains of the random number is uniform again.
            low, width = (0.0, self.overwrite) if replaces else (self.overwrite, 1.0 - self.overwrite)
            draw = (draw - low) / width
            if replaces:
                self.list[index] = packet.flow
        weight = self.overwrite / size
        self.hit_frequency += weight * (hit - self.hit_frequency)
        if draw < self.probability(queue.packets, queue.limit_packets, hit):
            return "mark" if self.ecn else "drop"
        return "pass"

    def probability(self, queue_pkts, limit_pkts, hit):
        """p_zap, which may exceed 1 in full SRED."""
        if 6 * queue_pkts < limit_pkts:
            return 0.0
        p_sred = self.p_max if 3 * queue_pkts >= limit_pkts else self.p_max / 4.0
        frequency = self.hit_frequency
        if frequency <= 0.0:
            return p_sred
        p_zap = p_sred * min(1.0, 1.0 / (256.0 * frequency * frequency))
        return p_zap * (1.0 + hit / frequency) if self.full else p_zap
