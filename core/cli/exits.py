"""The exit codes of the command line."""

EXIT_DONE = 0
EXIT_USER = 1
"""Something the person can mend."""
EXIT_USAGE = 2
"""The command line could not be understood."""
EXIT_BUG = 70
"""A fault of the program (EX_SOFTWARE)."""
EXIT_INTERRUPTED = 130
"""Stopped with Ctrl+C (128 + SIGINT)."""
EXIT_BROKEN_PIPE = 141
"""Nobody reads the output any more (128 + SIGPIPE)."""
