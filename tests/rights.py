"""Start a process that file permissions apply to, also when the suite runs as root."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

PR_CAPBSET_DROP = 24
OVERRIDE_RIGHTS = (1, 2)  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH

libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def obey_permissions() -> None:
    """For `preexec_fn`: a root that has lost the right to ignore permissions when the program starts."""
    if libc and os.geteuid() == 0:
        for capability in OVERRIDE_RIGHTS:
            if libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0):
                raise OSError(ctypes.get_errno(), "the right cannot be given up")


def can_obey() -> bool:
    """False where root cannot give its powers up: then permissions cannot be tested."""
    if os.name == "nt":
        return False
    tried = subprocess.run(["true"], preexec_fn=_report_refusal, check=False)
    return tried.returncode == 0


def _report_refusal() -> None:
    try:
        obey_permissions()
    except OSError:
        os._exit(1)
