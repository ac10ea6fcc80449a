"""The set-up of a checkout, in the standard library alone: it runs before anything is installed."""
