"""What `co eval SET SET... --held-out` found, as tables of 80 columns and as JSON."""

from __future__ import annotations

from typing import Any

from co_cli.cli.eval_tables import MEASURES, clipped
from co_cli.cli.terminal import Screen
from co_cli.evaluation.comparing import Comparison
from co_cli.evaluation.held_out import COLUMNS, HeldOut
from co_cli.evaluation.scoring import Scores
from co_cli.retrieval.rerank import DEFAULT, Shares

NAME, FIGURE = 22, 7
HEADS = ("simple", "co", "in", "held")


def show_held_out(screen: Screen, found: HeldOut) -> None:
    there = found.finished()
    heads = "".join(f"{head:>{FIGURE}}" for head in HEADS)
    screen.line(screen.paint(f"{'':<{NAME}}{'nDCG@10':>{4 * FIGURE}}{'R@10':>{4 * FIGURE}}", "bold"))
    screen.line(screen.paint(f"{'set':<{NAME}}{heads}{heads}", "bold"))
    for name, columns in there.items():
        _show_row(screen, f"{name} ({columns[COLUMNS[0]].questions})", columns)
    _show_row(screen, f"mean of {len({found.families[name] for name in there})} families", found.means())
    screen.line("")
    screen.line(screen.paint(f"{'A':<12}{'B':<12}{'measure':<9}{'B - A':>8}{'95 %':>19}  B is", "bold"))
    for first, second, one in found.differences():
        interval = f"{one.low:+.4f} to {one.high:+.4f}"
        told = f"{first:<12}{second:<12}{MEASURES[one.measure]:<9}{one.difference:>+8.4f}{interval:>19}"
        screen.line(f"{told}  {one.verdict}")
    screen.line("")
    _show_shares(screen, found)
    screen.wrapped(
        "simple: the best simple hybrid. co: as it ships. in: shares of the closer look learned on all families. "
        "held: learned on the other families alone, so no question of the set's own family was seen. Each family "
        "counts alike. The candidates and the constants beside the shares are those that ship.",
        style="dim",
    )


def held_out_json(found: HeldOut) -> dict[str, Any]:
    return {
        "sets": [
            {"set": name, "family": found.families[name], "columns": _columns(columns)}
            for name, columns in found.finished().items()
        ],
        "mean": _columns(found.means()),
        "differences": [
            {"a": first, "b": second, **_difference(one), "verdict": one.verdict}
            for first, second, one in found.differences()
        ],
        "shares": {
            "co": DEFAULT._asdict(),
            "in sample": found.every._asdict() if found.every else None,
            "held out": {family: shares._asdict() for family, shares in found.shares.items()},
        },
    }


def _difference(one: Comparison) -> dict[str, Any]:
    """In the mean over the families, whose figures `mean` has."""
    return {name: value for name, value in one._asdict().items() if name not in ("set", "first", "second")}


def _columns(columns: dict[str, Scores]) -> dict[str, dict[str, float]]:
    return {
        column: {name: value for name, value in scores._asdict().items() if not name.endswith("_ms")}
        for column, scores in columns.items()
    }


def _show_row(screen: Screen, name: str, columns: dict[str, Scores]) -> None:
    ndcg = "".join(f"{columns[column].ndcg10:>{FIGURE}.3f}" for column in COLUMNS)
    recall = "".join(f"{columns[column].recall10:>{FIGURE}.3f}" for column in COLUMNS)
    screen.line(f"{clipped(name, NAME - 1):<{NAME}}{ndcg}{recall}")


def _show_shares(screen: Screen, found: HeldOut) -> None:
    """A row for each family that was left out; ten columns."""
    screen.line(screen.paint(f"{'shares without':<16}{''.join(f'{name[:5]:>6}' for name in Shares._fields)}", "bold"))
    rows = [*found.shares.items(), ("none left out", found.every), ("co", DEFAULT)]
    for name, shares in rows:
        if shares is not None:
            screen.line(f"{clipped(name, 15):<16}{''.join(f'{share:>6.2f}' for share in shares)}")
