"""The command line: ``paceline ask | chat | bench | train-mtp | distill | models | doctor``.

Importing this package, ``--help``, ``--version`` and ``models list`` never import torch.
"""

from core.cli.entry import main

__all__ = ["main"]
