"""Count requests and time them, as text for Prometheus. By hand: its library would be one more dependency."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import groupby
from math import isinf
from types import MappingProxyType
from typing import Literal, NamedTuple

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""The upper bounds of the histogram."""


class Gauge(NamedTuple):
    """A number as it is now. Those of one name follow each other."""

    name: str
    help: str
    value: float
    labels: Mapping[str, str] = MappingProxyType({})
    kind: Literal["gauge", "counter"] = "gauge"


class Metrics:
    """Requests by method, route and status, and how long each route took to answer. For one event loop."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._times: dict[str, list[int]] = {}
        self._sums: defaultdict[str, float] = defaultdict(float)

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        self._requests[method, route, status] += 1
        self._times.setdefault(route, [0] * (len(SECONDS) + 1))[bisect_left(SECONDS, seconds)] += 1
        self._sums[route] += seconds

    def text(self, gauges: Sequence[Gauge] = ()) -> str:
        lines = ["# HELP co_requests_total Requests that were answered.", "# TYPE co_requests_total counter"]
        for (method, route, status), count in sorted(self._requests.items()):
            lines.append(f'co_requests_total{{method="{method}",route="{route}",status="{status}"}} {count}')
        lines.append("# HELP co_request_seconds Time until an answer began.")
        lines.append("# TYPE co_request_seconds histogram")
        for route, counts in sorted(self._times.items()):
            total = 0
            for bound, count in zip((*map(str, SECONDS), "+Inf"), counts, strict=True):
                total += count
                lines.append(f'co_request_seconds_bucket{{route="{route}",le="{bound}"}} {total}')
            lines.append(f'co_request_seconds_sum{{route="{route}"}} {self._sums[route]:.6f}')
            lines.append(f'co_request_seconds_count{{route="{route}"}} {total}')
        for (name, about, kind), group in groupby(gauges, lambda gauge: (gauge.name, gauge.help, gauge.kind)):
            lines += [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]
            for gauge in group:
                labels = ",".join(f'{label}="{value}"' for label, value in gauge.labels.items())
                lines.append(f"{name}{f'{{{labels}}}' if labels else ''} {_number(gauge.value)}")
        return "\n".join(lines) + "\n"


def _number(value: float) -> str:
    """As Prometheus reads it, with all digits of a count."""
    return "+Inf" if isinf(value) else f"{value:.15g}"
