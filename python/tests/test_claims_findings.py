"""Checks of the papers' arithmetic, readings of verdicts, and RFC 7928's metrics: worked by hand."""

import json
import math
import re

import numpy as np
import pytest
from browser import judged as page_lacks
from test_claims import LESS, NEAR, paper, runs

from aqumen._quantities import evaluate, names_in
from aqumen.errors import ScenarioError
from aqumen.papers import algebra, load_paper
from aqumen.papers.judge import judge, shown
from aqumen.rfc7928 import evaluation
from aqumen.rfc7928 import page as evaluation_page

# Outcome, and every figure that its sentence has, as it stands there.
FINDINGS = {
    # W0 = 0.28 s 1250/s / 100, p0 = 2 / 3.5^2.
    "pfc_equilibrium": ("holds", "W0 = 3.5, p0 = 0.1633"),
    # (R0 C)^3 / (4 N^2) = 350^3 / 40000.
    "pfc_sign": ("inconsistent", "-1072 packets; (6) and (11) print +1072"),
    # 0.28^2 1250 / 200.
    "pfc_plant": ("holds", "k_t = 1071.9, tau1 = 0.28, tau2 = 0.49"),
    "pfc_discrete": ("holds", "exact step response"),
    # 0.056 / sqrt(0.28^2 + 0.49^2).
    "pfc_sampling": ("inconsistent", "gamma = 0.0992 with the paper's own d = 5"),
    # (1 + 0.0784 w^2) (1 + 0.2401 w^2) = 2 at w = 1.645; 2 pi / (0.25 0.5643) / 1.645.
    "pfc_cutoff": ("inconsistent", "is 1.645 rad/s, so that gamma from 0.25 to 0.1 samples 27.1 to 67.7 times"),
    "pfc_accumulated": ("fails", "(12.1 %): two forms of one model, equal within rounding"),
    "pfc_agreement": ("inconsistent", "gives no figure of performance"),
    "pfc_prediction": ("inconsistent", "misses (15) by 12.19 % and 7.40 %"),
    "pfc_modes": ("inconsistent", "by 20.67 % and 20.54 %"),
    "pfc_round_trip": ("holds", "200 ms + 100 / 1250 s = 280 ms"),
    # -0.056 / ln 0.83 / 0.28; exp(-0.05).
    "pfc_psi": ("inconsistent", "time constant of 1.073 R0; 4 R0 asks for 0.9512"),
    "pfc_pi_gains": ("inconsistent", "a = 0.00108, 1669 times"),
    # 7 7 + 2; the step response is within 1 % of its end after 48 samples: 2 (48 + 5) + 4.
    "pfc_operations": (
        "holds",
        "10 multiplications a sample, whatever the horizon; 29 operations in all, GPC takes 51, DMC 110",
    ),
    # 2 / (350 / 300)^2.
    "pfc_exp4": ("inconsistent", "p0 = 1.469 to hold 100 packets with 300 flows"),
    "pfc_exp5_capacity": ("inconsistent", "8 Mbit/s; here the capacity falls from 10 to 6"),
    # (70 s 10 Mbit/s + 30 s 6 Mbit/s) / 8; 124464043 packets of 8000 bit in 100 s.
    "pfc_exp5_goodput": ("inconsistent", "would be 9957 Mbit/s), the link carries 110000000: 11.6 % less"),
    "pfc_udp_load": ("inconsistent", "12 Mbit/s to a link of 10 Mbit/s"),
    # 922.5^3 / 14400.
    "paqm_plant_error": ("holds", "P(0) = 5.452e+04; the error is 1.834e-05"),
    "paqm_error_sum": ("inconsistent", "Q + Q - 2 Q_ref"),
    # 0.0008 200 - 1.
    "paqm_pi_step": ("inconsistent", "changes p by -0.8400;"),
    # 0.0008 50 - 25 / 2; 0.0008 37.5.
    "paqm_velocity": ("inconsistent", "is -12.46, (4) gives 0.03;"),
    "paqm_ratio": ("inconsistent", "200, 200, 230 packets"),
    # 81 / 10, where the difference is -1.
    # 0.05 0.002; 0.05 / (0.0008 0.002).
    "paqm_integral_time": ("inconsistent", "sums with 1.0e-04, T'_I = K_P K_I with 3.1e+04"),
    "paqm_second_difference": ("inconsistent", "increments of 10 and 9 it is 8.1, and the second difference -1"),
    # 0.12 s 3750/s.
    "paqm_bdp": ("inconsistent", "are 450 packets"),
    "paqm_period": ("holds", "= 53.3 ms"),
    "paqm_gain": ("holds", "800 x 1e-6 = 8e-4"),
    "paqm_flows": ("holds", "[(189, 126), (378, 252)]"),
    "paqm_red_weight": ("holds", "1/512 = 0.00195"),
    "paqm_updates": ("holds", "3750 packets a second"),
    "paqm_computation": ("holds", "PAQM 160, PI 640, RED 22500"),
    # 0.0008 / (200 0.05), over 0.0008 / 600; 120 / (0.246^2 3750).
    "paqm_structure": (
        "fails",
        "integrator of 8.00e-05 per packet and second; what (10) adds has its zero at 60.0 rad/s",
    ),
    "mo_fluid_queue": ("holds", "100.6 packets, 1.000 by the equations, 100.0 packets, 1.000 by packets"),
    # p = 2 / W^2 at W = 3.5 and what is lost in retransmissions, by both.
    "mo_fluid_signals": ("fails", "the equations mark 0.313 of the packets, packets need 0.151"),
    "mo_outer_loop": ("fails", "|O| rises to 1.5920;"),
    "mo_utilization": ("inconsistent", "higher utilisation"),
    "mo_traffic": ("inconsistent", "(variation 0), section 3.2 Pareto ON/OFF ones (1)"),
    "mmpp_states": ("inconsistent", "16 states"),
    "mmpp_matrix": ("inconsistent", "(2) gives 16 x 16"),
    "mmpp_rates": ("inconsistent", "of 16 combinations (4) has 6"),
    "mmpp_parameters": ("inconsistent", "have 16; eight"),
    # 8 (20 4 + 1).
    "mmpp_generator": ("holds", "are 648 for m = 4, L = 20"),
    "mmpp_delay": ("inconsistent", "gives 34.7197 ms, Little's law 4.6857 ms"),
    "mmpp_loss": ("holds", "marginal of two states"),
    "mmpp_normalised": ("inconsistent", "is 0.686; the empty system has the other 0.314"),
    # (0.5 + 0.999 - 0.475) / 0.025.
    "threshold_range": ("inconsistent", "F reaches 40.96 before"),
    "threshold_loss": ("holds", "0.0103, 0.0030, 0.0010, 0.0004"),
    "avq_law": ("inconsistent", "as printed is 0;"),
    "aaqm_table1": ("inconsistent", "the title says five"),
    "aaqm_buffer": ("holds", "101.4 packets of 1282 B"),
    # 0.95 1.04 Mbit / 10 Mbit/s; 85 and 100 times 10256 bit.
    "aaqm_delay_and_queue": ("inconsistent", "is 99 ms at 10 Mbit/s, and PI between 85 and 100 packets, 87 to 103 ms"),
    "aaqm_round_trip": ("holds", "is 26.03, 8.12, 1.93, 0.22 at round trips of 100, 200, 400 and 800 ms"),
    "aaqm_flow_count": ("holds", "ten flows each: 120"),
    "aaqm_stopping": ("holds", "30 of 120 flows, and of 60"),
    # 0.005 622e6 / 8 / 800.
    "st_packet": ("holds", "800 packets of 485.9 B"),
    "st_min_th": ("holds", "388.75 packets of 500 B"),
    # 1000 / 0.145; 622e6 / 4000.
    "st_aggregate": ("inconsistent", "155500 packets/s, with windows of 22.5 packets; N/R is 6897 windows/s"),
    "st_reverse_load": ("holds", "1000 and 4000 flows forward, 1000 and 4000 back"),
    "st_throughput_law": ("holds", "1/W = sqrt(p/2)"),
    "st_eighth": ("holds", "622 Mbit/s, 77.75 Mbit/s, 622 Mbit/s"),
}


@pytest.mark.parametrize("name", FINDINGS)
def test_a_check_finds_what_the_paper_s_figures_give(name):
    outcome, words = FINDINGS[name]
    found, says = algebra.CHECKS[name]()
    assert found == outcome
    assert words in says


def test_rounding_is_all_that_exact_formulas_miss_by():
    assert algebra.EXACT == 1e-9
    assert float(re.search(r"\d(?:\.\d+)?e-\d+", algebra.CHECKS["pfc_discrete"]()[1])[0]) < 1e-12
    # Of a solution whose last bits are the processor's no number is told.
    assert algebra.CHECKS["mmpp_loss"]()[1].startswith("equal but for rounding where")
    assert float(algebra.CHECKS["pfc_plant"]()[1].rpartition(" ")[2]) < 1e-12
    at_rest = re.search(r"derivatives are (\S+) and (\S+)", algebra.CHECKS["pfc_equilibrium"]()[1])
    assert all(abs(float(each)) < 1e-12 for each in at_rest.groups())
    assert "; AVQ has it as a rate of change" in algebra.CHECKS["avq_law"]()[1]


def test_what_is_not_so_is_told_from_what_contradicts_itself():
    assert algebra.judged(True, "x") == ("holds", "x")
    assert algebra.judged(False, "x") == ("fails", "x")
    assert algebra.judged(False, "x", "inconsistent") == ("inconsistent", "x")


@pytest.mark.parametrize("name", ["arm-pfc", "paqm", "aqm-mo", "aaqm", "self-tuning"])
def test_the_arithmetic_on_record_comes_out_again(name):
    made = load_paper(name)
    checked = [claim for claim in made.claims if all(rule["test"] == "algebra" for rule in claim.rules)]
    assert checked
    for claim in checked:
        found = judge(made, claim, runs())
        assert (found.verdict, found.reason) == (made.recorded[claim.id], made.measured[claim.id])


def test_the_queue_of_four_sources_is_a_queue():
    p, empty, rates = algebra._queue()
    assert p.sum() + empty.sum() == pytest.approx(1)
    assert (p > -1e-15).all()
    # Each source is in its states as long as it is alone.
    states = (empty + p.sum(axis=(0, 2))).reshape(2, 2, 2, 2)
    for i, (generator, own) in enumerate(algebra.SOURCES):
        alone = np.array([generator[1, 0], generator[0, 1]]) / (generator[0, 1] + generator[1, 0])
        assert states.sum(axis=tuple(j for j in range(4) if j != i)) == pytest.approx(alone)
        assert set(rates[i]) == set(own)
    # What is let in leaves: one packet in mu whenever the last of its stages is at work.
    room = (empty + p[1 : algebra.BUFFER].sum(axis=(0, 2))) @ sum(rates)
    served = algebra.STAGES * algebra.MU * p[:, :, algebra.STAGES].sum()
    assert room == pytest.approx(served)
    # Every stage lasts equally long.
    assert p.sum(axis=(0, 1))[1:] == pytest.approx(p.sum() / algebra.STAGES)


# Verdicts in words.


def judged(rule, lookup, readings=None, planned=None):
    made = paper(rule, readings=readings)
    return judge(made, made.claims[0], lookup, planned)


def said(rule, lookup, **more):
    return judged(rule, lookup, **more).reason


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (math.inf, "inf"),
        (1.23456, "1.235"),
        (0.51, "0.51"),
        (0.50004, "0.5"),
        (2.3456, "2.35"),
        (1.99951, "2"),
        (0.12345, "0.123"),
        (-0.98765, "-0.9877"),
        (999.4, "999"),
        (1234.56, "1235"),
        (-20000.4, "-20000"),
    ],
)
def test_figures_have_the_digits_worth_reading(value, text):
    assert shown(value) == text


def test_a_number_is_told_with_its_interval_and_its_bounds():
    # 1, 2, 3: Student's quantile for two degrees is 4.303, half the interval 4.303 / sqrt(3).
    assert said(NEAR, runs(a=[99, 100, 101])) == ("queue_mean_pkts = 100 ± 2.48 for a at s, steady; claimed: 95 to 105")
    low = {key: value for key, value in NEAR.items() if key not in ("near", "tolerance")}
    assert said({**low, "least": 3}, runs(a=[4])) == "queue_mean_pkts = 4 for a at s, steady; claimed: 3 or more: open"
    assert said({**low, "most": 3}, runs(a=[2.5, 2.5])).endswith("claimed: at most 3")
    for bounds, value, verdict in (
        ({"least": 3}, 3, "reproduced"),
        ({"least": 3}, 2.999, "refuted in every reading"),
        ({"most": 3}, 3, "reproduced"),
        ({"most": 3}, 3.001, "refuted in every reading"),
        ({"least": 1, "most": 3}, 2, "reproduced"),
    ):
        assert judged({**low, **bounds}, runs(a=[value, value])).verdict == verdict


@pytest.mark.parametrize(
    ("values", "outcome", "leans"),
    [
        # 100 ± 2.48 within 95 to 105; 104 ± 2.48 reaches over it; 107 ± 2.48 touches it; 109 ± 2.48 does not.
        ([99, 100, 101], "holds", None),
        ([103, 104, 105], "open", True),
        ([106, 107, 108], "open", False),
        ([108, 109, 110], "fails", None),
        ([95, 96, 97], "open", True),
        ([92, 93, 94], "open", False),
        ([90, 91, 92], "fails", None),
    ],
)
def test_more_seeds_may_decide_what_reaches_over_a_bound(values, outcome, leans):
    (check,) = judged(NEAR, runs(a=values)).checks
    assert (check.outcome, check.leans) == (outcome, leans)
    assert check.measured["a at s, steady"]["n"] == 3
    # One packet from the bound, with a deviation of 1: t(n - 1) / sqrt(n) is below 1 from 7 on; 2 packets from 4 on.
    near = min(abs(values[1] - bound) for bound in (95, 105))
    assert check.seeds == (None if leans is None else {1: 7, 2: 4}[near])
    as_it_leans = "reproduced" if outcome == "holds" or leans else "refuted in every reading"
    assert judged(NEAR, runs(a=values), planned=7).verdict == as_it_leans


def test_an_ordering_is_told_with_the_interval_of_its_differences():
    pairs = runs(a=[1, 2, 3], b=[10, 12, 14])
    # Differences 9, 10, 11.
    assert said(LESS, pairs) == ("2 a at s, steady below 12 b at s, steady: difference 7.52 to 12.5")
    assert said({**LESS, "first": "highest"}, pairs) == (
        "12 b at s, steady below 2 a at s, steady: no, difference -12.5 to -7.52"
    )
    # 10 - 2 1, 12 - 2 2, 14 - 2 3: 8 each time.
    assert said({**LESS, "factor": 2}, pairs).endswith("by the factor 2: difference beyond it 8 to 8")
    assert said({**LESS, "by": 8}, pairs).endswith("by 8: open, difference beyond it -0.484 to 4.48")
    assert said(LESS, runs(a=[1], b=[2])).endswith("one seed gives no interval")
    same = {"test": "same", "of": "queue_mean_pkts", "aqm": ["A", "B"], "at": "s", "tolerance": 13}
    assert said(same, pairs) == "2 a at s, steady like 12 b at s, steady, within 13: difference 7.52 to 12.5"
    assert said({**same, "tolerance": 7}, pairs).endswith("within 7: no, difference 7.52 to 12.5")
    assert said({**same, "tolerance": 10}, pairs).endswith("within 10: open, difference 7.52 to 12.5")
    assert judged({**same, "tolerance": 10}, pairs).verdict == "open"
    assert said(same, runs(a=[1], b=[2])).endswith("one seed gives no interval")
    # b below a by the other sign.
    assert said({**same, "aqm": ["B", "A"], "tolerance": 7}, pairs).endswith("no, difference -12.5 to -7.52")


def test_a_row_of_cells_is_told_as_a_curve():
    cells = {"at": ["s0", "s1", "s2"], "of": "queue_mean_pkts", "aqm": "A"}
    rising = {"test": "trend", "sense": "rising", **cells}
    up = runs(a=[[1, 2], [3, 4], [5, 6]])
    assert said(rising, up) == "queue_mean_pkts of a over 3 cells is 1.5, 3.5, 5.5: rising"
    assert judged(rising, up).checks[0].measured["a at s1, steady"]["mean"] == 3.5
    assert said({**rising, "sense": "falling"}, up).endswith(": not falling")
    # 5 - 2.9 1 and 6 - 2.9 2: the interval of their mean holds 0.
    assert judged({**rising, "ratio": 2.9}, up).verdict == "open"
    assert judged({**rising, "ratio": 2}, runs(a=[[1, 1], [3, 3], [5, 5]])).verdict == "reproduced"
    assert said({**rising, "ratio": 7}, runs(a=[[1, 1], [3, 3], [5, 5]])).endswith(
        "less than 7 times from first to last"
    )
    assert said(rising, runs(a=[[1], [2], [3]])).endswith("one seed gives no interval")
    assert said(rising, runs(a=[[1, 5], [3, 3], [5, 1]])).endswith("open, neither rising nor falling beyond chance")
    # Slopes of 4: the last step goes down each time.
    assert said(rising, runs(a=[[1, 1], [20, 20], [9, 9]])).endswith("not rising at s2")
    assert said({**rising, "sense": "falling"}, runs(a=[[9, 9], [20, 20], [1, 1]])).endswith("not falling at s1")
    alike = {"test": "correlation", "with": "2 * queue_mean_pkts + 1", "least": 0.99, **cells}
    assert said(alike, up) == (
        "a: queue_mean_pkts and 2 * queue_mean_pkts + 1 correlate by 1.000; claimed: 0.99 or more"
    )
    against = {**alike, "with": "10 - queue_mean_pkts"}
    assert "correlate by -1.000" in said(against, up)
    assert judged(against, up).verdict == "refuted in every reading"
    # 1, 2, 6 with 1, 4, 36: deviations -2, -1, 3 and -12.67, -9.67, 22.33; 102 / sqrt(14 752.67).
    square = {**alike, "with": "queue_mean_pkts * queue_mean_pkts"}
    assert "correlate by 0.994" in said(square, runs(a=[[1], [2], [6]]))
    # What stays as it is goes with nothing.
    assert "correlate by 0.000" in said({**alike, "with": "utilization"}, up)
    assert "correlate by 0.000" in said({**alike, "of": "utilization", "with": "queue_mean_pkts"}, up)


def test_cells_are_taken_together_as_the_claim_says():
    cells = {**NEAR, "at": ["s0", "s1", "s2"]}
    three = runs(a=[[2, 2], [8, 8], [5, 5]])
    for how, value in (("mean", 5), ("spread", 6), ("largest", 8), ("least", 2), ("ratio", 2.5)):
        rule = {**cells, "across": how, "near": value, "tolerance": 0.01}
        assert judged(rule, three).verdict == "reproduced"
        assert f"for a at {how} of 3 cells, steady" in said(rule, three)
    over = {**NEAR, "at": "s1", "over": {"at": "s0"}, "less": {"at": "s2"}, "near": 1, "tolerance": 0.01}
    # 8 / 2, from 5 away.
    assert judged(over, three).verdict == "reproduced"
    assert "over a, s0, steady away from s2, steady" in said(over, three)
    minus = {**NEAR, "at": "s1", "minus": {"at": "s2"}, "near": 3, "tolerance": 0.01}
    assert judged(minus, three).verdict == "reproduced"
    assert "less that of a" in said(minus, three)
    # What would be divided by nothing is not defined.
    assert "is not measured" in said({**over, "near": 1}, runs(a=[[0, 0], [8, 8], [5, 5]]))


def test_ranks_are_shared_by_equals():
    rule = {**LESS, "aqm": ["A", "B", "C"], "at": ["s0", "s1"], "across": "rank", "test": "order"}
    lookup = runs(a=[[1, 1], [1, 1]], b=[[2, 2], [3, 3]], c=[[2, 2], [2, 2]])
    checks = judged(rule, lookup).checks
    # A is first in both cells; B 2.5 and 3, C 2.5 and 2.
    means = {label: each["mean"] for check in checks for label, each in check.measured.items()}
    assert means == {
        "a at rank of 2 cells, steady": 1,
        "b at rank of 2 cells, steady": 2.75,
        "c at rank of 2 cells, steady": 2.25,
    }


def test_several_checks_are_told_by_the_first_that_fails():
    both = {"one": {"A": "a"}, "two": {"A": "b"}}
    assert said(NEAR, runs(a=[100, 100], b=[300, 300]), readings=both).startswith(
        "1 of 2 checks hold; but queue_mean_pkts = 300 ± 0 for b"
    )
    assert said(NEAR, runs(a=[100, 100], b=[101, 101]), readings=both).startswith("2 of 2 checks hold; queue_mean_pkts")
    assert said(NEAR, runs(a=[200, 200], b=[300, 300]), readings=both).startswith("0 of 2 checks hold; queue_mean")
    none = judged({"test": "none", "why": "no figures"}, runs())
    assert (none.verdict, none.reason, none.checks) == ("cannot be tested", "no figures", ())
    missing = judged(NEAR, lambda cell, spec: iter(()))
    assert (missing.verdict, missing.reason) == (None, "a at s, steady: not run")
    undefined = judged({**NEAR, "of": "settling_s / (utilization - utilization)"}, runs(a=[1, 2]))
    assert (undefined.verdict, undefined.checks[0].outcome) == ("cannot be tested", "undefined")


def test_quantities_are_arithmetic_in_the_metrics():
    flows = {f"web{i}": {"all": {"goodput_bps": float(i), "mos": None if i == 2 else 4.0}} for i in (1, 2, 4)}
    run = {
        "scenario": "x",
        "windows": {"all": [5, 25]},
        "links": {"one": {"all": {"a": 6.0, "b": 4.0, "settling_s": None, "none": None}}, "two": {"all": {"a": 1.0}}},
        "flows": flows,
    }

    def value(of, **where):
        return evaluate(run, {"of": of, "window": "all", **where})

    assert [value(of) for of in ("a + b", "a - b", "a * b", "a / b", "abs(b - a)")] == [10, 2, 24, 1.5, 2]
    assert value("a", link="two") == 1
    assert [value(of) for of in ("settling_s", "none", "none + a", "a / (b - 4)", "abs(none)")] == [20, *[None] * 4]
    assert value("goodput_bps", flows="web*") == 7
    assert value("goodput_bps", flows="web*", combine="mean") == pytest.approx(7 / 3)
    assert value("mos", flows="web*", combine="mean") == 4
    assert value("mos", flows="web2") is None
    assert names_in("a + abs(b) / 2") == ["a", "abs", "b"] or set(names_in("a + abs(b) / 2")) == {"a", "b", "abs"}
    for wrong, told in (
        ({"link": "three"}, "records no link three; choose from: one, two"),
        ({"flows": "ftp"}, "no flow group ftp"),
        ({"window": "late"}, "no window late; choose from: all"),
        ({"of": "a ** b"}, "not a valid expression"),
        ({"of": "c"}, "no metric c"),
    ):
        with pytest.raises(ScenarioError, match=re.escape(told)):
            evaluate(run, {"of": "a", "window": "all", **wrong})


# RFC 7928.


def link(delay, utilization=0.9, early=0.01, overflow=0.02):
    return {
        "utilization": utilization,
        "sojourn_mean_s": delay,
        "sojourn_p95_s": 2 * delay,
        "early_drop_ratio": early,
        "overflow_drop_ratio": overflow,
        "mark_ratio": 0.25,
        "sync_index": None,
        "loss_interval_mean_s": None,
        "loss_sync_ratio": None,
    }


LATER = ("delay_variation_p95_s", "startup_mean_s", "fct_10kB_100kB_mean_s")


def group(goodput, load=None, mos=None, lost=0.0):
    return {"goodput_bps": goodput, "page_load_mean_s": load, "mos": mos, "loss_ratio": lost, **dict.fromkeys(LATER)}


def rfc_run(delay, goodputs=(3e6, 1.5e6), **more):
    flows = {f"g{i}": {"steady": group(goodput)} for i, goodput in enumerate(goodputs)}
    sample = {"at_s": [10, 11], "goodput_bps": sum(goodputs), "sojourn_mean_s": delay}
    windows = {"steady": [6, 60]}
    return {"windows": windows, "links": {"l": {"steady": link(delay, **more)}}, "flows": flows, "samples": [sample]}


def test_of_two_groups_the_losses_of_each_are_told():
    run = rfc_run(0.02)
    run["flows"] = {"fixed": {"steady": group(2e6, lost=0.01)}, "varied": {"steady": group(1e6, lost=0.03)}}
    told = evaluation.figures(run, "steady")
    assert (told["first_loss_ratio"], told["second_loss_ratio"]) == (0.01, 0.03)


def test_who_begins_when_all_is_judged_is_not_there():
    run = rfc_run(0.02)
    run["links"]["l"]["steady"]["loss_sync_ratio"] = 0.5
    assert evaluation.figures(run, "steady")["loss_sync_ratio"] == 0.5
    run["flows"]["late"] = {"steady": group(0.0, lost=None)}
    told = evaluation.figures(run, "steady")
    assert told["first_loss_ratio"] == 0.0
    assert told["goodput_ratio"] == 0.5
    # A share of flows of which some have not begun says nothing.
    assert told["loss_sync_ratio"] is None
    # Who is starved is there: half of what it sent was lost.
    run["flows"]["late"] = {"steady": group(0.0, lost=0.5)}
    told = evaluation.figures(run, "steady")
    assert told["first_loss_ratio"] is None
    assert told["loss_sync_ratio"] == 0.5


def test_a_window_that_a_variant_does_not_have_has_no_row():
    whole, part = rfc_run(0.02), rfc_run(0.03)
    for told in (whole["windows"], whole["links"]["l"], *whole["flows"].values()):
        told["narrow"] = told["steady"]
    cells = {"rfc7928/varying-capacity": whole, "rfc7928/varying-capacity@fast": part}

    class Both:
        def of(self, cell, aqm):
            return [(1, cells[cell])] if cell in cells else []

    found = [(row["cell"], row["window"]) for row in evaluation.rows(Both(), ["pie"]) if row["aqm"] == "pie"]
    assert found == [
        ("rfc7928/varying-capacity", "steady"),
        ("rfc7928/varying-capacity", "narrow"),
        ("rfc7928/varying-capacity@fast", "steady"),
    ]


class Kept:
    """Finished runs of one cell."""

    def __init__(self, cell, by_aqm):
        self.cell, self.by_aqm = cell, by_aqm

    def of(self, cell, aqm):
        return list(enumerate(self.by_aqm.get(aqm, []))) if cell == self.cell else []


def test_each_run_is_told_by_its_figures():
    run = rfc_run(0.02)
    run["flows"]["web"] = {"steady": group(0.5e6, load=1.5, mos=None)}
    run["flows"]["call"] = {"steady": group(0.0, load=9.0, mos=4.1)}
    run["flows"]["film"] = {
        "steady": {**group(0.0), "video_bitrate_mean_bps": 2e6, "video_stalled_ratio": 0.0, "frame_loss_ratio": None}
    }
    run["links"]["after"] = {"steady": link(0.05, utilization=0.7)}
    assert evaluation.figures(run, "steady") == {
        "goodput_bps": 5e6,
        "utilization": 0.9,
        "sojourn_mean_s": 0.02,
        "sojourn_p95_s": 0.04,
        "loss_ratio": pytest.approx(0.03),
        "mark_ratio": 0.25,
        "sync_index": None,
        "goodput_ratio": 0.5,
        "first_loss_ratio": None,
        "second_loss_ratio": None,
        "page_load_mean_s": 1.5,
        "mos": 4.1,
        **dict.fromkeys(LATER),
        **dict.fromkeys(f"fct_{size}_mean_s" for size in ("under_10kB", "100kB_1MB", "over_1MB")),
        "loss_interval_mean_s": None,
        "loss_sync_ratio": None,
        "frame_loss_ratio": None,
        "video_bitrate_mean_bps": 2e6,
        "video_stalled_ratio": 0.0,
        "second_sojourn_mean_s": 0.05,
        "second_utilization": 0.7,
    }
    assert evaluation.figures(rfc_run(0.02), "steady")["second_sojourn_mean_s"] is None
    assert evaluation.figures(rfc_run(0.02, early=None), "steady")["loss_ratio"] is None
    assert evaluation.figures(rfc_run(0.02, overflow=None), "steady")["loss_ratio"] is None
    assert evaluation.figures(rfc_run(0.02, goodputs=(1e6,)), "steady")["goodput_ratio"] is None
    assert evaluation.figures(rfc_run(0.02, goodputs=(0.0, 1e6)), "steady")["goodput_ratio"] is None
    assert evaluation.figures(rfc_run(0.02, goodputs=(2e6, 1e6)), "steady")["goodput_ratio"] == 0.5


def test_a_quick_evaluation_has_fewer_round_trips_pairs_and_turns():
    quick, whole = (evaluation.wanted(["pie", "droptail", "pie"], quick=each) for each in (True, False))
    by_number = {each.number: each.cells for each in evaluation.sections()}
    fair, pairs = by_number["6"], by_number["10"]
    assert set(whole) - set(quick) == (set(fair) - set(fair[::3])) | (set(pairs) - set(pairs[::3]))
    assert len(fair) >= 4
    # Both links with the AQM under test, another before it, another after it.
    assert {"rfc7928/two-aqms", "rfc7928/two-aqms@codel-before", "rfc7928/two-aqms@codel-after"} < set(pairs)
    turned = {each: [knob.spec for knob in evaluation.parameter_changes("pie", each)] for each in (True, False)}
    sensitive = whole.pop("rfc7928/congestion@medium")
    plain = ["droptail", "pie", "fq-pie", "pie:target=5ms", "pie:target=15ms", "pie:target=45ms"]
    assert sensitive == [*plain, *turned[False]]
    assert quick["rfc7928/congestion@medium"] == [*plain, *turned[True]]
    assert set(turned[True]) < set(turned[False])
    both = set(by_number["4.6"])
    for cell, specs in whole.items():
        assert specs == ["droptail", "pie", *(["fq-pie"] if cell in both else [])]
    assert {each.windows for each in evaluation.sections()} == {
        ("steady",),
        ("mild", "medium", "heavy", "mild-again"),
        ("steady", "narrow", "wide", "narrow-again"),
    }


def test_the_sections_are_those_of_the_rfc_and_their_cells_what_it_asks_for():
    def cells(number):
        section = next(each for each in evaluation.sections() if each.number == number)
        return [cell.removeprefix("rfc7928/") for cell in section.cells]

    assert [each.number for each in evaluation.sections()] == [
        *("4.4", "4.6", "5.1", "5.2", "5.3", "5.4", "6", "7", "8.2.2", "8.2.5", "8.2.6", "8.3", "9.1", "9.2", "10"),
    ]
    # Each variant with each other one; along an axis ECN once, at the scenario as it stands, but for congestion.
    assert cells("5.2") == ["aggressive", "aggressive@ecn", "aggressive@single", "aggressive@ecn,single"]
    assert cells("7") == ["bursts@i", "bursts@ii", "bursts@iii", "bursts@iv", "bursts@ecn"]
    levels = ["mild", "medium", "heavy"]
    assert cells("8.2.2") == [
        *(f"congestion@{each}" for each in levels),
        *(f"congestion@{each},ecn" for each in levels),
    ]
    assert cells("8.3") == ["congestion@medium"]
    assert cells("4.4") == [f"packet-size@{each}" for each in ("500B", "1500B", "500B,ecn", "1500B,ecn")]
    # With and without flow queueing at medium congestion, and where senders differ.
    fair = ["aggressive", "aggressive@ecn", "tcp-friendly"]
    assert cells("4.6") == ["congestion@medium", "congestion@medium,ecn", *fair]
    assert cells("10")[:2] == ["two-aqms", "two-aqms@droptail-before"]
    assert cells("10")[-1] == "two-aqms@ecn"
    assert cells("9.1") == ["mix@x1", "mix@x2", "mix@x4", "mix@ecn"]


def test_at_several_targets_each_aqm_runs_at_them_alone():
    section = next(each for each in evaluation.sections() if each.number == "8.3")
    assert section.specs(["droptail", "codel", "pie:target=9ms", "red"]) == [
        "droptail",
        *(f"codel:target={target}" for target in ("5ms", "15ms", "45ms")),
        *(f"red:thresholds=ns2-auto,target_delay={target}" for target in ("5ms", "15ms", "45ms")),
    ]
    plain = next(each for each in evaluation.sections() if each.number == "7")
    assert plain.specs(["pie:target=9ms", "droptail", "pie"]) == ["droptail", "pie:target=9ms", "pie"]


def standing_of(**cells):
    """Summary over all networks, from delay in s and goodput in Mbit/s of each AQM there."""
    table = []
    for cell, by_aqm in cells.items():
        for aqm, (delay, goodput) in by_aqm.items():
            told = {"sojourn_p95_s": delay, "goodput_bps": None if goodput is None else goodput * 1e6}
            told |= {"sojourn_mean_s": delay, "loss_ratio": 0.1, "delay_variation_p95_s": None}
            measured = {key: {"mean": value, "n": 0 if value is None else 3} for key, value in told.items()}
            section = "8.3" if cell == "study" else "7"
            table.append({"section": section, "cell": cell, "window": "steady", "aqm": aqm, "measured": measured})
    return evaluation.standing(table)


def test_delay_and_goodput_are_means_over_all_sections_but_studies():
    found = standing_of(
        one={"a": (0.1, 4), "b": (0.2, 8)},
        two={"a": (0.3, 5), "b": (0.2, 10)},
        # A network that one of them lacks counts for the other's means.
        half={"a": (0.2, 9)},
        # A study of targets is no place.
        study={"a": (9.0, 0), "b": (9.0, 0)},
    )
    # Half of the best goodput in two places, all of it where it is alone.
    assert found["tradeoff"] == {
        "a": pytest.approx({"delay_s": 0.2, "goodput_share": 2 / 3}),
        "b": pytest.approx({"delay_s": 0.2, "goodput_share": 1}),
    }
    assert found["front"] == ["b"]
    # Where nothing arrived there is no share of it, and where nobody waited no delay.
    idle = standing_of(one={"a": (0.1, 0), "b": (0.2, 0)}, two={"a": (None, 3), "b": (0.5, 3)})
    assert idle["tradeoff"] == {"b": {"delay_s": 0.5, "goodput_share": 1}}


def test_every_section_with_ends_that_can_runs_with_ecn_on_and_off():
    for section in evaluation.sections():
        if not section.targets:
            marks = {"ecn" in cell.partition("@")[2].split(",") for cell in section.cells}
            assert marks == {True, False}, section.number


def test_a_knob_is_turned_by_itself_and_keeps_what_was_given():
    turned = evaluation.parameter_changes("codel:target=20ms", quick=True)
    assert {(each.knob, each.spec) for each in turned} >= {
        ("target", "codel:target=0.01s"),
        ("target", "codel:target=0.04s"),
        ("interval", "codel:target=20ms,interval=0.05s"),
    }
    # Words, switches, and numbers that stand at 0 are no knobs; packets and bytes stay whole.
    assert {each.knob for each in turned} == {"target", "interval", "mtu"}
    assert evaluation.parameter_changes("droptail", quick=True) == []
    values = [each.value for each in evaluation.parameter_changes("pie:limit=5pkt", quick=True) if each.knob == "limit"]
    assert values == [2, 10]
    # What an AQM does not accept is left out: the largest probability of a signal is 1.
    assert [
        each.value for each in evaluation.parameter_changes("red:max_p=0.4", quick=False) if each.knob == "max_p"
    ] == [
        *(0.05, 0.1, 0.2, 0.8),
    ]


def test_a_safe_range_ends_where_delay_or_utilisation_leaves_a_tenth():
    turned = {each.value: each.spec for each in evaluation.parameter_changes("codel", False) if each.knob == "target"}
    # The default is 5 ms. Below it the delay falls by 10 % and by 11 %; above it utilisation leaves first.
    told = {
        0.000625: (0.010, 0.9),
        0.00125: (0.0089, 0.9),
        0.0025: (0.0091, 0.9),
        0.01: (0.0109, 0.95),
        0.02: (0.0109, 1.0),
        0.04: (0.010, 0.9),
    }
    runs = {"codel": [rfc_run(0.010)]}
    runs |= {turned[value]: [rfc_run(delay, utilization=used)] for value, (delay, used) in told.items()}

    class Known(Kept):
        def of(self, cell, aqm):
            return super().of(cell, aqm) if aqm in self.by_aqm else []

    found = evaluation.safe_ranges(Known("rfc7928/congestion@medium", runs), ["pie", "codel"], quick=False)
    assert list(found) == ["codel"]
    knob = next(each for each in found["codel"] if each["knob"] == "target")
    # A target sets the delay, so utilisation alone judges it: 1/0.9 of it is more than a tenth above it, and beyond
    # what is not safe nothing is.
    assert knob["judged_by"] == ["utilization"]
    assert (knob["low"], knob["default"], knob["high"]) == (0.000625, 0.005, 0.01)
    assert (knob["low_is_end"], knob["high_is_end"]) == (True, False)
    assert [one["safe"] for one in knob["tried"]] == [True, True, True, True, True, False, True]
    figures = {one["value"]: (one["delay_s"], one["utilization"]) for one in knob["tried"]}
    assert figures == told | {0.005: (0.010, 0.9)}
    interval = next(each for each in found["codel"] if each["knob"] == "interval")
    assert (interval["low"], interval["high"], interval["low_is_end"], interval["high_is_end"]) == (
        0.1,
        0.1,
        True,
        True,
    )
    page = evaluation_page.page([], ["codel"], 1, "c", safe=found)
    head = '<th scope="row" class="id">target</th><td>s</td><td class="n">'
    row = next(line for line in page.split("<tr>") if line.startswith(head))
    assert '<td class="n">0.005</td><td class="n">0.000625 …</td><td class="n">0.01</td>' in row
    assert "0.02: 10.9, 100.0 ✗; 0.04: 10.0, 90.0</td>" in row
    assert '<td class="n">0.1</td><td class="n">0.1 …</td><td class="n">0.1 …</td>' in page


def test_a_cost_is_told_a_packet_and_a_flow():
    def of(*cpu_s):
        return [{"cost": {"cpu_s": each, "bottleneck_packets": 1000}} for each in cpu_s]

    aqms = ["codel", "fq-codel", "fq-codel:queues=2048", "cake"]
    runs = {"droptail": of(1e-3, 3e-3), **{aqm: of(1.5e-3, 4e-3) for aqm in aqms}}
    found = evaluation.costs(Kept("rfc7928/congestion@heavy", runs), aqms)
    # 1 and 3 ms for 1000 packets, then 1.5 and 4: 0.5 and 1 us more for each.
    assert found["droptail"]["packet_ns"]["mean"] == pytest.approx(2000)
    assert found["codel"]["above_reference_ns"]["mean"] == pytest.approx(750)
    # One queue has nothing for a flow; twice the queues take twice their memory, and a flow no more.
    assert found["codel"]["flow_bytes"] == found["droptail"]["flow_bytes"] == 0
    few, many = found["fq-codel"], found["fq-codel:queues=2048"]
    assert few["flow_bytes"] == many["flow_bytes"] > 0
    assert many["memory_bytes"] - few["memory_bytes"] == 1024 * few["flow_bytes"]
    # CAKE keeps places for two hosts beside each queue.
    assert found["cake"]["flow_bytes"] > few["flow_bytes"] / 2
    page = evaluation_page.page([], aqms, 2, "c", spent=found)
    row = next(line for line in page.split("<tr>") if line.startswith('<th scope="row">fq-codel</th>'))
    assert row.strip().endswith(f'<td class="n">{few["flow_bytes"]}</td></tr>')


def test_the_page_has_a_table_and_a_picture_of_each_cell():
    cell = "rfc7928/aggressive"
    slow, quick = [rfc_run(0.2), rfc_run(0.3, (4e6, 1.5e6))], [rfc_run(0.02), rfc_run(0.03, (5e6, 1.5e6))]
    table = evaluation.rows(Kept(cell, {"droptail": slow, "pie<5": quick}), ["pie<5"])
    assert [(row["section"], row["cell"], row["window"], row["aqm"]) for row in table] == [
        ("5.2", cell, "steady", "droptail"),
        ("5.2", cell, "steady", "pie<5"),
    ]
    assert table[0]["measured"]["goodput_bps"]["mean"] == 5e6
    assert table[1]["ellipse"]["delay_s"] == pytest.approx(0.025)
    # Deviations of 0.02, 0.03 and of 4.5, 6.5 Mbit/s.
    assert table[1]["ellipse"]["delay_std_s"] == pytest.approx(0.01 / math.sqrt(2))
    assert table[1]["ellipse"]["covariance"] == pytest.approx(0.01 * 2e6 / 2)
    page = evaluation_page.page(table, ["pie<5"], 2, "aqumen reproduce <rfc7928>")
    assert page.startswith("<!doctype html>")
    assert "<title>RFC 7928: pie&lt;5</title>" in page
    assert "RFC 7928: pie&lt;5 and DropTail" in page
    assert "<p>2 seeds" in page
    assert "<code>aqumen reproduce &lt;rfc7928&gt;</code>" in page
    assert re.findall(r'<h2 id="s(\S+)">(\S+) ', page) == [(number, number) for number in ("5.2", "13")]
    titles = re.findall(r'<th(?: class="n")?>(.*?)(?:<br>(.*?))?</th>', page.partition('<h2 id="s13">')[0])
    # Nothing measured has a column: no synchronisation, pages, calls.
    assert [title for title, _ in titles] == [
        *("AQM", "goodput", "utilisation", "queueing delay", "queueing delay, p95", "lost", "marked"),
        *("goodput, second / first group", "lost, first group", "lost, second group"),
    ]
    assert [unit for _, unit in titles[1:]] == ["Mbit/s", "%", "ms", "ms", "%", "%", "", "%", "%"]
    # One window: it is not named.
    assert re.findall(r'<th class="id" scope="rowgroup" colspan="10"><span>(.*?)</span>', page) == ["aggressive"]
    rows = re.findall(r'<tr><th scope="row">(.*?)</th>(.*?)</tr>', page.partition('<h2 id="s13">')[0])
    assert [row[0] for row in rows] == ["droptail", "pie&lt;5"]
    # Two seeds: the quantile for one degree is 12.706, half of the interval 12.706 times half of the difference.
    assert re.findall(r'<td class="n">(.*?)</td>', rows[1][1]) == [
        "5.50 −5.50/+12.71",
        "90.0 ± 0.0",
        "25.0 −25.0/+63.5",
        "50.0 −50.0/+127.1",
        "3.00 ± 0.00",
        "25.00 ± 0.00",
        "0.40 −0.40/+0.59",
        "0.00 ± 0.00",
        "0.00 ± 0.00",
    ]


def test_up_and_to_the_right_is_better():
    cell = "rfc7928/bidirectional"
    slow, quick = [rfc_run(0.2), rfc_run(0.3, (4e6, 1.5e6))], [rfc_run(0.02), rfc_run(0.03, (6e6, 1.5e6))]
    table = evaluation.rows(Kept(cell, {"droptail": slow, "pie": quick}), ["pie"])
    page = evaluation_page.page(table, ["pie"], 2, "c")
    (svg,) = re.findall(r"<svg.*?</svg>", page)
    assert svg.startswith('<svg width="360" height="220" viewBox="0 0 360 220"')
    assert "<figcaption>bidirectional, steady: goodput in Mbit/s over queueing delay</figcaption>" in page
    middles = [tuple(map(float, each)) for each in re.findall(r'cx="(\S+)" cy="(\S+)"', svg)]
    # Delays 0.25 and 0.025, deviations of 0.1 and 0.01 over sqrt(2): the axis ends at 0.25 + 2 0.0707.
    end = 0.25 + 0.1 * math.sqrt(2)
    assert f">{1000 * end:.1f} ms<" in svg
    # The ends of goodput stand left of the axis, those of delay on one line below it.
    numbers = re.findall(r'<text x="(\S+)" y="(\S+)">', svg)
    assert [tuple(map(float, each)) for each in numbers] == [(2, 14), (2, 194), (46, 212), (326, 212)]
    # Goodputs 5 ± 0.707 and 6 ± 2.121: the ends 1.757 (6 - 2 2.121) and 10.243, with a tenth of the rest beyond.
    low, high = 6 - 1.5 * 2**1.5, 6 + 1.5 * 2**1.5
    low, high = low - 0.1 * (high - low), high + 0.1 * (high - low)
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    assert texts[0] == f"{high:.2f}"
    assert texts[1] == f"{low:.2f}"
    assert texts[3:] == ["0 ms", "droptail", "pie"]
    for (x, y), delay, goodput in zip(middles, (0.25, 0.025), (5, 6), strict=True):
        # 46 to the left, 8 to the right, 6 above, 26 below.
        assert x == pytest.approx(46 + 306 * (1 - delay / end), abs=0.06)
        assert y == pytest.approx(6 + 188 * (1 - (goodput - low) / (high - low)), abs=0.06)
    for points, (x, y), delay in zip(re.findall(r'points="(.*?)"', svg), middles, (0.1, 0.01), strict=True):
        corners = [tuple(map(float, each.split(","))) for each in points.split()]
        assert len(corners) == 48
        assert np.mean(corners, axis=0) == pytest.approx([x, y], abs=0.2)
        # One deviation each way; two points lie on a line, and so does their ellipse.
        half = 306 * delay / math.sqrt(2) / end
        assert max(cx for cx, _ in corners) - x == pytest.approx(half, abs=0.11)
        assert corners[0][0] == min(cx for cx, _ in corners)
    assert re.findall(r'stroke="(#\w+)"', svg) == evaluation_page.COLOURS[:2]
    # A single seed has no ellipse, and no picture is drawn of none.
    alone = evaluation.rows(Kept(cell, {"droptail": slow[:1], "pie": quick[:1]}), ["pie"])
    assert "<svg" not in evaluation_page.page(alone, ["pie"], 1, "c")
    assert '<td class="n">4.50</td>' in evaluation_page.page(alone, ["pie"], 1, "c")


def test_labels_stay_inside_the_picture_and_off_one_another():
    same = {"delay_s": 0.001, "goodput_bps": 5e6, "delay_std_s": 0.05, "goodput_std_bps": 1e6, "covariance": 0.0}
    names = ["droptail", "fq-codel", "pie"]
    _, svg = evaluation_page._picture([{"aqm": name, "ellipse": same} for name in names], names, "a/b", "steady")
    labels = re.findall(r'<text x="(\S+)" y="(\S+)" font-size="10" fill="currentColor">([a-z-]+)<', svg)
    assert [name for _, _, name in labels] == names
    # A letter of 10 px is about 6 wide; the three share a place, a line of 11 px below another.
    assert all(float(x) + 6 * len(name) <= 360 for x, _, name in labels)
    lines = [float(y) for _, y, _ in labels]
    assert lines[1] >= lines[0] + 11
    assert lines[2] >= lines[1] + 11
    # Labels are drawn last, over every ellipse.
    assert svg.rindex("<polygon") < svg.index(">droptail<")


def test_an_ellipse_holds_the_covariance():
    # Points at the corners of a square have none; the ellipse is as wide as one deviation, and as high.
    row = {
        "aqm": "droptail",
        "ellipse": evaluation.ellipse([(1, 1e6), (1, 3e6), (3, 1e6), (3, 3e6)]),
    }
    assert row["ellipse"]["covariance"] == 0
    deviation = math.sqrt(4 / 3)
    assert row["ellipse"]["delay_std_s"] == pytest.approx(deviation)
    _, svg = evaluation_page._picture([row], ["droptail"], "a/b", "steady")
    corners = [tuple(map(float, each.split(","))) for each in re.search(r'points="(.*?)"', svg)[1].split()]
    width, height = (max(c[i] for c in corners) - min(c[i] for c in corners) for i in (0, 1))
    assert width == pytest.approx(306 * 2 * deviation / (2 + 2 * deviation), abs=0.11)
    high = 2 + 2 * deviation
    assert height == pytest.approx(188 * 2 * deviation / (1.1 * high + 0), rel=0.01)
    # Every corner is one deviation from the middle.
    x, y = np.array(corners).T
    middle = (x.max() + x.min()) / 2, (y.max() + y.min()) / 2
    away = np.hypot((x - middle[0]) / (width / 2), (y - middle[1]) / (height / 2))
    assert away == pytest.approx(np.ones(48), abs=0.002)
    assert json.dumps(row["ellipse"])


def test_an_ellipse_leans_as_delay_and_goodput_go_together():
    # Deviations of 1 s and 2 Mbit/s that correlate by 0.8: where the delay is 1 s more, goodput is 1.6 Mbit/s more.
    leaning = {"delay_s": 5.0, "goodput_bps": 9e6, "delay_std_s": 1.0, "goodput_std_bps": 2e6, "covariance": 1.6e6}
    _, svg = evaluation_page._picture([{"aqm": "pie", "ellipse": leaning}], ["droptail", "pie"], "a/b", "steady")
    assert re.findall(r'stroke="(#\w+)"', svg) == [evaluation_page.COLOURS[1]]
    x, y = np.array([each.split(",") for each in re.search(r'points="(.*?)"', svg)[1].split()], dtype=float).T
    # Delays reach from the right, 0, to 7 s; goodput from 5 - 0.8 to 13 + 0.8 Mbit/s.
    delay = (352 - x) / 306 * 7
    goodput = 4.2 + (194 - y) / 188 * 9.6
    across, up = delay - 5, (goodput - 9) / 2
    mahalanobis = (across**2 - 2 * 0.8 * across * up + up**2) / (1 - 0.8**2)
    assert mahalanobis == pytest.approx(np.ones(48), abs=0.02)


@pytest.mark.needs("chromium")
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 400)])
def test_the_evaluations_page_is_accessible(tmp_path, scheme, width):
    cell = "rfc7928/aggressive"
    runs = {
        name: [rfc_run(delay), rfc_run(1.5 * delay, (4e6, 1.5e6))] for name, delay in (("droptail", 0.2), ("pie", 0.02))
    }
    table = evaluation.rows(Kept(cell, runs), ["pie"])
    assert page_lacks(evaluation_page.page(table, ["pie"], 2, "c"), tmp_path, scheme, width) == []
