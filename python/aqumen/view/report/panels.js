// Panels of a page: plots by uPlot with values at the cursor, keyboard control and downloads; colours of AQMs.
// `aqms` are the names of the lines, by colour; the list may change between two drawings.
const panels = (aqms) => {
  "use strict";
  let charts = [];

  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const colour = (aqm) => style("--c" + (aqms.indexOf(aqm) % 8));
  // Beyond eight AQMs, colours repeat with dashes.
  const dash = (aqm) => [[], [7, 4], [2, 3]][Math.floor(aqms.indexOf(aqm) / 8) % 3];
  const faded = (hex, alpha) => hex + Math.round(alpha * 255).toString(16).padStart(2, "0");
  const FONT = "12px " + style("--font");

  const digits = (x) => (x === 0 ? "0" : Math.abs(x) >= 100 ? x.toFixed(0) : Math.abs(x) >= 1 ? x.toFixed(1) : Number(x.toPrecision(3)).toString());

  function axis(label, more) {
    return Object.assign({
      label, labelSize: 20, labelGap: 2, labelFont: FONT, font: FONT, stroke: style("--soft"), gap: 6,
      grid: { stroke: style("--grid"), width: 1 }, ticks: { show: false },
    }, more);
  }

  // One panel: a heading with the values at the cursor, and a plot of full width.
  function panel(parent, names, heading, options, values, readout) {
    const box = document.createElement("div");
    box.className = "panel";
    const head = document.createElement("h4");
    const out = document.createElement("output");
    if (heading) {
      const b = document.createElement("b");
      b.textContent = heading;
      b.style.setProperty("--c", colour(heading));
      head.append(b);
    }
    head.append(out);
    const place = document.createElement("div");
    place.className = "plot";
    place.tabIndex = 0;
    place.setAttribute("role", "img");
    place.setAttribute("aria-label", [options.axes[1].label, "over", options.axes[0].label, "of", names.join(", ")].join(" "));
    box.append(head, place);
    parent.append(box);
    const hooks = options.hooks || {};
    hooks.setCursor = [(u) => { out.replaceChildren(...readout(u, names, !heading)); }];
    const height = options.height;
    const width = () => Math.max(200, place.clientWidth);
    const u = new uPlot(Object.assign(options, { width: width(), height, hooks, legend: { show: false } }), values, place);
    out.replaceChildren(...readout(u, names, !heading));
    box.append(savers(u.ctx.canvas, options.axes[1].label + " over " + options.axes[0].label + ", " + names.join(", "), () => {
      const kept = u.series.map((s, k) => [s.aqm, k]).filter(([aqm]) => aqm);
      return [[u.axes[0].label, ...kept.map(([aqm]) => aqm)], ...u.data[0].map((x, i) => [x, ...kept.map(([, k]) => u.data[k][i])])];
    }));
    place.addEventListener("keydown", (event) => { if (steer(u, event.key)) event.preventDefault(); });
    charts.push({ u, place, height });
    return u;
  }

  // Keyboard control: + and - zoom about the middle, arrows pan, 0 shows all.
  function steer(u, key) {
    const all = [u.data[0][0], u.data[0][u.data[0].length - 1]];
    const { min, max } = u.scales.x;
    const span = max - min, middle = (min + max) / 2;
    const next = {
      "+": () => [middle - span / 4, middle + span / 4], "=": () => [middle - span / 4, middle + span / 4],
      "-": () => [middle - span, middle + span], ArrowLeft: () => [min - span / 4, max - span / 4],
      ArrowRight: () => [min + span / 4, max + span / 4], 0: () => all, Escape: () => all,
    }[key];
    if (!next) return false;
    const [low, high] = next();
    const wide = Math.min(high - low, all[1] - all[0]);
    const from = Math.max(all[0], Math.min(low, all[1] - wide));
    u.setScale("x", { min: from, max: from + wide });
    return true;
  }

  function download(name, blob) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  const fileName = (text) => text.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "");
  const quoted = (cell) => (/[",\n]/.test(cell) ? '"' + cell.replaceAll('"', '""') + '"' : cell);
  const csv = (rows) => new Blob([rows.map((row) => row.map((cell) => quoted(String(cell ?? ""))).join(",")).join("\n") + "\n"], { type: "text/csv" });

  function saver(kind, what, give) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "save";
    button.textContent = kind;
    button.setAttribute("aria-label", "Download " + what + " as " + kind);
    button.addEventListener("click", () => give(fileName(what) + "." + kind.toLowerCase()));
    return button;
  }

  // Download of a plot as an image, and as the rows of a table.
  function savers(drawn, what, rows) {
    const box = document.createElement("span");
    box.className = "saves";
    box.append(saver("PNG", what, (name) => {
      const canvas = document.createElement("canvas");
      [canvas.width, canvas.height] = [drawn.width, drawn.height];
      const c = canvas.getContext("2d");
      c.fillStyle = style("--card");
      c.fillRect(0, 0, canvas.width, canvas.height);
      c.drawImage(drawn, 0, 0);
      canvas.toBlob((blob) => download(name, blob));
    }), saver("CSV", what, (name) => download(name, csv(rows()))));
    return box;
  }

  function words(lead, pairs, named) {
    const parts = [];
    if (lead) {
      const at = document.createElement("span");
      at.className = "at";
      at.textContent = lead;
      parts.push(at);
    }
    for (const [aqm, text] of pairs) {
      const el = document.createElement(named ? "b" : "span");
      el.style.setProperty("--c", colour(aqm));
      el.textContent = named ? aqm + (text ? " " + text : "") : text;
      parts.push(el);
    }
    return parts;
  }

  function empty(parent, text) {
    const box = document.createElement("div");
    box.className = "panel empty";
    box.textContent = text;
    parent.append(box);
  }

  function clear() {
    for (const { u } of charts) u.destroy();
    charts = [];
  }

  function fit() {
    for (const { u, place, height } of charts) {
      if (place.clientWidth && place.clientWidth !== u.width) u.setSize({ width: place.clientWidth, height });
    }
  }

  for (const region of document.querySelectorAll(".wide")) {
    const table = region.querySelector("table");
    if (!table) continue;
    const box = document.createElement("p");
    box.className = "saves";
    box.append(saver("CSV", "the table " + region.getAttribute("aria-label"), (name) => {
      const text = (cell) => cell.innerText.replace(/\s+/g, " ").trim();
      download(name, csv([...table.rows].map((row) => [...row.cells].flatMap((cell) => [text(cell), ...Array(cell.colSpan - 1).fill("")]))));
    }));
    region.after(box);
  }
  addEventListener("resize", fit);

  return { style, colour, dash, faded, digits, axis, panel, savers, words, empty, clear };
};
