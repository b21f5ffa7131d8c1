"""Controllers of python-control and scipy, and functions of the observation, as AQMs."""

from __future__ import annotations

import copy
import math
import sys
from collections.abc import Callable
from numbers import Real
from operator import mul
from typing import TYPE_CHECKING, Any, ClassVar

from aqumen.custom.classes import Param, SampledLaw, name_of
from aqumen.errors import ScenarioError, listed, optional

if TYPE_CHECKING:
    from aqumen._core import LawView

METHODS = {"tustin": "bilinear", "zoh": "zoh"}
"""Methods of discretisation, and their names in scipy."""
UNITS = {"packets": "pkt", "delay": "s"}
"""Inputs of a controller, and the unit of its reference."""


def from_control(
    controller: Any,
    period: float,
    *,
    reference: float | None = None,
    unit: str = "packets",
    method: str = "tustin",
    anti_windup: bool = True,
    name: str = "controller",
) -> type[SampledLaw]:
    """Make an AQM of a controller: it runs in every engine, and `theory.design` computes its margins.

    A linear controller gets the error `queue - reference` at each period. Its output is the marking probability,
    limited to [0, 1]. Before the start the queue counts as empty.

    Anti-windup is back-calculation: at each step with a limited output, the integrators and unstable modes (without
    any, the slowest mode) take the value at which the output equals the applied probability, in as many steps as there
    are such modes. The other modes decay by themselves. A PI controller becomes the velocity form of the built-in `pi`:
    p = clamp(p_old + a e - b e_old).

    Args:
        controller: A SISO `TransferFunction` or `StateSpace` of python-control, an `lti` or `dlti` of scipy, or a
            function that takes the observation (`seen` of `SampledLaw.step`) and returns the probability. An object
            with state is copied for each queue and run.
        period: Sampling period, seconds. A discrete-time system must have this `dt`; it is taken as it is.
        reference: Reference of the queue, packets or seconds as `unit` says; without one the network's target. A SPEC
            may set it: `controller:target=50pkt`.
        unit: Input of the controller: `packets`, or `delay`, the queue over the network's capacity in seconds.
        method: Discretisation of a continuous-time system: `tustin` (bilinear) or `zoh` (zero-order hold).
        anti_windup: Whether limited outputs are back-calculated; without it the output alone is limited.
        name: Name of the AQM in a SPEC.
    """
    if not _is_number(period, 1e-6, 1e9):
        raise ScenarioError(f"period = {period!r}: seconds, a number from 1e-6 to 1e9")
    for key, value, known in (("unit", unit, UNITS), ("method", method, METHODS)):
        if value not in list(known):
            raise ScenarioError(f"{key} = {value!r}: choose from: {listed(known)}")
    if reference is not None and not _is_number(reference, 0.0, sys.float_info.max):
        raise ScenarioError(f"reference = {reference!r}: {unit}, a finite number of at least 0")
    members: dict[str, Any] = {"name": str(name), "period": float(period)}
    if not _is_linear(controller):
        if not callable(controller) or isinstance(controller, type) or _root(controller) in ("control", "scipy"):
            raise ScenarioError(
                f"{type(controller).__name__}: no controller; give a TransferFunction or StateSpace of python-control, "
                "an lti or dlti of scipy, or a function of the observation"
            )
        if reference is not None or unit != "packets":
            raise ScenarioError("reference and unit have no effect on a function, which gets the whole observation")
        # Two functions of one line differ in where their code stands.
        code = getattr(controller, "__code__", None)
        text = repr((period, code and list(code.co_positions())))
        members |= {"_definition": (text, controller), "__doc__": "A function of the observation."}
        return _class(_Function, members)
    a, b, c, d = _sampled(controller, float(period), METHODS[method])
    gains = _back_calculation(a, c) if anti_windup else [0.0] * len(a)
    rows = [[*row, gain] for row, gain in zip(a.tolist(), b.ravel().tolist(), strict=True)]
    output = [*c.ravel().tolist(), float(d.item())]
    target = Param(
        None if reference is None else float(reference), UNITS[unit], low=0, doc="reference; else the network's target"
    )
    members |= {"rows": rows, "output": output, "gains": gains, "unit": unit, "target": target}
    text = repr((rows, output, gains, unit, reference, period))
    members |= {"_definition": (text, None), "form": _transfer(a, b, c, d)}
    members["__doc__"] = f"A linear controller of order {len(a)}, sampled every {1e3 * period:g} ms."
    return _class(_Linear, members)


class _Linear(SampledLaw):
    """x' = A x + B e + L (p - y), y = C x + D e, p = clamp(y, 0, 1)."""

    rows: ClassVar[list[list[float]]]
    """A, and B as its last column."""
    output: ClassVar[list[float]]
    """C, and D as its last element."""
    gains: ClassVar[list[float]]
    """L, the gains of the back-calculation."""
    form: ClassVar[tuple[list[float], list[float]] | None]
    """The transfer function from the input to the probability."""
    unit: ClassVar[str]
    target: Any

    def start(self) -> None:
        """Begin in the state in which an empty queue leaves the controller."""
        self.scale = 1.0 if self.unit == "packets" else 1.0 / self.network.capacity_pps
        if self.target is None:
            self.target = self.network.target_pkts * self.scale
        if self.form is not None:
            numerator, denominator = self.form
            self.transfer = ([self.scale * x for x in numerator], denominator)
        self.state = [0.0] * len(self.rows)
        self.advance(-self.target)

    def advance(self, error: float) -> float:
        """Take the state one period on; returns the probability."""
        known = [*self.state, error]
        wanted: float = sum(map(mul, self.output, known))
        # max() and min() keep NaN, which the engine then reports.
        applied = min(max(wanted, 0.0), 1.0)
        excess = applied - wanted
        self.state = [sum(map(mul, row, known)) + g * excess for row, g in zip(self.rows, self.gains, strict=True)]
        return applied

    def step(self, seen: LawView) -> float:
        """The probability until the next step."""
        return self.advance(self.scale * seen.queue_pkts - self.target)

    def take_over(self, old: Any) -> None:
        """Another reference leaves the state as it is."""
        self.state = old.state


class _Function(SampledLaw):
    """A function of the observation."""

    _definition: ClassVar[tuple[str, Callable[[LawView], float]]]
    """Digest text, and the function."""

    def start(self) -> None:
        """Copy a callable object, so that runs share no state; a plain function is its own copy."""
        self.function = copy.deepcopy(self._definition[1])

    def step(self, seen: LawView) -> float:
        """The probability until the next step."""
        return self.function(seen)

    def take_over(self, old: Any) -> None:
        """Go on with the function's state."""
        self.function = old.function


def _is_number(value: Any, low: float, high: float) -> bool:
    return not isinstance(value, bool) and isinstance(value, Real) and low <= float(value) <= high


def _class(base: type[SampledLaw], members: dict[str, Any]) -> type[SampledLaw]:
    made = type(members["name"], (base,), members)
    name_of(made)
    return made


def _root(thing: Any) -> str:
    return type(thing).__module__.partition(".")[0]


def _is_linear(thing: Any) -> bool:
    """Whether it is a transfer function or in state space: systems of python-control are callable, too."""
    return any(
        all(hasattr(thing, key) for key in keys)
        for keys in (("num", "den"), ("A", "B", "C", "D"), ("zeros", "poles", "gain"))
    )


def _sampled(system: Any, period: float, method: str) -> tuple[Any, Any, Any, Any]:
    """The matrices A, B, C, D of a system at a sampling period."""
    import numpy as np

    signal = optional("scipy.signal", "control")
    what = type(system).__name__
    dt = getattr(system, "dt", None)
    if dt is True:
        raise ScenarioError(f"{what}: discrete-time without a sampling period; give it dt = {period}")
    if dt and not math.isclose(dt, period, rel_tol=1e-9):
        raise ScenarioError(f"{what}: its dt is {dt:g} s, the period {period:g} s; sample it again or take its dt")
    if any(getattr(system, f"n{key}", getattr(system, key, 1)) != 1 for key in ("inputs", "outputs")):
        raise ScenarioError(f"{what}: not SISO; an AQM has one input, the queue, and one output, the probability")
    if not hasattr(system, "A"):
        system = system if hasattr(system, "num") else system.to_tf()
        num, den = (_real(what, x[0][0] if isinstance(x, list) else x).ravel() for x in (system.num, system.den))
        num, den = np.trim_zeros(num, "f"), np.trim_zeros(den, "f")
        if len(num) > len(den):
            raise ScenarioError(
                f"{what}: improper, its numerator has degree {len(num) - 1} and its denominator {len(den) - 1}; add a "
                "filter to its derivative"
            )
        num = num if len(num) else np.zeros(1)
        # scipy gives a constant a state of its own, which would be an integrator.
        static = np.zeros((0, 0)), np.zeros((0, 1)), np.zeros((1, 0)), num / den[:1]
        matrices = static if len(den) == 1 else signal.tf2ss(num, den)
    else:
        matrices = (system.A, system.B, system.C, system.D)
    a, b, c, d = (np.atleast_2d(_real(what, x)) for x in matrices)
    if not dt and len(a):
        try:
            a, b, c, d, _ = signal.cont2discrete((a, b, c, d), period, method)
        except np.linalg.LinAlgError as error:
            raise ScenarioError(f"{what}: cannot be sampled every {period:g} s: {error}") from None
    a, b, c, d = (_real(what, x) for x in (a, b, c, d))
    return a, b, c, d


def _real(what: str, values: Any) -> Any:
    """Finite real coefficients."""
    import numpy as np

    found = np.asarray(values)
    if np.iscomplexobj(found) and not np.imag(found).any():
        found = np.real(found)
    if np.iscomplexobj(found) or not np.isfinite(found := found.astype(float)).all():
        raise ScenarioError(f"{what}: its coefficients must be finite real numbers")
    return found


def _back_calculation(a: Any, c: Any) -> list[float]:
    """Gains L of the excess: A - L C has zero for each mode that does not decay, and the other modes of A.

    Deadbeat observer of the saturated output (Åström and Wittenmark, Computer-Controlled Systems, section 9.4), on the
    invariant subspace of those modes alone.
    """
    import numpy as np

    if not len(a):
        return []
    bound = min(1.0, np.abs(np.linalg.eigvals(a)).max()) * (1.0 - 1e-6)
    triangle, basis, modes = optional("scipy.linalg", "control").schur(
        a, output="complex", sort=lambda pole: abs(pole) >= bound
    )
    slow, basis = triangle[:modes, :modes], basis[:, :modes]
    seen = c @ basis
    # A mode that the output does not show needs none.
    if np.abs(seen).max() <= 1e-10 * np.abs(c).max():
        return [0.0] * len(a)
    observability = np.vstack([seen @ np.linalg.matrix_power(slow, k) for k in range(modes)])
    last = np.linalg.pinv(observability)[:, -1]
    found: list[float] = np.real(basis @ np.linalg.matrix_power(slow, modes) @ last).tolist()
    return found


def _transfer(a: Any, b: Any, c: Any, d: Any) -> tuple[list[float], list[float]] | None:
    """The transfer function in powers of 1/z; `None` where its coefficients lose the digits of the state space."""
    import numpy as np

    den = np.real(np.poly(np.linalg.eigvals(a))) if len(a) else np.ones(1)
    response = [d.item(), *((c @ np.linalg.matrix_power(a, k) @ b).item() for k in range(len(a)))]
    num = np.convolve(den, response)[: len(den)]
    for angle in np.geomspace(1e-4, 0.5, 9) * np.pi:
        z = np.exp(1j * angle)
        exact = (c @ np.linalg.solve(z * np.eye(len(a)) - a, b) + d).item()
        if abs(np.polyval(num, z) / np.polyval(den, z) - exact) > 1e-6 * abs(exact):
            return None
    return num.tolist(), den.tolist()
