"""A traffic source of one's own: what a game's server sends to a player.

aqumen run arm-pfc/exp1 --traffic-from examples/my_source.py:Game --set flows.0.transport=udp --set flows.0.traffic=game
"""

import aqumen
from aqumen import Param


class Game(aqumen.TrafficSource):
    """An update at each tick, larger while there is action; calm and action follow one another."""

    tick = Param(1 / 60, unit="s", low=1e-3, doc="time between two updates")
    calm = Param(80, unit="B", low=1, doc="bytes of an update while it is calm")
    action = Param(400, unit="B", low=1, doc="bytes of an update in action")
    change = Param(0.01, low=0, high=1, doc="probability at each tick that calm and action change")

    def start(self):
        """The parameters are there."""
        self.fights = self.random.random() < 0.5

    def next(self):
        """Seconds since the last update, and the bytes of this one."""
        if self.random.random() < self.change:
            self.fights = not self.fights
        return self.tick, round(self.action if self.fights else self.calm)
