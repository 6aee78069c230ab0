"""The Model: a Hugging Face transformer with its tokenizer, seen through the few things that explaining needs.

A classifier, a causal generator, a sequence-to-sequence and a masked language model differ only in where the logits are read; an
image classifier differs in what a unit is, and a model that answers questions about an image has units of both sorts.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from whence.core.errors import InputError, ModelError, TargetError, Unsupported
from whence.core.passage import Passage, truncate, windows
from whence.core.target import Target, as_target, resolve
from whence.core.units import UnitKind
from whence.models.batches import Batch, batch_of, groups_of
from whence.models.identity import fingerprint_of, lock_of
from whence.models.labels import Prediction, Vocabulary
from whence.models.literal import literal
from whence.models.texts import tokenize
from whence.models.untouched import untouched

Task = Literal["classification", "causal", "seq2seq", "masked", "image", "image-text", "bare"]
Overflow = Literal["error", "truncate", "window"]
LEADING_LABELS = 5
TOKENS_PER_BATCH = 8192  # of one forward in ``predict``; enough to keep a CPU busy, little enough for a small accelerator

# their old configurations name a length of training (n_positions), which is no limit
RELATIVE_POSITIONS = ("t5", "mt5", "umt5", "longt5", "switch_transformers")


@dataclass(frozen=True, eq=False)
class Model:
    """A transformer that can be encoded for, run and read. Made by ``whence.load``."""

    hf: Any
    tokenizer: Any
    task: Task
    name: str
    revision: str | None = None
    image_processor: Any = None

    def __repr__(self) -> str:
        return f"Model({self.name!r}, {type(self.hf).__name__}, task={self.task!r}, dtype={self.dtype}, device={self.device})"

    # ------------------------------------------------------------------ what it is

    @property
    def config(self) -> Any:
        """The Hugging Face configuration."""
        return self.hf.config

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.hf.parameters()).device

    @property
    def dtype(self) -> torch.dtype:
        """The type of the weights."""
        return next(p.dtype for p in self.hf.parameters() if p.is_floating_point())

    @property
    def lock(self) -> threading.RLock:
        """Held by whoever runs the model."""
        return lock_of(self.hf)

    @cached_property
    def labels(self) -> Mapping[int, str]:
        """What a target can be: the classes, or the tokens of a vocabulary."""
        if self.task in ("classification", "image", "image-text"):
            names = {int(i): str(name) for i, name in self.config.id2label.items()}
            count = (
                getattr(self.config, "num_qa_labels", None) or self.config.num_labels
            )  # LXMERT counts its answers apart
            every = {i: names.get(i, f"LABEL_{i}") for i in range(count)}
            clear = len(set(every.values())) == len(every)
            return (
                every if clear else {i: f"{name} ({i})" for i, name in every.items()}
            )  # two classes of one name stay two
        if self.task == "bare":
            return {}
        size = self.config.get_text_config().vocab_size
        return Vocabulary(self.tokenizer, self.backend, size)

    @property
    def is_encoder_decoder(self) -> bool:
        """Whether one half reads and the other writes."""
        return bool(getattr(self.config, "is_encoder_decoder", False))

    @cached_property
    def limit(self) -> int | None:
        """How many tokens the positions allow; None for relative positions without an end."""
        if self.task == "image":
            return None
        config = self.config.get_text_config()
        limit = getattr(config, "max_position_embeddings", None) or getattr(
            config, "n_positions", None
        )
        if limit is None or config.model_type in RELATIVE_POSITIONS:
            return None
        if self.task == "image-text":
            return limit
        # RoBERTa and its kin count positions from padding_idx + 1, so the first two rows of the table are never a position
        for module in self.hf.modules():
            table = getattr(module, "position_embeddings", None)
            if isinstance(table, nn.Embedding) and table.padding_idx is not None:
                return limit - table.padding_idx - 1
        return limit

    @cached_property
    def input_embeddings(self) -> nn.Module:
        """The module whose output stands for the input tokens (patches)."""
        side = self.hf.get_encoder() if self.is_encoder_decoder else self.hf
        return side.get_input_embeddings()

    @cached_property
    def decoder_embeddings(self) -> nn.Module | None:
        """The same for the decoder of an encoder-decoder."""
        return self.hf.get_decoder().get_input_embeddings() if self.is_encoder_decoder else None

    @cached_property
    def is_causal(self) -> bool:
        """Whether a token sees only what stands before it."""
        causal_names = (
            "bloom",
            "mpt",
            "falcon",
        )  # families that do not mark their attention modules
        return (
            self.task == "causal"
            or self.config.model_type in causal_names
            or (
                any(getattr(m, "is_causal", False) is True for m in self.hf.modules())
                and not self.is_encoder_decoder
            )
        )

    def readout(self, passage: Passage) -> int | None:
        """The token from which the head reads, None where it reads the mean of all: whose attention row speaks for the output.

        The classification token of an encoder, the last token of a decoder, the masked token; of an encoder-decoder the decoder's
        position (the end of the text where it classifies), whose row is one of cross attention.
        """
        config = self.config
        if self.task == "masked":
            return passage.readout
        if self.is_encoder_decoder:
            if self.task == "classification":
                return len(passage) - 1
            return 0 if passage.reply is None else len(passage.reply.still_open())
        if self.is_causal:
            pad = config.get_text_config().pad_token_id
            if self.task == "causal" or pad is None:
                return len(passage) - 1
            # a decoder that classifies reads the last token that is no padding, also where the padding token ends the text
            return int(np.flatnonzero(passage.ids != pad)[-1])
        means = getattr(config, "classifier_pooling", "cls") == "mean" or getattr(
            config, "use_mean_pooling", False
        )
        return None if means or (self.task == "image" and not passage.special[0]) else 0

    @property
    def fingerprint(self) -> str:
        """A short hash of the weights, that tells models apart and notices fine-tuning."""
        return fingerprint_of(self.hf)

    # ------------------------------------------------------------------ text and images in

    def encode(
        self,
        text: Any,
        pair: str | None = None,
        *,
        units: UnitKind | Sequence[int] = "word",
        reply: str | None = None,
        overflow: Overflow = "error",
        image: Any = None,
    ) -> Passage:
        """A Passage of a text, a pair of texts, or (for an image model) an image or its pixels.

        A model that reads a text with an image takes the latter as ``image``: a file, a picture, an array of pixels, or, where it
        reads regions, ``{"features": …, "boxes": …}``. ``reply`` is the decoder's side of an encoder-decoder model. A text longer
        than the model's positions is an error unless ``overflow`` says ``"truncate"``; ``"window"`` lets it pass here, and
        ``whence.explain`` cuts it.

        >>> import whence
        >>> whence.load("sentiment").encode("It isn't bad").units
        ('It', " isn't", ' bad')
        """
        if self.task == "image":
            from whence.models.images import encode_image

            return encode_image(self, text)
        if overflow not in get_args(Overflow):
            raise InputError(
                f"overflow is one of {', '.join(get_args(Overflow))}, not {overflow!r}."
            )
        if (image is not None) != (self.task == "image-text"):
            reads = (
                "reads a text with an image: model.encode(text, image=…)"
                if image is None
                else "reads no image beside a text"
            )
            raise InputError(f"{type(self.hf).__name__} {reads}.")
        passage = tokenize(self, text, pair, units)
        if reply is not None:
            if not self.is_encoder_decoder:
                raise InputError(
                    "reply= is the decoder's side of an encoder-decoder model, which this is not; append it to the text."
                )
            passage = replace(passage, reply=tokenize(self, reply, None, units))
        passage = self.fitted(passage, overflow)
        if image is None:
            return passage
        from whence.models.images import add_image

        return add_image(self, passage, image)

    def fitted(self, passage: Passage, overflow: Overflow) -> Passage:
        """The passage, if it fits the model's positions; else what ``overflow`` says, of which ``"window"`` leaves it to be cut."""
        if (
            self.limit is None or passage.of_text.sum() <= self.limit
        ):  # an image beside the text has positions of its own
            return passage
        if overflow == "truncate":
            return truncate(passage, self.limit)
        if overflow != "window":
            raise InputError(
                f"the text has {len(passage)} tokens and the model's positions end at {self.limit}. Options: overflow='truncate' "
                "explains the beginning, overflow='window' explains consecutive windows and averages their targets "
                "(on the command line: --overflow truncate)."
            )
        if self.task == "image-text":
            raise InputError(
                "a text with an image cannot be cut into windows. Use overflow='truncate'."
            )
        if self.task in ("causal", "seq2seq", "masked"):
            raise InputError(
                "windows average one class over the text; a language model predicts a token after each. Use overflow='truncate'."
            )
        return passage

    def windows(self, passage: Passage) -> list[Passage]:
        """The passage, in consecutive parts that fit the model."""
        return (
            [passage]
            if self.limit is None or passage.of_text.sum() <= self.limit
            else windows(passage, self.limit)
        )

    @cached_property
    def backend(self) -> Any:
        """An own copy of the fast tokenizer: text that spells a special token stays text, and the caller's copy keeps its state."""
        return literal(self.tokenizer.backend_tokenizer)

    def fill(self, passage: Passage, at: int) -> Passage:
        """The passage with unit ``at`` under the mask token, to be read there by a masked language model."""
        if not 0 <= at < len(passage.unit_spans):
            raise TargetError(
                f"at={at} is outside the {len(passage.unit_spans)} units of this text."
            )
        here = passage.unit_of == at
        ids = np.where(here, self.tokenizer.mask_token_id, passage.ids)
        tokens = tuple(
            self.tokenizer.mask_token if h else t for h, t in zip(here, passage.tokens, strict=True)
        )
        return replace(passage, ids=ids, tokens=tokens, readout=int(np.flatnonzero(here)[0]))

    def placed(self, passage: Passage, target: Target) -> Passage:
        """The passage with the target's unit under the mask token, where the model is one that fills it; else as it is."""
        if self.task != "masked":
            if target.at is not None:
                raise TargetError(
                    "at= names the unit that a masked language model fills; this model is not one."
                )
            return passage
        if target.at is None and passage.readout is None:
            some = ", ".join(f"{i} {n!r}" for i, n in enumerate(passage.names[:8]))
            raise TargetError(
                f"a masked language model predicts at a masked unit: say which, Target(label, at=…). Units: {some} …"
            )
        return passage if target.at is None else self.fill(passage, target.at)

    # ------------------------------------------------------------------ running

    def batch(self, passages: Sequence[Passage]) -> Batch:
        """Several passages as tensors: padded on the right, the padding masked, and where each is read."""
        return batch_of(self, passages)

    @property
    def pad_id(self) -> int:
        """The model's own padding token before the tokenizer's: a decoder that classifies looks for it."""
        known = (
            getattr(self.config.get_text_config(), "pad_token_id", None),
            getattr(self.tokenizer, "pad_token_id", None),
        )
        return next((int(i) for i in known if i is not None), 0)

    @property
    def decoder_start(self) -> int:
        """The token that a decoder begins with."""
        known = (
            getattr(self.config, "decoder_start_token_id", None),
            getattr(self.config, "bos_token_id", None),
        )
        return next((int(i) for i in known if i is not None), self.pad_id)

    @property
    def pads(self) -> bool:
        """Whether passages may share a batch: a decoder that classifies finds its last token by the pad id, and refuses if it has none."""
        if self.task == "image-text":  # padding would stand between the text and its image
            return False
        return (
            not (self.task == "classification" and self.is_causal)
            or self.config.get_text_config().pad_token_id is not None
        )

    def groups(
        self, passages: Sequence[Passage], tokens_per_batch: int = TOKENS_PER_BATCH
    ) -> list[list[int]]:
        """Indices of passages that go through the model together: of like length, within a budget of padded tokens."""
        return groups_of([len(p) for p in passages], tokens_per_batch if self.pads else 0)

    def read(self, outputs: Any, batch: Batch) -> Float[Tensor, "batch label"]:
        """The logits that a target is read from."""
        logits = getattr(outputs, "logits", getattr(outputs, "question_answering_score", None))
        if logits is None:
            raise Unsupported(
                f"{type(self.hf).__name__} has no head, so there is no logit to explain; only attention can be shown."
            )
        if batch.readout is None:
            return logits
        return logits[torch.arange(len(logits), device=logits.device), batch.readout]

    @property
    def several_labels(self) -> bool:
        """Whether each label has its own yes or no."""
        return getattr(self.config, "problem_type", None) == "multi_label_classification"

    @property
    def is_regression(self) -> bool:
        """One output that is no label: a number, of which there is no probability."""
        if self.task not in ("classification", "image", "image-text") or self.several_labels:
            return False
        return len(self.labels) == 1 or getattr(self.config, "problem_type", None) == "regression"

    def probabilities(self, logits: Float[Tensor, "batch label"]) -> Float[Tensor, "batch label"]:
        """Softmax over the labels; where several may hold, each label's own sigmoid."""
        return logits.sigmoid() if self.several_labels else logits.softmax(-1)

    def logits(self, passages: Sequence[Passage]) -> Float[np.ndarray, "passage label"]:
        """Plain logits, batched, in inference mode."""
        rows: dict[int, np.ndarray] = {}
        with self.lock, untouched(self.hf), torch.inference_mode():
            for group in self.groups(passages):
                batch = self.batch([passages[i] for i in group])
                logits = finite(self.read(self.hf(**batch.inputs), batch))
                rows.update(zip(group, logits.double().cpu().numpy(), strict=True))
        return np.stack([rows[i] for i in range(len(passages))])

    def predict(self, texts: Sequence[Any], overflow: Overflow = "error") -> list[Prediction]:
        """The leading labels of each text (of a language model: the next tokens) with their probabilities.

        >>> import whence
        >>> whence.load("sentiment").predict(["a wonderful film", "dull and far too long"])[0].label
        'positive'
        """
        if isinstance(texts, str):
            raise InputError(
                "predict takes a list of texts; for one text write model.predict([text])."
            )
        if self.task == "masked":
            raise Unsupported(
                "a masked language model predicts at a masked unit: use explain with Target(at=…)."
            )
        passages = [
            self.fitted(t, overflow)
            if isinstance(t, Passage)
            else self.encode(t, overflow=overflow)
            for t in texts
        ]
        pieces = [self.windows(p) for p in passages]
        logits = iter(self.logits([p for ps in pieces for p in ps]) if pieces else ())
        return [self.prediction(np.mean([next(logits) for _ in ps], axis=0)) for ps in pieces]

    def prediction(self, logits: Float[np.ndarray, " label"]) -> Prediction:
        """The leading labels, from the logits of one input."""
        row = np.asarray(logits, dtype=np.float64)
        if self.is_regression:
            return Prediction(
                self.labels[0], {}, {self.labels[i]: float(x) for i, x in enumerate(row)}
            )
        p = self.probabilities(torch.from_numpy(row)[None])[0].numpy()
        leading = [int(i) for i in np.argsort(-p, kind="stable")[:LEADING_LABELS]]
        return Prediction(
            self.labels[leading[0]],
            {self.labels[i]: float(p[i]) for i in leading},
            {self.labels[i]: float(row[i]) for i in leading},
        )

    def resolve(
        self, target: Target | str | int | None, logits: Float[np.ndarray, " label"]
    ) -> Target:
        """Fix the target for one input, given its logits."""
        target = as_target(target)
        if self.is_regression and target.read != "logit":
            raise TargetError(
                f"this model's head is a regression, whose output has no {target.read}; read it as 'logit'."
            )
        return resolve(target, logits, self.labels)

    def value(
        self, logits: Float[Tensor, "batch label"], targets: Sequence[Target]
    ) -> Float[Tensor, " batch"]:
        """The scalar under explanation, for each row; all are read in the same way."""
        read, contrast = targets[0].read, targets[0].against_index is not None
        if any(t.read != read or (t.against_index is not None) != contrast for t in targets):
            raise TargetError(
                "the targets of one batch are read in one way: all as logit, or all as probability, all with a contrast or none."
            )
        if read == "log-probability":
            scores = (
                nn.functional.logsigmoid(logits) if self.several_labels else logits.log_softmax(-1)
            )
        else:
            scores = self.probabilities(logits) if read == "probability" else logits
        value = _column(scores, [t.index for t in targets])
        return value - _column(scores, [t.against_index for t in targets]) if contrast else value


def _column(
    scores: Float[Tensor, "batch label"], labels: Sequence[int | None]
) -> Float[Tensor, " batch"]:
    """Each row's entry; one label for all is a plain column, which is felt on a small model."""
    if len(set(labels)) == 1:
        return scores[:, labels[0]]
    return scores[torch.arange(len(labels), device=scores.device), labels]


def finite(logits: Tensor) -> Tensor:
    """The logits, or an error where one is NaN or infinite."""
    if not bool(torch.isfinite(logits).all()):
        raise ModelError(
            "the model returned logits that are not finite (NaN or infinite); check its weights and dtype (float16 overflows)."
        )
    return logits
