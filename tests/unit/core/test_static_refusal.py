"""What a target that does not fit on a GPU is answered with."""

import pytest

from core.cancel import CancelToken
from core.errors import UserError
from core.models import loader
from core.requests import Device, LoadRequest, Precision
from tests.helpers.checkpoints import save_folder


@pytest.mark.parametrize(("precision", "hint"), [("bfloat16", True), ("nf4", False)])
def test_a_target_too_large_for_the_card_is_told_of_fewer_bits(
    tmp_path, monkeypatch, precision, hint
):
    monkeypatch.setattr(loader, "choose_device", lambda _: Device.CUDA)
    monkeypatch.setattr(loader, "choose_precision", lambda *_: Precision(precision))
    monkeypatch.setattr(loader, "free_memory_bytes", lambda _: 10**6)
    folder = save_folder(tmp_path / "small")
    with pytest.raises(UserError, match=r"not enough memory for small\..* are free") as caught:
        loader.load_pair(
            LoadRequest(target=str(folder)),
            prepared_dir=tmp_path,
            on_progress=lambda _: None,
            cancel=CancelToken(),
        )
    assert ("nf4" in caught.value.action) == hint
