"""The checks and measurements on a GPU; ``benchmarks/gpu_check.py`` runs them all."""
