"""Paceline: a desktop chat for local language models with visible speculative decoding."""

__version__ = "0.1.0"
