"""Executor on a cluster of Dask: batches of 1 to 2 s, as text, through one function that each worker has installed.

A worker that dies loses its batch, which the scheduler gives to another one. A driver that dies loses the batches
under way; the next one starts from the store.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from aqumen import _core, engines
from aqumen.errors import EngineError, Error, optional
from aqumen.study.cases import Bases, Case
from aqumen.study.executors import Keep, Row, Run, row_of

__all__ = ["Dask", "run_batch", "version"]

BATCH_S = 1.5
"""Estimated CPU time of a batch, seconds."""
BATCH_MAX = 500
"""Most runs of a batch."""
CONNECT_S = 5
"""Longest wait for a scheduler, seconds."""
WORKERS_S = 60
"""Longest wait for its first worker, seconds: a cluster may start them on demand."""


class Dask:
    """A cluster of Dask. Needs the extra `dask`."""

    def __init__(self, cluster: object) -> None:
        """Choose the cluster.

        Args:
            cluster: Address of a scheduler (`tcp://host:8786`), `local` for processes on this machine, a cluster object
                such as `dask_jobqueue.SLURMCluster()`, or a `distributed.Client`.
        """
        self.cluster = cluster
        self.distributed = optional("distributed", "dask")

    def run(self, bases: Bases, engine: str, runs: Sequence[Run], keep: Keep) -> None:
        """Run runs on the cluster's workers."""
        client, own = self._client()
        try:
            self._check(client, engine)
            self._run(client, bases, engine, runs, keep)
        finally:
            for each in own:
                try:
                    each.close(timeout=2)
                except Exception:
                    # The scheduler is gone.
                    continue

    def _client(self) -> tuple[Any, list[Any]]:
        """Return a client, and what to close at the end."""
        if isinstance(self.cluster, self.distributed.Client):
            return self.cluster, []
        own: list[Any] = []
        target = self.cluster
        if target == "local":
            target = self.distributed.LocalCluster(
                n_workers=engines.cores(), threads_per_worker=1, dashboard_address=None, silence_logs=50
            )
            own.append(target)
        # A client that never connected has nothing to close when it is deleted.
        quiet = type("Client", (self.distributed.Client,), {"__del__": lambda _: None})
        try:
            client = quiet(target, timeout=CONNECT_S, set_as_default=False)
        except Exception as error:
            # What answers there may be no scheduler, and then fails in any way.
            raise EngineError(f"no scheduler of Dask answers at {target} ({type(error).__name__})") from None
        return client, [client, *own]

    def _check(self, client: Any, engine: str) -> None:
        """Refuse workers that have no Aqumen, or one of other sources."""
        ours = version(engine)
        try:
            client.wait_for_workers(1, timeout=WORKERS_S)
            theirs = client.run(version, engine)
        except TimeoutError:
            raise EngineError(f"the scheduler at {client.scheduler.address} has no worker") from None
        except Exception as error:
            raise EngineError(f"the workers cannot run Aqumen: {type(error).__name__}: {error}") from None
        for worker, found in theirs.items():
            if found != ours:
                raise EngineError(f"worker {worker} has Aqumen {found}, this machine {ours}; install the same on both")

    def _run(self, client: Any, bases: Bases, engine: str, runs: Sequence[Run], keep: Keep) -> None:
        batches = {}
        for numbers in _batches(bases, engine, runs):
            text = _batch(bases, engine, [runs[k] for k in numbers])
            # A batch is pure: another worker gives the same rows, however often its first one died.
            future = client.submit(run_batch, text, key=f"aqumen-{_digest(text)}", pure=True, retries=3)
            batches[future.key] = future, numbers
        known: set[str] = set()
        try:
            done = self.distributed.as_completed([future for future, _ in batches.values()], loop=client.loop)
            for future in done:
                answer = json.loads(future.result())
                if "error" in answer:
                    raise EngineError(answer["error"])
                for k, (shape, columns, row) in zip(batches.pop(future.key)[1], answer["rows"], strict=True):
                    names = None if shape in known else columns
                    known.add(shape)
                    if not keep(k, Row(shape, names, row)):
                        return
        except (Error, KeyboardInterrupt):
            raise
        except Exception as error:
            raise EngineError(
                f"the cluster of Dask failed: {type(error).__name__}: {error}; finished runs are kept"
            ) from None
        finally:
            if client.status == "running":
                client.cancel([future for future, _ in batches.values()])
        if batches:
            raise EngineError(f"the cluster of Dask lost {len(batches)} batches; finished runs are kept")


def _batches(bases: Bases, engine: str, runs: Sequence[Run]) -> list[list[int]]:
    """Return numbers of runs by batch: each of about `BATCH_S`."""
    found: list[list[int]] = []
    spent, times = BATCH_S, dict[str, float]()
    for number, (case, _) in enumerate(runs):
        if case.key not in times:
            try:
                times[case.key] = bases.scenario(case).core.time_estimate(engine.partition(":")[0], case.spec)
            except _core.ScenarioError:
                times[case.key] = 0.1
        if spent >= BATCH_S or len(found[-1]) >= BATCH_MAX:
            found.append([])
            spent = 0.0
        found[-1].append(number)
        spent += times[case.key]
    return found


def _batch(bases: Bases, engine: str, runs: Sequence[Run]) -> bytes:
    """Return a batch as text: the scenarios that it needs, its cases, and their seeds."""
    used = {case.base for case, _ in runs}
    some = Bases({name: text for name, text in bases.texts.items() if name in used}, bases.sources, bases.custom)
    cases = list({case.key: case for case, _ in runs}.values())
    place = {case.key: i for i, case in enumerate(cases)}
    given = {
        "version": version(engine),
        "engine": engine,
        "bases": some.to_dict(),
        "cases": [case.to_list() for case in cases],
        "runs": [[place[case.key], seed] for case, seed in runs],
    }
    return json.dumps(given).encode()


def _digest(text: bytes) -> str:
    import hashlib

    return hashlib.sha256(text).hexdigest()[:24]


def version(engine: str) -> str:
    """Return version and digest of an engine's sources.

    Args:
        engine: Name of the engine.
    """
    sources = dict(_core.ENGINES).get(engines.find(engine).kind, "")
    return f"{_core.__version__} ({sources[:8] or engine})"


def run_batch(text: bytes) -> str:
    """Run a batch on one core of a worker.

    Args:
        text: A batch, made by the driver.

    Returns:
        JSON with `rows`, each a list of shape, columns and row; or with `error`, one line.
    """
    given = json.loads(text)
    if (ours := version(given["engine"])) != given["version"]:
        return json.dumps(
            {"error": f"a worker has Aqumen {ours}, the driver {given['version']}; install the same on both"}
        )
    bases, cases = Bases.from_dict(given["bases"]), [Case.from_list(each) for each in given["cases"]]
    jobs = [(bases.scenario(cases[i]), (cases[i].spec, seed)) for i, seed in given["runs"]]
    rows: list[Any] = [None] * len(jobs)
    columns: dict[str, list[str]] = {}

    def keep(index: int, answer: Any) -> bool:
        row = row_of(answer, set())
        columns.setdefault(row.shape, row.columns or [])
        rows[index] = (row.shape, columns[row.shape], row.text)
        return True

    try:
        engines.find(given["engine"]).run_each(jobs, 1, keep)
    except Error as error:
        return json.dumps({"error": str(error)})
    return json.dumps({"rows": rows})
