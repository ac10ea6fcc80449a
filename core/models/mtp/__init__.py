"""Heads that are trained to draft several tokens from a host model's hidden states."""
