"""What inseq's numbers are, by formula: each is derived again by the slow definitions.

inseq reads a continuation one prefix at a time, as ``reference`` does. What it shows differs from
the raw numbers by absolute values, norms and a division by their sum; what it stores is compared
here as it is, and what it makes of that is a test of its own.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch

from tests.choices import at_once
from tests.families import DOUBLE, FAMILIES, build
from tests.generation.reference import (
    Reading,
    Rows,
    Written,
    difference,
    embedded,
    entropy,
    from_token,
    from_vector,
    log_probability,
    logit,
    prefix_attention,
    prefix_gradients,
    prefix_integrated_gradients,
    prefix_occlusion,
    prefix_values,
    probability,
    replaced,
)
from tests.tolerance import rounding

inseq = pytest.importorskip(
    "inseq", reason="inseq is optional: pip install --no-deps inseq==0.7.1 treescope==0.1.10"
)
pytestmark = [
    # it warns at every contrast that the prefix is that of the original, which is what we want
    pytest.mark.filterwarnings("ignore:Contrastive inputs do not match:UserWarning"),
    # captum, at inputs that are no leaves of the graph
    pytest.mark.filterwarnings("ignore:Input Tensor 0 did not already require gradients"),
]

# two decoders and two encoder-decoders, of which marian is built like bart: this is about inseq.
# Our own numbers are derived for more families, in test_reference.py and in
# tests/explaining/test_outputs.py
FAMILIES_HERE = at_once(("gpt2", "llama", "t5", "marian"), few=("gpt2", "marian"))
PROMPT = "great food and"
TEXT = " the menu is bad"
OTHER = " the is menu bad"  # as many tokens, as it aligns the two from their ends
STEPS = 6


@dataclass(frozen=True)
class Case:
    """One text, as inseq takes it and as token ids; each side has a model of its own."""

    model: Any
    theirs: Any
    tokenizer: Callable[[], Any]
    prompt: str | list[str]
    whole: str | list[str]
    contrast: str
    written: Written
    others: tuple[int, ...]

    @property
    def unknown(self) -> int:
        """The token that inseq puts for others: unknown, or padding where there is none."""
        tokenizer = self.tokenizer()
        unknown = tokenizer.unk_token_id
        return tokenizer.pad_token_id if unknown is None else unknown

    @property
    def kept(self) -> set[int]:
        """What it leaves in place: the end of a sequence, and the decoder's start."""
        config = self.model.config
        start = {config.decoder_start_token_id} if config.is_encoder_decoder else set()
        return {config.eos_token_id} | start

    def attribute(self, method: str, attributed: str | None = None, **settings: Any) -> Any:
        """inseq's result, before it is aggregated; it changes the tokenizer that it is given."""
        if attributed is not None:
            settings["attributed_fn"] = attributed
            if attributed.startswith("contrast"):
                settings["contrast_targets"] = self.contrast
        wrapped = inseq.load_model(self.theirs, method, tokenizer=self.tokenizer(), device="cpu")
        out = wrapped.attribute(
            self.prompt,
            self.whole,
            attribute_target=self.model.config.is_encoder_decoder,
            show_progress=False,
            **settings,
        )
        return out.sequence_attributions[0]

    def reading(self, attributed: str) -> Reading:
        outputs = self.written.outputs
        return {
            "logit": logit(outputs),
            "probability": probability(outputs),
            "entropy": entropy(),
            "contrast_logits_diff": difference(logit(outputs), logit(self.others)),
            "contrast_prob_diff": difference(probability(outputs), probability(self.others)),
        }[attributed]


@pytest.fixture(scope="module", params=FAMILIES_HERE)
def case(request: pytest.FixtureRequest) -> Case:
    family = request.param
    model = build(family, seed=2).hf
    if family in DOUBLE:
        model.double()
    # inseq reads the weights that a model returns, and only this implementation returns them
    model.set_attn_implementation("eager")
    tokenizer = FAMILIES[family].tokenizer
    assert tokenizer is not None

    def ids(text: str) -> tuple[int, ...]:
        return tuple(tokenizer()(text).input_ids)

    if model.config.is_encoder_decoder:
        whole, contrast = TEXT.strip(), OTHER.strip()
        start: tuple[int, ...] = (model.config.decoder_start_token_id,)
        written = Written(start, ids(whole), source=ids(PROMPT))
        others = ids(contrast)
    else:
        whole, contrast = PROMPT + TEXT, PROMPT + OTHER
        start = ids(PROMPT)
        assert ids(whole)[: len(start)] == start
        written = Written(start, ids(whole)[len(start) :])
        others = ids(contrast)[len(start) :]
    assert len(others) == len(written.outputs)
    assert others != written.outputs
    theirs = copy.deepcopy(model)
    return Case(model, theirs, tokenizer, PROMPT, whole, contrast, written, others)


def of_inseq(sequence: Any) -> Rows:
    """Its tables have outputs in columns, and a last place that no output could read."""
    prefix = sequence.target_attributions.transpose(0, 1)
    source = sequence.source_attributions
    return Rows(prefix[:, :-1], None if source is None else source.transpose(0, 1))


def magnitude(rows: Rows) -> Rows:
    return Rows(rows.prefix.abs(), None if rows.source is None else rows.source.abs())


def far(ours: Rows, theirs: Rows) -> float:
    """The largest difference, relative to the largest number of its side."""
    pairs = [(ours.prefix, theirs.prefix)]
    if ours.source is not None:
        assert theirs.source is not None
        pairs.append((ours.source, theirs.source))
    apart = []
    for our, their in pairs:
        assert torch.equal(our.isnan(), their.isnan())
        largest = their.nan_to_num().abs().max()
        apart.append(float((our - their).nan_to_num().abs().max() / largest))
    return max(apart)


def tolerance(case: Case) -> float:
    """Of sums over a few layers of width 32; inseq stores float32, whatever the model's dtype."""
    dtype = str(case.model.dtype).removeprefix("torch.")
    return rounding(200, 1.0, dtype) + rounding(1, 1.0)


READINGS = ("logit", "probability", "entropy", "contrast_logits_diff", "contrast_prob_diff")


@pytest.mark.parametrize("attributed", READINGS)
def test_saliency_is_the_absolute_gradient(case: Case, attributed: str) -> None:
    """With respect to the embeddings of prompt and prefix; the enemy is the signed gradient."""
    theirs = of_inseq(case.attribute("saliency", attributed))
    gradients = prefix_gradients(case.model, case.written, case.reading(attributed))
    assert far(magnitude(gradients), theirs) < tolerance(case)
    assert far(gradients, theirs) > 1


@pytest.mark.parametrize("attributed", ["logit", "contrast_prob_diff"])
def test_input_x_gradient_is_signed_and_for_each_dimension(case: Case, attributed: str) -> None:
    theirs = of_inseq(case.attribute("input_x_gradient", attributed))
    ours = times_embeddings(
        case, prefix_gradients(case.model, case.written, case.reading(attributed))
    )
    assert far(ours, theirs) < tolerance(case)
    assert far(magnitude(ours), theirs) > 1


def test_the_default_is_the_probability(case: Case) -> None:
    theirs = of_inseq(case.attribute("input_x_gradient"))
    gradients = prefix_gradients(case.model, case.written, probability(case.written.outputs))
    of_logits = prefix_gradients(case.model, case.written, logit(case.written.outputs))
    assert far(times_embeddings(case, gradients), theirs) < tolerance(case)
    assert far(times_embeddings(case, of_logits), theirs) > 0.5


def test_a_log_probability_has_to_be_asked_for(case: Case) -> None:
    theirs = of_inseq(case.attribute("input_x_gradient", "probability", logprob=True))
    gradients = prefix_gradients(case.model, case.written, log_probability(case.written.outputs))
    assert far(times_embeddings(case, gradients), theirs) < tolerance(case)


def times_embeddings(case: Case, rows: Rows) -> Rows:
    of_prefix = embedded(case.model, case.written.prefix(len(case.written.outputs) - 1))
    prefix = rows.prefix * of_prefix
    if rows.source is None:
        return Rows(prefix, None)
    assert case.written.source is not None
    return Rows(prefix, rows.source * embedded(case.model, case.written.source))


RULES = {
    None: "gauss-legendre",
    "riemann_left": "left",
    "riemann_middle": "midpoint",
    "riemann_right": "right",
}


@pytest.mark.parametrize("rule", RULES)
def test_integrated_gradients_begin_at_the_unknown_token(case: Case, rule: str | None) -> None:
    """By Gauss–Legendre unless told otherwise, with what was generated moved along.

    The end of a sequence and the decoder's start stay. Enemies: a path from zero, and one on which
    these two are moved as well.
    """
    # by another name than its own, as inseq calls the method "method" too
    settings = {} if rule is None else {"attribution_args": {"method": rule}}
    theirs = of_inseq(case.attribute("integrated_gradients", "logit", n_steps=STEPS, **settings))

    def ours(baseline: Any, model: Any = case.model) -> Rows:
        return prefix_integrated_gradients(
            model,
            case.written,
            case.reading("logit"),
            baseline=baseline,
            steps=STEPS,
            rule=RULES[rule],
        )

    unknown = from_token(case.unknown, case.kept)
    # T5's gradients on this way are so steep that float32 alone moves them by as much
    rounded = far(ours(unknown), ours(unknown, copy.deepcopy(case.model).double()))
    assert far(ours(unknown), theirs) < tolerance(case) + 4 * rounded
    if rule is not None:
        return
    if embedded(case.model, [case.unknown]).any():  # Llama's padding is the zero vector
        zero = torch.zeros_like(embedded(case.model, [case.unknown])[0])
        assert far(ours(from_vector(zero, case.kept)), theirs) > 0.1
    if case.written.source is not None:
        assert far(ours(from_token(case.unknown)), theirs) > 0.01


def test_contrast_is_refused_along_a_path(case: Case) -> None:
    """Several steps in a batch do not fit the one row of the contrast."""
    with pytest.raises(ValueError, match="Contrastive batch size"):
        case.attribute("integrated_gradients", "contrast_logits_diff", n_steps=2)


@pytest.mark.parametrize("attributed", ["logit", "contrast_prob_diff"])
def test_occlusion_is_the_size_of_the_change(case: Case, attributed: str) -> None:
    """When the unknown token takes the place. The enemy is the signed change."""
    theirs = of_inseq(case.attribute("occlusion", attributed))
    remove = replaced(case.unknown, case.kept)
    changes = prefix_occlusion(case.model, case.written, case.reading(attributed), remove=remove)
    assert far(magnitude(changes), theirs) < tolerance(case)
    assert far(changes, theirs) > 0.5


def test_attention_is_of_the_place_that_writes(case: Case) -> None:
    """Each layer and head, as it is; the enemy is the row of the output itself, one further."""
    theirs = of_inseq(case.attribute("attention"))
    rows = prefix_attention(case.model, case.written)
    ours = Rows(
        rows.prefix.permute(0, 3, 1, 2),
        None if rows.source is None else rows.source.permute(0, 3, 1, 2),
    )
    assert far(ours, theirs) < tolerance(case)
    later = Rows(ours.prefix[1:, :-1], None)
    assert far_where_both(later, Rows(theirs.prefix[:-1, :-1], None)) > 0.1


def far_where_both(ours: Rows, theirs: Rows) -> float:
    unread = ours.prefix.isnan() | theirs.prefix.isnan()

    def read(rows: Rows) -> Rows:
        return Rows(rows.prefix.masked_fill(unread, torch.nan), None)

    return far(read(ours), read(theirs))


# ------------------------------------------------------------------------------ what is shown of it


@pytest.mark.parametrize("method", ["saliency", "input_x_gradient", "integrated_gradients"])
def test_what_is_shown_is_a_norm_over_the_sum_of_norms(case: Case, method: str) -> None:
    """Of prompt, source and prefix together: rows sum to 1, and signs are gone.

    The enemy is the sum over the embedding, which keeps the sign and is what completeness is about.
    """
    settings = {"n_steps": STEPS} if method == "integrated_gradients" else {}
    sequence = case.attribute(method, "logit", **settings)
    raw, shown = of_inseq(sequence), of_inseq(sequence.aggregate())

    norms = Rows(raw.prefix.norm(dim=-1), None if raw.source is None else raw.source.norm(dim=-1))
    assert far(divided(norms), shown) < tolerance(case)
    sums = Rows(raw.prefix.sum(-1), None if raw.source is None else raw.source.sum(-1))
    assert far(divided(sums), shown) > 0.01


def divided(rows: Rows) -> Rows:
    total = rows.prefix.nan_to_num().abs().sum(1, keepdim=True)
    if rows.source is None:
        return Rows(rows.prefix / total, None)
    total = total + rows.source.abs().sum(1, keepdim=True)
    return Rows(rows.prefix / total, rows.source / total)


def test_occlusion_is_shown_as_it_is(case: Case) -> None:
    sequence = case.attribute("occlusion", "logit")
    assert far(of_inseq(sequence), of_inseq(sequence.aggregate())) == 0


def test_attention_is_shown_as_the_mean_of_heads_and_layers(case: Case) -> None:
    """Divided by the sum over source and prefix, which is 2 where there are both."""
    sequence = case.attribute("attention")
    raw, shown = of_inseq(sequence), of_inseq(sequence.aggregate())
    sides = 1 if raw.source is None else 2
    means = Rows(
        raw.prefix.mean((-1, -2)) / sides,
        None if raw.source is None else raw.source.mean((-1, -2)) / sides,
    )
    assert far(means, shown) < tolerance(case)


@pytest.mark.parametrize("score", ["crossentropy", "perplexity"])
def test_cross_entropy_of_one_text_fails(case: Case, score: str) -> None:
    """The one target loses its axis on the way; with two texts it works."""
    with pytest.raises(ValueError, match="batch_size"):
        case.attribute("dummy", "logit", step_scores=[score])


# of causal models it reads given continuations one by one, so that no two are together
@pytest.mark.parametrize("case", at_once(("t5", "marian"), few=("marian",)), indirect=True)
def test_perplexity_is_two_to_the_nats(case: Case) -> None:
    """Which it should not be: nats want e. So there is nothing to agree with."""
    two = replace(case, prompt=[case.prompt] * 2, whole=[case.whole] * 2)
    scores = two.attribute("dummy", "logit", step_scores=["perplexity"]).step_scores
    log_probabilities = prefix_values(
        case.model, case.written, log_probability(case.written.outputs)
    )
    shown = scores["perplexity"].double()
    torch.testing.assert_close(shown, 2.0 ** -log_probabilities.double(), rtol=1e-4, atol=0)
    assert (shown / torch.exp(-log_probabilities) < 0.9).any()


# ---------------------------------------------------------------------------------- what it runs


def test_how_often_it_runs_the_model(case: Case) -> None:
    """One forward for each output, or for each output, place and side; no row is shared."""
    outputs = len(case.written.outputs)
    source = 0 if case.written.source is None else len(case.written.source)
    places = [len(case.written.prefix(output)) for output in range(outputs)]

    assert rows_of_forwards(case, "saliency") == [1] * outputs
    assert rows_of_forwards(case, "integrated_gradients", n_steps=STEPS) == [STEPS] * outputs
    # each place of prefix and source, and the text as it is
    occlusions = sum(places) + outputs * source + outputs
    assert rows_of_forwards(case, "occlusion") == [1] * occlusions


def rows_of_forwards(case: Case, method: str, **settings: Any) -> list[int]:
    """How many sequences each forward of the model had."""
    rows = []

    def count(module: Any, args: Any, kwargs: dict[str, Any]) -> None:
        rows.append(len(kwargs["inputs_embeds"]))

    handle = case.theirs.register_forward_pre_hook(count, with_kwargs=True)
    try:
        case.attribute(method, "logit", **settings)
    finally:
        handle.remove()
    return rows
