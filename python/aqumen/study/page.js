// The page of a study: curves, heat maps and phase diagrams of a metric over the factors that the reader chooses.
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);
  // A factor with more levels is drawn by bins of equally many levels.
  const LEVELS_MAX = 100, BINS = 20, LINES_MAX = 24, ABSENT = 65535;

  const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const words16 = (text) => { const b = bytes(text), w = new Uint16Array(b.length / 2); for (let i = 0; i < w.length; i++) w[i] = b[2 * i] | (b[2 * i + 1] << 8); return w; };

  const aqmOf = words16(data.aqm), runsOf = words16(data.n);
  const dims = data.dims.map((dim) => {
    const count = dim.labels.length, [aqm, parameter] = dim.name.split(/:(.*)/s);
    const wide = dim.values !== null && count > LEVELS_MAX;
    // The bin of each level, and the number and text of each bin.
    const bin = dim.labels.map((_, i) => (wide ? Math.floor((i * BINS) / count) : i));
    const groups = wide ? BINS : count;
    const inside = Array.from({ length: groups }, () => []);
    bin.forEach((b, i) => inside[b].push(i));
    const mean = (list) => list.reduce((a, i) => a + dim.values[i], 0) / list.length;
    return {
      name: dim.name, at: words16(dim.at), own: parameter ? aqm : null, parameter, wide, count, bin, groups,
      label: dim.name + (dim.unit ? ", " + dim.unit : ""),
      values: dim.values && inside.map(mean),
      labels: inside.map((list) => (wide ? dim.labels[list[0]] + " to " + dim.labels[list[list.length - 1]] : dim.labels[list[0]])),
      chosen: "all",
    };
  });
  const varying = dims.filter((dim) => dim.count > 1);
  const sampled = varying.some((dim) => dim.wide);

  // Mean and standard deviation of each case, unpacked when a metric is first drawn.
  const values = data.metrics.map(() => null);
  function unpacked(k) {
    if (!values[k]) {
      const n = data.cases, b = bytes(data.metrics[k].data), mean = new Float32Array(n), std = new Float32Array(n), view = new DataView(new ArrayBuffer(4));
      for (let i = 0; i < n; i++) {
        view.setUint32(0, (b[i] * 0x1000000) + (b[n + i] << 16) + (b[2 * n + i] << 8));
        mean[i] = view.getFloat32(0);
        view.setUint32(0, (b[3 * n + i] * 0x1000000) + (b[4 * n + i] << 16));
        std[i] = view.getFloat32(0);
      }
      values[k] = { mean, std, n: data.metrics[k].n ? words16(data.metrics[k].n) : runsOf };
    }
    return values[k];
  }

  // 97.5 % quantile of Student's t, interpolated in the inverse of the degrees of freedom.
  function student(freedom) {
    const table = data.student;
    const k = Math.max(1, table.findIndex(([f]) => f >= freedom));
    const [[f0, t0], [f1, t1]] = [table[k - 1], table[k]];
    return t0 + (t1 - t0) * Math.min(1, Math.max(0, (1 / f0 - 1 / freedom) / (1 / f0 - 1 / f1)));
  }

  // Interval around a mean within the range of its metric: Student's for the logit where both ends are finite.
  function interval(mean, half, [low, high]) {
    if (low !== null && high !== null && half > 0 && mean > low && mean < high) {
      const width = high - low, f = (mean - low) / width, logit = Math.log(f / (1 - f)), h = half / (width * f * (1 - f));
      return [logit - h, logit + h].map((x) => low + width / (1 + Math.exp(-x)));
    }
    return [low === null ? mean - half : Math.max(mean - half, Math.min(low, mean)), high === null ? mean + half : Math.min(mean + half, Math.max(high, mean))];
  }

  const lineName = (aqm, dimsEach, levels) => {
    const given = dimsEach.map((dim, k) => (levels[k] === ABSENT ? "" : dim.parameter + "=" + dim.labels[dim.bin[levels[k]]])).filter(Boolean).join(",");
    return data.aqms[aqm] + (given ? (data.aqms[aqm].includes(":") ? "," : ":") + given : "");
  };

  // Means of a metric by line and by the bins of the factors on axes.
  function gathered(k, axes) {
    const { mean, std, n } = unpacked(k);
    const each = varying.filter((dim) => dim.chosen === "each" && !axes.includes(dim));
    const held = varying.filter((dim) => !axes.includes(dim) && dim.chosen !== "all" && dim.chosen !== "each").map((dim) => [dim.at, Number(dim.chosen)]);
    const lines = new Map();
    for (let i = 0; i < data.cases; i++) {
      if (!n[i] || held.some(([at, level]) => at[i] !== level && at[i] !== ABSENT) || axes.some((dim) => dim.at[i] === ABSENT)) continue;
      const line = aqmOf[i] + each.map((dim) => "," + (dim.at[i] === ABSENT ? "" : dim.bin[dim.at[i]])).join("");
      if (!lines.has(line)) lines.set(line, { name: lineName(aqmOf[i], each, each.map((dim) => dim.at[i])), cells: new Map() });
      const place = axes.reduce((a, dim) => a * dim.groups + dim.bin[dim.at[i]], 0), cells = lines.get(line).cells;
      let cell = cells.get(place);
      if (!cell) cells.set(place, (cell = { cases: 0, runs: 0, sum: 0, squares: 0, variance: 0, weights: 0, single: false }));
      const v = (std[i] * std[i]) / n[i];
      cell.cases += 1;
      cell.runs += n[i];
      cell.sum += mean[i];
      cell.squares += mean[i] * mean[i];
      if (n[i] > 1) { cell.variance += v; cell.weights += (v * v) / (n[i] - 1); } else cell.single = true;
    }
    const range = data.metrics[k].range;
    for (const { cells } of lines.values()) for (const cell of cells.values()) finish(cell, range);
    return [...lines.values()];
  }

  // Mean and interval of a cell. Over levels of a grid, variances add up, with degrees of freedom by Satterthwaite;
  // over points that were sampled, the means of the points vary.
  function finish(cell, range) {
    const { cases, sum, squares, variance, weights } = cell;
    cell.mean = sum / cases;
    cell.ends = null;
    if (cases > 1 && sampled) {
      const v = Math.max(0, (squares - cases * cell.mean * cell.mean) / (cases - 1));
      cell.ends = interval(cell.mean, student(cases - 1) * Math.sqrt(v / cases), range);
    } else if (!cell.single) {
      const freedom = weights > 0 ? (variance * variance) / weights : 1;
      cell.ends = interval(cell.mean, (student(freedom) * Math.sqrt(variance)) / cases, range);
    }
  }

  const lineNames = [], hidden = new Set();
  const { style, colour, dash, faded, digits, axis, panel, savers, words, empty, clear } = panels(lineNames);
  // With its parameter on an axis, an AQM is one line: off when all of its variants are.
  const off = (name) => {
    const variants = lineNames.filter((each) => each !== name && each.startsWith(name) && ":,".includes(each[name.length]));
    return hidden.has(name) || (variants.length > 0 && variants.every((each) => hidden.has(each)));
  };
  const visible = (lines) => lines.filter((line) => !off(line.name));
  const shown = (lines) => visible(lines).slice(0, LINES_MAX);
  const spread = (cell) => digits(cell.mean) + (cell.ends ? " (" + digits(cell.ends[0]) + " to " + digits(cell.ends[1]) + ")" : "");
  const metric = () => Number($("metric").value);
  const dimOf = (id) => dims[Number($(id).value)];

  function curves() {
    const parent = $("curves"), dim = dimOf("x");
    parent.replaceChildren();
    if (!dim) return empty(parent, "No factor varies.");
    const all = gathered(metric(), [dim]), lines = shown(all);
    $("how").textContent = told(all, dim);
    if (!lines.length) return empty(parent, all.length ? "All AQMs are switched off." : "No run has this metric here.");
    const at = (b) => (dim.values ? dim.values[b] : b);
    const bins = [...new Set(lines.flatMap((line) => [...line.cells.keys()]))].sort((a, b) => at(a) - at(b));
    const xs = bins.map(at), rows = [xs], series = [{}], bands = [];
    for (const { name, cells } of lines) {
      const pick = (give) => bins.map((b) => (cells.has(b) ? give(cells.get(b)) : null));
      if ([...cells.values()].some((cell) => cell.ends)) {
        const blank = { stroke: "transparent", points: { show: false }, spanGaps: true };
        rows.push(pick((cell) => (cell.ends ? cell.ends[1] : cell.mean)), pick((cell) => (cell.ends ? cell.ends[0] : cell.mean)));
        series.push(blank, blank);
        bands.push({ series: [series.length - 2, series.length - 1], fill: faded(colour(name), 0.2) });
      }
      rows.push(pick((cell) => cell.mean));
      series.push({ stroke: colour(name), width: 1.75, dash: dash(name), points: { show: xs.length <= 50, size: 5 }, spanGaps: true, aqm: name });
    }
    const logx = $("logx").checked && dim.values && xs[0] > 0, every = rows.slice(1).flat().filter((y) => y !== null);
    const logy = $("logy").checked && Math.min(...every) > 0, texts = dim.values === null;
    const [x0, x1] = [xs[0], xs[xs.length - 1]];
    const wide = x1 > x0 ? [x0, x1] : texts || !x0 ? [x0 - 1, x0 + 1] : [x0 / 2, x0 * 2];
    // The axis begins at 0 unless all values are far from it.
    const [least, most] = [Math.min(...every), Math.max(...every)], pad = 0.06 * (most - least) || Math.abs(most) / 10 || 1;
    const bottom = least > 0.5 * most ? least - pad : Math.min(0, least - pad), top = most + pad;
    const ticks = dim.wide || xs.length > 40 ? [] : spaced(xs, logx);
    panel(parent, lines.map((line) => line.name), null, {
      height: 380, series, bands,
      scales: {
        x: { time: false, distr: logx ? 3 : 1, range: (_, a, b) => (b > a ? [a, b] : wide) },
        y: logy ? { distr: 3 } : { range: () => [bottom, top] },
      },
      axes: [
        axis(dim.label, { size: 30, space: 64, ...(texts || (logx && ticks.length) ? { splits: () => ticks, filter: (_, at) => at, values: (_, at) => at.map((x) => cut(dim.labels[bins[xs.indexOf(x)]])) } : {}) }),
        axis(data.metrics[metric()].name, { size: 66 }),
      ],
      cursor: { drag: { x: true, y: false }, points: { show: (u, i) => (u.series[i].aqm ? undefined : false) } },
    }, rows, (u) => {
      const i = u.cursor.idx;
      return words(i == null ? "" : dim.labels[bins[i]], lines.map(({ name, cells }) => [name, i == null || !cells.has(bins[i]) ? "" : spread(cells.get(bins[i]))]), true);
    });
  }

  // The levels at which there is room for a label.
  function spaced(xs, log) {
    const scaled = (x) => (log ? Math.log(x) : x), room = (scaled(xs[xs.length - 1]) - scaled(xs[0])) / 12;
    return xs.filter((x, i) => i === 0 || scaled(x) - scaled(xs[i - 1]) > room || i % Math.ceil(xs.length / 12) === 0);
  }

  function told(lines, dim) {
    const cells = lines.flatMap((line) => [...line.cells.values()]);
    const cases = Math.max(0, ...cells.map((cell) => cell.cases));
    const parts = [];
    if (cases > 1) parts.push(sampled ? "A point is the mean over up to " + cases + " points of the design; its interval is that of the points." : "A point is the mean over up to " + cases + " combinations of the other factors.");
    if (dim.wide) parts.push("Values of the factor are grouped in " + BINS + " bins.");
    if (cells.some((cell) => !cell.ends)) parts.push("Points of one seed have no interval.");
    const count = visible(lines).length;
    if (count > LINES_MAX) parts.push("The first " + LINES_MAX + " of " + count + " lines are drawn; switch some off above.");
    return parts.join(" ");
  }

  // A map of cells over two factors: `paint` gives the colour of a cell, `say` its text.
  function map(parent, heading, [dx, dy], paint, say, aqm, idle = () => []) {
    const box = document.createElement("div"), head = document.createElement("h4"), out = document.createElement("output");
    box.className = "panel map";
    if (aqm) {
      const b = document.createElement("b");
      b.textContent = aqm;
      b.style.setProperty("--c", colour(aqm));
      head.append(b);
    }
    out.append(...idle());
    head.append(out);
    const place = document.createElement("div"), canvas = document.createElement("canvas");
    place.className = "plot";
    place.tabIndex = 0;
    place.setAttribute("role", "img");
    place.setAttribute("aria-label", heading + " over " + dx.label + " and " + dy.label + "; arrow keys read cells");
    place.append(canvas);
    box.append(head, place);
    parent.append(box);
    const width = Math.max(200, place.clientWidth), height = 330, ratio = devicePixelRatio || 1;
    const left = 96, right = 10, top = 8, bottom = 50, w = (width - left - right) / dx.groups, h = (height - top - bottom) / dy.groups;
    [canvas.width, canvas.height] = [width * ratio, height * ratio];
    canvas.style.height = height + "px";
    const c = canvas.getContext("2d");
    c.scale(ratio, ratio);
    for (let i = 0; i < dx.groups; i++) for (let j = 0; j < dy.groups; j++) {
      const fill = paint(i, j);
      if (!fill) continue;
      c.fillStyle = fill;
      const x = left + i * w, y = top + (dy.groups - 1 - j) * h;
      // Whole pixels, so that no seams show.
      c.fillRect(Math.round(x * ratio) / ratio, Math.round(y * ratio) / ratio, Math.ceil(w * ratio) / ratio, Math.ceil(h * ratio) / ratio);
    }
    c.font = "12px " + style("--font");
    c.fillStyle = style("--soft");
    const short = (dim, k) => (dim.values && dim.wide ? digits(dim.values[k]) : dim.labels[k]);
    const every = (count, room) => Math.max(1, Math.ceil(count / Math.max(1, Math.floor(room))));
    c.textAlign = "center";
    for (let i = 0; i < dx.groups; i += every(dx.groups, (width - left) / 70)) c.fillText(cut(short(dx, i)), left + (i + 0.5) * w, height - bottom + 18);
    c.fillText(dx.label, left + (width - left - right) / 2, height - 8);
    c.textAlign = "right";
    for (let j = 0; j < dy.groups; j += every(dy.groups, (height - bottom) / 24)) c.fillText(cut(short(dy, j)), left - 8, top + (dy.groups - 0.5 - j) * h + 4);
    c.save();
    c.translate(12, top + (height - top - bottom) / 2);
    c.rotate(-Math.PI / 2);
    c.textAlign = "center";
    c.fillText(dy.label, 0, 0);
    c.restore();
    let [ci, cj] = [0, 0];
    const read = (i, j) => {
      [ci, cj] = [Math.min(dx.groups - 1, Math.max(0, i)), Math.min(dy.groups - 1, Math.max(0, j))];
      const at = document.createElement("span");
      at.className = "at";
      at.textContent = dx.labels[ci] + ", " + dy.labels[cj];
      out.replaceChildren(at, ...say(ci, cj));
    };
    canvas.addEventListener("mousemove", (event) => {
      const at = canvas.getBoundingClientRect();
      read(Math.floor((event.clientX - at.left - left) / w), dy.groups - 1 - Math.floor((event.clientY - at.top - top) / h));
    });
    canvas.addEventListener("mouseleave", () => out.replaceChildren(...idle()));
    place.addEventListener("keydown", (event) => {
      const [i, j] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key] || [];
      if (i === undefined) return;
      event.preventDefault();
      read(ci + i, cj + j);
    });
    box.append(savers(canvas, heading + " over " + dx.name + " and " + dy.name, () => {
      const rows = [[dx.name, dy.name, heading]];
      for (let i = 0; i < dx.groups; i++) for (let j = 0; j < dy.groups; j++) rows.push([dx.labels[i], dy.labels[j], say(i, j).map((el) => el.textContent).join(" ")]);
      return rows;
    }));
    return box;
  }

  const cut = (text) => (text.length > 10 ? text.slice(0, 9) + "…" : text);
  const said = (text) => { const el = document.createElement("span"); el.textContent = text; return el; };

  function mixed(f) {
    const stops = ["--h0", "--h1", "--h2"].map((name) => style(name).match(/\w\w/g).map((x) => parseInt(x, 16)));
    const k = f < 0.5 ? 0 : 1, g = 2 * f - k;
    return "rgb(" + stops[k].map((x, i) => Math.round(x + (stops[k + 1][i] - x) * g)).join(",") + ")";
  }

  function maps() {
    const parent = $("maps"), axes = [dimOf("mx"), dimOf("my")];
    parent.replaceChildren();
    if (axes[0] === axes[1]) return empty(parent, "Choose two different factors.");
    const lines = shown(gathered(metric(), axes));
    const means = lines.flatMap((line) => [...line.cells.values()].map((cell) => cell.mean));
    if (!means.length) return empty(parent, "Nothing to show.");
    const log = $("logz").checked && Math.min(...means) > 0, scaled = (x) => (log ? Math.log(x) : x);
    const low = scaled(Math.min(...means)), high = scaled(Math.max(...means));
    const ramp = Array.from({ length: 65 }, (_, i) => mixed(i / 64));
    for (const line of lines) {
      const cell = (i, j) => line.cells.get(i * axes[1].groups + j);
      const box = map(parent, data.metrics[metric()].name + " of " + line.name, axes, (i, j) => {
        const found = cell(i, j);
        return found && ramp[Math.round(64 * (high > low ? (scaled(found.mean) - low) / (high - low) : 0.5))];
      }, (i, j) => [said(cell(i, j) ? spread(cell(i, j)) : "no run")], line.name);
      const scale = document.createElement("p");
      scale.className = "scale";
      scale.append(said(digits(Math.min(...means))), document.createElement("i"), said(digits(Math.max(...means))));
      box.querySelector(".plot").after(scale);
    }
    parent.classList.toggle("one", lines.length < 2);
  }

  function winners() {
    const parent = $("winners"), axes = [dimOf("mx"), dimOf("my")];
    parent.replaceChildren();
    if ($("best").value === "") return empty(parent, "Choose a metric to see which AQM is best where.");
    if ($("more").value === "") return empty(parent, "Choose whether less or more of this metric is better.");
    if (axes[0] === axes[1]) return empty(parent, "Choose two different factors.");
    const k = Number($("best").value), sign = $("more").value === "1" ? -1 : 1;
    const lines = visible(gathered(k, axes));
    if (lines.length < 2) return empty(parent, "A phase diagram needs two AQMs.");
    const cache = new Map();
    const judged = (i, j) => {
      const place = i * axes[1].groups + j;
      if (!cache.has(place)) cache.set(place, judge(lines, place, sign));
      return cache.get(place);
    };
    // Of more than eight AQMs, two that share a colour differ in strength.
    const shade = (name) => faded(colour(name), [1, 0.6, 0.35][Math.floor(lineNames.indexOf(name) / 8) % 3]);
    const every = [];
    for (let i = 0; i < axes[0].groups; i++) for (let j = 0; j < axes[1].groups; j++) every.push(judged(i, j));
    const known = every.filter(Boolean), clearly = known.filter((found) => !found.alike.length);
    const wins = lines.map(({ name }) => [name, clearly.filter((found) => found.best.name === name).length]);
    const legend = () => {
      const names = wins.filter(([, count]) => count).map(([name]) => [name, ""]), said = words("", names, true);
      said.forEach((el, k) => el.style.setProperty("--c", shade(names[k][0])));
      return said;
    };
    map(parent, "Best by " + data.metrics[k].name, axes, (i, j) => {
      const found = judged(i, j);
      return found && (found.alike.length ? style("--open") : shade(found.best.name));
    }, (i, j) => {
      const found = judged(i, j);
      if (!found) return [said("fewer than two AQMs ran here")];
      const best = words("", [[found.best.name, spread(found.cell)]], true);
      return [...best, said(found.alike.length ? "its interval overlaps " + found.alike.join(", ") : "best")];
    }, null, legend);
    const counts = document.createElement("p");
    counts.className = "note";
    const listed = wins.length > 8 ? wins.filter(([, count]) => count) : wins;
    counts.textContent = known.length + " combinations: " + listed.map(([name, count]) => name + " " + count + ", ").join("") + "open " + (known.length - clearly.length) + ".";
    parent.lastChild.append(counts);
  }

  // The line with the best mean in a cell, and those whose intervals overlap its own.
  function judge(lines, place, sign) {
    const here = lines.filter((line) => line.cells.has(place)).map((line) => [line, line.cells.get(place)]);
    if (here.length < 2) return null;
    const [best, cell] = here.reduce((a, b) => (sign * b[1].mean < sign * a[1].mean ? b : a));
    const overlaps = (other) => !cell.ends || !other.ends || (sign > 0 ? other.ends[0] <= cell.ends[1] : other.ends[1] >= cell.ends[0]);
    return { best, cell, alike: here.filter(([line, other]) => line !== best && overlaps(other)).map(([line]) => line.name) };
  }

  // Two metrics at the chosen levels: a point for each line with its intervals, and the Pareto front of the means.
  function pair() {
    const parent = $("pair");
    parent.replaceChildren();
    if ($("px").value === "" || $("py").value === "") return empty(parent, "Choose two metrics.");
    const metrics = ["px", "py"].map((id) => Number($(id).value));
    const [xs, ys] = metrics.map((k) => new Map(visible(gathered(k, [])).map((line) => [line.name, line.cells.get(0)])));
    const points = [...xs.keys()].filter((name) => ys.has(name)).map((name) => ({ name, at: [xs.get(name), ys.get(name)] }));
    if (!points.length) return empty(parent, "Nothing to show.");
    points.sort((a, b) => a.at[0].mean - b.at[0].mean);
    const signs = metrics.map((k) => data.metrics[k].more).map((more) => (more === null ? 0 : more ? -1 : 1));
    const worse = (p, q) => signs.every((sign, m) => sign * q.at[m].mean <= sign * p.at[m].mean) && signs.some((sign, m) => sign * q.at[m].mean < sign * p.at[m].mean);
    const front = signs.includes(0) ? [] : points.filter((p) => !points.some((q) => worse(p, q)));
    const span = (m) => {
      const every = points.flatMap(({ at }) => [at[m].mean, ...(at[m].ends || [])]), low = Math.min(...every), high = Math.max(...every);
      const pad = 0.08 * (high - low) || Math.abs(high) / 10 || 1;
      return [low - pad, high + pad];
    };
    const names = points.map((p) => p.name), spans = [span(0), span(1)];
    const line = (u, ends, stroke, width) => {
      const c = u.ctx;
      c.strokeStyle = stroke;
      c.lineWidth = width * devicePixelRatio;
      c.beginPath();
      ends.forEach(([x, y], i) => c[i ? "lineTo" : "moveTo"](u.valToPos(x, "x", true), u.valToPos(y, "y", true)));
      c.stroke();
    };
    panel(parent, names, null, {
      height: 360,
      series: [{}, ...names.map((name) => ({ stroke: colour(name), paths: () => null, points: { show: true, size: 8, fill: colour(name) }, aqm: name }))],
      scales: { x: { time: false, range: (_, a, b) => (b > a && (a !== points[0].at[0].mean || b !== points[points.length - 1].at[0].mean) ? [a, b] : spans[0]) }, y: { range: () => spans[1] } },
      axes: [axis(data.metrics[metrics[0]].name, { size: 30, space: 64 }), axis(data.metrics[metrics[1]].name, { size: 70 })],
      cursor: { drag: { x: true, y: false }, points: { show: false } },
      hooks: { draw: [(u) => {
        u.ctx.save();
        for (const { name, at: [x, y] } of points) {
          if (x.ends) line(u, x.ends.map((end) => [end, y.mean]), faded(colour(name), 0.6), 2);
          if (y.ends) line(u, y.ends.map((end) => [x.mean, end]), faded(colour(name), 0.6), 2);
        }
        u.ctx.setLineDash([5 * devicePixelRatio, 4 * devicePixelRatio]);
        if (front.length > 1) line(u, front.map(({ at }) => at.map((cell) => cell.mean)), style("--target"), 1.25);
        u.ctx.restore();
      }] },
    }, [points.map(({ at }) => at[0].mean), ...names.map((name) => points.map((p) => (p.name === name ? p.at[1].mean : null)))], (u) => {
      const i = u.cursor.idx;
      return i == null ? words("", names.map((name) => [name, ""]), true) : words("", [[names[i], points[i].at.map(spread).join(", ")]], true);
    });
    const note = document.createElement("p");
    note.className = "note";
    const unclear = metrics.filter((k) => data.metrics[k].more === null).map((k) => data.metrics[k].name);
    note.textContent = unclear.length ? "No front: whether less or more is better is not given for " + unclear.join(" and ") + "." : "Pareto front of the means: " + front.map((p) => p.name).join(", ") + ".";
    parent.lastChild.append(note);
  }

  // Names of all lines in a fixed order, with a switch each.
  function chips() {
    const each = varying.filter((dim) => dim.chosen === "each");
    const found = new Map();
    for (let i = 0; i < data.cases; i++) {
      const levels = each.map((dim) => dim.at[i]);
      const key = [aqmOf[i], ...levels.map((level, k) => (level === ABSENT ? -1 : each[k].bin[level]))];
      if (!found.has(key.join())) found.set(key.join(), [key, lineName(aqmOf[i], each, levels)]);
    }
    const order = [...found.values()].sort(([a], [b]) => { const k = a.findIndex((x, i) => x !== b[i]); return k < 0 ? 0 : a[k] - b[k]; });
    // A factor on an axis has no line for each level: plain AQMs come after.
    lineNames.splice(0, Infinity, ...new Set([...order.map(([, name]) => name), ...data.aqms]));
    const shownNames = each.length ? order.slice(0, 2 * LINES_MAX).map(([, name]) => name) : data.aqms;
    $("chips").replaceChildren(...shownNames.map((name) => {
      const chip = document.createElement("button"), mark = document.createElement("i");
      chip.type = "button";
      chip.className = "chip";
      chip.style.setProperty("--c", "var(--c" + (lineNames.indexOf(name) % 8) + ")");
      chip.setAttribute("aria-pressed", String(!hidden.has(name)));
      chip.append(mark, name);
      chip.addEventListener("click", () => {
        if (!hidden.delete(name)) hidden.add(name);
        chip.setAttribute("aria-pressed", String(!hidden.has(name)));
        draw();
      });
      return chip;
    }));
  }

  const option = (value, text) => { const el = document.createElement("option"); el.value = value; el.textContent = text; return el; };

  // A select of values for each factor that varies.
  function controls() {
    for (const dim of varying) {
      const label = document.createElement("label"), select = document.createElement("select");
      select.append(option("all", "mean over all"));
      if (dim.own) select.append(option("each", "a line each"));
      if (!dim.wide) dim.labels.forEach((text, i) => select.append(option(String(i), text)));
      // At first one level, so that each point is one case and no mean is ours.
      dim.chosen = dim.wide ? "all" : dim.own && dim.count <= 8 ? "each" : "0";
      select.value = dim.chosen;
      select.addEventListener("change", () => { dim.chosen = select.value; hidden.clear(); chips(); draw(); });
      label.append(dim.label, select);
      $("held").append(label);
    }
  }

  const logarithmic = (dim) => Boolean(dim && dim.values && dim.values[0] > 0 && dim.values[dim.values.length - 1] / dim.values[0] >= 10);

  function draw() {
    clear();
    curves();
    pair();
    if (varying.length > 1) { maps(); winners(); }
  }

  data.metrics.forEach(({ name }, k) => { $("metric").append(option(k, name)); for (const id of ["best", "px", "py"]) $(id).append(option(k, name)); });
  // Numbers first: a curve over the names of scenarios is seldom wanted.
  // Parameters of one AQM come last, since only its own cells have them.
  const order = [...varying].sort((a, b) => Number(Boolean(a.own)) - Number(Boolean(b.own)) || Number(a.values === null) - Number(b.values === null));
  for (const id of ["x", "mx", "my"]) for (const dim of order) $(id).append(option(dims.indexOf(dim), dim.name));
  if (order.length > 1) $("my").value = dims.indexOf(order[1]);
  $("two").hidden = $("phase").hidden = order.length < 2;
  $("logx").checked = logarithmic(dimOf("x"));
  controls();
  chips();
  for (const id of ["metric", "logx", "logy", "mx", "my", "logz", "more", "px", "py"]) $(id).addEventListener("change", draw);
  $("x").addEventListener("change", () => { $("logx").checked = logarithmic(dimOf("x")); draw(); });
  $("best").addEventListener("change", () => {
    const more = $("best").value === "" ? null : data.metrics[$("best").value].more;
    $("more").value = more === null ? "" : String(Number(more));
    draw();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  matchMedia("print").addEventListener("change", draw);
  let last = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== last) { last = innerWidth; draw(); } });
  draw();
})();
