"""The speculative core: everything but the window."""

import os

if "OMP_WAIT_POLICY" not in os.environ:
    # Before anything imports torch. Its threads wait for each other some hundred times a token, and
    # by default spin for a millisecond each time: where another program has one of their
    # processors, the others burn theirs. docs/measurements.md has what shorter spins are worth.
    os.environ.setdefault("GOMP_SPINCOUNT", "30000")
