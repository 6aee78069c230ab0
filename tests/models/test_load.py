"""Loading: every way in works, and every wrong way is refused in one clear line.

Nothing runs that was not asked for.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jaxtyping
import numpy as np
import pytest
import torch
import transformers as tf
from safetensors.torch import load_file, save_file

import whence
from tests import tokenizers as tok
from tests.families import FAMILIES, LABELS, SMALL, build
from whence.core.errors import LoadError, ModelError, Unsupported, WhenceError
from whence.models.finding import bundled
from whence.models.load import load
from whence.models.model import Model

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:torch.*")


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "bert"
    model = build("bert")
    model.hf.save_pretrained(folder)
    model.tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    """A copy to be damaged."""
    return Path(shutil.copytree(saved, tmp_path / "bert"))


def edit(folder: Path, file: str = "config.json", **changes: Any) -> None:
    path = folder / file
    content = json.loads(path.read_text())
    path.write_text(json.dumps({k: v for k, v in {**content, **changes}.items() if v is not None}))


TEXT = "the food is great"


# ---------------------------------------------------------------------- the ways in


@pytest.mark.parametrize(
    "name",
    ["bert", "roberta", "gpt2", "gpt2-classifier", "llama", "t5", "bart-classifier", "marian"],
)
def test_a_saved_folder_gives_the_model_back(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    family = FAMILIES[name]
    live = load(family.build().eval(), tokenizer=family.tokenizer())
    live.hf.save_pretrained(tmp_path)
    live.tokenizer.save_pretrained(tmp_path)
    for given in (str(tmp_path), tmp_path):
        model = load(given)
        assert model.task == live.task
        assert model.fingerprint == live.fingerprint  # the enemy leaves a head random
        assert (
            np.abs(model.logits([model.encode(TEXT)]) - live.logits([live.encode(TEXT)])).max()
            < 1e-5
        )
        assert not model.hf.training


def test_masked_models_and_image_models_are_loaded_from_folders_too(tmp_path: Path) -> None:
    masked, image = build("bert-mlm"), build("vit")
    masked.hf.save_pretrained(tmp_path / "mlm")
    masked.tokenizer.save_pretrained(tmp_path / "mlm")
    image.hf.save_pretrained(tmp_path / "vit")
    assert load(tmp_path / "mlm").task == "masked"
    loaded = load(tmp_path / "vit")
    assert (loaded.task, loaded.fingerprint) == ("image", image.fingerprint)


def test_live_objects_are_wrapped_as_they_are() -> None:
    hf = build("bert").hf.double().train()
    model = load(hf, tokenizer=tok.wordpiece())
    assert model.hf is hf
    assert (model.task, model.dtype) == ("classification", torch.float64)
    assert hf.training
    assert load(model) is model


class Renamed(tf.BertForSequenceClassification):
    pass


class MyModel(tf.BertForSequenceClassification):
    pass


@pytest.mark.parametrize("kind", [Renamed, MyModel])
def test_a_class_derived_from_a_known_one_has_its_task(kind: Any) -> None:
    config = tf.BertConfig(**SMALL, vocab_size=len(tok.wordpiece()), **LABELS)
    assert load(kind(config), tokenizer=tok.wordpiece()).task == "classification"


def test_a_bare_model_has_no_target_and_says_so(tmp_path: Path) -> None:
    hf = build("bert").hf.bert
    model = load(hf, tokenizer=tok.wordpiece())
    assert model.task == "bare"
    with pytest.raises(Unsupported, match="no head"):
        model.predict([TEXT])
    hf.save_pretrained(tmp_path)
    tok.wordpiece().save_pretrained(tmp_path)
    assert load(tmp_path).task == "bare"


def test_the_bundled_name_comes_before_a_folder_of_that_name_and_a_path_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, saved: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(saved, tmp_path / "sentiment")
    model = whence.load("sentiment")
    assert (model.task, model.name) == ("classification", "sentiment")
    assert model.predict(["a wonderful film"])[0].label == "positive"
    assert (
        load("./sentiment").fingerprint
        == load(saved).fingerprint
        == load(Path("sentiment")).fingerprint
    )
    with pytest.raises(
        LoadError, match=r"no bundled model named 'sentimnt'\. Did you mean 'sentiment'"
    ):
        load("sentimnt")


def test_the_home_folder_is_understood(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(saved.parent))
    assert load("~/bert").task == "classification"


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        ("float32", torch.float32),
        ("float64", torch.float64),
        ("bfloat16", torch.bfloat16),
        ("auto", torch.float16),
    ],
)
def test_a_checkpoint_in_half_precision_is_loaded_in_the_dtype_that_was_asked(
    folder: Path, dtype: str, expected: torch.dtype
) -> None:
    tf.BertForSequenceClassification.from_pretrained(folder, dtype=torch.float16).save_pretrained(
        folder
    )
    assert json.loads((folder / "config.json").read_text())["dtype"] == "float16"
    assert load(folder, dtype=dtype).dtype == expected


def test_float32_is_the_default_and_torchs_own_dtypes_are_understood(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    tf.BertForSequenceClassification.from_pretrained(folder, dtype=torch.float16).save_pretrained(
        folder
    )
    assert load(folder).dtype == torch.float32
    assert load(folder, dtype=torch.float64).dtype == torch.float64  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", ["float33", "nn", ""])
def test_an_unknown_dtype_is_refused(saved: Path, dtype: str) -> None:
    with pytest.raises(LoadError, match="is not one of torch's; use 'float32'"):
        load(saved, dtype=dtype)


@pytest.mark.parametrize("device", ["banana", "cuda:99"])
def test_a_device_that_is_not_there_is_refused(saved: Path, device: str) -> None:
    with pytest.raises(LoadError, match="cannot load"):
        load(saved, device=device)


def test_the_meta_device_cannot_run(saved: Path) -> None:
    with pytest.raises(ModelError, match="meta device"):
        load(saved, device="meta")
    with torch.device("meta"):
        hf = tf.BertForSequenceClassification(tf.BertConfig(**SMALL))
    with pytest.raises(ModelError, match="meta device"):
        load(hf, tokenizer=tok.wordpiece())


# ---------------------------------------------------------------------- the wrong ways


def refused(given: Any, message: str, kind: type[WhenceError] = LoadError, **options: Any) -> str:
    with pytest.raises(kind) as caught:
        load(given, **options)
    text = str(caught.value)
    assert message in text
    assert "\n" not in text
    return text


def test_a_folder_that_is_not_there_and_a_file_are_refused(tmp_path: Path) -> None:
    refused(str(tmp_path / "none"), "no folder")
    refused(Path("none"), "no folder 'none'")
    refused("./none", "no folder './none'")
    refused("", "no folder ''")
    (tmp_path / "file.bin").write_text("x")
    refused(tmp_path / "file.bin", "is a file; give the folder that holds config.json")


@pytest.mark.parametrize("given", [3, None, object(), torch.nn.Linear(2, 2)])
def test_what_is_no_model_is_refused(given: Any) -> None:
    refused(given, "load takes a name, a folder, a hub id or a Hugging Face model, not a")


def test_a_folder_without_its_parts_says_which(folder: Path) -> None:
    (folder / "tokenizer.json").rename(folder / "t")
    refused(folder, "has no tokenizer (tokenizer.json); pass one with tokenizer=")
    assert load(folder, tokenizer=tok.wordpiece()).task == "classification"
    (folder / "model.safetensors").rename(folder / "m")
    refused(folder, "has a config.json and no weights (*.safetensors)")
    (folder / "config.json").unlink()
    refused(folder, "has no config.json")


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("config.json", "{"),
        ("config.json", "[]"),
        ("config.json", '{"model_type": "nothing", "architectures": ["XForCausalLM"]}'),
        ("model.safetensors", "xx"),
        ("tokenizer.json", "{}"),
        ("tokenizer.json", "x"),
    ],
)
def test_a_damaged_file_is_a_load_error_and_no_traceback(
    folder: Path, file: str, content: str
) -> None:
    (folder / file).write_text(content)
    refused(folder, "cannot")


def test_weights_of_the_wrong_shape_are_refused(folder: Path) -> None:
    edit(folder, intermediate_size=48)
    refused(folder, "cannot load")


def test_a_checkpoint_without_its_head_is_refused_and_the_missing_weights_are_named(
    folder: Path,
) -> None:
    weights = load_file(folder / "model.safetensors")
    save_file(
        {k: v for k, v in weights.items() if "classifier" not in k},
        folder / "model.safetensors",
        metadata={"format": "pt"},
    )
    refused(
        folder,
        "lacks weights that the model needs "
        "(classifier.bias, classifier.weight …): they would be random",
    )


def test_a_bare_checkpoint_may_lack_its_pooler_and_nothing_else(tmp_path: Path) -> None:
    build("bert").hf.bert.save_pretrained(tmp_path)
    tok.wordpiece().save_pretrained(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    save_file(
        {k: v for k, v in weights.items() if "pooler" not in k},
        tmp_path / "model.safetensors",
        metadata={"format": "pt"},
    )
    assert load(tmp_path).task == "bare"
    save_file(
        {k: v for k, v in weights.items() if "layer.1" not in k},
        tmp_path / "model.safetensors",
        metadata={"format": "pt"},
    )
    refused(tmp_path, "lacks weights")  # the enemy shows the attention of a random layer


def test_a_pickle_is_read_only_when_asked_for(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    torch.save(weights, folder / "pytorch_model.bin")
    refused(folder, "holds only a pickle (pytorch_model.bin), which can run code when it is read")
    assert load(folder, allow_pickle=True).fingerprint == build("bert").fingerprint


def test_allowing_a_pickle_does_not_ask_for_one(saved: Path) -> None:
    assert (
        load(saved, allow_pickle=True).fingerprint == build("bert").fingerprint
    )  # the enemy then refuses safetensors


def test_safetensors_are_taken_where_both_are_there(folder: Path) -> None:
    (folder / "pytorch_model.bin").write_bytes(b"not a checkpoint")
    assert load(folder).task == "classification"
    assert load(folder, allow_pickle=True).task == "classification"


def test_a_live_model_without_a_tokenizer_or_with_a_slow_one_is_refused() -> None:
    hf = build("bert").hf
    refused(hf, "reads text: pass its tokenizer, load(model, tokenizer=tokenizer)")
    refused(
        hf,
        "is a slow tokenizer without character offsets",
        Unsupported,
        tokenizer=SimpleNamespace(is_fast=False),
    )


def test_a_head_without_a_target_is_refused_with_the_list_of_those_that_have_one(
    tmp_path: Path,
) -> None:
    hf = tf.ViTForMaskedImageModeling(tf.ViTConfig(**SMALL, image_size=16, patch_size=4))
    message = (
        "has the head ViTForMaskedImageModeling, which has no target to explain here "
        "(it reads images). Supported: sequence classification"
    )
    refused(hf, message, Unsupported)
    hf.save_pretrained(tmp_path)
    refused(tmp_path, message, Unsupported)


def llava() -> Any:
    text = tf.LlamaConfig(**SMALL, vocab_size=len(tok.byte_level()))
    vision = tf.CLIPVisionConfig(**SMALL, image_size=16, patch_size=4)
    return tf.LlavaForConditionalGeneration(
        tf.LlavaConfig(text_config=text, vision_config=vision, image_token_index=1)
    )


def test_a_model_of_images_and_text_is_no_sequence_to_sequence_model(tmp_path: Path) -> None:
    hf = llava()
    message = "has the head LlavaForConditionalGeneration, which reads more than text"
    refused(hf, message, Unsupported, tokenizer=tok.byte_level())
    hf.save_pretrained(tmp_path)
    refused(tmp_path, message, Unsupported)


def test_a_config_without_an_architecture_is_refused(folder: Path) -> None:
    edit(folder, architectures=None)
    refused(folder, "does not say in its config.json which head it has", Unsupported)


# ---------------------------------------------------------------------- network and foreign code


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    tried: list[Any] = []

    def refuse(_self: Any, address: Any) -> None:
        tried.append(address)
        raise OSError("the network was used")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    return tried


@pytest.mark.parametrize("name", ["nobody/nothing", "bert-base-uncased-that-is-not-here"])
def test_a_hub_id_offline_is_refused_at_once_and_without_asking(
    name: str, no_network: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    # at once: nothing is waited for, and nothing tried again after a while
    monkeypatch.setattr(time, "sleep", lambda seconds: pytest.fail(f"slept {seconds} seconds"))
    refused(name, "The hub was not asked: HF_HUB_OFFLINE is set.")
    assert no_network == []


def test_a_local_model_needs_no_network(saved: Path, no_network: list[Any]) -> None:
    load(saved)
    assert no_network == []


def test_no_telemetry_is_sent(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HUB_DISABLE_TELEMETRY", raising=False)
    load(saved)
    assert os.environ["HF_HUB_DISABLE_TELEMETRY"] == "1"
    monkeypatch.setenv("HF_HUB_DISABLE_TELEMETRY", "0")
    load(saved)
    assert os.environ["HF_HUB_DISABLE_TELEMETRY"] == "0"  # the caller's own word stands


CODE = """
from pathlib import Path
Path({mark!r}).write_text("run")
from transformers import BertConfig, BertForSequenceClassification
class OwnConfig(BertConfig):
    model_type = "own"
class OwnForSequenceClassification(BertForSequenceClassification):
    config_class = OwnConfig
"""


def with_code(folder: Path, mark: Path, model_type: str) -> None:
    (folder / "own.py").write_text(CODE.format(mark=str(mark)))
    edit(
        folder,
        model_type=model_type,
        architectures=["OwnForSequenceClassification"],
        auto_map={
            "AutoConfig": "own.OwnConfig",
            "AutoModelForSequenceClassification": "own.OwnForSequenceClassification",
        },
    )


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in (
        "transformers.dynamic_module_utils",
        "transformers.utils",
        "transformers.utils.hub",
    ):
        monkeypatch.setattr(f"{place}.HF_MODULES_CACHE", str(tmp_path / "modules"), raising=False)
    monkeypatch.syspath_prepend(str(tmp_path / "modules"))


@pytest.mark.usefixtures("modules")
def test_code_in_a_checkpoint_is_never_run_unless_asked_for(folder: Path, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    with_code(folder, mark, "own")
    refused(
        folder,
        "brings its own code, which is not run unasked. "
        "If you trust its source, load with allow_remote_code=True.",
    )
    assert not mark.exists()
    assert load(folder, allow_remote_code=True).task == "classification"
    assert mark.exists()  # or the test above would prove nothing


@pytest.mark.usefixtures("modules")
def test_code_behind_a_known_family_and_behind_the_tokenizer_is_not_run_either(
    folder: Path, tmp_path: Path
) -> None:
    mark = tmp_path / "mark"
    with_code(folder, mark, "bert")
    edit(
        folder,
        "tokenizer_config.json",
        auto_map={"AutoTokenizer": [None, "own.OwnTokenizer"]},
        tokenizer_class="OwnTokenizer",
    )
    try:
        assert isinstance(load(folder), Model)
    except LoadError as problem:
        assert "allow_remote_code" in str(problem)  # noqa: PT017
    assert not mark.exists()


def test_the_bundled_names_are_the_folders_with_a_config(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("whence.models.finding.BUNDLED", tmp_path / "none")
    assert bundled() == []  # the enemy fails in the middle of another error's message
    refused("./none", "no folder './none'")
    monkeypatch.setattr("whence.models.finding.BUNDLED", tmp_path)
    (tmp_path / "b").mkdir()
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "config.json").write_text("{}")
    assert bundled() == ["a"]
    refused("./none", "Bundled models: a.")
