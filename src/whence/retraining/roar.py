"""roar: remove the words that a ranking calls important, retrain, and see what was lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from whence.core.errors import InputError
from whence.core.passage import Passage
from whence.core.progress import Step
from whence.core.registry import find_method
from whence.core.request import Request, Wish, wishes_for
from whence.core.roar import CONTROL, Roar
from whence.explaining.run import run
from whence.models.model import Model
from whence.retraining.curve import Removed, Way, curves_of_seed, stacked
from whence.retraining.labelled import encoded, labelled, numbered
from whence.retraining.removing import pattern_of, trained_removal, without
from whence.retraining.small import Kind, Start, small_start
from whence.retraining.training import Training, check_trainable, fit, guesses

SHARES = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)
RankBy = Literal["size", "score"]
CONTROL_STREAM = 16  # of random numbers
# A score for each unit of a passage, from a function of the caller's.
Ranking = Callable[[Model, Passage], Any]


def roar(
    train: Any,
    test: Any,
    methods: Sequence[str] | Mapping[str, Mapping[str, Any]],
    *,
    rankings: Mapping[str, Ranking] | None = None,
    shares: Sequence[int | float] = SHARES,
    removal: str = "mask",
    keep: bool = False,
    recursive: bool = False,
    patterns: bool = False,
    rank_by: RankBy = "size",
    start: Start | Kind = "bert",
    training: Training | None = None,
    seeds: int = 5,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
) -> Roar:
    """Remove and retrain (ROAR, Hooker et al. 2019): accuracy against the share of units removed.

    ``train`` and ``test`` are (text, label) pairs, or data files with a label column. For each of
    ``seeds`` repetitions a model is trained on the whole texts and explained by each of
    ``methods``, for the label that it predicts. The leading units go from training and test texts
    alike (``removal`` is ``mask`` or ``delete``), and a new model is trained for each of
    ``shares``. The faster accuracy falls, the better the ranking; ``random`` is always among them.

    ``keep`` removes the least important units first (KAR: the slower it falls, the better).
    ``recursive`` has each retrained model say which units go next (Madsen et al. 2022), so that a
    unit that stood in for another is found in the end. ``patterns`` also trains models that see
    where units were removed and nothing else: what they get right beyond the prior is no loss of
    words but a leak of the label (Rong et al. 2022). ``rank_by`` "size" takes the size of scores
    with a sign, as Hooker et al. do; "score" what speaks most for the predicted label.
    ``rankings`` are further ones by name: functions of a model and a passage that give a score for
    each unit. ``start`` is a small model's kind ("bert", "single-layer"), or a function that makes
    an untrained ``whence.Model`` from a seed.

    >>> import whence
    >>> texts = [("a fine film", "good"), ("a dull film", "bad")] * 10
    >>> quick = whence.Training(epochs=20, batch=10, rate=1e-2)
    >>> shares = (0, 1 / 3, 1)
    >>> r = whence.roar(texts, texts[:2], ["occlusion"], shares=shares, seeds=1, training=quick)
    >>> r.accuracies["occlusion"].mean(0).tolist()
    [1.0, 0.5, 0.5]
    """
    wishes = {find_method(wish.method).name: wish for wish in wishes_for(methods)}
    wishes.setdefault(CONTROL, Wish(CONTROL))
    rankings = dict(rankings or {})
    _check_names(wishes, rankings)
    way = Way(_checked_shares(shares), keep, recursive, patterns)
    if seeds < 1:
        raise InputError(f"a whole experiment is one seed at least, not {seeds}.")
    if rank_by not in ("size", "score"):
        raise InputError(f"units are ranked by 'size' or by 'score', not {rank_by!r}.")

    rows, test_rows = labelled(train, "train"), labelled(test, "test")
    begin = start if callable(start) else small_start(rows, start)
    reader = begin(seed)
    check_trainable(reader)
    experiment = Texts(
        reader=reader,
        passages=encoded(reader, [*rows, *test_rows]),
        labels=np.array(numbered(reader, [*rows, *test_rows])),
        first_test=len(rows),
        removal=trained_removal(reader, removal),
        wishes=wishes,
        rankings=rankings,
        rank_by=rank_by,
        start=begin,
        training=training or Training(),
    )
    experiment.check_units()

    names = [*wishes, *rankings]
    count = _Count(seeds * (1 + len(names) * len(way.shares) * (1 + patterns)), progress)
    every = []
    for number in range(seeds):
        told = count.for_seed(number, seeds)
        every.append(curves_of_seed(experiment, names, way, seed + number, told))
    return Roar(
        shares=np.array(way.shares),
        accuracies=stacked(curves.accuracies for curves in every),
        patterns=stacked(curves.patterns for curves in every),
        prior=experiment.prior,
        removal=experiment.removal,
        keep=keep,
        recursive=recursive,
        train_texts=len(rows),
        test_texts=len(test_rows),
    )


@dataclass(frozen=True, eq=False)
class Texts:
    """The Experiment of texts: training ones first, then those to test on."""

    reader: Model  # untrained: it cuts texts into units
    passages: Sequence[Passage]
    labels: np.ndarray
    first_test: int
    removal: str
    wishes: Mapping[str, Wish]
    rankings: Mapping[str, Ranking]
    rank_by: RankBy
    start: Start
    training: Training

    @property
    def sizes(self) -> list[int]:
        """How many units each text has."""
        return [len(passage.unit_spans) for passage in self.passages]

    @property
    def prior(self) -> float:
        """The accuracy of always giving the label that is most frequent in training."""
        counts = Counter(self.labels[: self.first_test].tolist())
        most = max(counts.values())
        of_test = self.labels[self.first_test :]
        frequent = [label for label, count in counts.items() if count == most]
        return max(float((of_test == label).mean()) for label in frequent)

    def check_units(self) -> None:
        """Raise for a text of which nothing can be removed."""
        for passage in self.passages:
            if not passage.unit_spans:
                raise InputError(f"the text {passage.text!r} has no units to remove; leave it out.")

    def train(self, removed: Removed, seed: int, pattern: bool) -> Model:
        """A model, trained from nothing on texts without these units."""
        model = self.start(seed)
        texts = self._left(removed, pattern, 0, self.first_test)
        labels = self.labels[: self.first_test].tolist()
        fit(model, lambda _: texts, labels, self.training, seed)
        return model

    def accuracy(self, model: Model, removed: Removed, pattern: bool) -> float:
        """On the test texts, without these units."""
        texts = self._left(removed, pattern, self.first_test, len(self.passages))
        return float((guesses(model, texts) == self.labels[self.first_test :]).mean())

    def importance(
        self, model: Model, removed: Removed, names: Sequence[str], seed: int
    ) -> dict[str, list[Float[np.ndarray, " _"]]]:
        """By each ranking; units that are deleted already get 0, and are never asked for."""
        texts = self._left(removed, False, 0, len(self.passages))
        asked = [i for i, text in enumerate(texts) if text.unit_spans]
        by_name: dict[str, list[np.ndarray]] = {}
        for name, scores in self._scores(model, [texts[i] for i in asked], names, seed).items():
            every = [np.zeros(size) for size in self.sizes]
            for i, of_text in zip(asked, scores, strict=True):
                here = np.ones(len(every[i]), dtype=bool)
                if self.removal == "delete":
                    here = ~removed[i]
                every[i][here] = of_text
            by_name[name] = every
        return by_name

    def _scores(
        self, model: Model, texts: Sequence[Passage], names: Sequence[str], seed: int
    ) -> dict[str, list[np.ndarray]]:
        """The importance of the units that are there, in all these texts, by each ranking."""
        by_name: dict[str, list[np.ndarray]] = {name: [] for name in names}
        for name in names:
            if name in self.rankings:
                given = [(self.rankings[name](model, text), text) for text in texts]
                by_name[name] = [_as_scores(scores, text, name) for scores, text in given]
        if CONTROL in names:
            # not by the method of that name, which ranks equal texts alike: a model could learn
            # the rankings of texts that stand in training and test
            rng = np.random.default_rng([seed, CONTROL_STREAM])
            by_name[CONTROL] = [rng.random(len(text.unit_spans)) for text in texts]
        wishes = tuple(self.wishes[name] for name in names if not by_name[name])
        if not wishes:
            return by_name

        request = Request(wishes=wishes, seed=seed, evidence=False, budget="full")
        for (outcome,) in run(model, texts, request):
            for problem in outcome.failed.values():
                raise problem
            for name, attribution in outcome.attributions.items():
                scores = attribution.scores
                if attribution.signed and self.rank_by == "size":
                    scores = np.abs(scores)
                by_name[name].append(scores)
        return by_name

    def _left(self, removed: Removed, pattern: bool, first: int, end: int) -> list[Passage]:
        """What is left of some texts."""
        leave = pattern_of if pattern else without
        texts = []
        for passage, gone in zip(self.passages[first:end], removed[first:end], strict=True):
            texts.append(leave(self.reader, passage, gone, self.removal))
        return texts


def _as_scores(given: Any, passage: Passage, name: str) -> Float[np.ndarray, " unit"]:
    scores = np.asarray(given, dtype=np.float64)
    units = len(passage.unit_spans)
    if scores.shape != (units,) or not np.isfinite(scores).all():
        raise InputError(
            f"the ranking {name!r} gives one finite score for each of the {units} units of "
            f"{passage.text!r:.40}, not {given!r:.60}."
        )
    return scores


def _checked_shares(shares: Sequence[int | float]) -> tuple[float, ...]:
    checked = tuple(float(share) for share in shares)
    if not checked or list(checked) != sorted(set(checked)) or checked[0] < 0 or checked[-1] > 1:
        raise InputError(f"shares of units rise from 0 to 1, each named once; not {shares}.")
    return checked


def _check_names(wishes: Mapping[str, Wish], rankings: Mapping[str, Ranking]) -> None:
    twice = set(wishes) & set(rankings)
    if twice:
        raise InputError(f"{', '.join(sorted(twice))} is a method's name; give rankings another.")


@dataclass(eq=False)
class _Count:
    """Trainings done, told to whoever watches."""

    of: int
    progress: Callable[[str], None] | None
    done: int = field(default=0)

    def for_seed(self, number: int, seeds: int) -> Callable[[str], None]:
        """What is told after each training of one repetition."""

        def tell(what: str) -> None:
            self.done += 1
            if self.progress is not None:
                words = f"retraining, repetition {number + 1} of {seeds}: {what}"
                self.progress(Step(words, self.done, self.of))

        return tell
