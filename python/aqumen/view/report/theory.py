"""Section of the report that compares predictions with measurements."""

from __future__ import annotations

from html import escape

from aqumen._run_set import Runs
from aqumen.engines import find
from aqumen.explain.prediction import Prediction, explain
from aqumen.view.tables import number

__all__ = ["theory_section"]

COLUMNS = (
    ("queue_mean_pkts", "Queue, packets", 1.0, 1),
    ("signal_ratio", "Signalled, %", 100.0, 2),
    ("utilization", "Utilisation, %", 100.0, 2),
    ("sojourn_mean_s", "Sojourn, ms", 1000.0, 1),
)
NOISE = (
    ("queue_std_pkts", "Standard deviation, packets", 1.0, 1),
    ("qacd_pkts", "QACD, packets", 1.0, 1),
    ("queue_p95_pkts", "95th percentile, packets", 1.0, 1),
)


def theory_section(comparison: Runs, window: str, *, loops: bool = False) -> str:
    """Return a table of predictions and measurements, with explanations of the differences; empty without predictions.

    Args:
        comparison: The finished runs, by engine, AQM and seed.
        window: `steady`, `all`, or a window of the scenario.
        loops: Also predict margins and oscillations, which may take seconds for each AQM.
    """
    columns = COLUMNS + NOISE if loops else COLUMNS
    rows, notes = [], []
    for aqm in comparison.aqms:
        run = comparison.of(aqm)[0]
        if not find(run.engine).measures:
            continue
        for each in explain(comparison.scenario, run, run.spec, loops=loops):
            if each.window != window:
                continue
            cells = "".join(f"<td>{_cell(each, key, factor, digits)}</td>" for key, _, factor, digits in columns)
            margin = f"<td>{number(each.point.get('gain_margin'), 2)}</td>" if loops else ""
            rows.append(
                f'<tr><th class="name">{escape(aqm)}</th><td>{escape(each.link)}</td>{cells}'
                f"<td>{number(each.point.get('window_pkts'), 2)}</td>{margin}</tr>"
            )
            notes += [f"<li><b>{escape(aqm)}</b>: {escape(note)}.</li>" for note in each.notes]
    if not rows:
        return ""
    head = "".join(f"<th>{title}</th>" for _, title, _, _ in columns)
    return (
        "<section>\n<h2>Prediction and measurement</h2>\n"
        '<div class="wide" role="region" tabindex="0" aria-label="Prediction and measurement"><table class="settle">'
        '<caption class="unseen">Prediction and measurement</caption><thead><tr><th class="name">AQM</th><th>Link</th>'
        f"{head}<th>W0, packets</th>{'<th>Gain margin</th>' if loops else ''}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table></div>\n"
        f'<p class="note">Predicted / measured, window {escape(window)}, seed {comparison.results[0].seed}. '
        "Predictions are equilibria of the fluid equations"
        + ("" if loops else "; <code>--theory</code> adds margins and oscillations")
        + ".</p>\n"
        + (f"<ul>{''.join(notes)}</ul>\n" if notes else "")
        + "</section>"
    )


def _cell(each: Prediction, key: str, factor: float, digits: int) -> str:
    told = each.to_dict()
    values = (told["predicted"][key], told["measured"][key])
    return " / ".join(number(None if value is None else value * factor, digits) for value in values)
