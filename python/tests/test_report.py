"""The report: what stands in it, and that a browser draws it without a complaint and without the network."""

import json
import re
import subprocess
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest
from browser import browse, judged, screen, told

import aqumen
from aqumen.view.report import report_html
from aqumen.view.report.curves import _ellipse, representative_seed
from aqumen.view.report.page import _verdict
from aqumen.view.report.picture import scenario_svg


@pytest.fixture
def comparison(fake_core):
    scenario = aqumen.Scenario.parse(fake_core.TOML)
    return aqumen.compare(scenario, ["arm-pfc", "pi", "red", "droptail"], seeds=6)


@pytest.fixture
def page(comparison, tmp_path):
    path = tmp_path / "report.html"
    comparison.write_report(path, "aqumen compare mock.toml --aqm 'a <b>'")
    return path


class Tags(HTMLParser):
    """Collects elements, and complains of those that are left open."""

    VOID = frozenset({"meta", "link", "br", "rect", "line", "circle"})

    def __init__(self, text):
        super().__init__()
        self.open, self.attributes, self.count = [], [], {}
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.count[tag] = self.count.get(tag, 0) + 1
        self.attributes += [(tag, name, value) for name, value in attrs]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.attributes += [(tag, name, value) for name, value in attrs]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_whole_and_fetches_nothing(page):
    tags = Tags(page.read_text())
    assert tags.open == []
    assert not [each for each in tags.attributes if each[1] in ("src", "href", "srcset")]
    assert "link" not in tags.count
    assert "default-src 'none'" in page.read_text()
    assert not re.search(r"url\(|@import", page.read_text())


def test_the_page_ends_with_command_versions_and_scenario(page, fake_core):
    text = page.read_text()
    end = text[text.index("Reproduction") :]
    assert "aqumen compare mock.toml --aqm &#39;a &lt;b&gt;&#39;" in end
    assert "<dt>Seeds</dt><dd>1 to 6</dd>" in end
    assert f"<dt>Aqumen</dt><dd>{aqumen._core.__version__}" in end
    assert "title = &#34;Twelve endless transfers over one congested link&#34;" in end
    assert "a = 0.000648, b = 0.000642" in end


def test_the_ranking_says_who_is_best_and_by_how_much(comparison, page):
    text = page.read_text()
    summary = comparison.summary("arm-pfc", "qacd_pkts")
    half = (summary["ci95"][1] - summary["ci95"][0]) / 2
    assert f"<b>arm-pfc</b> keeps the queue within {summary['mean']:.1f} ± {half:.1f} packets of its target" in text
    assert text.count("significantly best</span>") == 1
    rows = re.findall(r'<tr data-aqm="([\w-]+)"[^>]*><td class="place">(\d)</td>', text)
    assert rows == [("arm-pfc", "1"), ("pi", "2"), ("red", "3"), ("droptail", "4")]


@pytest.mark.parametrize(
    ("places", "figures", "says"),
    [
        ([("a", 1, True)], 1, "<b>a</b> {}."),
        ([("a", 1, True), ("b", 2, False)], 1, "<b>a</b> {}, significantly better than the other one."),
        ([("a", 1, True), ("b", 2, False), ("c", 2, False)], 1, "<b>a</b> {}, significantly better than the 2 others."),
        # Each other one is clearly worse than somebody, but not each than the first.
        (
            [("a", 1, False), ("b", 2, False), ("c", 2, False)],
            1,
            "<b>a</b> {} and ranks first, but is not significantly better than every other AQM.",
        ),
        (
            [("a", 1, False), ("b<", 1, False), ("c", 3, False)],
            1,
            "<b>a</b> {}. <b>b&lt;</b> does not differ significantly from it.",
        ),
        (
            [("a", 1, False), ("b", 1, False)],
            2,
            "<b>a</b> {}. <b>b</b> does not differ significantly from it.",
        ),
    ],
)
def test_the_result_is_said_in_a_sentence(places, figures, says):
    used = {"mean": 0.9, "ci95": [0.89, 0.91], "n": 2}
    data = {"aqms": {"a": {"links": {"l": {"steady": {"utilization": used}}}}}}
    figure = SimpleNamespace(key="sojourn_mean_s", factor=1000, digits=1, unit="ms")
    ranking = SimpleNamespace(
        places=[
            SimpleNamespace(aqm=aqm, place=place, clearly_best=best, group="a", tied_with=["a"] if tied else [])
            for aqm, place, best in places
            for tied in [aqm != "a" and place == 1]
        ],
        figure=figure,
        goal=SimpleNamespace(figures=[figure] * figures),
        link="l",
        window="steady",
        summaries={"a": {"sojourn_mean_s": {"mean": 0.01, "ci95": [0.008, 0.012], "n": 2}}},
    )
    did = "has a mean sojourn time of 10.0 ± 2.0 ms at 90.00 ± 1.00 % utilisation"
    assert _verdict(data, ranking) == says.format(did)


def test_columns_stand_where_any_aqm_has_a_figure(page):
    text = page.read_text()
    flows = text[text.index("<h2>Flow groups</h2>") : text.index("<h2>Settling and overshoot</h2>")]
    # Each of four AQMs has two groups; of transfers only one size finished.
    assert flows.count('<td class="word">ftp</td>') == 4 + 4
    assert flows.count('<td class="word">10 to 100 kB</td>') == 8
    assert "MOS" not in flows
    assert "Fair after" not in text
    assert "Synchronisation" in text


def test_names_cannot_break_out(fake_core, monkeypatch, tmp_path):
    monkeypatch.setattr(fake_core.Scenario, "title", "</script><script>alert(1)</script>")
    monkeypatch.setattr(fake_core.Scenario, "check_aqm", lambda self, spec: None)
    comparison = aqumen.compare(aqumen.Scenario.parse(""), ['pi:"</script>'], seeds=3)
    comparison.write_report(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    # uPlot, the numbers, ours: and no more.
    assert text.count("<script") == text.count("</script>") == 3
    assert "alert(1)" in text


def test_an_aqm_has_one_colour_on_the_whole_page(fake_core, monkeypatch, tmp_path):
    monkeypatch.setattr(fake_core.Scenario, "check_aqm", lambda self, spec: None)
    aqms = [f"{aqm}:n={n}" for n in (1, 2, 3) for aqm in ("droptail", "red", "pi")]
    aqumen.compare(aqumen.Scenario.parse(""), aqms, seeds=2).write_report(tmp_path / "r.html")
    tags = re.findall(r"<[^>]*data-aqm=[^>]*>", (tmp_path / "r.html").read_text())
    found = [(re.search('data-aqm="(.+?)"', tag)[1], re.search(r"--c:var\(--c(\d+)\)", tag)[1]) for tag in tags]
    # Eight of them, and then the first again: in the legend, the ranking, and the tables of links, groups, transients.
    assert set(found) == {(aqm, f"{i % 8}") for i, aqm in enumerate(aqms)}
    assert len(found) >= 5 * len(aqms)


def test_one_seed_says_that_there_are_no_intervals(fake_core, tmp_path):
    aqumen.compare(aqumen.Scenario.parse(""), ["pi", "red"], seeds=1).write_report(tmp_path / "r.html")
    assert "One seed gives no confidence intervals" in (tmp_path / "r.html").read_text()


def test_the_representative_seed_is_the_least_unusual(comparison):
    link, seed = "bottleneck", representative_seed(comparison)

    def oddness(seed):
        total = 0.0
        for aqm in comparison.aqms:
            queues = {run.seed: run.link(link)["queue_mean_pkts"] for run in comparison.of(aqm)}
            middle = np.median(list(queues.values()))
            total += abs(queues[seed] - middle) / middle
        return total

    assert oddness(seed) == min(map(oddness, comparison.seeds))


def test_the_ellipse_holds_95_percent_of_a_normal_cloud():
    # 100 000 points of a correlated normal distribution; a share of 0.95 has a standard error of 0.0007.
    rng = np.random.default_rng(1)
    cloud = rng.normal(size=(100_000, 2)) @ np.array([[3.0, 1.0], [0.0, 0.5]]) + [100.0, 8.0]
    outline = np.array(_ellipse(cloud))
    centre, inverse = cloud.mean(axis=0), np.linalg.inv(np.cov(cloud.T))
    radius = np.einsum("ij,jk,ik->i", outline - centre, inverse, outline - centre)
    inside = np.einsum("ij,jk,ik->i", cloud - centre, inverse, cloud - centre) <= radius.mean()
    assert np.ptp(radius) < 0.01
    assert inside.mean() == pytest.approx(0.95, abs=0.0023)


def test_the_picture_draws_each_group_once_with_its_links(fake_core):
    picture = scenario_svg(aqumen.Scenario.parse("").plan(1, "pi"))
    assert "6 flows, reno + ECN" in picture
    assert "6 receivers" in picture
    assert "8 Mbit/s, 20 ms" in picture
    # Six of twelve hosts, whose delays go from 35 ms in equal steps to 45 ms: the sixth has 35 + 10 * 5/11 = 39.5 ms.
    assert "35 to 39.5 ms" in picture
    assert "buffer 300 packets" in picture
    assert "target 100 packets" in picture
    assert picture.count('class="node"') == 2


def test_the_picture_of_a_parking_lot_stands_in_columns():
    def link(name, start, end, record=False):
        return {
            "name": name, "from": start, "to": end, "delay_s": 0.01, "rates": [[0.0, 15e6], [40.0, 7.5e6]],
            "buffer_pkts": 200, "buffer_bytes": None, "record": record, "target_pkts": 50.0,
        }  # fmt: skip

    # Hosts a and b send through r1, r2, r3 and through r2, r3 only.
    nodes = ["r1", "r2", "r3", "a", "z", "b", "y"]
    links = [
        link("one", 0, 1, True),
        link("two", 1, 2, True),
        link("a", 3, 0),
        link("z", 2, 4),
        link("b", 5, 1),
        link("y", 2, 6),
    ]
    transport = {"preset": "modern", "variant": "sack", "ecn": False}
    plan = {
        "nodes": nodes,
        "links": links,
        "groups": [
            {"name": "through", "transport": transport, "flows": [0, 1]},
            {"name": "cross", "transport": transport, "flows": [1, 2]},
        ],
        "flows": [
            {"group": 0, "path": [2, 0, 1, 3], "return_path": [], "on": [[0.0, None]], "transfer_bytes": None},
            {"group": 1, "path": [4, 1, 5], "return_path": [], "on": [[5.0, None]], "transfer_bytes": 2_000_000},
        ],
    }
    picture = scenario_svg(plan)
    at = {name: float(x) for x, name in re.findall(r'<text class="in" x="([\d.]+)"[^>]*>(\w+)<', picture)}
    assert at["r1"] < at["r2"] < at["r3"]
    assert "15 Mbit/s, 10 ms" in picture
    assert "7.5 Mbit/s from 40 s" in picture
    assert "1 flow, sack<" in picture
    assert "2 MB each, from 5 s" in picture


def test_a_dozen_stations_get_low_symbols_that_hold_their_rates():
    def link(name, start, end, mbit, record=False):
        return {
            "name": name, "from": start, "to": end, "delay_s": 0.001, "rates": [[0.0, mbit * 1e6]],
            "buffer_pkts": 200, "buffer_bytes": None, "record": record, "target_pkts": None,
        }  # fmt: skip

    stations = range(12)
    links = [
        link("uplink", 1, 2, 20, True),
        link("lan", 0, 1, 1000),
        *(link(f"air{k}", 2, 3 + k, 54) for k in stations),
    ]
    plan = {
        "nodes": ["server", "gateway", "ap", *(f"st{k}" for k in stations)],
        "links": links,
        "groups": [
            {"name": f"call{k}", "transport": {"preset": "udp"}, "traffic": {"kind": "voip"}, "flows": [k, k + 1]}
            for k in stations
        ],
        "flows": [
            {"group": k, "path": [1, 0, 2 + k], "return_path": [], "on": [[0.0, None]], "transfer_bytes": None}
            for k in stations
        ],
    }
    picture = scenario_svg(plan)
    assert "call11: 1 receiver<" in picture
    assert picture.count("54 Mbit/s, 1 ms<") == 12
    assert "uplink<" in picture
    # Twelve rows of 46, not of 96: it fits a screen.
    assert float(re.search(r'viewBox="0 0 [\d.]+ ([\d.]+)"', picture).group(1)) < 600


def test_the_picture_tells_transport_and_traffic_of_other_flows(fake_core):
    plan = aqumen.Scenario.parse("").plan(1, "pi")
    plan["groups"][0] |= {"transport": {"preset": "udp"}, "traffic": {"kind": "voip"}}
    picture = scenario_svg(plan)
    assert "6 flows, udp<" in picture
    assert ">voip<" in picture


PROBE_FIRST = """<script>
window.complaints = [];
addEventListener("error", (e) => complaints.push("error: " + e.message));
addEventListener("securitypolicyviolation", (e) => complaints.push("blocked: " + e.blockedURI));
for (const level of ["error", "warn"]) console[level] = (...words) => complaints.push(level + ": " + words.join(" "));
</script>"""
PROBE_LAST = """<script>
addEventListener("load", () => setTimeout(() => {
  const painted = () => [...document.querySelectorAll("canvas")].map((canvas) => {
    const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    const colours = new Set();
    for (let i = 0; i < pixels.length; i += 4) {
      if (pixels[i + 3] > 250) colours.add((pixels[i] << 16) + (pixels[i + 1] << 8) + pixels[i + 2]);
    }
    return colours.size;
  });
  const seen = { first: painted() };
  const click = (selector) => document.querySelector(selector).click();
  click(".chip[data-aqm=droptail]");
  setTimeout(() => {
    seen.withoutOne = painted();
    seen.off = document.querySelectorAll("tr.off").length;
    click("[data-layout=together]");
    setTimeout(() => {
      seen.together = painted();
      const over = document.querySelector("#cdf .u-over"), box = over.getBoundingClientRect();
      const at = { clientX: box.left + box.width / 2, clientY: box.top + 20, bubbles: true };
      over.dispatchEvent(new MouseEvent("mousemove", at));
      setTimeout(() => {
        seen.readout = document.querySelector("#cdf h4").textContent;
        seen.dark = getComputedStyle(document.body).backgroundColor;
        seen.fetched = performance.getEntriesByType("resource").length;
        seen.wide = document.documentElement.scrollWidth - innerWidth;
        seen.complaints = complaints;
        const pre = document.createElement("pre");
        pre.id = "probe";
        pre.textContent = JSON.stringify(seen);
        document.body.append(pre);
      }, 200);
    }, 200);
  }, 200);
}, 200));
</script>"""


@pytest.mark.needs("chromium")
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 400)])
def test_a_browser_draws_it(page, tmp_path, scheme, width):
    text = page.read_text()
    probed = tmp_path / "probed.html"
    probed.write_text(text.replace("<head>", "<head>" + PROBE_FIRST, 1).replace("</body>", PROBE_LAST + "</body>", 1))
    chromium = subprocess.run(
        [
            "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
            "--disable-dev-shm-usage", f"--user-data-dir={tmp_path / 'profile'}", *screen(width, 2400),
            f"--blink-settings=preferredColorScheme={0 if scheme == 'dark' else 1}", "--virtual-time-budget=8000",
            "--dump-dom", probed.as_uri(),
        ],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    found = re.search(r'<pre id="probe">(.*?)</pre>', chromium.stdout, re.DOTALL)
    assert found, chromium.stderr[-2000:]
    seen = json.loads(found.group(1).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
    assert seen["complaints"] == []
    assert seen["fetched"] == 0
    # A queue plot for each AQM, then probability, sojourn time, delay against throughput, distribution of the
    # queue; each in several colours.
    assert len(seen["first"]) == 4 + 4
    assert min(seen["first"]) > 3
    assert len(seen["withoutOne"]) == 3 + 4
    # Its rows fade: in the ranking, the settling table, that of the links, and two groups in each of two of the flows.
    assert seen["off"] == 3 + 2 + 2
    assert len(seen["together"]) == 1 + 4
    assert min(seen["together"]) > 3
    # A time, then each AQM's share of packets.
    assert re.fullmatch(
        r"[\d.]+ ms(arm-pfc|pi|red) [\d.]+ %(arm-pfc|pi|red) [\d.]+ %(arm-pfc|pi|red) [\d.]+ %", seen["readout"]
    )
    assert seen["dark"] == ("rgb(20, 23, 27)" if scheme == "dark" else "rgb(251, 250, 248)")
    # Nothing sticks out sideways.
    assert seen["wide"] <= 0


@pytest.mark.needs("chromium")
@pytest.mark.parametrize(
    ("scheme", "width", "off"), [("light", 1280, True), ("dark", 1280, True), ("light", 400, False)]
)
def test_everybody_can_use_it(page, tmp_path, scheme, width, off):
    assert judged(page.read_text(), tmp_path, scheme, width, some_off=off) == []


@pytest.mark.needs("chromium")
def test_the_judge_of_that_sees_pale_text_and_a_scrolling_table_out_of_reach(page, tmp_path):
    text = page.read_text().replace("--faint: #656d76", "--faint: #8b949e").replace(' tabindex="0"', "")
    seen = judged(text, tmp_path, "light", 400)
    assert {"color-contrast", "scrollable-region-focusable"} <= {rule for rule, _, _ in seen}


STEER = """<script>
addEventListener("load", () => setTimeout(() => {
  const seen = {}, plot = document.querySelector("#queue .plot");
  const shown = () => [...plot.querySelectorAll(".u-axis, .u-over")].length;
  const press = (key) => plot.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  seen.focusable = plot.tabIndex, seen.parts = shown();
  const image = () => plot.querySelector("canvas").toDataURL();
  const whole = image();
  seen.ignored = press("x");
  setTimeout(() => {
    seen.handled = !press("+");
    setTimeout(() => {
      const near = image();
      press("ArrowRight");
      setTimeout(() => {
        const right = image();
        press("0");
        setTimeout(() => {
          Object.assign(seen, { zoomed: near !== whole, moved: right !== near, back: image() === whole });
          const pre = document.createElement("pre");
          pre.id = "probe";
          pre.textContent = JSON.stringify(seen);
          document.body.append(pre);
        }, 100);
      }, 100);
    }, 100);
  }, 100);
}, 300));
</script>"""


@pytest.mark.needs("chromium")
def test_plots_are_zoomed_and_moved_by_keyboard(page, tmp_path):
    seen = told(browse(page.read_text().replace("</body>", STEER + "</body>", 1), tmp_path, "light", 1280))
    assert seen["focusable"] == 0
    assert (seen["ignored"], seen["handled"]) == (True, True)
    assert (seen["zoomed"], seen["moved"], seen["back"]) == (True, True, True)


def test_who_signals_at_moments_has_no_line_at_zero_and_is_named(fake_core, tmp_path, monkeypatch):
    # CoDel marks, and has no probability: a line at 0 would say that it never does.
    series = fake_core.RunResult.series

    def without(self, link):
        t, queue, p = series(self, link)
        return t, queue, np.zeros_like(p) if self.name == "red" else p

    monkeypatch.setattr(fake_core.RunResult, "series", without)
    comparison = aqumen.compare(aqumen.Scenario.parse(fake_core.TOML), ["pi", "red", "droptail"], seeds=2)
    comparison.write_report(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert "<b>red</b> signals without a probability" in text
    curves = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text).group(1))
    lines = curves["links"]["bottleneck"]["time"]
    assert set(lines["red"]["p"]) == {None}
    assert None not in lines["pi"]["p"]
    # DropTail signals nothing: its line at 0 is right.
    assert set(lines["droptail"]["p"]) == {0.0}


def test_the_share_dropped_has_an_interval_where_packets_are_dropped_early_and_for_want_of_room():
    comparison = aqumen.compare(aqumen.Scenario.load("arm-pfc/exp1").until("5s"), ["codel"], seeds=2)
    early, overflow = (comparison.summary("codel", f"{why}_drop_ratio")["mean"] for why in ("early", "overflow"))
    assert early > 0
    assert overflow > 0
    dropped = comparison.summary("codel", "drop_ratio")
    below, above = (abs(end - dropped["mean"]) * 100 for end in dropped["ci95"])
    table = re.search(r'<table class="rank"><caption class="unseen">Ranking.*?</table>', report_html(comparison))[0]
    last = re.sub(r"<[^>]+>", "", re.findall(r"<td>(.*?)</td>", table)[-1])
    assert last == f"{dropped['mean'] * 100:.2f} −{below:.2f}/+{above:.2f}"
