"""AQMs of one comparison in order by a goal (`order`), and AQMs with a given target (`targets`)."""

from aqumen.ranking.order import GOALS, Figure, Goal, Rank, Ranking, letter_groups, rank

__all__ = ["GOALS", "Figure", "Goal", "Rank", "Ranking", "letter_groups", "rank"]
