"""Claims of papers as data, and their verdicts, which only rules decide.

`model` reads `experiments/PAPER/claims.toml`, `judge` turns runs into verdicts, `algebra` checks claims without runs,
`study` runs a reproduction, and `page` and `markdown` format its results.
"""

from aqumen.papers.judge import Check, Judgement
from aqumen.papers.model import Claim, Paper, load_paper
from aqumen.papers.study import Outcome, reproduce

__all__ = ["Check", "Claim", "Judgement", "Outcome", "Paper", "load_paper", "reproduce"]
