"""Words that say nothing about what is looked for. They count only when a query has no others."""

from __future__ import annotations

STOP_WORDS = frozenset(
    """
    a about above after again against all am an and any are aren't as at be because been before being below between
    both but by can can't cannot could couldn't did didn't do does doesn't doing don't down during each few for from
    further had hadn't has hasn't have haven't having he her here hers herself him himself his how i if in into is
    isn't it its it's itself just let let's me more most my myself no nor not now of off on once only or other our ours
    ourselves out over own same shan't she should shouldn't so some such than that that's the their theirs them
    themselves then there these they this those through to too under until up us very was wasn't we were weren't what
    what's when where which while who whom whose why will with won't would wouldn't you your yours yourself yourselves
    """.split()
)
