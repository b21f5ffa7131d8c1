"""Identify the plant of a queue from packets, design a PI for it, and hold packets against what the design promised."""

import aqumen

scenario = aqumen.Scenario.load("arm-pfc/exp1")
plant = aqumen.identify(scenario, "pi")
print("designed for the nominal network:", plant.loop("pi").margins["gain_margin"])
best = aqumen.robust_pi(plant, modulus_margin=0.5)
print(best.spec)
checked = aqumen.verify(plant.loop(best.spec), scenario, seeds=2)
print(checked)
