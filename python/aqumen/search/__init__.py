"""Searches over runs: the parameters of an AQM that do best over a study, and the networks in which an AQM does worst.

`objectives` says which way a metric is better, `runs` evaluates cases, kept ones without a run. `tuning` searches
parameters. `breaking` searches `networks` and makes them small, by `criteria`; `causes` explains what is found.
"""
