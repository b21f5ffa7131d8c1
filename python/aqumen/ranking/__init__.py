"""AQMs in order: those of one comparison by a goal (`order`), and over many networks by mean ranks (`networks`)."""

from aqumen.ranking.order import GOALS, Figure, Goal, Rank, Ranking, letter_groups, rank

__all__ = ["GOALS", "Figure", "Goal", "Rank", "Ranking", "letter_groups", "rank"]
