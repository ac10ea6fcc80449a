"""A static key/value cache around transformers models, so that a step can be captured once."""
