// The report's plots: queue and probability over time, sojourn times, delay against throughput. Drawn with uPlot.
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  const aqms = data.aqms;
  const hidden = new Set();
  let layout = aqms.length > 1 ? "apart" : "together";
  let link = Object.keys(data.links)[0];
  const { style, colour, dash, faded, digits, axis, panel, words, empty, clear } = panels(aqms);
  const shown = () => aqms.filter((aqm) => !hidden.has(aqm));

  function dashedLine(u, x0, y0, x1, y1, stroke) {
    const c = u.ctx;
    c.save();
    c.strokeStyle = stroke;
    c.lineWidth = 1.25 * devicePixelRatio;
    c.setLineDash([6 * devicePixelRatio, 4 * devicePixelRatio]);
    c.beginPath();
    c.moveTo(x0, y0);
    c.lineTo(x1, y1);
    c.stroke();
    c.restore();
  }

  function label(u, text, x, y, align, baseline) {
    const c = u.ctx;
    c.save();
    c.font = 11 * devicePixelRatio + "px " + style("--font");
    c.textAlign = align;
    c.textBaseline = baseline;
    c.lineWidth = 3 * devicePixelRatio;
    c.strokeStyle = style("--card");
    c.fillStyle = style("--target");
    c.strokeText(text, x, y);
    c.fillText(text, x, y);
    c.restore();
  }

  // Target and events, drawn over the curves.
  function marks(target) {
    return (u) => {
      const { left, top, width, height } = u.bbox;
      for (const [name, at] of data.events) {
        const x = u.valToPos(at, "x", true);
        if (x > left && x < left + width) {
          dashedLine(u, x, top, x, top + height, style("--faint"));
          label(u, name, x + 5 * devicePixelRatio, top + 3 * devicePixelRatio, "left", "top");
        }
      }
      if (target !== null) {
        const y = u.valToPos(target, "y", true);
        if (y > top && y < top + height) {
          dashedLine(u, left, y, left + width, y, style("--target"));
          label(u, "target " + digits(target), left + width + 6 * devicePixelRatio, y, "left", "middle");
        }
      }
    };
  }

  function overTime(parent, key, names, heading, label, top, target, height) {
    const { t, time } = data.links[link];
    const values = [t], series = [{}], bands = [];
    for (const aqm of names) {
      const low = time[aqm][key + "_low"], high = time[aqm][key + "_high"];
      if (low) {
        values.push(high, low);
        series.push({ show: true, stroke: "transparent", points: { show: false } }, { show: true, stroke: "transparent", points: { show: false } });
        bands.push({ series: [series.length - 2, series.length - 1], fill: faded(colour(aqm), 0.22) });
      }
      values.push(time[aqm][key]);
      series.push({ stroke: colour(aqm), width: 1.25, dash: dash(aqm), points: { show: false }, aqm });
    }
    panel(parent, names, heading, {
      height, series, bands,
      scales: {
        x: { time: false, range: (_, a, b) => (a <= t[0] && b >= t[t.length - 1] ? [0, data.end] : [a, b]) },
        y: { range: () => [0, top] },
      },
      padding: [10, target === null ? 12 : 66, 0, 0],
      axes: [axis("Time, s", { size: 30, space: 64 }), axis(label, { size: 54 })],
      cursor: { sync: { key: "time", setSeries: false }, points: { show: (u, i) => u.series[i].aqm ? undefined : false }, drag: { x: true, y: false } },
      hooks: { draw: [marks(target)] },
    }, values, (u, _, named) => {
      const i = u.cursor.idx;
      const pairs = u.series.map((s, k) => [s.aqm, k]).filter(([aqm]) => aqm)
        .map(([aqm, k]) => [aqm, i == null || u.data[k][i] == null ? "" : digits(u.data[k][i])]);
      return words(i == null ? "" : u.data[0][i].toFixed(1) + " s", i == null && !named ? [] : pairs, named);
    });
  }

  const largest = (lists) => lists.reduce((m, list) => (list || []).reduce((a, b) => Math.max(a, b || 0), m), 0);

  function queues() {
    const parent = document.getElementById("queue");
    parent.replaceChildren();
    const { time, target } = data.links[link];
    const top = 1.06 * Math.max(target || 0, 1, largest(aqms.flatMap((aqm) => [time[aqm].queue, time[aqm].queue_high])));
    const together = layout === "together" || shown().length < 2;
    parent.classList.toggle("one", together);
    if (together) overTime(parent, "queue", shown(), null, "Queue, packets", top, target, 320);
    else for (const aqm of shown()) overTime(parent, "queue", [aqm], aqm, "Queue, packets", top, target, 220);
  }

  function probabilities() {
    const parent = document.getElementById("probability");
    parent.replaceChildren();
    const { time } = data.links[link];
    const top = Math.min(1, 1.1 * largest(shown().flatMap((aqm) => [time[aqm].p, time[aqm].p_high])));
    overTime(parent, "p", shown(), null, "Probability", top || 1, null, 240);
  }

  // A distribution function.
  function distribution(id, { x, share }, title, unit, what, none) {
    const parent = document.getElementById(id);
    parent.replaceChildren();
    const names = shown().filter((aqm) => share[aqm]);
    if (!names.length) return empty(parent, none);
    panel(parent, names, null, {
      height: 320,
      series: [{}, ...names.map((aqm) => ({ stroke: colour(aqm), width: 2, dash: dash(aqm), points: { show: false }, aqm }))],
      scales: { x: { time: false }, y: { range: () => [0, 1.02] } },
      axes: [axis(title, { size: 30 }), axis(what, { size: 54 })],
      cursor: { drag: { x: true, y: false } },
    }, [x, ...names.map((aqm) => share[aqm])], (u, all) => {
      const i = u.cursor.idx;
      const pairs = all.map((aqm, k) => [aqm, i == null ? "" : (100 * u.data[k + 1][i]).toFixed(1) + " %"]);
      return words(i == null ? "" : digits(u.data[0][i]) + unit, pairs, true);
    });
  }

  function sojourn() {
    distribution("cdf", data.links[link].cdf, "Sojourn time, ms", " ms", "Fraction of packets", "This engine records no sojourn times.");
  }

  function levels() {
    distribution("levels", data.links[link].levels, "Queue, packets", " packets", "Fraction of time", "This engine records no distribution.");
  }

  // Averaged queues of several engines.
  function engines() {
    const parent = document.getElementById("engines");
    if (!parent) return;
    parent.replaceChildren();
    const { time, target } = data.links[link];
    const names = shown().filter((aqm) => time[aqm].averaged);
    if (!names.length) return empty(parent, "All engines are switched off.");
    const top = 1.06 * Math.max(target || 0, 1, largest(names.map((aqm) => time[aqm].averaged)));
    overTime(parent, "averaged", names, null, "Queue, packets", top, target, 320);
  }

  function tradeoff() {
    const parent = document.getElementById("tradeoff");
    parent.replaceChildren();
    const all = data.links[link].tradeoff;
    const names = shown().filter((aqm) => all[aqm].x.length);
    if (!names.length) return empty(parent, "Nothing to show.");
    const points = names.flatMap((aqm) => all[aqm].x.map((x, i) => ({ aqm, x, y: all[aqm].y[i], seed: all[aqm].seed[i] })));
    points.sort((a, b) => a.x - b.x);
    const outline = points.map((p) => [p.x, p.y]).concat(names.flatMap((aqm) => all[aqm].ellipse));
    const span = (k, least) => {
      const v = outline.map((p) => p[k]);
      const low = Math.min(...v), high = Math.max(...v), middle = (low + high) / 2;
      const half = 0.58 * Math.max(high - low, least);
      return [middle - half, middle + half];
    };
    // The range of the throughput axis is at least half a percent.
    const xs = span(0, 1), ys = span(1, 5e-3 * Math.max(...points.map((p) => p.y)));
    const spread = ys[1] - ys[0];
    const places = Math.max(0, Math.min(6, 2 - Math.floor(Math.log10(spread))));
    panel(parent, names, null, {
      height: 320,
      series: [{}, ...names.map((aqm) => ({ stroke: colour(aqm), paths: () => null, points: { show: true, size: 6, width: 1, stroke: colour(aqm), fill: faded(colour(aqm), 0.55) }, aqm }))],
      scales: { x: { time: false, range: (_, a, b) => (a === points[0].x || a == null ? xs : [a, b]) }, y: { range: () => ys } },
      axes: [axis("Mean sojourn time, ms", { size: 30 }), axis("Throughput, Mbit/s", { size: 66, values: (_, ticks) => ticks.map((y) => y.toFixed(places > 3 ? places - 1 : places)) })],
      cursor: { drag: { x: true, y: false }, points: { show: false } },
      hooks: {
        draw: [(u) => {
          const c = u.ctx;
          c.save();
          c.beginPath();
          c.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
          c.clip();
          for (const aqm of names) {
            const outline = all[aqm].ellipse;
            if (!outline.length) continue;
            c.beginPath();
            outline.forEach(([x, y], i) => c[i ? "lineTo" : "moveTo"](u.valToPos(x, "x", true), u.valToPos(y, "y", true)));
            c.closePath();
            c.fillStyle = faded(colour(aqm), 0.13);
            c.fill();
            c.lineWidth = 1.5 * devicePixelRatio;
            c.strokeStyle = colour(aqm);
            c.stroke();
          }
          c.restore();
        }],
      },
    }, [points.map((p) => p.x), ...names.map((aqm) => points.map((p) => (p.aqm === aqm ? p.y : null)))], (u, _all) => {
      const { left, top } = u.cursor;
      let near = null, best = 24;
      if (left >= 0) {
        for (const p of points) {
          const d = Math.hypot(u.valToPos(p.x, "x") - left, u.valToPos(p.y, "y") - top);
          if (d < best) [near, best] = [p, d];
        }
      }
      if (near === null) return words("", names.map((aqm) => [aqm, ""]), true);
      return words("seed " + near.seed, [[near.aqm, digits(near.x) + " ms, " + near.y.toFixed(4) + " Mbit/s"]], true);
    });
  }

  function draw() {
    clear();
    if (!shown().length) {
      for (const id of ["queue", "engines", "probability", "cdf", "tradeoff", "levels"]) {
        const parent = document.getElementById(id);
        if (!parent) continue;
        parent.replaceChildren();
        empty(parent, "All AQMs are switched off.");
      }
      return;
    }
    queues();
    engines();
    probabilities();
    sojourn();
    tradeoff();
    levels();
  }

  for (const chip of document.querySelectorAll(".chip")) {
    chip.addEventListener("click", () => {
      const aqm = chip.dataset.aqm;
      if (!hidden.delete(aqm)) hidden.add(aqm);
      chip.setAttribute("aria-pressed", String(!hidden.has(aqm)));
      for (const row of document.querySelectorAll("tr[data-aqm]")) row.classList.toggle("off", hidden.has(row.dataset.aqm));
      draw();
    });
  }
  for (const button of document.querySelectorAll("[data-layout]")) {
    button.addEventListener("click", () => {
      layout = button.dataset.layout;
      for (const each of document.querySelectorAll("[data-layout]")) each.setAttribute("aria-pressed", String(each === button));
      draw();
    });
  }
  const pick = document.getElementById("link");
  if (pick) pick.addEventListener("change", () => { link = pick.value; draw(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  matchMedia("print").addEventListener("change", draw);
  draw();
})();
