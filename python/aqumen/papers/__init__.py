"""The papers' claims as data, and what becomes of them: each has a rule beside it, and a rule alone gives its verdict.

`model` reads `experiments/PAPER/claims.toml`; `records` runs what the rules ask for and keeps it; `quantities` takes
figures out of runs; `judge` turns figures into verdicts; `algebra` has the claims that need no run; `study` ties them
together, and `page` and `markdown` tell the outcome.
"""

from aqumen.papers.judge import Check, Judgement
from aqumen.papers.model import Claim, Paper, load_paper
from aqumen.papers.study import Outcome, reproduce

__all__ = ["Check", "Claim", "Judgement", "Outcome", "Paper", "load_paper", "reproduce"]
