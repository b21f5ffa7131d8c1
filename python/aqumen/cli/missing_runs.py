"""Missing runs of a study, run under a progress bar until Ctrl-C."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from aqumen.cli import talk
from aqumen.cli.interrupt import first_interrupt

if TYPE_CHECKING:
    from aqumen.study.executors import Executor
    from aqumen.study.study import Progress, Study

__all__ = ["run_missing"]


def run_missing(study: Study, out: Path, executor: Executor, shard: tuple[int, int] = (1, 1)) -> bool:
    """Run what is missing. Returns whether all is finished; if not, says how to continue.

    Args:
        study: The study, however long it takes.
        out: Folder of the rows.
        executor: Where it runs.
        shard: Number and count of the part to run.
    """
    with talk.progress() as bar, first_interrupt() as stopped:
        task = bar.add_task("running", total=1.0, done="")

        def advance(now: Progress) -> bool:
            said = f"{now.runs} of {now.planned} runs, {now.closed} of {now.cases} cases complete"
            bar.update(task, total=max(now.cost_s + now.left_s, 1e-9), completed=now.cost_s, done=said)
            return not stopped.is_set()

        try:
            study.run(out, on=executor, shard=shard, force=True, on_progress=advance, command=talk.command())
            interrupted = stopped.is_set()
        except KeyboardInterrupt:
            interrupted = True
    if interrupted:
        talk.say(f"stopped; {out} keeps what is finished, repeat the command to continue")
    return not interrupted
