"""receipt: what steering by a feature does, at several doses, beside directions that mean nothing.

A steered model always does something else; the question is whether it does *that*. So the response
stands beside what was broken (answers on unrelated text, other features), and the feature beside
random directions and the difference of means, which move the state as far at every token.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from whence.core.attribution import Cost
from whence.core.errors import InputError, Unsupported
from whence.core.passage import Passage
from whence.core.provenance import Provenance
from whence.core.receipt import Direction, Dose, Receipt, Response
from whence.core.showing import signs
from whence.features.autoencoder import Autoencoder
from whence.features.belonging import check_belongs, check_feature
from whence.features.effects import head_of
from whence.features.steering import Change, along, clamping, peak_of, value_of
from whence.features.unrelated import SENTENCES
from whence.generation.continuing import written_by
from whence.models.model import Model, finite
from whence.models.unbroken import unbroken
from whence.models.untouched import untouched
from whence.models.writing import written
from whence.trace.hidden import editing, hidden_at

MULTIPLES = (0.0, 1.0, 2.0, 5.0, 10.0)
PROMOTED = 10  # tokens whose probability is the response
RANDOM = 3  # directions
MOST_TEXTS = 32  # of unrelated text
FEW_TOKENS = 5  # with the feature active; of fewer, no difference of means is taken


def receipt(
    model: Model,
    autoencoder: Autoencoder,
    feature: int,
    to: str | float = "5x",
    prompt: str = "The",
    *,
    texts: Sequence[str] = (),
    peak: float | None = None,
    multiples: Sequence[float | int] = MULTIPLES,
    max_new_tokens: int = 40,
    target: str | int | None = None,
    seed: int = 0,
    random: int = RANDOM,
    **decoding: Any,
) -> Receipt:
    """The model before and after clamping a feature, and what that costs elsewhere.

    Of a language model the response is the probability that it gives, at every place of unrelated
    text, to the ten tokens that the feature promotes most; of a classifier it is the probability
    of ``target`` (by default the label that it predicts) for the prompt. ``texts`` are searched for
    unrelated text (those on which the feature is never active) and for the difference of means;
    without any, a few plain sentences are used. ``random`` directions are drawn with ``seed``.
    ``decoding`` goes to ``generate``, such as ``do_sample=True``.

    Said in a note where no text of a language model has a second token: ``No perplexity: every text
    has one token, and none that follows it.``

    >>> import whence
    >>> from whence.features.mirrors import mirror
    >>> model = whence.load("writer")
    >>> paid = receipt(
    ...     model, mirror(model, layer=3), 5, "5x", peak=9.0, multiples=(0, 5), max_new_tokens=3
    ... )
    >>> paid.multiples, paid.plain.divergence
    ((0.0, 5.0), 0.0)
    """
    check_belongs(model, autoencoder)
    check_feature(autoencoder, feature)
    largest = peak_of(autoencoder, feature, peak)
    asked = value_of(autoencoder, feature, to, largest) / largest
    if not model.kind.generates and not model.kind.has_classes:
        raise Unsupported(
            "a receipt is for models that write and for classifiers, and "
            f"{type(model.hf).__name__} is neither; steer(model, …) clamps a feature of any model."
        )
    begun = time.perf_counter()
    notes: list[str] = []
    sample = _sample(model, autoencoder, feature, texts, notes)
    bench = _bench(
        model, autoencoder, feature, prompt, sample, target, max_new_tokens, seed, decoding
    )
    directions = _directions(autoencoder, feature, sample, seed, random, notes)

    plain = bench.dose("feature", 0, 0.0, None, largest)
    is_alone = all(len(passage) < 2 for passage in sample.passages)
    if bench.meaning == "promoted" and is_alone and not model.is_encoder_decoder:
        notes.append("No perplexity: every text has one token, and none that follows it.")
    doses = []
    for multiple in sorted({*map(float, multiples), asked}):
        value = multiple * largest
        for direction, number, unit in directions:
            change = along(autoencoder, feature, value, unit)
            if direction == "feature":
                change = clamping(autoencoder, feature, value)
            writes = direction == "feature" or multiple == asked
            doses.append(bench.dose(direction, number, multiple, change, largest, writes))
    cost = Cost(forwards=bench.passes, seconds=time.perf_counter() - begun)
    return Receipt(
        feature=feature,
        layer=autoencoder.about.layer,
        peak=largest,
        asked=asked,
        prompt=prompt,
        meaning=bench.meaning,
        about=bench.about,
        plain=plain,
        doses=tuple(doses),
        is_apart=model.is_encoder_decoder,
        texts=len(sample.passages),
        tokens=int(sum(len(p) for p in sample.passages)),
        cost=cost,
        provenance=Provenance.of(model, attention=""),
        notes=tuple(notes),
    )


# ---------------------------------------------------------------------- text to measure on


@dataclass(frozen=True, eq=False)
class Sample:
    """Unrelated passages with their hidden states, and the difference of means over all texts."""

    passages: list[Passage]
    states: list[Float[Tensor, "_ dim"]]
    difference: Float[Tensor, " dim"] | None


def _sample(
    model: Model, autoencoder: Autoencoder, feature: int, texts: Sequence[str], notes: list[str]
) -> Sample:
    given = [text for text in texts if text.strip()] or list(SENTENCES)
    passages = []
    for text in given:
        passages += model.windows(model.encode(text, overflow="window"))
    about = autoencoder.about
    kind = about.kind if model.is_encoder_decoder else None
    states = [h.float() for h in hidden_at(model, passages, about.layer, kind)]
    active = [autoencoder.encode(h)[:, feature] > 0 for h in states]
    silent = [i for i, fires in enumerate(active) if not fires.any()]
    if len(silent) < min(4, len(passages)):
        notes.append(_on_unrelated(len(passages) - len(silent), len(passages)))
        silent = list(range(len(passages)))
    silent = silent[:MOST_TEXTS]
    rows, fires = torch.cat(states), torch.cat(active)
    difference = None
    if int(fires.sum()) >= FEW_TOKENS and not bool(fires.all()):
        difference = rows[fires].mean(0) - rows[~fires].mean(0)
    else:
        notes.append(_on_no_difference(int(fires.sum()), len(rows)))
    return Sample([passages[i] for i in silent], [states[i] for i in silent], difference)


def _on_unrelated(firing: int, texts: int) -> str:
    """Said where the feature is silent in fewer than four texts, and in some it fires.

    >>> _on_unrelated(1, 1)
    'The feature fires in 1 of 1 text, so all of it stands for unrelated text.'
    """
    if texts == 1:
        return f"The feature fires in {firing} of 1 text, so all of it stands for unrelated text."
    return (
        f"The feature fires in {firing} of {texts} texts, so all of them stand for unrelated text."
    )


def _on_no_difference(firing: int, tokens: int) -> str:
    """Said where the feature fires on too few tokens for a difference of means, or on all.

    >>> _on_no_difference(9, 9)
    'No difference of means: the feature fires on all 9 tokens here. Give texts with other tokens.'
    """
    if firing and firing == tokens and firing >= FEW_TOKENS:
        return (
            f"No difference of means: the feature fires on all {tokens} tokens here. Give texts "
            "with other tokens."
        )
    return (
        f"No difference of means: the feature fires on {firing} of {tokens} tokens here, and "
        f"{FEW_TOKENS} are needed. Give texts on which it fires (texts=…, --data)."
    )


def _directions(
    autoencoder: Autoencoder,
    feature: int,
    sample: Sample,
    seed: int,
    random: int,
    notes: list[str],
) -> list[tuple[Direction, int, Float[Tensor, " dim"]]]:
    """The feature's own direction, random ones, and the difference of means, each of length 1.

    Said in a note where there is a difference of means: ``The cosine of the feature's direction and
    the difference of means: 0.12.``
    """
    own = nn.functional.normalize(autoencoder.decoder[feature], dim=0)
    directions: list[tuple[Direction, int, Tensor]] = [("feature", 0, own)]
    generator = torch.Generator().manual_seed(seed)
    for number in range(random):
        drawn = torch.randn(autoencoder.dim, generator=generator)
        directions.append(("random", number, nn.functional.normalize(drawn, dim=0)))
    if sample.difference is not None:
        means = nn.functional.normalize(sample.difference, dim=0)
        directions.append(("difference", 0, means))
        cosine = float(own @ means)
        notes.append(
            f"The cosine of the feature's direction and the difference of means: {cosine:.2f}."
        )
    return directions


# ---------------------------------------------------------------------- one dose


@dataclass(eq=False)
class Bench:
    """What every dose is measured on, and how; ``passes`` counts."""

    model: Model
    autoencoder: Autoencoder
    feature: int
    prompt: Passage
    sample: Sample
    meaning: Response
    about: str
    ids: list[int]  # the tokens, or the label, whose probability is the response
    tokens: int
    seed: int
    decoding: dict[str, Any]
    plain: list[Float[Tensor, "_ label"]]  # log-probabilities on the unrelated text
    passes: int = 0

    def dose(
        self,
        direction: Direction,
        number: int,
        multiple: float,
        change: Change | None,
        peak: float,
        writes: bool = True,
    ) -> Dose:
        """Measure the model under a change of its hidden states; as it is, where there is none."""
        about = self.autoencoder.about
        kind = about.kind if self.model.is_encoder_decoder else None
        block = nullcontext() if change is None else editing(self.model, about.layer, change, kind)
        follows, probabilities = None, {}
        with block:
            steered = _log_probabilities(self.model, self.sample.passages)
            self.passes += len(steered)
            if self.meaning == "label":
                (row,) = self.model.logits([self.prompt])
                self.passes += 1
                probabilities = dict(self.model.prediction(row, self.prompt).probabilities)
                chances = self.model.probabilities(torch.from_numpy(row)[None])[0]
                response = float(chances[self.ids[0]])
            else:
                each = [rows[:, self.ids].exp().sum(1) for rows in steered]
                response = float(torch.cat(each).mean())
                if writes:
                    follows = self._written()
        pairs = zip(self.plain, steered, strict=True)
        divergences = torch.cat([_divergence(before, after) for before, after in pairs])
        text, activity = (None, None) if follows is None else self._read(follows, peak)
        return Dose(
            direction=direction,
            number=number,
            multiple=multiple,
            response=response,
            divergence=float(divergences.mean()),
            others=0.0 if change is None else self._others(change),
            perplexity=self._perplexity(steered),
            activity=activity,
            written=text,
            probabilities=probabilities,
        )

    def _written(self) -> np.ndarray:
        follows = written_by(self.model, self.prompt, self.tokens, self.seed, self.decoding)
        self.passes += len(follows.ids)
        return follows.ids

    def _read(self, ids: np.ndarray, peak: float) -> tuple[str, float | None]:
        """What was written as it stands behind the prompt, and how far the feature is in it.

        That is as the plain model finds it, which reads the text by itself.
        """
        text = written(self.model, self.prompt, ids).text
        if self.model.is_encoder_decoder or not text.strip():
            return text, None
        alone = self.model.tokenizer.decode(
            ids.tolist(), skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        passage = self.model.encode(alone, overflow="truncate")
        (states,) = hidden_at(self.model, [passage], self.autoencoder.about.layer)
        self.passes += 1
        own = self.autoencoder.encode(states.float())[:, self.feature]
        ordinary = torch.from_numpy(passage.parts >= 0)
        active = own[ordinary] * self.autoencoder.norms[self.feature]
        return text, float(active.mean()) / peak

    def _others(self, change: Change) -> float | None:
        """By how much the other features move, relative to what they were, on unrelated text.

        None where none of them is active.
        """
        moved, before = 0.0, 0.0
        for states in self.sample.states:
            was = self.autoencoder.encode(states) * self.autoencoder.norms
            now = self.autoencoder.encode(change(states[None])[0]) * self.autoencoder.norms
            was[:, self.feature] = 0
            now[:, self.feature] = 0
            moved += float((now - was).abs().sum())
            before += float(was.abs().sum())
        return moved / before if before else None

    def _perplexity(self, rows: list[Float[Tensor, "_ label"]]) -> float | None:
        """Of the unrelated text; None where none of its tokens follows another.

        None for a classifier, too, and for a model that reads and writes apart.
        """
        if self.meaning == "label" or self.model.is_encoder_decoder:
            return None
        losses = []
        for passage, own in zip(self.sample.passages, rows, strict=True):
            ids = torch.from_numpy(np.array(passage.ids))
            losses.append(-own[:-1].gather(1, ids[1:, None])[:, 0])
        following = torch.cat(losses)
        return float(following.mean().exp()) if len(following) else None


def _bench(
    model: Model,
    autoencoder: Autoencoder,
    feature: int,
    prompt: str,
    sample: Sample,
    target: str | int | None,
    tokens: int,
    seed: int,
    decoding: dict[str, Any],
) -> Bench:
    passage = model.encode(prompt)
    plain = _log_probabilities(model, sample.passages)
    if model.kind.generates:
        if target is not None:
            raise InputError(
                "target= names a label of a classifier; of a language model the response is the "
                "probability of the tokens that the feature promotes."
            )
        head = head_of(model)
        raised = head.logits(autoencoder.decoder[feature][None].to(head.norm))[0]
        ids = raised[: len(model.labels)].topk(PROMOTED).indices.tolist()
        about = ", ".join(_quoted(model.labels[i]) for i in ids)
        meaning: Response = "promoted"
    else:
        (row,) = model.logits([passage])
        resolved = model.resolve(target, row, passage)
        assert resolved.index is not None
        ids, about, meaning = [resolved.index], model.labels[resolved.index], "label"
    return Bench(
        model=model,
        autoencoder=autoencoder,
        feature=feature,
        prompt=passage,
        sample=sample,
        meaning=meaning,
        about=about,
        ids=ids,
        tokens=tokens,
        seed=seed,
        decoding=decoding,
        plain=plain,
    )


def _quoted(name: str) -> str:
    """A token in a sentence, without the blank before it; white space by its signs."""
    return f"“{name.strip() or signs(name)}”"


def _log_probabilities(model: Model, passages: Sequence[Passage]) -> list[Float[Tensor, "_ label"]]:
    """What the model says at every token of each passage; of a classifier, of the passage."""
    rows: dict[int, Tensor] = {}
    with model.lock, untouched(model.hf), unbroken(torch.inference_mode()):
        for group in model.groups(passages):
            batch = model.batch([passages[i] for i in group])
            outputs = model.run(batch.inputs)
            if not model.kind.generates:
                logits = finite(model.read(outputs, batch))[:, None]
                lengths = [1] * len(group)
            else:
                logits, lengths = outputs.logits, [len(passages[i]) for i in group]
                if model.is_encoder_decoder:
                    lengths = [1] * len(group)
            for i, row, length in zip(group, logits, lengths, strict=True):
                rows[i] = finite(row[:length]).double().log_softmax(-1).cpu()
    return [rows[i] for i in range(len(passages))]


def _divergence(
    before: Float[Tensor, "place label"], after: Float[Tensor, "place label"]
) -> Float[Tensor, " place"]:
    """KL(before ‖ after) at each place, in nats."""
    return (before.exp() * (before - after)).sum(1).clamp_min(0)
