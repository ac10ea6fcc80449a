"""Which passes are captured as CUDA graphs, and when; the bookkeeping knows nothing of CUDA."""

import logging
from collections.abc import Callable, Hashable
from typing import Any, Protocol

import torch

logger = logging.getLogger(__name__)

Step = Callable[[], None]


class GraphBackend(Protocol):
    """Records the work that a step puts on the device, so that it can be repeated as a whole."""

    def capture(self, step: Step) -> Step:
        """Record ``step`` without doing its work; return what does the work, each time anew."""

    def release(self) -> None:
        """Give back what recording took, once no recording is in use any more."""


class CudaGraphs:
    """CUDA graphs in one memory pool: they are replayed one at a time.

    What a graph computes lies in the pool until another is replayed, so a step must put its results
    into buffers of its own. Raises RuntimeError from capture() where a step waits for the device.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._pool: Any = None

    def capture(self, step: Step) -> Step:
        """Record a step. It must have run before, so that nothing is set up while recording."""
        make_graph: Any = torch.cuda.CUDAGraph
        graph = make_graph()
        # Other threads (a window's) may use the device meanwhile; only this one is held to rules.
        with (
            torch.cuda.device(self._device),
            torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"),
        ):
            step()
        if self._pool is None:
            self._pool = graph.pool()
        replay: Step = graph.replay
        return replay

    def release(self) -> None:
        """Forget the pool; its memory is free when the last graph in it is gone."""
        self._pool = None


class GraphBook:
    """Runs steps by key: the first time as they are, then recorded, from then on replayed.

    The first run is the warm-up that recording needs, and keeps what is used only once from being
    recorded. Steps of one key must do the same work at the same addresses; after an address has
    changed, :meth:`drop` forgets them all. A step that cannot be recorded, for want of memory or
    because of what it does, runs as it is from then on, as do all others.
    """

    def __init__(self, backend: GraphBackend) -> None:
        self._backend = backend
        self._warm: set[Hashable] = set()
        self._replays: dict[Hashable, Step] = {}
        self.given_up = False
        """Whether recording failed, so that steps run as they are."""

    def __len__(self) -> int:
        """How many steps are recorded."""
        return len(self._replays)

    def run(self, key: Hashable, step: Step) -> None:
        """Do the work of a step."""
        replay = self._replays.get(key)
        if replay is None and key in self._warm and not self.given_up:
            replay = self._record(key, step)
        if replay is not None:
            replay()
            return
        step()
        self._warm.add(key)

    def drop(self) -> None:
        """Forget every recording, and with them their memory."""
        self._replays.clear()
        self._warm.clear()
        self._backend.release()

    def _record(self, key: Hashable, step: Step) -> Step | None:
        try:
            replay = self._backend.capture(step)
        except RuntimeError as error:  # torch.OutOfMemoryError is one
            # As text: a log that keeps the error keeps its frames, and with them the model.
            logger.warning("passes cannot be captured and run as they are: %s", str(error))
            self.given_up = True
            self.drop()
            return None
        self._replays[key] = replay
        return replay
