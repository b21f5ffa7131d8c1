"""A stand-in for the compiled core: same interface, instant answers that look like a congested link.

The tests of the command line and of the report need results that are the same everywhere and come at once; what the
engines answer is tested with the engines.
"""

import hashlib
import json
import math

import numpy as np

VERSION = "0.1.0"
TARGET_PKTS = 100.0
BUFFER_PKTS = 300.0
CAPACITY_PPS = 1000.0
DURATION_S = 100.0
EVENT_S = 60.0
FLOWS = 12
FREE_BYTES = 1 << 30

# Mean queue it settles at, spread, peak after start-up, time constant of the return (s), probability, utilisation.
BEHAVIOUR = {
    "arm-pfc": (100.0, 11.0, 165.0, 2.0, 0.135, 0.9993),
    "pi": (100.6, 16.0, 280.0, 7.0, 0.137, 0.9990),
    "red": (128.0, 22.0, 290.0, 4.0, 0.118, 0.9991),
    "droptail": (287.0, 14.0, 300.0, 1.0, 0.0, 0.9996),
}
PARAMS = {
    "arm-pfc": {"alpha": 0.22, "frequency": 30.0, "target": TARGET_PKTS, "variant": "b"},
    "pi": {"a": 6.48e-4, "b": 6.42e-4, "frequency": 150.0, "target": TARGET_PKTS},
    "red": {"min": 50.0, "max": 150.0, "max_p": 0.1, "weight": 0.002, "gentle": True},
    "droptail": {},
}
NOMINAL = {
    "capacity_bps": 8_000_000,
    "flows": 12.0,
    "base_rtt_s": 0.2,
    "target_pkts": TARGET_PKTS,
    "packet_bytes": 1000.0,
}
FINISHED = {"count": 40, "mean_s": 0.5, "p50_s": 0.4, "p95_s": 1.1, "p99_s": 1.3, "slowdown": 2.5}
GIVEN = {"arm-pfc": {"variant": "b"}, "pi": {"a": 6.48e-4, "b": 6.42e-4, "frequency": 150.0}, "red": {}, "droptail": {}}
TOML = """\
name = "mock"
title = "Twelve endless transfers over one congested link"
duration = "100s"
"""


def experiments():
    return [("paper/shipped", TOML)]


class ScenarioError(ValueError):
    pass


class Cancelled(Exception):
    pass


class Scenario:
    def __init__(self, text=TOML, changes=()):
        self.text, self.changes = text, changes

    @staticmethod
    def load(path, custom=None):
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        except FileNotFoundError:
            raise ScenarioError(f"{path}: no such file") from None
        except UnicodeDecodeError:
            raise ScenarioError(f"{path}: not a text file") from None
        return Scenario.parse(text, path)

    @staticmethod
    def parse(text, file="scenario", custom=None, files=None):
        for number, line in enumerate(text.splitlines(), 1):
            if line.startswith("durration"):
                raise ScenarioError(f"{file}:{number}: unknown key `durration`; did you mean `duration`?")
        return Scenario(text)

    name = "mock"
    title = "Twelve endless transfers over one congested link"

    def cells(self):
        return []

    def variants(self):
        return []

    def until(self, end):
        return Scenario(self.text, (*self.changes, ("duration", end)))

    def set(self, changes):
        for key, _ in changes:
            if key not in ("duration", "bottleneck.rate"):
                raise ScenarioError(f"--set {key}: unknown key; did you mean `duration`?")
        return Scenario(self.text, (*self.changes, *changes))

    def to_toml(self):
        return self.text + "".join(f'{key} = "{value}"\n' for key, value in self.changes)

    file = "mock.toml"

    def files(self):
        return []

    def aqm_names(self):
        return list(BEHAVIOUR)

    def custom_traffic(self):
        return []

    def check_aqm(self, spec):
        name = spec.partition(":")[0]
        if name not in BEHAVIOUR:
            raise ScenarioError(f"unknown AQM `{name}`; did you mean `pi`?")

    def check_cost(self, engine, aqm, runs, loops=True):
        return None

    def memory_floor(self):
        return 1 << 20

    def check_memory(self, runs):
        need = runs * self.memory_floor()
        if need > FREE_BYTES:
            raise ScenarioError(
                f"the scenario needs about {need >> 20} MiB of memory and {FREE_BYTES >> 20} MiB are free"
            )

    def plan(self, seed, aqm):
        self.check_aqm(aqm or "droptail")
        name = (aqm or "droptail").partition(":")[0]
        nodes = ["r1", "r2", *(f"s{i}" for i in range(FLOWS)), *(f"d{i}" for i in range(FLOWS))]

        def link(name, start, end, delay_s, bps, **more):
            plain = {
                "buffer_pkts": 100_000,
                "buffer_bytes": None,
                "record": False,
                "target_pkts": None,
                "aqm": {"name": "droptail", "params": {}},
            }
            ends = {"from": nodes.index(start), "to": nodes.index(end)}
            own = {"name": name, **ends, "delay_s": delay_s, "rates": [[0.0, bps]]}
            return own | plain | more

        core = {"buffer_pkts": BUFFER_PKTS, "record": True, "target_pkts": TARGET_PKTS}
        links = [
            link("bottleneck", "r1", "r2", 0.02, 8e6, aqm={"name": name, "params": PARAMS[name]}, **core),
            link("bottleneck-back", "r2", "r1", 0.02, 8e6),
        ]
        flows = []
        for i in range(FLOWS):
            delay_s = 0.035 + 0.01 * i / (FLOWS - 1)
            first = len(links)
            for start, end in ((f"s{i}", "r1"), ("r2", f"d{i}"), (f"d{i}", "r2"), ("r1", f"s{i}")):
                links.append(link(f"{start}-{end}", start, end, delay_s, 10e6))
            late = EVENT_S if i >= FLOWS // 2 else 0.0
            flows.append(
                {
                    "group": 1 if late else 0,
                    "path": [first, 0, first + 1],
                    "return_path": [first + 2, 1, first + 3],
                    "on": [[late + seed / 100 % 1, None]],
                    "transfer_bytes": None,
                }
            )
        half = FLOWS // 2
        groups = [
            {"name": "ftp", "transport": {"preset": "modern", "variant": "reno", "ecn": True}, "flows": [0, half]},
            {"name": "late", "transport": {"preset": "modern", "variant": "reno", "ecn": True}, "flows": [half, FLOWS]},
        ]
        return {
            "schema": 1,
            "scenario": self.name,
            "seed": seed,
            "duration_s": DURATION_S,
            "nodes": nodes,
            "links": links,
            "groups": groups,
            "flows": flows,
            "windows": {"all": [0.0, 100.0], "steady": [10.0, 100.0], "late": [EVENT_S, 100.0]},
            "sample_interval_s": 0.1,
            "nominal": {
                "capacity_bps": 8e6,
                "flows": FLOWS,
                "base_rtt_s": 0.2,
                "target_pkts": TARGET_PKTS,
                "packet_bytes": 1000,
            },
        }


class RunResult:
    engine = "packet"

    def __init__(self, scenario, aqm, seed):
        self.plan = scenario.plan(seed, aqm)
        self.name = (aqm or "droptail").partition(":")[0]
        mean, spread, peak, tau, p, utilization = BEHAVIOUR[self.name]
        rng = np.random.default_rng([seed, *self.name.encode()])
        t = np.arange(1, round(DURATION_S * 10) + 1) / 10
        noise = np.zeros_like(t)
        for i in range(1, len(t)):
            noise[i] = 0.97 * noise[i - 1] + rng.normal() * spread * math.sqrt(1 - 0.97**2)
        swing = (peak - mean) * (np.clip(t / 1.5, 0, 1) * np.exp(-np.clip(t - 1.5, 0, None) / tau))
        start = np.clip(t / 1.5, 0, 1)
        event = np.where(t > EVENT_S, (peak - mean) * 0.6 * np.exp(-np.clip(t - EVENT_S, 0, None) / tau), 0.0)
        wave = np.cos(np.clip(t - 1.5, 0, None) * 2.5 / tau) if self.name == "pi" else 1.0
        bias = rng.normal() * spread / 12
        self.t = t
        self.queue = np.round(np.clip(mean * start + swing * wave + event * wave + noise + bias, 0, BUFFER_PKTS))
        self.p = np.clip(p * np.clip(t / (2 * tau), 0, 1) * (1 + noise / 300), 0, 1) if p else np.zeros_like(t)
        self.utilization = min(1.0, utilization + rng.normal() * 2e-4)

    def within(self, window):
        start, end = self.plan["windows"][window]
        return self.queue[(self.t > start) & (self.t <= end)]

    def link(self, window):
        queue, (start, end) = self.within(window), self.plan["windows"][window]
        departures = round(self.utilization * CAPACITY_PPS * (end - start))
        arrivals = departures + 60
        marked = round(BEHAVIOUR[self.name][4] * arrivals)
        overflow = 60 if self.name == "droptail" else 0
        q = float(queue.mean())
        return {
            "utilization": self.utilization,
            "queue_mean_pkts": q,
            "queue_std_pkts": float(queue.std()),
            "qacd_pkts": float(np.sqrt(np.mean((queue - TARGET_PKTS) ** 2))),
            "qacd_sampled_pkts": None,
            "sojourn_mean_s": q / CAPACITY_PPS,
            "sojourn_p50_s": float(np.quantile(queue, 0.5)) / CAPACITY_PPS,
            "sojourn_p95_s": float(np.quantile(queue, 0.95)) / CAPACITY_PPS,
            "sojourn_p99_s": float(np.quantile(queue, 0.99)) / CAPACITY_PPS,
            "arrivals_pkts": arrivals,
            "departures_pkts": departures,
            "marked_pkts": marked,
            "early_dropped_pkts": 0,
            "overflow_dropped_pkts": overflow,
            "wire_lost_pkts": 0,
            "mark_ratio": marked / arrivals,
            "early_drop_ratio": 0.0,
            "overflow_drop_ratio": overflow / arrivals,
            **{f"queue_p{share}_pkts": float(np.quantile(queue, share / 100)) for share in (5, 25, 50, 75, 95)},
            "queue_empty_ratio": float(np.mean(queue == 0)),
            "queue_below_target_ratio": float(np.mean(queue < TARGET_PKTS)),
            "probability_mean": BEHAVIOUR[self.name][4],
            "queue_iae_pkts_s": float(np.abs(queue - TARGET_PKTS).sum()) * 0.1,
            "queue_ise_pkts2_s": float(np.square(queue - TARGET_PKTS).sum()) * 0.1,
            "settling_s": None,
            "overshoot_pkts": float(queue.max()) - TARGET_PKTS,
            "loss_run_mean_pkts": 1.5 if overflow else None,
            "loss_run_max_pkts": 4 if overflow else None,
            "loss_dispersion": 2.5 if overflow else None,
            **dict.fromkeys(("loss_interval_mean_s", "loss_interval_p50_s", "loss_interval_p95_s")),
            **dict.fromkeys(("loss_event_flows_mean", "loss_sync_ratio", "arrivals_hurst")),
            "sync_index": 0.12,
            "rtt_fairness_slope": -0.9,
            "fairness_mean": 0.83,
            "convergence_s": None,
        }

    def group(self, window):
        return {
            "goodput_bps": self.utilization * 8e6 * 0.96 / 2,
            "jain_fairness": 0.97,
            "rtt_mean_s": 0.2 + float(self.within(window).mean()) / CAPACITY_PPS,
            "sojourn_mean_s": float(self.within(window).mean()) / CAPACITY_PPS,
            "sojourn_p95_s": None,
            "sojourn_p99_s": None,
            "retransmitted_ratio": 0.001,
            "timeouts": 3,
            "delay_mean_s": None,
            "jitter_mean_s": None,
            "loss_ratio": None,
            "throughput_bps": self.utilization * 4e6,
            **dict.fromkeys(
                ("delay_p50_s", "delay_p95_s", "delay_p99_s", "delay_variation_p95_s", "delay_variation_p99_s"),
            ),
            **dict.fromkeys(("loss_burst_mean_pkts", "frames", "frame_loss_ratio", "r_factor", "mos", "refused")),
            **dict.fromkeys(("startup_mean_s", "startup_p50_s", "startup_p95_s")),
            **dict.fromkeys(("pages", "page_load_mean_s", "page_load_p50_s")),
            **dict.fromkeys(("page_load_p95_s", "page_load_p99_s")),
            **dict.fromkeys(("video_began", "video_startup_mean_s", "video_stalls")),
            **dict.fromkeys(("video_stalled_ratio", "video_bitrate_mean_bps", "video_switches")),
            **{
                f"fct_{size}_{what}": value if size == "10kB_100kB" else 0 if what == "count" else None
                for size in ("under_10kB", "10kB_100kB", "100kB_1MB", "over_1MB")
                for what, value in FINISHED.items()
            },
        }

    @property
    def json(self):
        windows = self.plan["windows"]
        return json.dumps(
            {
                "schema": 1,
                "aqumen": VERSION,
                "scenario": self.plan["scenario"],
                "engine": self.engine,
                "aqm": {"name": self.name, "given": GIVEN[self.name], "params": PARAMS[self.name], "nominal": NOMINAL},
                "seed": self.plan["seed"],
                "windows": windows,
                "links": {"bottleneck": {window: self.link(window) for window in windows}},
                "flows": {group: {window: self.group(window) for window in windows} for group in ("ftp", "late")},
                "cost": {"cpu_s": 0.01, "wall_s": 0.01, "events": 1_000_000, "bottleneck_packets": 100_000},
            }
        )

    def series(self, link):
        assert link == "bottleneck"
        return self.t, self.queue, self.p

    def state(self, link):
        assert link == "bottleneck"
        return [("capacity_estimate", np.full(len(self.t), CAPACITY_PPS))]

    def sojourn_cdf(self, link, window):
        assert link == "bottleneck"
        values, counts = np.unique(self.within(window) / CAPACITY_PPS, return_counts=True)
        return values, np.cumsum(counts) / counts.sum()

    def queue_cdf(self, link, window):
        assert link == "bottleneck"
        values, counts = np.unique(self.within(window), return_counts=True)
        return values, np.cumsum(counts) / counts.sum()


class FluidResult(RunResult):
    """A fluid's queue is that of the packets ten packets higher, in all but name."""

    engine = "fluid"

    def __init__(self, scenario, aqm, seed):
        super().__init__(scenario, aqm, seed)
        self.queue = self.queue + 10.0


def run(scenario, aqm, seed, pcap=None, progress=None, threads=1):
    scenario.check_aqm(aqm or "droptail")
    for fraction in (0.25, 0.5, 1.0):
        if progress is not None and not progress(fraction):
            raise Cancelled
    if pcap is not None:
        with open(pcap, "wb") as file:
            file.write(b"\x0a\x0d\x0d\x0a")
    return RunResult(scenario, aqm, seed)


def run_many(scenario, jobs, threads, on_done):
    assert threads >= 1
    # Out of order, as threads finish.
    order = sorted(range(len(jobs)), key=lambda i: hashlib.sha256(str(jobs[i]).encode()).digest())
    for index in order:
        if not on_done(index, RunResult(scenario, *jobs[index])):
            return


def run_fluid_many(scenario, jobs, model, threads, on_done):
    assert model is None
    assert threads >= 1
    for index, job in enumerate(jobs):
        if not on_done(index, FluidResult(scenario, *job)):
            return


def list_aqms():
    parameter = {"unit": "pkt", "default": 100.0, "min": 0.0, "max": None, "choices": None, "doc": "Target queue."}
    return [
        {
            "name": name,
            "kind": "single-queue",
            "title": name.upper(),
            "summary": f"What {name} does.",
            "reference": "RFC 7567",
            "params": [{"name": "target", **parameter}] if PARAMS[name] else [],
            "common_params": [{"name": "threshold", **parameter}],
        }
        for name in BEHAVIOUR
    ]


def list_transports():
    params = [
        {"name": "ecn", "unit": "flag", "choices": None, "default": True, "doc": "Whether packets are ECN-capable."}
    ]
    row = {"name": "modern", "kind": "tcp", "summary": "TCP of today.", "reference": "RFC 9293", "params": params}
    return [row]


def list_traffic():
    bulk = {"name": "bulk", "kind": "transfers", "summary": "One transfer.", "reference": "-", "params": []}
    rate = {"name": "rate", "unit": "rate", "choices": None, "default": None, "required": True, "doc": "The rate."}
    cbr = {"name": "cbr", "kind": "packets", "summary": "Packets at one rate.", "reference": "-", "params": [rate]}
    return [bulk, cbr]


__version__ = VERSION


def predict(scenario, aqm, seed, loops=True):
    # No equations describe the link of the fake core.
    return {}
