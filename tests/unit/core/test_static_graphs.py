"""The bookkeeping of captured passes, and how CUDA is asked for them."""

import contextlib

import pytest
import torch

from core.models.static.graphs import CudaGraphs, GraphBook


class Backend:
    """Notes what it is asked for."""

    def __init__(self):
        self.log = []
        self.error = None

    def capture(self, step):
        self.log.append("capture")
        if self.error is not None:
            raise self.error
        return lambda: self.log.append("replay")

    def release(self):
        self.log.append("release")


@pytest.fixture
def backend():
    return Backend()


def steps(backend):
    return lambda: backend.log.append("step")


def test_a_step_runs_once_is_captured_at_the_second_use_and_replayed_from_then_on(backend):
    book = GraphBook(backend)
    for _ in range(4):
        book.run("a", steps(backend))
    assert backend.log == ["step", "capture", "replay", "replay", "replay"]
    assert len(book) == 1


def test_every_key_is_warmed_up_and_captured_by_itself(backend):
    book = GraphBook(backend)
    for key in "abab":
        book.run(key, steps(backend))
    assert backend.log == ["step", "step", "capture", "replay", "capture", "replay"]
    assert len(book) == 2


def test_after_a_drop_every_step_is_warmed_up_and_captured_anew(backend):
    book = GraphBook(backend)
    for _ in range(2):
        book.run("a", steps(backend))
    book.drop()
    assert (len(book), backend.log[-1]) == (0, "release")
    backend.log.clear()
    for _ in range(2):
        book.run("a", steps(backend))
    assert backend.log == ["step", "capture", "replay"]


@pytest.mark.parametrize("error", [RuntimeError("not permitted"), torch.OutOfMemoryError("full")])
def test_after_a_failure_nothing_is_captured_any_more_and_what_was_is_given_back(backend, error):
    book = GraphBook(backend)
    for _ in range(2):
        book.run("a", steps(backend))
    backend.error = error
    for _ in range(2):
        book.run("b", steps(backend))
    assert backend.log == [
        "step",
        "capture",
        "replay",
        "step",
        "capture",
        "release",
        "step",
    ]
    backend.error = None
    backend.log.clear()
    for key in "aabb":
        book.run(key, steps(backend))
    assert backend.log == ["step"] * 4
    assert book.given_up


def test_an_error_of_the_step_itself_is_raised_and_the_step_is_not_taken_for_warm(backend):
    book = GraphBook(backend)

    def fail():
        raise torch.OutOfMemoryError("full")

    with pytest.raises(torch.OutOfMemoryError):
        book.run("a", fail)
    book.run("a", steps(backend))
    assert backend.log == ["step"]


class Graph:
    def __init__(self):
        self.replayed = 0

    def pool(self):
        return self

    def replay(self):
        self.replayed += 1


@pytest.fixture
def cuda(monkeypatch):
    """torch.cuda as far as graphs go; lists (graph, pool, mode) of every capture."""
    asked = []

    @contextlib.contextmanager
    def capturing(graph, pool=None, stream=None, capture_error_mode="global"):
        asked.append((graph, pool, capture_error_mode))
        yield

    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    monkeypatch.setattr(torch.cuda, "graph", capturing)
    monkeypatch.setattr(torch.cuda, "device", lambda _: contextlib.nullcontext())
    return asked


def test_all_graphs_of_a_model_share_one_pool_until_it_is_released(cuda):
    graphs = CudaGraphs(torch.device("cuda:0"))
    ran = []
    replays = [graphs.capture(lambda: ran.append("step")) for _ in range(3)]
    assert ran == ["step"] * 3
    assert [pool for _, pool, _ in cuda] == [None, cuda[0][0], cuda[0][0]]
    replays[1]()
    assert [graph.replayed for graph, _, _ in cuda] == [0, 1, 0]
    graphs.release()
    graphs.capture(lambda: None)
    assert cuda[3][1] is None


def test_other_threads_may_use_the_card_while_a_pass_is_captured(cuda):
    CudaGraphs(torch.device("cuda:0")).capture(lambda: None)
    assert cuda[0][2] == "thread_local"
