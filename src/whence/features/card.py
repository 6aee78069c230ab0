"""The card of an autoencoder: what it is, how it was made, how good it is, beside controls."""

from __future__ import annotations

from collections.abc import Sequence

from whence.core.bootstrap import Mean
from whence.core.features_quality import Fit, Quality
from whence.core.percent import digits
from whence.features.autoencoder import Autoencoder

# Said of the loss on a card, by what the model predicts.
LOSSES = {
    "next token": "cross-entropy of the next token, in nats",
    "divergence": "divergence of the output from the model's own, in nats",
    "distance": "squared distance of the last hidden states from the model's own",
}


def card(autoencoder: Autoencoder, quality: Quality, more: Sequence[str] = ()) -> str:
    """Markdown for people; ``more`` are paragraphs at the end.

    Said on the card beside the weights; of a second training where there was one.
    """
    about = autoencoder.about
    own = quality.own
    said = about.settings
    dose = f"k = {said.get('k')}" if said.get("k") else f"λ = {said.get('sparsity')}"
    centred = "with the mean taken away" if said.get("centred") else "as they are"
    is_or_are = "is" if quality.dead == 1 else "are"
    lines = [
        f"# Features of {about.model}, layer {about.layer}",
        "",
        f"A sparse autoencoder ({about.variant}, {about.size:,} features of {about.dim} "
        f"dimensions) of the residual stream after block {about.layer} of `{about.model}` "
        f"(fingerprint `{about.fingerprint}`).",
        "",
        f"- Trained for {said.get('steps'):,} steps of {said.get('batch'):,} activations, {dose}, "
        f"learning rate {said.get('learning_rate'):g}, seed {said.get('seed')}; activations "
        f"{centred}; whence {about.version}.",
        f"- Data: {about.data.get('name')}, {about.data.get('documents'):,} documents (one in "
        f"twenty held out), {about.data.get('tokens'):,} activations, passages of up to "
        f"{about.data.get('length')} tokens; digest `{about.data.get('digest')}`.",
        f"- Of {quality.size:,} features, {quality.dead:,} {is_or_are} dead (not active on any of "
        f"{quality.seen:,} training activations) and {quality.dense:,} dense (active on more than "
        "a tenth of them).",
        "",
        "## Quality on held-out text",
        "",
        f"{quality.documents:,} documents, {quality.tokens:,} tokens; 95 % intervals over "
        f"documents. The loss is {LOSSES[quality.loss]}: {quality.loss_plain:.4g} as the model is, "
        f"{quality.loss_zero:.4g} with zeros in the layer's place, {quality.loss_mean:.4g} with "
        "the mean activation. *Recovered* is 0 with zeros (with the mean) and 1 with the model's "
        "own hidden states.",
        "",
        "| what stands for the hidden states | numbers kept (L0) | variance explained | "
        "loss recovered, over zeros | over the mean |",
        "|---|---|---|---|---|",
    ]
    lines += [_row(fit, fit is own) for fit in quality.fits]
    if quality.random_model is not None:
        lines.append(_row(quality.random_model, False))
    if quality.agreement is not None:
        also = quality.agreement
        lines += [
            "",
            f"A second training, from seed {also.with_seed}, found {digits(also.share)}% of the "
            f"live features too (cosine above {also.above:g}; mean of the nearest "
            f"{also.mean_cosine:.2f}). Of random directions with the activations' correlations "
            f"{digits(also.chance)}% would be found (mean {also.chance_cosine:.2f}).",
        ]
    for paragraph in more:
        lines += ["", paragraph]
    return "\n".join(lines) + "\n"


def _row(fit: Fit, is_own: bool) -> str:
    name = f"**{fit.name}**" if is_own else fit.name
    cells = [
        name,
        _number(fit.l0, "{:.1f}"),
        _number(fit.variance_explained, "{:.3f}"),
        _number(fit.recovered, "{:.3f}"),
        _number(fit.recovered_over_mean, "{:.3f}"),
    ]
    return f"| {' | '.join(cells)} |"


def _number(mean: Mean | None, form: str) -> str:
    if mean is None:
        return "–"
    text = form.format(mean.mean)
    if mean.interval is None:
        return text
    low, high = (form.format(end) for end in mean.interval)
    return f"{text} [{low}, {high}]"
