"""Vectors to places in two dimensions, so that near texts are near: t-SNE over the nearest neighbours, in numpy.

On 1,398 abstracts it keeps .41 of everyone's ten nearest neighbours, where the two main components keep .07
(`python -m benchmarks layout`). Points push each other apart through a grid, as a convolution, and not one by one, so
that ten thousand take seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.floating[Any]]

NEIGHBOURS = 10
STEPS, FEWER_STEPS, SLOWER = 300, 60, 0.1
"""From the start, and from the places of an earlier layout, which should change little."""
CLOSER_STEPS, CLOSER = 100, 4.0
"""At first neighbours attract each other more, so that groups find together."""
CELLS, FEWER_CELLS, FEW = 128, 64, 1_000
"""Of the grid in each direction, and for few points."""
ROUNDS = 30
"""Of k-means: then nothing moves any more."""
ROWS = 500
"""Compared with all others at a time."""


def arrange(
    vectors: Matrix, before: Matrix | None = None, report: Callable[[int, int], None] = lambda done, total: None
) -> Matrix:
    """A place for each of these unit vectors. `before`: earlier places; NaN for what had none."""
    count = len(vectors)
    if count < 3:
        return np.arange(2.0 * count).reshape(count, 2)
    near = nearest(vectors, min(NEIGHBOURS, count - 1))
    point, other = np.repeat(np.arange(count), near.shape[1]), near.ravel()
    chance = np.random.default_rng(0)
    first, steps, pace = 0, STEPS, np.ones((count, 2))
    places = main_components(vectors)
    places = places / (places.std() or 1.0) * 0.01 + chance.normal(0, 1e-4, (count, 2))
    if before is not None and np.isfinite(before[:, 0]).mean() > 0.5:
        around = np.ma.masked_invalid(before)[near].mean(axis=1).filled(0.0)
        places = np.where(np.isfinite(before), before, around) + chance.normal(0, 1e-4, (count, 2))
        first, steps, pace = CLOSER_STEPS, CLOSER_STEPS + FEWER_STEPS, np.where(np.isfinite(before), SLOWER, 1.0)
    speed, gains = np.zeros((count, 2)), np.ones((count, 2))
    for step in range(first, steps):
        report(step - first, steps - first)
        apart = places[point] - places[other]
        pull = apart * ((CLOSER if step < CLOSER_STEPS else 1.0) / (1 + (apart**2).sum(1)) / len(point))[:, None]
        force = np.stack([np.bincount(point, axis, count) - np.bincount(other, axis, count) for axis in pull.T], 1) / 2
        force -= _push(places)
        # delta-bar-delta: faster where the direction stays, slower where it turns
        gains = np.where(np.sign(force) != np.sign(speed), gains + 0.2, gains * 0.8).clip(0.01)
        speed = (0.5 if step < CLOSER_STEPS else 0.8) * speed - max(count / CLOSER, 40.0) * gains * force
        places = places + pace * speed
    return places - places.mean(0)


def centres(places: Matrix, count: int) -> Matrix:
    """The middles of this many groups of places: k-means, which begins with places that are far from each other."""
    chosen = [places.mean(0)]
    while len(chosen) <= count:
        chosen.append(places[_distances(places, np.array(chosen)).min(1).argmax()])
    middles = np.array(chosen[1:])
    for _ in range(ROUNDS):
        group = group_of(places, middles)
        middles = np.array([places[group == at].mean(0) if (group == at).any() else middles[at] for at in range(count)])
    return middles


def group_of(places: Matrix, middles: Matrix) -> NDArray[np.integer[Any]]:
    """Which of these middles is nearest to each place."""
    return _distances(places, middles).argmin(1)


def _distances(places: Matrix, middles: Matrix) -> Matrix:
    return ((places[:, None] - middles[None]) ** 2).sum(2)


def nearest(vectors: Matrix, count: int) -> NDArray[np.integer[Any]]:
    """The nearest others of each vector, in no order."""
    found: list[NDArray[np.integer[Any]]] = []
    for start in range(0, len(vectors), ROWS):
        near = vectors[start : start + ROWS] @ vectors.T
        near[np.arange(len(near)), np.arange(start, start + len(near))] = -np.inf
        found.append(np.argpartition(near, -count, axis=1)[:, -count:])
    return np.concatenate(found)


def main_components(vectors: Matrix) -> Matrix:
    """The two directions in which vectors differ most, the first one before the second."""
    centred = vectors - vectors.mean(0)
    directions = np.linalg.eigh(centred.T @ centred)[1][:, :-3:-1]
    return centred @ (directions * np.where(directions.sum(0) < 0, -1, 1))


def _push(places: Matrix) -> Matrix:
    """How all points push each one away: their mass on a grid, convolved with the force of a distance."""
    cells = FEWER_CELLS if len(places) < FEW else CELLS
    size = float(np.ptp(places, axis=0).max()) / (cells - 2) or 1.0
    at = (places - places.min(0)) / size
    corners = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    cell = at.astype(int)[:, None] + corners
    share = np.abs(1 - corners - (at - at.astype(int))[:, None]).prod(2)
    where = cell @ [cells, 1]
    mass = np.bincount(where.ravel(), share.ravel(), cells**2).reshape(cells, cells).astype(np.float32)
    distance = (np.fft.fftfreq(2 * cells, 1 / (2 * cells)) * size).astype(np.float32)
    close = 1 / (1 + distance[:, None] ** 2 + distance**2)
    kernels = np.stack([close, close**2 * distance[:, None], close**2 * distance])
    spread = np.fft.rfft2(mass, (2 * cells, 2 * cells)) * np.fft.rfft2(kernels)
    fields = np.fft.irfft2(spread)[:, :cells, :cells]
    total, *force = (fields.reshape(3, -1)[:, where] * share).sum(2)
    return np.stack(force, 1) / max(float(total.sum()) - len(places), 1e-9)
