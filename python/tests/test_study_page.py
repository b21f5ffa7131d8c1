"""The page of a study: its figures are those of the rows, a browser draws it, and it stays small."""

import base64
import json
import random
import re

import numpy as np
import pytest
from browser import browse, judged, told
from scipy import stats

from aqumen._files import write_text
from aqumen._statistics import summarize
from aqumen._store import Store
from aqumen.cli import main
from aqumen.errors import OutputError, ScenarioError
from aqumen.study import Rows
from aqumen.study.cases import Bases, Case
from aqumen.study.page import PAGE_MAX, direction, study_html
from aqumen.study.rows import MANIFEST, SHAPE, manifest, row_key

METRICS = ["queue_mean_pkts", "sojourn_p99_s", "utilization", "ftp.goodput_bps", "mark_ratio", "utilization@all"]


def made(folder, cases, value, *, seeds=3, metrics=METRICS, title="Study", stop=None, missing=()):
    """A study of made-up rows: `value(metric, labels, seed)`; the cases of `missing` have none."""
    every = [
        Case(f"{i:024x}", "net", (), labels["aqm"], {"scenario": "net", **labels}) for i, labels in enumerate(cases)
    ]
    bases = Bases({"net": ('name = "net"\n', {})}, [], "")
    text = manifest("packet", range(1, seeds + 1), stop, title, bases, every, "aqumen study run s.toml --out s")
    with Store(folder) as store:
        write_text(folder / MANIFEST, text)
        store.put(f"{SHAPE}a", json.dumps(metrics))
        for i, case in enumerate(every):
            for seed in range(1, seeds + 1) if i not in missing else ():
                values = [value(metric, case.labels, seed) for metric in metrics]
                row = {"h": "a", "bits": "0", "v": values, "cost": [0.1, 0.1, 100, 10]}
                store.put(row_key(case.key, seed), json.dumps(row))
    return Rows(folder)


def grid(aqms=("pi", "codel"), counts=(1, 2, 5), delays=("5ms", "20ms")):
    return [{"aqm": aqm, "flows.n.count": n, "b.delay": delay} for n in counts for delay in delays for aqm in aqms]


def figure(metric, labels, seed):
    """PI is better at one flow, CoDel at more than two, and at two neither is; utilisation is near its bound."""
    n, noise = labels["flows.n.count"], random.Random(f"{metric} {labels} {seed}").gauss(0, 1)
    if metric.startswith("utilization"):
        return min(1.0, 0.98 + 0.005 * noise)
    return 10.0 + (n - 2) * (2 if labels["aqm"] == "pi" else -2) + 0.1 * noise


def data_of(text):
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    return json.loads(found[1])


def unpacked(metric, n):
    """Mean and standard deviation of each case, as the page reads them."""
    b = np.frombuffer(base64.b64decode(metric["data"]), np.uint8).reshape(5, n)
    zero = np.zeros(n, np.uint8)
    floats = [np.stack(rows, 1).copy().view(">f4")[:, 0] for rows in ([*b[:3], zero], [*b[3:], zero, zero])]
    return floats[0], floats[1]


def test_the_page_has_mean_and_deviation_of_each_case(tmp_path):
    rows = made(tmp_path, grid(), figure)
    data = data_of(study_html(rows))
    assert data["cases"] == 12
    assert data["aqms"] == ["pi", "codel"]
    assert [(dim["name"], dim["labels"], dim["values"], dim["unit"]) for dim in data["dims"]] == [
        ("scenario", ["net"], None, ""),
        ("flows.n.count", ["1", "2", "5"], [1, 2, 5], ""),
        ("b.delay", ["5ms", "20ms"], [0.005, 0.02], "s"),
    ]
    # Of other windows only what is asked for.
    assert [metric["name"] for metric in data["metrics"]] == METRICS[:-1]
    assert data_of(study_html(rows, ["utilization@all"]))["metrics"][0]["name"] == "utilization@all"
    for metric in data["metrics"]:
        mean, std = unpacked(metric, 12)
        for i, labels in enumerate(grid()):
            found = summarize([figure(metric["name"], {"scenario": "net", **labels}, seed) for seed in (1, 2, 3)])
            # 16 and 8 significant bits.
            assert mean[i] == pytest.approx(found["mean"], rel=2**-16)
            assert std[i] == pytest.approx(found["std"], rel=2**-8)
    assert next(m["range"] for m in data["metrics"] if m["name"] == "utilization") == [0, 1]


def test_undefined_values_and_parameters_of_one_aqm(tmp_path):
    cases = [{"aqm": "pi", "pi:target": t} for t in ("20pkt", "5ms")] + [{"aqm": "codel"}]
    rows = made(tmp_path, cases, lambda metric, labels, seed: float("nan") if seed > 1 else 4.0 + len(labels), seeds=3)
    data = data_of(study_html(rows))
    target = data["dims"][1]
    # Packets and time are no common axis; CoDel has no such parameter.
    assert (target["labels"], target["values"]) == (["20pkt", "5ms"], None)
    assert np.frombuffer(base64.b64decode(target["at"]), "<u2").tolist() == [0, 1, 65535]
    for metric in data["metrics"]:
        mean, std = unpacked(metric, 3)
        assert mean.tolist() == [7, 7, 6]
        assert np.isnan(std).all()
        assert np.frombuffer(base64.b64decode(metric["n"]), "<u2").tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("metric", "more"),
    [("utilization", True), ("web.goodput_bps@all", True), ("core:sojourn_p99_s", False), ("mark_ratio", None),
     ("queue_mean_pkts", None), ("web.fct_under_10kB_p99_s", False), ("web.fct_under_10kB_count", None),
     ("overflow_drop_ratio", False), ("voip.mos", True), ("arrivals_hurst", None)],
)  # fmt: skip
def test_whether_more_is_better_is_known_or_asked(metric, more):
    assert direction(metric) is more


def test_ten_thousand_cases_fit_and_what_does_not_is_named(tmp_path):
    source = np.random.default_rng(1)
    metrics = [f"link{k}:sojourn_mean_s" for k in range(60)]
    cases = grid(("pi", "codel", "red", "pie"), range(1, 51), [f"{d}ms" for d in range(1, 51)])
    rows = made(tmp_path, cases, lambda *_: round(float(source.random()), 9), seeds=2, metrics=metrics)
    text = study_html(rows, ["link59:sojourn_mean_s"])
    assert len(text.encode()) < PAGE_MAX < 3_000_000
    data = data_of(text)
    assert data["cases"] == 10_000
    names = [metric["name"] for metric in data["metrics"]]
    assert names[:2] == ["link59:sojourn_mean_s", "link0:sojourn_mean_s"]
    assert len(names) > 30
    left = re.search(r"Left out, since the page would be too large: (.*?)\. <code>", text)[1]
    assert {*names, *left.split(", ")} == set(metrics)


def test_what_is_missing_is_told(tmp_path, capsys):
    stop = {"metric": "queue_mean_pkts", "relative": 1e-9, "absolute": None, "least": 2, "most": 3}
    made(tmp_path / "s", grid(), figure, missing=(0, 3), stop=stop)
    assert main(["report", str(tmp_path / "s")]) == 0
    text = (tmp_path / "s" / "report.html").read_text()
    assert "4 runs are missing, 2 cases have none; the command below makes them." in text
    assert "The stopping rule was not reached in 10 cases." in text
    assert "within 1e-07 % of the mean, 2 to 3 seeds" in text
    assert "aqumen study run s.toml --out s" in text
    assert "10 of 12 cases complete" in text
    assert main(["report", str(tmp_path / "s"), "--metric", "queue_men_pkts"]) == 2
    assert "no metric `queue_men_pkts`; did you mean queue_mean_pkts" in capsys.readouterr().err
    assert main(["report", str(tmp_path / "s"), "--theory"]) == 2


def test_a_study_without_a_run_has_no_page(tmp_path):
    with pytest.raises(OutputError, match="no run is finished"):
        study_html(made(tmp_path, grid(), figure, missing=range(12)))
    with pytest.raises(ScenarioError, match="no metric"):
        study_html(made(tmp_path / "o", grid(), figure), ["aqm"])


def test_names_cannot_break_the_page(tmp_path):
    evil = '</script><b id="evil">'
    cases = [{**labels, "aqm": labels["aqm"] + evil} for labels in grid()]
    text = study_html(made(tmp_path, cases, figure, title=evil))
    assert evil not in text
    assert "src=" not in text.replace("data-src", "")


WATCH = "<script>const faults = []; addEventListener('error', (event) => faults.push(event.message));</script>"
PROBE = """<script>
addEventListener("load", () => setTimeout(() => {
  const choose = (id, text) => {
    const select = document.getElementById(id);
    select.value = [...select.options].find((each) => each.textContent === text).value;
    select.dispatchEvent(new Event("change"));
  };
  const key = (place, name) => place.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true }));
  const words = (id) => document.querySelector("#" + id + " h4").innerText.replace(/\\s+/g, " ").trim();
  const answer = {};
  const ink = () => {
    const { width, height } = document.querySelector("#curves canvas");
    const pixels = document.querySelector("#curves canvas").getContext("2d").getImageData(0, 0, width, height).data;
    return pixels.reduce((sum, x, i) => sum + (i % 4 === 3 && x > 0), 0);
  };
  answer.first = document.getElementById("winners").innerText;
  choose("best", "mark_ratio");
  answer.asked = document.getElementById("winners").innerText;
  choose("more", "less");
  answer.counts = document.querySelector("#winners .note").innerText;
  const place = document.querySelector("#winners .plot");
  key(place, "ArrowUp");
  answer.top = words("winners");
  key(place, "ArrowRight");
  answer.middle = words("winners");
  choose("best", "sojourn_p99_s");
  answer.known = document.getElementById("more").value;
  choose("px", "mark_ratio");
  choose("py", "utilization");
  answer.unclear = document.querySelector("#pair .note").innerText;
  choose("px", "sojourn_p99_s");
  choose("py", "ftp.goodput_bps");
  answer.front = document.querySelector("#pair .note").innerText;
  choose("metric", "utilization");
  key(document.querySelector("#maps .plot"), "ArrowUp");
  answer.cell = words("maps");
  document.querySelector("#held select").value = "all";
  choose("x", "b.delay");
  document.querySelector("#held select").dispatchEvent(new Event("change"));
  answer.how = document.getElementById("how").innerText;
  answer.inks = [];
  const boxes = ["logx", "logy"].map((id) => document.getElementById(id));
  const tick = (box) => { box.checked = !box.checked; box.dispatchEvent(new Event("change")); };
  const steps = [() => choose("x", "flows.n.count"), () => tick(boxes[0]), () => tick(boxes[1]), () => tick(boxes[0])];
  // uPlot draws after the event.
  const look = () => answer.inks.push(ink());
  steps.forEach((step, i) => setTimeout(() => { step(); setTimeout(look, 50); }, 100 * (i + 1)));
  setTimeout(() => {
    const pre = document.createElement("pre");
    pre.id = "probe";
    pre.textContent = JSON.stringify({ ...answer, faults });
    document.body.append(pre);
  }, 100 * (steps.length + 1));
}, 300));
</script>"""


@pytest.mark.needs("chromium")
def test_the_reader_chooses_what_is_best(tmp_path):
    text = study_html(made(tmp_path / "s", grid(counts=(1, 2, 50)), figure))
    text = text.replace("<head>", "<head>" + WATCH).replace("</body>", PROBE + "</body>")
    answer = told(browse(text, tmp_path, "light", 1280))
    assert answer["faults"] == []
    assert len(answer["inks"]) == 4
    assert min(answer["inks"]) > 5000
    assert answer["first"].strip() == "Choose a metric to see which AQM is best where."
    assert answer["asked"].strip() == "Choose whether less or more of this metric is better."
    # Less: PI at one flow, CoDel at fifty, at both delays.
    assert answer["counts"] == "6 combinations: pi 2, codel 2, open 2."
    assert re.fullmatch(r"1, 20ms pi 8\.\d \(7\.\d to 8\.\d\) ?best", answer["top"])
    assert "its interval overlaps" in answer["middle"]
    assert answer["known"] == "0"
    assert answer["unclear"] == "No front: whether less or more is better is not given for mark_ratio."
    # At one flow PI has the shorter delay and CoDel the higher goodput.
    assert answer["front"] == "Pareto front of the means: pi, codel."
    # As the tables of a study have it: within the range of the metric.
    values = [figure("utilization", {"scenario": "net", **grid(counts=(1,))[2]}, seed) for seed in (1, 2, 3)]
    low, high = summarize(values, (0.0, 1.0))["ci95"]
    numbers = [float(x) for x in re.findall(r"0\.\d+", answer["cell"])]
    assert numbers == pytest.approx([sum(values) / 3, low, high], abs=1.1e-3)
    assert answer["how"] == "A point is the mean over up to 3 combinations of the other factors."


MANY = """<script>
addEventListener("load", () => setTimeout(() => {
  for (const [id, text] of [["best", "mark_ratio"], ["more", "less"]]) {
    const select = document.getElementById(id);
    select.value = [...select.options].find((each) => each.textContent === text).value;
    select.dispatchEvent(new Event("change"));
  }
  const pre = document.createElement("pre");
  pre.id = "probe";
  const told = [document.querySelector("#winners .note"), document.getElementById("how")];
  pre.textContent = JSON.stringify(told.map((each) => each.innerText));
  document.body.append(pre);
}, 300));
</script>"""


@pytest.mark.needs("chromium")
def test_an_aqm_beyond_those_that_are_drawn_may_be_the_best(tmp_path):
    aqms = [f"aqm{i}" for i in range(40)]
    rows = made(tmp_path / "s", grid(aqms), lambda _, labels, seed: 100.0 - int(labels["aqm"][3:]) + 0.01 * seed)
    text = study_html(rows).replace("</body>", MANY + "</body>")
    counts, how = told(browse(text, tmp_path, "light", 1280))
    assert counts == "6 combinations: aqm39 6, open 0."
    assert how == "The first 24 of 40 lines are drawn; switch some off above."


@pytest.mark.needs("chromium")
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 400)])
def test_the_page_is_for_everyone(tmp_path, scheme, width):
    assert judged(study_html(made(tmp_path / "s", grid(), figure)), tmp_path, scheme, width, some_off=True) == []


READ = """<script>
addEventListener("load", () => setTimeout(() => {
  const held = [...document.querySelectorAll("#held label")].find((each) => each.innerText.startsWith("c"));
  if (held) {
    const select = held.querySelector("select");
    select.value = "all";
    select.dispatchEvent(new Event("change"));
  }
  const place = document.querySelector("#maps .plot");
  place.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowDown", bubbles: true }));
  const pre = document.createElement("pre");
  pre.id = "probe";
  pre.textContent = JSON.stringify(document.querySelector("#maps h4").innerText.replace(/\\s+/g, " ").trim());
  document.body.append(pre);
}, 300));
</script>"""


def first_cell(text, tmp_path):
    """Numbers of the first cell of the first heat map, after its labels: mean and ends of the interval."""
    said = told(browse(text.replace("</body>", READ + "</body>"), tmp_path, "light", 1280))
    found = re.search(r"(\S+) \((\S+) to (\S+)\)$", said)
    assert found, said
    return [float(x) for x in found.groups()]


@pytest.mark.needs("chromium")
def test_a_mean_over_levels_adds_variances_up(tmp_path):
    values = {1: [10.0, 12.0, 17.0], 2: [200.0, 260.0, 230.0]}
    cases = [{**labels, "c": c} for labels in grid(("pi",)) for c in values]
    rows = made(tmp_path / "s", cases, lambda _, labels, seed: values[labels["c"]][seed - 1])
    variances = [float(np.var(each, ddof=1)) / 3 for each in values.values()]
    mean = sum(map(sum, values.values())) / 6
    freedom = sum(variances) ** 2 / sum(v**2 / 2 for v in variances)
    half = stats.t.ppf(0.975, freedom) * np.sqrt(sum(variances)) / 2
    # The page has 8 bits of a deviation, and prints three digits.
    assert first_cell(study_html(rows), tmp_path) == pytest.approx([mean, mean - half, mean + half], abs=0.6)


@pytest.mark.needs("chromium")
def test_points_of_a_sampling_design_are_grouped_and_vary_themselves(tmp_path):
    source = random.Random(3)
    points = [(i + 1, source.gauss(50, 5)) for i in range(120)]
    cases = [{"aqm": "pi", "a": float(i), "b": 1 + i % 2} for i, _ in points]
    rows = made(tmp_path / "s", cases, lambda _, labels, seed: points[int(labels["a"]) - 1][1] + seed)
    # 120 levels in 20 bins: 1 to 6, of which 2, 4 and 6 have b = 1.
    means = [points[i - 1][1] + 2 for i in (2, 4, 6)]
    mean, half = np.mean(means), stats.t.ppf(0.975, 2) * np.std(means, ddof=1) / np.sqrt(3)
    assert first_cell(study_html(rows), tmp_path) == pytest.approx([mean, mean - half, mean + half], abs=0.1)
