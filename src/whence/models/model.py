"""The Model: a Hugging Face transformer with its tokenizer, as far as explaining needs it.

What differs by task (what a target is, where the logits are read, what a unit is) is asked of
``model.kind``, one small object for each task (models/tasks).
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from whence.core.errors import InputError, TargetError, Unsupported
from whence.core.once import once
from whence.core.passage import Passage, truncate, windows
from whence.core.request import Overflow
from whence.core.target import Target, as_target, referred, resolve
from whence.core.units import UnitKind
from whence.models.batches import Batch, groups_of, groups_of_one_length
from whence.models.chat import ChatUnits, Message, encode_chat
from whence.models.conduct import batch_mates, known, padding
from whence.models.identity import fingerprint_of, lock_of
from whence.models.images import add_image, encode_image
from whence.models.labels import Prediction, Vocabulary
from whence.models.literal import literal
from whence.models.passing import run
from whence.models.patches import tokens_of
from whence.models.places import Tag, first_token, located, place_of, tagged, tags_of
from whence.models.readouts import found
from whence.models.rivals import labels_at
from whence.models.speaking import Pass, run_batch, speaks_where_read
from whence.models.tasks import TASKS, Task
from whence.models.tasks.task import labels_of_model
from whence.models.texts import tokenize, tokenize_choices
from whence.models.unbroken import unbroken
from whence.models.untouched import untouched
from whence.models.values import (
    NEVER,
    as_numpy,
    finite,
    output_change,
    probabilities,
    target_values,
)
from whence.models.writing import located_output, row_of_output

LEADING_LABELS = 5

# Of one forward pass in ``predict``: enough to keep a CPU busy, little enough for a small
# accelerator.
TOKENS_PER_BATCH = 8192

# Families of decoders that do not mark their attention modules as causal.
CAUSAL_FAMILIES = ("bloom", "mpt", "falcon")


@dataclass(frozen=True, eq=False)
class Model:
    """A transformer that can be encoded for, run and read. Made by ``whence.load``."""

    hf: Any
    tokenizer: Any
    task: str
    name: str
    revision: str | None = None
    image_processor: Any = None

    def __repr__(self) -> str:
        return (
            f"Model({self.name!r}, {type(self.hf).__name__}, task={self.task!r}, "
            f"dtype={self.dtype}, device={self.device})"
        )

    # ------------------------------------------------------------------ what it is

    @once
    def kind(self) -> Task:
        """The object of its task, which knows what is different for models of this kind."""
        return TASKS[self.task]

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
    def autocast(self) -> str | None:
        """What ``torch.autocast`` makes of its products here and now; None where it is off."""
        kind = self.device.type
        if not torch.amp.is_autocast_available(kind) or not torch.is_autocast_enabled(kind):
            return None
        return str(torch.get_autocast_dtype(kind)).removeprefix("torch.")

    @property
    def lock(self) -> threading.RLock:
        """Held by whoever runs the model."""
        return lock_of(self.hf)

    @property
    def fingerprint(self) -> str:
        """A short hash of the weights, that tells models apart and notices fine-tuning."""
        return fingerprint_of(self.hf)

    @once
    def labels(self) -> Mapping[int, str]:
        """What a target can be: the classes, or the tokens of a vocabulary."""
        return self.kind.labels(self)

    def labels_of(self, passage: Passage | None) -> Mapping[int, str]:
        """What a target can be for this passage.

        Of most models that is the same for all; of one that answers from a text, or that chooses
        among texts, it is in the texts.
        """
        return self.labels if passage is None else self.kind.labels_of(self, passage)

    @once
    def is_encoder_decoder(self) -> bool:
        """Whether one half reads and the other writes.

        The configuration says so even where the model is an encoder alone (T5 that tags words).
        """
        if not getattr(self.config, "is_encoder_decoder", False):
            return False
        return any("decoder" in name.split(".") for name, _ in self.hf.named_modules())

    @once
    def is_causal(self) -> bool:
        """Whether a token sees only what stands before it."""
        if self.kind.generates and not self.kind.two_sided:
            return True
        if self.config.model_type in CAUSAL_FAMILIES:
            return True
        if self.is_encoder_decoder:
            return False
        return any(getattr(m, "is_causal", False) is True for m in self.hf.modules())

    @once
    def limit(self) -> int | None:
        """How many tokens the positions allow; None for relative positions without an end."""
        return self.kind.limit(self)

    @once
    def input_embeddings(self) -> nn.Module:
        """The module whose output stands for the input tokens (patches)."""
        if not self.kind.reads_text:
            tokens = tokens_of(self)
            module = None if tokens is None else tokens.module
        else:
            module = self._embeddings_of_text()
        if not isinstance(module, nn.Module):
            raise Unsupported(
                f"{type(self.hf).__name__} does not say which module embeds its input."
            )
        return module

    def _embeddings_of_text(self) -> Any:
        """What the model says embeds its tokens; None where it does not say."""
        try:
            if self.is_encoder_decoder:
                return self.hf.get_encoder().get_input_embeddings()
            return _embeddings_of_encoder(self.hf) or self.hf.get_input_embeddings()
        except (NotImplementedError, AttributeError):
            return None

    @once
    def embedded_ids(self) -> int | None:
        """How many ids the input embeddings have a row for; None where they have no such table."""
        try:
            return getattr(self.input_embeddings, "num_embeddings", None)
        except Unsupported:
            return None

    @once
    def decoder_embeddings(self) -> nn.Module | None:
        """The same for the decoder of an encoder-decoder."""
        return self.hf.get_decoder().get_input_embeddings() if self.is_encoder_decoder else None

    @property
    def pad_id(self) -> int:
        """The padding token: the model's own before the tokenizer's.

        A decoder that classifies looks for its own.
        """
        own = getattr(self.config.get_text_config(), "pad_token_id", None)
        return _first_id(own, getattr(self.tokenizer, "pad_token_id", None), 0)

    @property
    def decoder_start(self) -> int:
        """The token that a decoder begins with."""
        start = getattr(self.config, "decoder_start_token_id", None)
        return _first_id(start, getattr(self.config, "bos_token_id", None), self.pad_id)

    def readout(self, passage: Passage) -> int | None:
        """The token from which the head reads: its row of attention speaks for the output.

        The classification token of an encoder, the last token of a decoder, the masked token; None
        where the head reads the mean of all tokens. Of an encoder-decoder it is the decoder's
        position (the end of the text where it classifies), whose row is one of cross attention.
        Of a written text it is the token before the output that the passage is read for.
        """
        if passage.written is not None:
            return row_of_output(self, passage)
        finding = known(self, "readout")
        if finding is not None and finding.choice is not None:
            return found(finding.choice, passage)
        return self.kind.readout(self, passage)

    # ------------------------------------------------------------------ text and images in

    @once
    def backend(self) -> Any:
        """An own copy of the fast tokenizer, in which text that spells a special token stays text.

        The caller's tokenizer keeps its state.
        """
        return literal(self.tokenizer.backend_tokenizer)

    def encode(
        self,
        text: Any,
        pair: str | Sequence[str] | None = None,
        *,
        units: UnitKind | Sequence[int] = "word",
        reply: str | None = None,
        overflow: Overflow = "error",
        image: Any = None,
    ) -> Passage:
        """A Passage of a text, a pair of texts, or (for an image model) an image or its pixels.

        For a multiple choice, ``pair`` is the list of choices. A model that reads a text with an
        image takes the latter as ``image``: a file, a picture, an
        array of pixels, or, where it reads regions, ``{"features": …, "boxes": …}``. ``reply`` is
        the decoder's side of an encoder-decoder model. A text longer than the model's positions is
        an error unless ``overflow`` says ``"truncate"``; ``"window"`` lets it pass here, and
        ``whence.explain`` cuts it.

        >>> import whence
        >>> whence.load("sentiment").encode("It isn't bad").units
        ('It', " isn't", ' bad')
        """
        if reply is not None:
            self._check_replies()
        if not self.kind.reads_text:
            return encode_image(self, text)

        if overflow not in get_args(Overflow):
            raise InputError(
                f"overflow is one of {', '.join(get_args(Overflow))}, not {overflow!r}."
            )
        self._check_image(image)

        pair = self._checked_pair(pair)
        if isinstance(pair, tuple):
            return self.fitted(tokenize_choices(self, text, pair, units), overflow)
        passage = tokenize(self, text, pair, units)
        if reply is not None:
            passage = replace(passage, reply=tokenize(self, reply, None, units))
        passage = self.fitted(passage, overflow)
        if image is None:
            return passage
        return add_image(self, passage, image)

    def encode_chat(
        self,
        messages: Sequence[Message],
        *,
        units: ChatUnits = "section",
        documents: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = True,
    ) -> Passage:
        """A Passage of a chat, as the model's own template writes it, ready for ``generate``.

        A message is ``{"role": …, "content": …}``. Each is a section: a unit by itself
        (``units="section"``), or cut into its words, sentences or tokens. Its name is its role,
        with a number where there are several; ``"section"`` in a message names it otherwise. A
        content may be a list of ``{"text": …, "section": …}``, such as retrieved texts and a
        question: they are written one after the other. ``documents`` (``{"title": …, "text": …}``)
        are for templates that have a place for them.

        The template's own text is never removed and gets no score. A message that spells a special
        token ("<|im_end|>") stays text.

        >>> chat = [{"role": "user", "content": "Who wrote Emma?"}]
        >>> model.encode_chat(chat, units="word").units       # doctest: +SKIP
        ('Who', ' wrote', ' Emma', '?')
        """
        return encode_chat(self, messages, units, documents, add_generation_prompt)

    def _checked_pair(self, pair: Any) -> str | tuple[str, ...] | None:
        """The second text, or the choices, where the model reads such."""
        architecture = type(self.hf).__name__
        needed = self.kind.second_text
        if pair is not None and not isinstance(pair, Sequence):
            raise InputError(f"this model reads text, not a {type(pair).__name__}.")
        several = () if isinstance(pair, str) or pair is None else tuple(pair)
        if self.kind.offers_choices:
            if len(several) < 2:
                raise InputError(
                    f"{architecture} reads {needed}: model.encode(text, [choice, choice, …]), "
                    "or --pair once for each choice on the command line."
                )
            return several
        if several:
            raise InputError(
                f"{architecture} reads one second text, and {len(several)} were given; "
                "several are the choices of a model for multiple choice."
            )
        if needed and pair is None:
            raise InputError(
                f"{architecture} reads {needed}: model.encode(text, pair), pair=…, "
                "or --pair on the command line."
            )
        return None if pair is None else str(pair)

    def _check_image(self, image: Any) -> None:
        """An image beside the text, where the model reads one, and only there."""
        architecture = type(self.hf).__name__
        if image is None and self.kind.reads_image:
            raise InputError(
                f"{architecture} reads a text with an image: model.encode(text, image=…)."
            )
        if image is not None and not self.kind.reads_image:
            raise InputError(f"{architecture} reads no image beside a text.")

    def _check_replies(self) -> None:
        """Raise for a model that writes no text of its own beside the one that it reads."""
        if self.is_encoder_decoder and not self.kind.reads_twice:
            return
        advice = ""
        if self.kind.generates:
            advice = " This one continues its text: put the reply at the end of the text."
        raise InputError(
            "a reply is what an encoder-decoder (T5, BART, Marian) has written so far, and "
            f"{type(self.hf).__name__} is no such writer.{advice}"
        )

    def fitted(self, passage: Passage, overflow: Overflow) -> Passage:
        """The passage, if it fits the model's positions; else what ``overflow`` says.

        ``"window"`` leaves it to be cut later.
        """
        if self.limit is None or _text_length(passage) <= self.limit:
            return passage

        if passage.choices:
            raise InputError(
                f"with its longest choice the text has {_text_length(passage)} tokens, and the "
                f"model's positions end at {self.limit}; shorten the text."
            )
        if overflow == "truncate":
            return truncate(passage, self.limit)
        if overflow != "window":
            raise InputError(
                f"the text has {len(passage)} tokens and the model's positions end at "
                f"{self.limit}. Options: overflow='truncate' explains the beginning, "
                "overflow='window' explains consecutive windows and averages their targets "
                "(on the command line: --overflow truncate)."
            )
        if self.kind.no_windows is not None:
            raise InputError(self.kind.no_windows)
        return passage

    def windows(self, passage: Passage) -> list[Passage]:
        """The passage, in consecutive parts that fit the model."""
        if self.limit is None or _text_length(passage) <= self.limit:
            return [passage]
        return windows(passage, self.limit)

    def fill(self, passage: Passage, at: int | str) -> Passage:
        """The passage with unit ``at`` (its number, or the unit itself) under the mask token.

        A masked language model is then read there.
        """
        unit = place_of(passage.names, at)
        here = passage.unit_of == unit
        ids = np.where(here, self.tokenizer.mask_token_id, passage.ids)
        tokens = list(passage.tokens)
        for place in np.flatnonzero(here):
            tokens[place] = self.tokenizer.mask_token
        return replace(passage, ids=ids, tokens=tuple(tokens), readout=first_token(passage, unit))

    def placed(self, passage: Passage, target: Target) -> Passage:
        """The passage, to be read where the target says.

        A masked language model reads it with that unit under the mask token, a tagger at the first
        token of that word. For other models it is the passage as it is.
        """
        if passage.written is not None:
            return passage
        if self.kind.tags_words:
            return tagged(self, passage, target)
        if not self.kind.fills_a_mask:
            if target.at is not None:
                advice = ""
                if self.kind.generates:
                    advice = " Of a text that it wrote, at= names a token: whence.generate."
                raise TargetError(
                    "at= names the unit that a masked language model fills, or the word that a "
                    f"token classifier tags; this model is neither.{advice}"
                )
            return passage

        if target.at is not None:
            return self.fill(passage, target.at)
        if passage.readout is None:
            units = ", ".join(f"{i} {name!r}" for i, name in enumerate(passage.names[:8]))
            raise TargetError(
                "a masked language model predicts at a masked unit: say which, "
                f"Target(label, at=…). Units: {units} …"
            )
        return passage

    def located(self, target: Target, passage: Passage) -> Target:
        """The target with the word whose tag it is, or the written tokens that it is about."""
        if passage.written is not None:
            return located_output(passage, target)
        return located(passage, target) if self.kind.tags_words else target

    def tags(self, text: Any, overflow: Overflow = "error") -> list[Tag]:
        """The tag of each word of a text, by a model for token classification.

        >>> [tag.prediction.label for tag in tagger.tags("Anna met Ben")]       # doctest: +SKIP
        ['B-PER', 'O', 'B-PER']
        """
        if isinstance(text, Passage):
            return tags_of(self, self.fitted(text, overflow))
        return tags_of(self, self.encode(text, overflow=overflow))

    # ------------------------------------------------------------------ running

    @property
    def shares_batches(self) -> bool:
        """Whether passages of one length may share a batch: a few short passes tell, once."""
        allowed = self.kind.stacks or self.kind.pads(self)
        return allowed and batch_mates(self).holds is not False

    @property
    def pads(self) -> bool:
        """Whether passages of several lengths may share a batch, as padding changes nothing."""
        return self.kind.pads(self) and padding(self).holds is not False

    def run(self, inputs: Mapping[str, Any], **more: Any) -> Any:
        """One forward pass; what the model raises on the way becomes one line of ours."""
        return run(self.hf, inputs, **more)

    def batch(self, passages: Sequence[Passage]) -> Batch:
        """Several passages as tensors, and where each of them is read.

        They are padded on the right, and the padding is masked.
        """
        batch = self.kind.batch(self, passages)
        if batch.readout is not None and speaks_where_read(self):
            return replace(batch, speaks_where_read=True)
        return batch

    def groups(
        self, passages: Sequence[Passage], tokens_per_batch: int = TOKENS_PER_BATCH
    ) -> list[list[int]]:
        """Indices of passages that go through the model together.

        They are of like length, within a budget of padded tokens.
        """
        return self.groups_of_lengths([len(p) for p in passages], tokens_per_batch)

    def groups_of_lengths(self, lengths: Sequence[int], tokens_per_batch: int) -> list[list[int]]:
        """The same, for rows of which only the lengths are known."""
        alone = [[i] for i in range(len(lengths))]
        if len(lengths) < 2:
            return alone
        has_one_length = len(set(lengths)) == 1
        if not has_one_length and self.pads:
            return groups_of(lengths, tokens_per_batch)
        if self.shares_batches:
            return groups_of_one_length(lengths, tokens_per_batch)
        return alone

    def read(self, outputs: Any, batch: Batch) -> Float[Tensor, "batch *output label"]:
        """The logits that a target is read from; of written texts those of every output."""
        return self.kind.read(self, outputs, batch)

    def run_batch(self, batch: Batch, **more: Any) -> Pass:
        """One forward pass of a batch, with logits only where it is read, if that is the same."""
        return run_batch(self, batch, **more)

    def said(self, batch: Batch) -> Float[Tensor, "batch *output label"]:
        """The logits of a batch where it is read, from one forward pass; all are finite."""
        passed = self.run_batch(batch)
        return finite(self.read(passed.outputs, passed.batch))

    def logits(self, passages: Sequence[Passage]) -> Float[np.ndarray, "passage *output label"]:
        """Plain logits, batched, in inference mode; of a written text those of every output."""
        rows: dict[int, np.ndarray] = {}
        with self.lock, untouched(self.hf), unbroken(torch.inference_mode()):
            for group in self.groups(passages):
                batch = self.batch([passages[i] for i in group])
                logits = self.said(batch)
                rows.update(zip(group, logits.double().cpu().numpy(), strict=True))
        largest = np.max([row.shape for row in rows.values()], axis=0)
        table = np.full((len(passages), *largest), NEVER)
        for i, row in rows.items():
            table[(i, *map(slice, row.shape))] = row
        return table

    def output_logits(self, passage: Passage) -> Float[np.ndarray, "output label"]:
        """What could have stood in the place of each written token: one plain pass."""
        with self.lock, untouched(self.hf), unbroken(torch.inference_mode()):
            batch = self.batch([passage])
            logits = self.said(batch)
        return as_numpy(logits[0])

    # ------------------------------------------------------------------ what it says

    @property
    def several_labels(self) -> bool:
        """Whether each label has its own yes or no."""
        return getattr(self.config, "problem_type", None) == "multi_label_classification"

    @property
    def says_tokens(self) -> bool:
        """Whether it says tokens of a vocabulary, and not one of some classes."""
        return isinstance(self.labels, Vocabulary)

    @property
    def is_regression(self) -> bool:
        """One output that is no label: a number, of which there is no probability."""
        if not self.kind.has_classes or self.several_labels:
            return False
        return len(self.labels) == 1 or getattr(self.config, "problem_type", None) == "regression"

    def probabilities(self, logits: Float[Tensor, "batch label"]) -> Float[Tensor, "batch label"]:
        """Softmax over the labels; where several may hold, each label's own sigmoid."""
        return probabilities(logits, self.several_labels)

    def change(
        self, before: Float[Tensor, "#batch label"], after: Float[Tensor, "batch label"]
    ) -> Float[Tensor, " batch"]:
        """How far the output moved from one set of logits to another: see ``output_change``."""
        return output_change(before, after, self.several_labels, self.is_regression)

    def predict(self, texts: Sequence[Any], overflow: Overflow = "error") -> list[Prediction]:
        """The leading labels of each text with their probabilities.

        Of a language model these are the next tokens.

        >>> import whence
        >>> whence.load("sentiment").predict(["a wonderful film", "dull and far too long"])[0].label
        'positive'
        """
        if isinstance(texts, str):
            raise InputError(
                "predict takes a list of texts; for one text write model.predict([text])."
            )
        if self.kind.fills_a_mask:
            raise Unsupported(
                "a masked language model predicts at a masked unit: use explain with Target(at=…)."
            )

        passages = []
        windows_of_texts = []
        for text in texts:
            if isinstance(text, Passage):
                passage = self.fitted(text, overflow)
            else:
                passage = self.encode(text, overflow=overflow)
            if self.kind.tags_words and passage.readout is None:
                raise Unsupported(
                    f"{self.name} has a tag for each word: model.tags(text) gives all of them."
                )
            passages.append(passage)
            windows_of_texts.append(self.windows(passage))
        if not windows_of_texts:
            return []

        logits = self.logits([window for own in windows_of_texts for window in own])
        predictions = []
        first = 0
        for passage, own in zip(passages, windows_of_texts, strict=True):
            rows = logits[first : first + len(own)]
            first += len(own)
            predictions.append(self.prediction(np.mean(rows, axis=0), passage))
        return predictions

    def prediction(
        self,
        logits: Float[np.ndarray, " label"],
        passage: Passage | None = None,
        output: int = 0,
    ) -> Prediction:
        """The leading labels, from the logits of one input.

        The ``passage`` is needed where the labels are in its text; of a written text they are those
        in the place of ``output``.
        """
        row = np.asarray(logits, dtype=np.float64)
        if self.is_regression:
            numbers = {self.labels[i]: float(x) for i, x in enumerate(row)}
            return Prediction(self.labels[0], {}, numbers)
        labels = self.labels_of(passage)
        if passage is not None and passage.written is not None:
            labels = labels_at(self, passage, output)
        row = row[: len(labels)]

        chances = self.probabilities(torch.from_numpy(row)[None])[0].numpy()
        leading = np.argsort(-chances, kind="stable")[:LEADING_LABELS].tolist()
        return Prediction(
            labels[leading[0]],
            {labels[i]: float(chances[i]) for i in leading},
            {labels[i]: float(row[i]) for i in leading},
        )

    def resolve(
        self,
        target: Target | str | int | None,
        logits: Float[np.ndarray, "*output label"],
        passage: Passage | None = None,
    ) -> Target:
        """Fix the target for one input, given its logits.

        The ``passage`` is needed where the labels are in its text, and of a written text, whose
        logits are those of every output.
        """
        target = as_target(target)
        if passage is not None and passage.written is not None:
            return self._resolved_output(target, logits, passage)
        if self.is_regression and target.read != "logit":
            raise TargetError(
                f"this model's head is a regression, whose output has no {target.read}; "
                "read it as 'logit'."
            )
        is_one_distribution = not self.several_labels and self.kind.labels_of is labels_of_model
        if target.read == "kl" and not is_one_distribution:
            raise TargetError(
                "the labels of this model are not one distribution that could diverge: several may "
                "hold at once, or they stand in the text. Read one of them as 'log-probability'."
            )
        return resolve(target, logits, self.labels_of(passage))

    def _resolved_output(
        self, target: Target, logits: Float[np.ndarray, "output label"], passage: Passage
    ) -> Target:
        """What was written is explained, unless the target names another token there."""
        target = located_output(passage, target)
        steps = target.steps
        if target.until is not None:
            first = passage.ids[passage.output_place(steps.start)]
            target = replace(target, label=passage.outputs_text(steps), index=int(first))
            return referred(target, logits[steps.start : steps.stop])
        if target.label is None:
            token = int(passage.ids[passage.output_place(steps.start)])
            target = replace(target, label=token)
        return resolve(target, logits[steps.start], labels_at(self, passage, steps.start))

    def value(
        self, logits: Float[Tensor, "batch *output label"], targets: Sequence[Target]
    ) -> Float[Tensor, " batch"]:
        """The scalar under explanation, for each row; all are read in the same way."""
        return target_values(logits, targets, self.several_labels)


def _embeddings_of_encoder(hf: Any) -> nn.Module | None:
    """The embeddings of an encoder with a table of its own, beside the one it is tied to (T5)."""
    if not isinstance(hf, nn.Module):
        return None
    for name, module in hf.named_modules():
        if name.endswith("encoder.embed_tokens") and isinstance(module, nn.Embedding):
            return module
    return None


def _text_length(passage: Passage) -> int:
    """How many tokens the text has; an image beside it has positions of its own.

    Of a multiple choice each choice is read from the first position on.
    """
    return int(passage.of_text.sum()) // max(1, len(passage.choices))


def _first_id(*candidates: Any) -> int:
    """The first id that is known; the last candidate always is."""
    return next(int(i) for i in candidates if i is not None)
