"""The tables of `co eval`: 80 columns wide, a block for each set and each kind of question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from co_cli.cli.terminal import Screen, printable
from co_cli.evaluation.crossing import Crossed
from co_cli.evaluation.running import Run
from co_cli.evaluation.scoring import Scores, mean_of_sets

if TYPE_CHECKING:
    from co_cli.evaluation.comparing import Comparison  # with numpy, which only a comparison needs
    from co_cli.evaluation.long_texts import Found
    from co_cli.evaluation.year import YearScore

NAME, METHOD, FIGURE = 26, 11, 7
MEASURES = {"ndcg10": "nDCG@10", "recall5": "R@5", "recall10": "R@10", "mrr10": "MRR@10"}


def show_runs(screen: Screen, runs: Sequence[Run], left_out: Sequence[str], kinds: bool) -> None:
    heads = "".join(f"{name:>{FIGURE}}" for name in MEASURES.values())
    screen.line(f"{'set':<{NAME}}{'method':<{METHOD}}{heads}{'ms':>7}{'p95 ms':>8}".rstrip())
    sets = list(dict.fromkeys(run.set for run in runs))
    methods = list(dict.fromkeys(run.method for run in runs))
    scores = {(run.set, run.method): run.scores() for run in runs}
    for name in sets:
        for kind in scores[name, methods[0]] if kinds else ["all"]:
            label = name if kind == "all" else f"  {kind}"
            _show_block(screen, label, {method: scores[name, method][kind] for method in methods})
    if len(sets) > 1:
        means = {method: mean_of_sets([scores[name, method]["all"] for name in sets]) for method in methods}
        _show_block(screen, f"mean of {len(sets)} sets", means)
    for run in runs:
        if run.degraded():
            screen.line(f"{run.set}, {run.method}: {run.degraded()}")
    if left_out:
        screen.line(f"left out for want of vectors: {', '.join(left_out)}")


def _show_block(screen: Screen, label: str, scores: dict[str, Scores]) -> None:
    for place, (method, score) in enumerate(scores.items()):
        asked = f" ({score.questions})"
        name = clipped(label, NAME - 1 - len(asked)) + asked if place == 0 else ""
        figures = "".join(f"{value:>{FIGURE}.3f}" for value in score[:4])
        times = f"{score.median_ms:>7.1f}{score.p95_ms:>8.1f}" if score.median_ms else ""
        screen.line(f"{name:<{NAME}}{method:<{METHOD}}{figures}{times}")


def show_comparisons(screen: Screen, names: tuple[str, str], comparisons: Sequence[Comparison]) -> None:
    screen.line(f"A is {printable(names[0])}, B is {printable(names[1])}. The interval holds 95 of 100 differences.")
    screen.line(f"{'set':<19}{'measure':<9}{'A':>7}{'B':>7}{'B - A':>9}{'interval':>18}  B is")
    last = ""
    for found in comparisons:
        asked = f" ({found.questions})"
        name = clipped(found.set, 18 - len(asked)) + asked if found.set != last else ""
        last = found.set
        interval = f"{found.low:+.3f} to {found.high:+.3f}"
        screen.line(
            f"{name:<19}{MEASURES[found.measure]:<9}{found.first:>7.3f}{found.second:>7.3f}"
            f"{found.difference:>+9.3f}{interval:>18}  {found.verdict}"
        )


def show_crossed(screen: Screen, found: Sequence[Crossed]) -> None:
    screen.line(
        screen.paint(f"{'set':<20} {'asked':>6} {'AUROC':>7} {'absent, wrongly':>16} {'absent, rightly':>16}", "bold")
    )
    for crossed in found:
        name = clipped(crossed.set, 20)
        rates = f"{crossed.absent_at_home:>16.1%} {crossed.absent_elsewhere:>16.1%}"
        screen.line(f"{name:<20} {2 * crossed.questions:>6} {crossed.auroc:>7.3f} {rates}")
    screen.wrapped(
        "AUROC: the chance that a question with an answer here gets more confidence than one without. Wrongly: told "
        "absent although the answer is there. Rightly: told absent where no answer is.",
        style="dim",
    )


def show_cuts(screen: Screen, found: Sequence[Found]) -> None:
    """A row for each way to cut, first of the texts with headings, then of those without."""
    screen.line(screen.paint(f"{'':<41}{'documents':>15}{'parts':>15}", "bold"))
    heads = f"{'set':<16}{'cut':<13}{'n':>6}{'size':>6}{'nDCG':>8}{'R@5':>7}{'nDCG':>8}{'R@5':>7}{'read':>8}"
    screen.line(screen.paint(heads, "bold"))
    last = ("", False)
    for one in found:
        name = "  no headings" if last == (one.set, True) and not one.headings else one.set
        shown = "" if last == (one.set, one.headings) else name
        last = (one.set, one.headings)
        screen.line(
            f"{clipped(shown, 15):<16}{clipped(one.cut, 12):<13}{one.passages:>6}{one.characters:>6.0f}"
            f"{one.documents.ndcg10:>8.3f}{one.documents.recall5:>7.3f}"
            f"{one.parts.ndcg10:>8.3f}{one.parts.recall5:>7.3f}{one.read:>8.3f}"
        )
    screen.wrapped(
        "n, size: passages, and the characters of one. Documents: is the right text found? Parts: the right part? "
        "Read: how much of the right parts stands in the first 4,000 characters of the answers.",
        style="dim",
    )


def show_year(screen: Screen, scores: Sequence[YearScore]) -> None:
    """A row for each way to search, first where notes say what they supersede, then where they do not."""
    screen.line(screen.paint(f"{'notes':<26}{'way':<14}{'now':>8}{'as of':>8}{'changed':>10}{'stayed':>9}", "bold"))
    last = ""
    for score in scores:
        name = "" if score.notes == last else score.notes
        last = score.notes
        changed, stayed = score.by_kind.get("changed", 0.0), score.by_kind.get("stayed", 0.0)
        screen.line(f"{name:<26}{score.way:<14}{score.current:>8.3f}{score.as_of:>8.3f}{changed:>10.3f}{stayed:>9.3f}")
    screen.wrapped(
        "How often the first hit is what holds: now, and on a day of the year that was asked about. Of now, changed: "
        "facts that changed; stayed: those that did not.",
        style="dim",
    )


def clipped(text: str, width: int) -> str:
    text = printable(text)
    return text if len(text) <= width else text[: width - 1] + "…"
