"""Faults that reviewers found, each kept from coming back."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import jaxtyping
import numpy as np
import pytest
import torch

import whence
from tests.families import build, inputs, precise
from tests.games.tables import Table
from whence.core.comparison import Comparison
from whence.core.errors import InputError, SettingsError, TargetError, Unsupported
from whence.core.registry import Needs, find_method, settings_of
from whence.core.target import Target
from whence.games.functionals import shapley
from whence.games.scoring import Plan, score
from whence.metrics.evidence import control, evidence
from whence.trace.guard import findings
from whence.trace.trace import trace

TEXT = "the food is great but not bad"


def test_a_resolved_target_is_resolved_anew_on_a_model_with_other_labels() -> None:
    first, second = build("bert"), build("bert")
    second.hf.config.id2label = {0: "good", 1: "fair", 2: "bad"}
    there = whence.explain(first, TEXT, "gradient-x-input", target="good", evidence=False)
    here = whence.explain(second, TEXT, "gradient-x-input", target=there.target, evidence=False)
    assert (here.target.label, here.target.index) == ("good", 0)
    assert (
        here.value
        == whence.explain(second, TEXT, "gradient-x-input", target="good", evidence=False).value
    )


def test_a_resolved_target_read_as_a_margin_gets_its_rival() -> None:
    model = build("bert")
    plain = whence.explain(model, TEXT, "random", target="good", evidence=False)
    margin = whence.explain(
        model, TEXT, "random", target=plain.target, read="margin", evidence=False
    )
    assert margin.target.against is not None
    assert (
        margin.value
        == whence.explain(model, TEXT, "random", target="good", read="margin", evidence=False).value
    )


def test_a_reply_that_equals_the_text_is_not_taken_for_it() -> None:
    model = build("t5")
    same, other = (
        model.encode("the food is great", reply=r)
        for r in ("the food is great", "the food is great but")
    )
    a = whence.explain(model, same, "gradient-x-input", target=5, evidence=False)
    ids = torch.tensor(same.ids)[None]
    leaf = model.hf.shared(ids).detach().requires_grad_()
    decoder = model.batch([same]).inputs["decoder_input_ids"]
    value = model.hf(inputs_embeds=leaf, decoder_input_ids=decoder).logits[0, -1, 5]
    (slope,) = torch.autograd.grad(value, [leaf])
    expected = same.merge((slope * leaf)[0].sum(-1).detach().numpy())
    np.testing.assert_allclose(a.scores, expected, rtol=2e-3, atol=2e-3 * np.abs(expected).max())
    assert len(other.units) == len(same.units)


def test_a_reply_keeps_the_tokens_that_open_it() -> None:
    model = build("bart")
    passage = model.encode("the food", reply="not bad")
    assert passage.reply is not None
    labels = torch.tensor(passage.reply.ids)[None]
    theirs = model.hf.prepare_decoder_input_ids_from_labels(labels)[0]
    assert model.batch([passage]).inputs["decoder_input_ids"][0].tolist() == theirs.tolist()
    maps = whence.attend(model, passage)
    assert maps.from_axis["cross"].labels[:2] == ("</s>", "<s>")
    assert maps.weights["cross"].shape[2] == len(maps.from_axis["cross"].labels)


def test_predict_and_explain_agree_on_windows() -> None:
    model = build("bert")
    long = "great " * 80 + "dull " * 80
    predicted = model.predict([long], overflow="window")[0].probabilities
    assert predicted == pytest.approx(
        whence.explain(model, long, "random", overflow="window", evidence=False).prediction
    )


def test_a_passage_obeys_overflow_and_keeps_its_units() -> None:
    bert, gpt = build("bert"), build("gpt2")
    long = bert.encode("the food is great " * 40, overflow="window")
    with pytest.raises(InputError, match="positions end at 64"):
        whence.explain(bert, long, "random")
    assert (
        whence.explain(bert, long, "random", overflow="truncate", evidence=False).passage.dropped
        > 0
    )
    assert len(whence.explain(bert, long, "random", overflow="window", evidence=False).units) == 160
    with pytest.raises(InputError, match="cut into units of kind 'word'"):
        whence.explain(bert, bert.encode(TEXT), "random", units="sentence")
    with pytest.raises(InputError, match="a language model predicts a token"):
        gpt.encode("the food is great " * 40, overflow="window")


@pytest.mark.parametrize(
    ("target", "method"),
    [(None, "gradient-x-input"), ("good", "gradient-x-input"), (None, "integrated-gradients")],
)
def test_the_cost_of_windows_counts_every_pass(target: Any, method: str) -> None:
    model = build("bert")
    assert findings(model)  # the guard's own passes are nobody's cost
    counted = [0]
    handle = model.hf.register_forward_hook(
        lambda _m, _a, out: counted.__setitem__(0, counted[0] + len(out.logits))
    )
    a = whence.explain(
        model, "the food is great " * 40, method, target=target, overflow="window", evidence=False
    )
    handle.remove()
    assert a.cost.forwards == counted[0]


def test_the_gap_of_windows_is_that_of_the_whole() -> None:
    model, _ = precise("bert")
    long = "the food is great but not bad " * 30
    a = whence.explain(
        model,
        long,
        "integrated-gradients",
        overflow="window",
        baseline="zero",
        tolerance=0.1,
        evidence=False,
    )
    parts = model.windows(model.encode(long, overflow="window"))
    change = 0.0
    for part in parts:
        zero = whence.explain(
            model,
            part,
            "integrated-gradients",
            baseline="zero",
            target=a.target,
            tolerance=1e-8,
            max_nodes=512,
            evidence=False,
        )
        change += zero.scores.sum() / len(parts)
    assert a.error is not None
    assert a.error.completeness_gap == pytest.approx(
        abs(a.scores.sum() - change) / abs(change), rel=1e-3, abs=1e-7
    )


def test_methods_that_rerun_say_that_they_used_the_models_own_attention() -> None:
    c = whence.compare(build("bert"), TEXT, ["attention-mean", "integrated-gradients"])
    assert c["attention-mean"].provenance.attention == "captured (eager)"
    assert c["integrated-gradients"].provenance.attention == "sdpa"


def test_images_get_random_scores_of_their_own() -> None:
    model = build("vit")
    a, b = (whence.explain(model, p, "random", evidence=False).scores for p in inputs(model, 2))
    assert not np.array_equal(a, b)


def test_smooth_grad_does_not_depend_on_torchs_default_dtype() -> None:
    model = build("bert")
    plain = whence.explain(model, TEXT, "smooth-grad", evidence=False).scores
    torch.set_default_dtype(torch.float64)
    try:
        assert np.array_equal(
            whence.explain(model, TEXT, "smooth-grad", evidence=False).scores, plain
        )
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.usefixtures("without_onednn")
def test_a_mean_gradient_of_zero_is_seen_in_half_precision_too() -> None:
    model = build("bert")
    model.hf.bfloat16()
    a = whence.explain(model, TEXT, "gradient-mean", evidence=False)
    assert a.error is not None
    assert "zero by construction" in a.error.note


def test_two_classes_of_one_name_stay_two() -> None:
    model = build("bert")
    model.hf.config.id2label = {0: "same", 1: "same", 2: "good"}
    assert sum(
        whence.explain(model, TEXT, "random", evidence=False).prediction.values()
    ) == pytest.approx(1)


def test_a_decoder_that_classifies_without_a_pad_token_can_be_rerun() -> None:
    model = build("llama-classifier")
    model.hf.config.pad_token_id = None
    assert np.isfinite(
        whence.explain(
            model, TEXT, "integrated-gradients", nodes=4, max_nodes=4, evidence=False
        ).scores
    ).all()


def test_inference_mode_of_the_callers_is_no_obstacle() -> None:
    model = build("bert")
    plain = whence.compare(model, TEXT)
    with torch.inference_mode():
        inside = whence.compare(model, TEXT)
    for name in plain:
        np.testing.assert_allclose(inside[name].scores, plain[name].scores, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("seed", [-1, 10**23])
def test_a_seed_out_of_range_is_refused(seed: int) -> None:
    with pytest.raises(SettingsError, match="a seed is a whole number"):
        whence.explain(build("bert"), TEXT, "random", seed=seed)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "nan"])
def test_a_setting_that_is_no_number_is_refused(value: Any) -> None:
    with pytest.raises(SettingsError, match="a finite number is needed"):
        whence.explain(build("bert"), TEXT, "integrated-gradients", tolerance=value)


def test_a_comparison_survives_its_file(tmp_path: Any) -> None:
    c = whence.compare(build("bert"), TEXT, ["gradient-l2", "random"])
    again = whence.read(c.save(tmp_path / "c.json"))
    assert again.to_dict() == json.loads(json.dumps(c.to_dict()))
    assert isinstance(again, Comparison)
    assert list(again) == list(c)


def test_a_name_instead_of_a_model_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    # a user has no type checker in between
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(InputError, match="a loaded model, not a str"):
        whence.explain("sentiment", TEXT)  # type: ignore[call-overload]


def test_a_part_of_a_model_loaded_on_its_own_has_its_own_names() -> None:
    model = build("bert")
    whence.attend(model, TEXT)
    part = whence.load(model.hf.bert, tokenizer=model.tokenizer)
    assert whence.attend(part, TEXT).modules["encoder"][0] in dict(model.hf.bert.named_modules())


def test_targets_are_still_explicit_after_a_change_of_reading() -> None:
    target = Target("good", index=2)
    assert replace(target, read="probability").describe() == "probability of good"


# ------------------------------------------------------------- a hunt for wrong numbers in issue 3


def test_another_thread_of_the_caller_s_does_not_take_the_embeddings() -> None:
    import threading

    model = build("bert")
    passage = model.encode("the food is great")
    alone = whence.explain(model, passage, "gradient-x-input", evidence=False).scores
    other = model.batch([model.encode("not bad")]).inputs
    shapes: list[tuple[int, ...]] = []

    def run() -> None:
        with torch.no_grad():
            shapes.append(tuple(model.hf(**other).logits.shape))

    def interrupt(*_: object) -> None:
        if threading.current_thread() is threading.main_thread():
            thread = threading.Thread(target=run)
            thread.start()
            thread.join()

    hook = model.hf.bert.embeddings.register_forward_pre_hook(interrupt)
    try:
        disturbed = whence.explain(model, passage, "gradient-x-input", evidence=False).scores
    finally:
        hook.remove()
    np.testing.assert_allclose(disturbed, alone, atol=1e-7)
    assert set(shapes) == {(1, 3)}


def test_effects_and_arbitration_of_a_masked_model_are_read_where_it_is_masked() -> None:
    model = build("bert-mlm")
    text = "the food is great"
    first, second = (
        whence.attend(model, text, effects=True, target=whence.Target(7, at=k)).effects["encoder"]
        for k in (1, 3)
    )
    assert not np.allclose(first["value_change"], second["value_change"])
    filled = model.fill(model.encode(text), 1)
    given = whence.attend(model, filled, effects=True, target=7).effects["encoder"]
    np.testing.assert_allclose(first["value_change"], given["value_change"], atol=1e-6)
    with pytest.raises(TargetError, match="say which"):
        whence.attend(model, text, effects=True, target=7)
    with pytest.raises(TargetError, match="say which"):
        whence.arbitrate(model, [text], target=7)


def test_a_decoder_without_a_pad_token_has_effects_too() -> None:
    model = build("gpt2-classifier")
    padded = whence.attend(model, "the food is great", effects=True).effects["decoder"]
    model.hf.config.pad_token_id = None
    alone = whence.attend(model, "the food is great", effects=True).effects["decoder"]
    np.testing.assert_allclose(alone["value_change"], padded["value_change"], atol=1e-5)


def test_what_follows_a_pair_belongs_to_its_second_text() -> None:
    maps = whence.attend(build("gpt2"), "the food", pair=" is bad", generate=3, units="token")
    assert maps.special_share().max() == 0
    assert "".join(maps.passage.units) == maps.passage.text + (maps.passage.pair or "")


@pytest.mark.parametrize(
    "wish",
    [{"use_cache": False}, {"cache_implementation": "static"}, {"return_dict_in_generate": True}],
)
@pytest.mark.parametrize("family", ["gpt2", "t5"])
def test_the_model_s_own_generation_settings_do_not_break_the_stitching(
    family: str, wish: dict
) -> None:
    model = build(family)
    plain = whence.attend(model, "the food is great", generate=4, units="token")
    model.hf.generation_config.update(**wish)
    maps = whence.attend(model, "the food is great", generate=4, units="token")
    for kind in maps.kinds:
        assert maps.weights[kind].shape[2:] == (len(maps.from_axis[kind]), len(maps.to_axis[kind]))
        np.testing.assert_allclose(maps.weights[kind], plain.weights[kind], atol=1e-6)


def test_writing_beyond_the_positions_is_refused() -> None:
    with pytest.raises(InputError, match="beyond the model's 64 positions"):
        whence.attend(build("gpt2"), "the food is great", generate=200)


def test_few_units_get_no_verdict_and_scale_does_not_matter() -> None:
    from whence.metrics.held_out import correlation, subsets

    model = build("bert")
    assert (
        whence.explain(model, "not bad prices", "attention-arbiter", evidence=False).evidence
        is None
    )
    rng = np.random.default_rng(0)
    removed, w = subsets(6, 20, rng), rng.random(6)
    fallen = removed @ rng.random(6)
    assert float(correlation(w, removed, fallen)) == pytest.approx(
        float(correlation(w * 1e-4, removed, fallen * 1e-9))
    )


@pytest.mark.parametrize("family", ["gpt-oss", "bert"])
@pytest.mark.parametrize("method", ["attention-mean", "attention-max"])
def test_the_residual_of_a_mean_row_is_mixed_in_row_by_row(family: str, method: str) -> None:
    model = build(family)
    passage = model.encode("the food is great")
    (maps,) = trace(model, [passage], needs=Needs.ATTENTION).attentions.values()
    last = maps[-1][0].double().numpy()
    a = last.mean(0) if method == "attention-mean" else last.max(0)
    mixed = (a + np.eye(len(a))) / (a.sum(-1, keepdims=True) + 1)
    scores = whence.explain(
        model, passage, method, row="mean", residual=True, evidence=False
    ).scores
    np.testing.assert_allclose(scores, passage.merge(mixed.mean(0)), atol=1e-6)


def test_breadth_knows_windows_and_sinks() -> None:
    maps = whence.attend(build("gpt-oss"), "the food is great", units="token")
    assert maps.heads()["breadth"].max() <= 1 + 1e-6
    local = np.zeros((2, 1, 6, 6), dtype=np.float32)
    local[0, 0] = 1 / 6
    for i in range(6):
        local[1, 0, i, max(0, i - 1) : i + 1] = 1 / (i - max(0, i - 1) + 1)
    from whence.core.heads import measured

    t = measured(local, list("abcdef"), np.zeros(6, dtype=bool))
    np.testing.assert_allclose(t["breadth"], 1)


def test_neurons_follow_the_order_of_the_kept_layers_and_heads() -> None:
    model = build("bert")
    whole = whence.attend(model, "the food", units="token", neurons=True).neurons["encoder"]
    maps = whence.attend(
        model, "the food", units="token", neurons=True, layers=[1, 0], heads=[3, 1]
    )
    part = maps.neurons["encoder"]
    np.testing.assert_array_equal(part.query, whole.query[[1, 0]][:, [3, 1]])
    np.testing.assert_array_equal(part.key, whole.key[[1, 0]][:, [3, 1]])


def test_a_square_cross_map_has_no_residual() -> None:
    model = build("bart")
    maps = whence.attend(model, "the food is", reply="the food is", units="token")
    for refused in (lambda: maps.rollout("cross"), lambda: maps.aggregate("product", kind="cross")):
        with pytest.raises(SettingsError, match="looks from one text at another"):
            refused()
    assert "previous" not in maps.heads("cross").columns


def test_provenance_says_whose_attention_it_was() -> None:
    model = build("bert")
    for method, attention in (
        ("attn-lrp", "captured (eager)"),
        ("attention-arbiter", "captured (eager)"),
        ("integrated-gradients", "sdpa"),
    ):
        assert (
            whence.explain(model, "the food is great", method, evidence=False).provenance.attention
            == attention
        )


def test_labels_of_an_arbitration_are_the_predicted_ones() -> None:
    model = build("bert")
    texts = [
        "the food is great but not the service",
        "not bad prices",
        "I didn't like it, it's dull",
        "great food and great service",
    ]
    choices = whence.arbitrate(model, texts, scope="label", target="good", held_out=4)
    assert {choice.group for choice in choices} == {p.label for p in model.predict(texts)}
    with pytest.raises(InputError, match="a list of texts"):
        whence.arbitrate(model, "one text")


@pytest.mark.usefixtures("without_onednn")
def test_half_precision_is_told_where_it_ruins_the_rules() -> None:
    model = build("bert")
    model.hf.to(torch.bfloat16)
    a = whence.explain(model, "the food is great", "transformer-attribution", evidence=False)
    assert a.error is not None
    assert "float32" in a.error.note


def test_none_on_the_command_line_is_no_word() -> None:
    """``--bandwidth none`` was refused as no number; only Python could ask for an infinite one."""
    settings = settings_of(find_method("lime"), {"bandwidth": "none"})
    assert settings.bandwidth is None


def test_two_replies_are_two_games() -> None:
    """``judge`` held the second reply's scores against the first one's game."""
    model = build("t5")
    replies = [model.encode("the food is great", reply=r) for r in ("not bad", "prices are great")]
    attributions = [
        whence.explain(model, p, "occlusion", target=5, evidence=False) for p in replies
    ]
    _, together = whence.judge(model, attributions)
    alone = whence.judge(model, attributions[1])
    assert together.evidence.trials == alone.evidence.trials
    unperturbed = together.evidence.trial("delete").curves.deletion[0]
    assert unperturbed == pytest.approx(attributions[1].value, abs=1e-5)


def test_a_decoder_without_padding_is_not_read_at_it() -> None:
    """Without a padding id a GPT-2 classifier read the removed token at the end."""
    model = build("gpt2-classifier")
    model.hf.config.pad_token_id = None
    with pytest.raises(Unsupported, match="'delete'"):
        whence.game(model, TEXT, removal="pad")
    a = whence.explain(model, TEXT, "occlusion", evidence=True)
    assert a.evidence is not None
    assert {trial.removal for trial in a.evidence.trials} == {"delete", "mean"}


def test_too_few_masks_have_no_standard_error_of_nothing() -> None:
    """A regression with as many units as masks fitted exactly, and told an error of 1e-16."""

    class Interaction:
        size = 20

        def __call__(self, masks: np.ndarray) -> np.ndarray:
            z = masks.astype(float)
            return z[:, 0] * z[:, 1] * z[:, 2] + z[:, 3]

    scores = score(Interaction(), shapley(20), Plan(budget=30))
    assert scores.standard_error is not None
    truth = np.zeros(20)
    truth[:4] = [1 / 3, 1 / 3, 1 / 3, 1]
    assert scores.units is not None
    off = np.abs(scores.units - truth).max()
    assert scores.standard_error.max() > off / 10
    with pytest.raises(SettingsError, match="by chance"):
        score(Interaction(), shapley(20), Plan(samples=30), "plain")


def test_windows_count_the_look_for_the_target() -> None:
    """A forward for each window finds the class that they predict; black boxes left it out."""
    model = build("bert")
    long = "the food is great " * 20
    free = whence.explain(model, long, "occlusion", overflow="window", evidence=False)
    named = whence.explain(
        model, long, "occlusion", overflow="window", target=free.target.label, evidence=False
    )
    windows = model.windows(model.encode(long, overflow="window"))
    assert free.cost.forwards - named.cost.forwards == len(windows)
    judged = whence.explain(model, long, "occlusion", overflow="window", evidence=True)
    assert judged.evidence is not None
    assert len(judged.evidence.windows) == len(windows)


def test_evidence_counts_every_pass() -> None:
    """The passes of the random rankings were in no number of an attribution."""
    model, seen = build("bert"), []
    assert findings(model)  # the guard's own passes are nobody's cost
    hook = model.hf.register_forward_pre_hook(
        lambda _m, _a, k: seen.append(len(k["input_ids"])), with_kwargs=True
    )
    a = whence.explain(model, TEXT, "occlusion", evidence=True)
    hook.remove()
    assert a.evidence is not None
    second_game = 1  # which begins with a plain prediction of its own
    assert sum(seen) == a.cost.forwards + a.evidence.forwards + second_game


def test_evidence_has_no_scale() -> None:
    """Ties were counted to 1e-9 in absolute terms, the size of a rare token's probability."""
    v = Table(12, lambda masks: 1e-14 * masks @ np.arange(12.0))
    p = evidence(np.arange(12.0), True, [control(v)]).p
    assert p is not None
    assert p < 0.05


@pytest.mark.parametrize("removals", [[], "mask"])
def test_removals_are_a_list_of_names(removals: Any) -> None:
    """An empty list was an IndexError, a name alone was read letter by letter."""
    model = build("bert")
    a = whence.explain(model, TEXT, "random", evidence=False)
    with pytest.raises(InputError, match="list of names"):
        whence.judge(model, a, removals=removals)


def test_a_budget_is_no_more_than_that() -> None:
    """Ten units were enumerated, 1024 passes, whatever the budget said."""
    a = whence.explain(
        whence.load("sentiment"), "a b c d e f g h i j", "lime", budget=50, evidence=False
    )
    assert a.cost.forwards <= 51
