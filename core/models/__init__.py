"""Loading, checking and running models."""

import os

# Loading asks no model hub for anything; this keeps the libraries below to it. It must stand
# before they are imported, since they read it once.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
