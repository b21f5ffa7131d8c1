"""Claims of papers as data, and their verdicts, which only rules decide.

`model` reads `experiments/PAPER/claims.toml`, `judge` checks claims on runs and `algebra` without, `verdict` combines
the checks, `study` runs a reproduction, and `page` and `markdown` format its results.
"""

from aqumen.papers.model import Claim, Paper, load_paper
from aqumen.papers.study import Outcome, reproduce
from aqumen.papers.verdict import Check, Judgement

__all__ = ["Check", "Claim", "Judgement", "Outcome", "Paper", "load_paper", "reproduce"]
