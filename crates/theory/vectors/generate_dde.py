"""Writes dde_hollot.json and dde_ecn.json: window and queue under a constant probability, solved by jitcdde.

Run: pip install jitcdde==1.8.* && python generate_dde.py
"""

import json
from importlib.metadata import version

from jitcdde import jitcdde, t, y

FLOWS, CAPACITY, BASE, P = 100.0, 1250.0, 0.2, 0.12
WINDOW, QUEUE = 4.0, 130.0

delay = BASE + y(1) / CAPACITY
late_delay = BASE + y(1, t - delay) / CAPACITY
acknowledged = y(0, t - delay) / late_delay
growth = {"hollot": 1 / delay, "ecn": (1 - P) * acknowledged / y(0)}

for model, up in growth.items():
    dde = jitcdde([up - y(0) / 2 * acknowledged * P, FLOWS * y(0) / delay - CAPACITY], max_delay=2.0, verbose=False)
    dde.set_integration_parameters(rtol=1e-9, atol=1e-9, first_step=1e-5, max_step=1e-2)
    dde.constant_past([WINDOW, QUEUE])
    dde.integrate_blindly(0.5, 1e-4)
    rows = []
    for k in range(2, 41):
        window, queue = dde.integrate(0.5 * k)
        rows.append({"t": 0.5 * k, "W": float(window), "q": float(queue)})
    with open(f"dde_{model}.json", "w", encoding="utf-8") as file:
        json.dump(
            {
                "name": f"dde_{model}",
                "description": f"model {model} with a constant probability, solved by jitcdde {version('jitcdde')}",
                "params": {"N": FLOWS, "C": CAPACITY, "Tp": BASE, "p": P, "W_init": WINDOW, "q_init": QUEUE},
                "rows": rows,
            },
            file,
            indent=1,
        )
        file.write("\n")
