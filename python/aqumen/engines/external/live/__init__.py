"""Engine `live`: the kernel's TCP over links in user space, run by the program `aqumend` (Linux, as root)."""

from aqumen.engines.external.live.runner import LiveAnswer, LiveError, find_program, run

__all__ = ["LiveAnswer", "LiveError", "find_program", "run"]
