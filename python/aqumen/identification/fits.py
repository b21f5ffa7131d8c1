"""Least-squares models of a sampled plant: ARX, ARMarkov, and recursive least squares.

All take the input `u` (probability) and the output `y` (queue, packets) of one plant at equal steps, as deviations from
their means; u(k) applies from sample k to sample k + 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from aqumen.errors import ScenarioError
from aqumen.identification.excited import Floats

Complexes = NDArray[np.complex128]

__all__ = ["Complexes", "Model", "RecursiveLeastSquares", "armarkov", "arx", "best_arx"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Model:
    """A(1/z) y = B(1/z) u + e, with the covariance of its coefficients."""

    kind: str
    """`arx` or `armarkov`."""
    order: int
    """Number of weights of previous outputs."""
    markov: int
    """Number of Markov parameters: 1 for ARX."""
    a: Floats
    """Coefficients of A in powers of 1/z; the first is 1."""
    b: Floats
    """Coefficients of B in powers of 1/z; the first is 0: the plant has a delay of one step at least."""
    covariance: Floats
    """Covariance of the free coefficients, those of A first, of shape (n, n)."""
    places: tuple[NDArray[np.int64], NDArray[np.int64]]
    """Powers of 1/z of the free coefficients of A and of B."""
    noise_std: float
    """Standard deviation of e, packets."""
    samples: int
    """Number of equations."""

    @property
    def criterion(self) -> float:
        """Akaike's information criterion, per sample."""
        free = len(self.places[0]) + len(self.places[1])
        return 2.0 * float(np.log(self.noise_std)) + 2.0 * free / self.samples

    def response(self, angle: Floats) -> Complexes:
        """Return B/A at angles w T, radians a step.

        Args:
            angle: Angles, of shape (m,).
        """
        b, a = self._at(angle)
        return b / a

    def noise_response(self, angle: Floats) -> Complexes:
        """Return 1/A, the response of the output to e.

        Args:
            angle: Angles, radians a step.
        """
        return 1.0 / self._at(angle)[1]

    def response_std(self, angle: Floats) -> Floats:
        """Return the standard deviation of the response: the root of E|error|^2, to first order in the coefficients.

        Args:
            angle: Angles, radians a step.
        """
        b, a = self._at(angle)
        slope_a = -(b / a**2)[:, None] * np.exp(-1j * np.outer(angle, self.places[0]))
        slope_b = (1.0 / a)[:, None] * np.exp(-1j * np.outer(angle, self.places[1]))
        slope = np.hstack([slope_a, slope_b])
        power = np.einsum("mi,ij,mj->m", slope, self.covariance, slope.conj()).real
        return np.asarray(np.sqrt(np.maximum(power, 0.0)))

    def _at(self, angle: Floats) -> tuple[Complexes, Complexes]:
        z = np.exp(-1j * np.asarray(angle, dtype=float))
        b, a = (np.asarray(np.polynomial.polynomial.polyval(z, each), dtype=np.complex128) for each in (self.b, self.a))
        return b, a

    def markov_parameters(self, count: int) -> Floats:
        """Return the impulse response: h_0 (0 here), h_1, ..., packets per unit of probability.

        Args:
            count: Number of parameters.
        """
        found = np.zeros(count)
        for k in range(count):
            past = self.a[1 : k + 1] @ found[k - 1 :: -1][: len(self.a) - 1] if k else 0.0
            found[k] = (self.b[k] if k < len(self.b) else 0.0) - past
        return found


def _lagged(values: Floats, lags: Sequence[int] | NDArray[np.int64], first: int) -> Floats:
    """Return the columns values(k - lag) for k from `first` on."""
    return np.column_stack([values[first - lag : len(values) - lag] for lag in lags])


def _solve(
    kind: str, segments: Sequence[tuple[Floats, Floats]], order: int, markov: int, lags: tuple[Floats, Floats]
) -> Model:
    """Solve the least squares of y(k) over y(k - lag) and u(k - lag), over all segments."""
    outputs, inputs = (np.asarray(each, dtype=np.int64) for each in lags)
    first = int(max(outputs.max(), inputs.max()))
    pieces = [(y, u) for y, u in segments if len(y) > first + 1]
    count, free = sum(len(y) - first for y, _ in pieces), len(outputs) + len(inputs)
    if count < 5 * free:
        raise ScenarioError(
            f"order {order}: {count} samples for {free} coefficients; use a longer run or a lower order"
        )
    gram, right, power = np.zeros((free, free)), np.zeros(free), 0.0
    for y, u in pieces:
        x = np.hstack([-_lagged(y, outputs, first), _lagged(u, inputs, first)])
        gram += x.T @ x
        right += x.T @ y[first:]
        power += float(y[first:] @ y[first:])
    scale = 1.0 / np.sqrt(np.maximum(np.diag(gram), 1e-300))
    inverse = np.linalg.pinv(gram * np.outer(scale, scale), hermitian=True, rcond=1e-12) * np.outer(scale, scale)
    theta = inverse @ right
    left = max(power - float(theta @ right), 1e-12 * power) / (count - free)
    a, b = np.zeros(int(outputs.max()) + 1), np.zeros(int(inputs.max()) + 1)
    a[0], a[outputs], b[inputs] = 1.0, theta[: len(outputs)], theta[len(outputs) :]
    return Model(
        kind=kind, order=order, markov=markov, a=a, b=b, covariance=left * inverse, places=(outputs, inputs),
        noise_std=float(np.sqrt(left)), samples=count,
    )  # fmt: skip


def arx(segments: Sequence[tuple[Floats, Floats]], order: int, delay: int = 1) -> Model:
    """Fit y(k) = -a_1 y(k-1) - ... - a_n y(k-n) + b_d u(k-d) + ... + b_n u(k-n) + e(k).

    In closed loop it is consistent, since an order that is high enough leaves a white e (Ljung, System Identification,
    section 13.4).

    Args:
        segments: Outputs and inputs of each run, as deviations.
        order: n.
        delay: d, steps. Where u(k) is an average over a step, the feedback within the step makes it correlate with
            e(k+1): then d is at least 2.
    """
    return _solve("arx", segments, order, 1, (np.arange(1.0, order + 1), np.arange(float(delay), order + 1)))


def armarkov(segments: Sequence[tuple[Floats, Floats]], order: int, markov: int) -> Model:
    """Fit the ARMarkov model: [ARM-PFC] eq. (9), whose mu-step predictor is eq. (10).

    y(k) = -sum_j alpha_j y(k-mu-j+1) + sum_{j<=mu} h_j u(k-j) + sum_j beta_j u(k-mu-j), j to n.

    For mu > 1 its error correlates with the feedback: in closed loop with noise its coefficients are biased.

    Args:
        segments: Outputs and inputs of each run, as deviations.
        order: n.
        markov: mu, the number of Markov parameters that the model contains.
    """
    outputs, inputs = np.arange(markov, markov + order), np.arange(1, markov + order + 1)
    return _solve("armarkov", segments, order, markov, (outputs.astype(float), inputs.astype(float)))


def best_arx(segments: Sequence[tuple[Floats, Floats]], orders: Sequence[int], delay: int = 1) -> Model:
    """Fit ARX models and return the one with the least information criterion (Akaike's).

    Args:
        segments: Outputs and inputs of each run, as deviations.
        orders: Orders to try.
        delay: As in `arx`.
    """
    longest = max(orders)
    # Equal equations for all orders: the criterion compares likelihoods of the same samples.
    fits = [arx([(y[longest - n :], u[longest - n :]) for y, u in segments], n, delay) for n in orders]
    return min(fits, key=lambda fit: fit.criterion)


class RecursiveLeastSquares:
    """Recursive least squares of an ARX model with exponential forgetting: one update per sample."""

    def __init__(self, order: int, forgetting: float = 1.0, initial: float = 1e6) -> None:
        """Begin without knowledge.

        Args:
            order: Order of the model.
            forgetting: Weight of the past per step, above 0 to 1; 1 weighs all samples equally.
            initial: Initial variance of each coefficient.
        """
        if not 0.0 < forgetting <= 1.0:
            raise ScenarioError(f"forgetting = {forgetting}: above 0, at most 1")
        self.order, self.forgetting, self.initial = order, forgetting, initial
        self.theta = np.zeros(2 * order)
        self.p = initial * np.eye(2 * order)
        self.y, self.u = np.zeros(order), np.zeros(order)
        self.samples, self.power = 0, 0.0

    def update(self, y: float, u: float) -> float:
        """Take one sample, and return the error of its prediction.

        Args:
            y: Output.
            u: Input from this sample on.
        """
        error = 0.0
        if self.samples >= self.order:
            x = np.concatenate([-self.y, self.u])
            error = y - float(x @ self.theta)
            px = self.p @ x
            scale = self.forgetting + float(x @ px)
            self.theta += px * (error / scale)
            self.p = (self.p - np.outer(px, px) / scale) / self.forgetting
            self.p = 0.5 * (self.p + self.p.T)
            self.power += self.forgetting * error * error / scale
        self.samples += 1
        self.y, self.u = np.concatenate([[y], self.y[:-1]]), np.concatenate([[u], self.u[:-1]])
        return error

    def model(self) -> Model:
        """Return the model so far."""
        lags = np.arange(1, self.order + 1)
        count = max(self.samples - self.order, 1)
        variance = self.power / max(count - 2 * self.order, 1)
        a = np.concatenate([[1.0], self.theta[: self.order]])
        b = np.concatenate([[0.0], self.theta[self.order :]])
        return Model(
            kind="arx", order=self.order, markov=1, a=a, b=b, covariance=variance * self.p, places=(lags, lags),
            noise_std=float(np.sqrt(max(variance, 1e-300))), samples=count,
        )  # fmt: skip
