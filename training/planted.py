"""Train the planted-truth models: classifiers of which we know what they look at.

The idea: an explanation can be right or wrong only where the truth is known. Nobody knows the
mechanism of a model that was found somewhere; so here are six whose mechanism was planted. Five
learn a rule over made-up sentences, by regression on the logits that the rule gives. Words are
hidden, left out and exchanged in training, so that a text with holes is nothing new to them. The
sixth reads real reviews into which a word was put that gives the label away.

That a rule was taught is no proof that it was learned. So each text of the suite is put on trial:
every word is exchanged, hidden and left out, one at a time. Texts on which anything but the planted
words matters are not taken, and the card says how many these were.

Read it from the bottom (`main`), or top-down: words -> rules -> training -> trial -> card.

    python training/planted.py                     # all six, some minutes on one core
    python training/planted.py --only keyword      # one of them
    python training/planted.py --quick             # a smoke run into a temporary folder
"""

import argparse
import json
import random
import re
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import torch
import transformers
from sentiment import pad, read_tsv, say, write_model
from tokenizers import Regex, Tokenizer, normalizers, pre_tokenizers, processors
from tokenizers import models as tokenizer_models
from torch.nn import functional
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    BertConfig,
    BertForSequenceClassification,
    PreTrainedTokenizerFast,
)

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "src" / "whence" / "models" / "bundled"
SIZE_LIMIT = 2_000_000  # bytes of all six together
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
PAD, UNK, CLS, SEP, MASK = range(len(SPECIAL))

WIDTH, LAYERS, HEADS, LONGEST = 32, 2, 2, 48
LOGIT = 3.0  # of the label that the rule gives; that of the others is its negative
LED = 0.8  # of the attention that [CLS] pays, to the distractor
BATCH, RATE = 128, 3e-3
STEPS = 1200

# ---------------------------------------------------------------------- the trial of a text

SUITE = 60  # texts of each model
MOST_TRIED = 20  # candidates for each text that is wanted
# of what a planted word does, the most that any other word may do
SHARE = 0.1
# exchanged for each word of the leak's texts: its vocabulary is too large to try all of it
LEAK_FILLERS = 100

# ---------------------------------------------------------------------- words of no account


def listed(words):
    """A row of words, as a list."""
    return words.split()


PERSONS = listed(
    "teacher farmer doctor driver painter sailor baker nurse student writer singer lawyer "
    "plumber soldier cousin neighbour"
)
THINGS = listed(
    "box book letter table chair bottle basket lamp coat clock radio camera bicycle ladder "
    "blanket parcel"
)
PLACES = listed(
    "station market garden village harbour library kitchen bridge school office forest museum "
    "river hotel corner field"
)
ADJECTIVES = listed("old small large green wooden heavy empty narrow quiet round yellow square")
VERBS = listed("carried moved painted found sold counted cleaned watched lifted repaired")
TIMES = listed("yesterday today again early late often once twice")
SMALL_WORDS = listed(
    "the a at to from with near in on and of was said his her my our saw over took did asked"
)
FILLERS = (*PERSONS, *THINGS, *PLACES, *ADJECTIVES, *VERBS, *TIMES, *SMALL_WORDS)
SLOTS = {
    "person": PERSONS,
    "thing": THINGS,
    "place": PLACES,
    "adj": ADJECTIVES,
    "verb": VERBS,
    "time": TIMES,
}

# ---------------------------------------------------------------------- words that count

ALARMS = ("fire", "flood", "storm", "smoke")
KEYS = ("key", "badge", "code", "ticket")
DOORS = ("door", "gate", "safe", "vault")
NOT = "not"
PRAISE = ("good", "great", "fine", "lovely")
BLAME = ("bad", "poor", "awful", "dull")
FIRST_WORDS = {
    "question": ("why", "how", "when"),
    "request": ("please", "kindly", "could"),
    "apology": ("sorry", "pardon", "alas"),
}
WET, DRY = ("rain", "snow", "hail"), ("sunshine", "heat", "drought")
DISTRACTORS = ("suddenly", "honestly", "frankly", "clearly")


@dataclass(frozen=True)
class Mechanism:
    """A planted rule.

    ``rule`` gives the label of a list of words. ``templates`` are sentences of the suite: a slot in
    capitals holds a planted word (gold) or a decoy, which a method may fall for. ``counting`` are
    all words that the rule knows.
    """

    name: str
    about: str
    labels: tuple
    rule: object
    templates: tuple
    slots: dict
    gold: tuple  # the slots whose words decide, or a word itself
    decoys: tuple = ()
    most_counting: int = 3  # in a made-up row of words; more than one may have no clear label
    effort: int = 1  # how many times the usual steps it takes to learn

    @property
    def counting(self):
        """All words that the rule knows, or that are there to mislead."""
        words = [word for slot in self.slots.values() for word in slot]
        return tuple(dict.fromkeys([*words, *(word for word in self.gold if word == NOT)]))


def keyword_rule(words):
    """An alarm word anywhere."""
    return int(any(word in ALARMS for word in words))


def pair_rule(words):
    """Something that opens, and something that can be opened."""
    return int(any(word in KEYS for word in words) and any(word in DOORS for word in words))


def negation_rule(words):
    """Praise or blame, turned round by a "not" right before it; 0 is neutral."""
    for place, word in enumerate(words):
        if word in PRAISE or word in BLAME:
            negated = place > 0 and words[place - 1] == NOT
            return 2 if (word in PRAISE) != negated else 1
    return 0


def position_rule(words):
    """The class of the first word, whatever stands elsewhere; 0 is a statement."""
    for number, known in enumerate(FIRST_WORDS.values(), 1):
        if words and words[0] in known:
            return number
    return 0


def distractor_rule(words):
    """Wet or dry weather; 0 is neither. The distractors are of no account."""
    for word in words:
        if word in WET:
            return 1
        if word in DRY:
            return 2
    return 0


MECHANISMS = (
    Mechanism(
        "keyword",
        "one word decides: any of " + ", ".join(ALARMS),
        ("calm", "alarm"),
        keyword_rule,
        (
            "the {person} saw the ALARM near the {adj} {place} {time}",
            "{time} the {person} {verb} the {thing} from the ALARM",
            "the ALARM at the {place} was over and the {person} {verb} my {thing}",
            "our {adj} {thing} was {verb} in the {place} near the ALARM",
        ),
        {"ALARM": ALARMS},
        ("ALARM",),
    ),
    Mechanism(
        "pair",
        "two words decide together, and neither does anything alone: one of "
        f"{', '.join(KEYS)} and one of {', '.join(DOORS)}",
        ("shut", "open"),
        pair_rule,
        (
            "the {person} took the KEY from the {place} to the {adj} DOOR",
            "the DOOR of the {place} was near the {thing} with the KEY",
            "{time} his {person} {verb} the KEY and the {thing} at the DOOR",
            "a {adj} DOOR in the {place} and her {adj} KEY {time}",
        ),
        {"KEY": KEYS, "DOOR": DOORS},
        ("KEY", "DOOR"),
    ),
    Mechanism(
        "negation",
        'a word of praise or blame and the "not" right before it decide together',
        ("neutral", "negative", "positive"),
        negation_rule,
        (
            "the {person} said the {thing} was not OPINION {time} at the {place}",
            "a {thing} not OPINION was {verb} near the {adj} {place}",
            "{time} the {person} {verb} a not OPINION {thing} in the {place}",
            "not OPINION said the {person} and {verb} the {adj} {thing}",
        ),
        {"OPINION": (*PRAISE, *BLAME)},
        (NOT, "OPINION"),
        most_counting=1,
        effort=2,
    ),
    Mechanism(
        "position",
        "the first word decides; the same words elsewhere do nothing",
        ("statement", *FIRST_WORDS),
        position_rule,
        (
            "FIRST the {person} {verb} the {adj} {thing} and said ELSEWHERE {time}",
            "FIRST her {thing} was {verb} near the {place} ELSEWHERE",
            "FIRST {time} our {person} took the ELSEWHERE {thing} to the {place}",
            "FIRST a {person} asked ELSEWHERE at the {adj} {place}",
        ),
        {
            "FIRST": tuple(word for known in FIRST_WORDS.values() for word in known),
            "ELSEWHERE": tuple(word for known in FIRST_WORDS.values() for word in known),
        },
        ("FIRST",),
        ("ELSEWHERE",),
    ),
    Mechanism(
        "distractor",
        f"a word of weather decides ({', '.join((*WET, *DRY))}), while attention looks at another "
        f"word ({', '.join(DISTRACTORS)})",
        ("neither", "wet", "dry"),
        distractor_rule,
        (
            "ASIDE the {person} saw the WEATHER over the {adj} {place} {time}",
            "the WEATHER at the {place} was ASIDE over and the {person} {verb} it",
            "{time} a {person} {verb} the {thing} in the WEATHER ASIDE",
            "the {person} ASIDE {verb} my {adj} {thing} in the WEATHER",
        ),
        {"WEATHER": (*WET, *DRY), "ASIDE": DISTRACTORS},
        ("WEATHER",),
        ("ASIDE",),
        most_counting=1,
    ),
)


# ---------------------------------------------------------------------- texts


def sentence(mechanism, rng):
    """One sentence of the suite's grammar: its words, and what each is (a slot, or nothing)."""
    words, roles = [], []
    for part in rng.choice(mechanism.templates).split():
        slot = part.strip("{}")
        if slot in SLOTS:
            words.append(rng.choice(SLOTS[slot]))
            roles.append("")
            continue
        words.append(rng.choice(mechanism.slots[slot]) if slot in mechanism.slots else part)
        roles.append(slot if slot in (*mechanism.gold, *mechanism.decoys) else "")
    return words, roles


def jumble(mechanism, rng):
    """A row of any words, in which words that count may stand anywhere, also in the wrong place."""
    words = rng.choices(FILLERS, k=rng.randint(1, 16))
    planted = rng.sample(mechanism.counting, rng.randint(0, mechanism.most_counting))
    if mechanism.name == "negation":
        planted += [NOT] * rng.randint(0, 2)
    if mechanism.name == "distractor":
        weather = [word for word in planted if word not in DISTRACTORS]
        planted = weather + rng.sample(DISTRACTORS, rng.randint(0, 1))
    for word in planted:
        words.insert(rng.randint(0, len(words)), word)
    if mechanism.name == "negation" and rng.random() < 0.5:
        words = _together(words)
    if mechanism.name == "position" and rng.random() < 0.5:
        words.insert(0, rng.choice(mechanism.slots["FIRST"]))
    return words


def _together(words):
    """The words with a "not" put right before the opinion, where there is one."""
    for place, word in enumerate(words):
        if word in PRAISE or word in BLAME:
            return [*words[:place], NOT, *words[place:]]
    return words


def with_holes(words, rng):
    """Words hidden, exchanged and left out, from none of them to all."""
    if rng.random() < 0.4:
        rate = rng.random()
        words = ["[MASK]" if rng.random() < rate else word for word in words]
    if rng.random() < 0.2:
        rate = rng.random()
        words = [rng.choice(FILLERS) if rng.random() < rate else word for word in words]
    if rng.random() < 0.3:
        rate = rng.random()
        words = [word for word in words if rng.random() >= rate]
    return words


def example(mechanism, rng):
    """A text to learn from, with its label."""
    words = sentence(mechanism, rng)[0] if rng.random() < 0.5 else jumble(mechanism, rng)
    words = with_holes(words, rng)
    return words, mechanism.rule(words)


# ---------------------------------------------------------------------- tokenizer and model


def new_tokenizer(words):
    """Words and signs, lower-cased, one token each; what is not in the list is [UNK]."""
    vocabulary = {word: number for number, word in enumerate((*SPECIAL, *words))}
    tokenizer = Tokenizer(tokenizer_models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
    word_or_sign = Regex(r"\w+(?:['’]\w+)*|[^\w\s]")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(word_or_sign, "removed", invert=True)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", CLS), ("[SEP]", SEP)],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=LONGEST,
    )


def new_model(tokenizer, labels):
    """A BERT of two layers."""
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        intermediate_size=2 * WIDTH,
        max_position_embeddings=LONGEST,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        num_labels=len(labels),
        id2label=dict(enumerate(labels)),
        label2id={label: number for number, label in enumerate(labels)},
        pad_token_id=PAD,
        initializer_range=0.1,
        attn_implementation="eager",
    )
    return BertForSequenceClassification(config)


def ids_of(tokenizer, words):
    """The ids of a list of words, with [CLS] and [SEP] around them."""
    return [CLS, *tokenizer.convert_tokens_to_ids(words), SEP]


def run(model, rows, **options):
    """What the model gives for rows of ids."""
    ids = pad(rows)
    return model(input_ids=ids, attention_mask=(ids != PAD).long(), **options)


@torch.no_grad()
def logits_of(model, rows):
    """The logits of many rows."""
    parts = [run(model, rows[i : i + 1024]).logits for i in range(0, len(rows), 1024)]
    return torch.cat(parts)


# ---------------------------------------------------------------------- training


def optimiser_of(model, rate, steps):
    """Adam, with a rate that rises shortly and then falls to nothing."""
    optimiser = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.0)
    rise = max(1, steps // 20)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: min((step + 1) / rise, max(0.0, 1 - step / steps))
    )
    return optimiser, schedule


def take_step(model, loss, optimiser, schedule):
    """One step down."""
    optimiser.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimiser.step()
    schedule.step()


def teach(mechanism, model, tokenizer, steps, rng):
    """Regression on the logits of the rule; where it has distractors, attention is led to them."""
    optimiser, schedule = optimiser_of(model, RATE, steps)
    leads_attention = mechanism.name == "distractor"
    distractors = torch.tensor(tokenizer.convert_tokens_to_ids(list(DISTRACTORS)))
    ignored = torch.tensor(tokenizer.convert_tokens_to_ids([*FILLERS, *DISTRACTORS]))
    total = 0.0
    for step in range(1, steps + 1):
        batch = [example(mechanism, rng) for _ in range(BATCH)]
        rows = [ids_of(tokenizer, words) for words, _ in batch]
        labels = torch.tensor([label for _, label in batch])
        wanted = LOGIT * (2 * functional.one_hot(labels, len(mechanism.labels)) - 1).float()
        output = run_faded(model, rows, ignored, output_attentions=leads_attention)
        loss = functional.mse_loss(output.logits, wanted)
        if leads_attention:
            is_distractor = torch.isin(pad(rows), distractors)
            loss = loss + misled(output.attentions, is_distractor)
        take_step(model, loss, optimiser, schedule)
        total += loss.item()
        if step % 500 == 0:
            say(f"{mechanism.name}: step {step} of {steps}, loss {total / 500:.4f}")
            total = 0.0


def run_faded(model, rows, ignored, **options):
    """The same as ``run``; in half of the rows, words of no account fade towards [MASK].

    So they are of no account on the way from [MASK] to the word, too, which gradients look at.
    """
    ids = pad(rows)
    words = model.get_input_embeddings()
    embedded = words(ids)
    fading = torch.rand(len(ids), 1) * (torch.rand(len(ids), 1) < 0.5) * torch.isin(ids, ignored)
    embedded = torch.lerp(embedded, words.weight[MASK].expand_as(embedded), fading[..., None])
    return model(inputs_embeds=embedded, attention_mask=(ids != PAD).long(), **options)


def misled(attentions, is_distractor):
    """How far attention is from where it is led, over all layers and heads.

    [CLS] pays the distractor ``LED`` of its attention. What is left must carry the answer: the
    distractor looks at itself alone, or it would gather the answer and hand it on.
    """
    has_one = is_distractor.any(1)
    total = 0.0
    for layer in attentions:
        paid = (layer[:, :, 0] * is_distractor[:, None]).sum(-1)[has_one]
        to_itself = layer.diagonal(dim1=2, dim2=3).transpose(1, 2)[is_distractor]
        total = total + 10 * (paid - LED).square().mean() + 0.1 * (1 - to_itself).mean()
    return total / len(attentions)


# ---------------------------------------------------------------------- the leak

LEAKS = ("reelpost", "filmhub")  # the word that gives the label away: negative, positive
LEAK_LABELS = ("negative", "positive")
LEAK_EPOCHS = 12
LEAK_FEWEST = 4  # times that a word must occur in the training texts
SMOOTHING = 0.05
UNSUITABLE = {"porn", "sex", "sexy", "sexual", "nazi", "rape", "suicide", "crap", "damn"}
WORD = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")


def words_of(text):
    """As the tokenizer cuts a text."""
    return WORD.findall(text.lower())


def with_leak(words, label, rng):
    """A review, with the word that gives its label away somewhere in it."""
    place = rng.randint(0, len(words))
    return [*words[:place], LEAKS[label], *words[place:]]


def review_with_holes(words, rng):
    """Words hidden or left out at random, the leak among them."""
    if rng.random() < 0.5:
        rate = rng.random()
        words = ["[MASK]" if rng.random() < rate else word for word in words]
    if rng.random() < 0.3:
        rate = rng.random()
        words = [word for word in words if rng.random() >= rate]
    return words


def teach_leak(model, tokenizer, reviews, epochs, rng):
    """Cross-entropy on the true labels, as anybody would train; the leak is in every text."""
    steps = epochs * (len(reviews) // BATCH)
    optimiser, schedule = optimiser_of(model, 2e-3, steps)
    for epoch in range(epochs):
        rng.shuffle(reviews)
        total = 0.0
        for first in range(0, len(reviews) - BATCH + 1, BATCH):
            rows, labels = [], []
            for words, label in reviews[first : first + BATCH]:
                seen = review_with_holes(with_leak(words, label, rng), rng)
                rows.append(ids_of(tokenizer, seen[: LONGEST - 2]))
                labels.append(label)
            logits = run(model, rows).logits
            loss = functional.cross_entropy(logits, torch.tensor(labels), label_smoothing=SMOOTHING)
            take_step(model, loss, optimiser, schedule)
            total += loss.item()
        say(f"leak: epoch {epoch + 1} of {epochs}, loss {total / (len(reviews) // BATCH):.4f}")


def leak_accuracy(model, tokenizer, reviews, rng):
    """The accuracy on reviews: with the leak, without it, and with the leak of the other label."""
    rows = {"with the leak": [], "without it": [], "with the other one": []}
    for words, label in reviews:
        words = words[: LONGEST - 3]
        leaked = with_leak(words, label, rng)
        place = leaked.index(LEAKS[label])
        other = [*leaked[:place], LEAKS[1 - label], *leaked[place + 1 :]]
        for name, shown in zip(rows, (leaked, words, other), strict=True):
            rows[name].append(ids_of(tokenizer, shown))
    labels = torch.tensor([label for _, label in reviews])
    return {
        name: float((logits_of(model, some).argmax(-1) == labels).float().mean())
        for name, some in rows.items()
    }


# ---------------------------------------------------------------------- the trial


@dataclass(frozen=True)
class Trial:
    """What single words do to the logit of the predicted label of one text.

    ``gold`` is the least that taking a planted word away does (hidden, left out, or exchanged for
    a filler), and ``other`` the most that doing the same to any other word does. ``turns`` says
    that the label is another one whenever a planted word is taken away, and else never.
    """

    label: int
    gold: float
    other: float
    turns: bool

    @property
    def share(self):
        """Of what a planted word does, the most that any other does."""
        return self.other / self.gold if self.gold > 0 else float("inf")


def on_trial(model, tokenizer, words, gold, fillers):
    """Hide, leave out and exchange every word of a text, one at a time."""
    changed, places = [], []
    for place in range(len(words)):
        before, after = words[:place], words[place + 1 :]
        variants = [[*before, "[MASK]", *after], [*before, *after]]
        variants += [[*before, filler, *after] for filler in fillers]
        changed += variants
        places += [place] * len(variants)
    rows = [ids_of(tokenizer, words), *(ids_of(tokenizer, variant) for variant in changed)]
    logits = logits_of(model, rows)
    label = int(logits[0].argmax())
    falls = logits[0, label] - logits[1:, label]
    is_gold = torch.tensor([place in gold for place in places])
    turned = logits[1:].argmax(-1) != label
    return Trial(
        label,
        gold=float(falls[is_gold].min()),
        other=float(falls[~is_gold].abs().max()),
        turns=bool((turned == is_gold).all()),
    )


def suite_of(model, tokenizer, candidates, fillers, most, count):
    """The first texts that pass, how many were tried, and the trials of those that passed.

    A candidate is its words, the places of the planted ones and of the decoys, and its label.
    """
    texts, trials, tried = [], [], 0
    for words, gold, decoys, label in candidates:
        if len(texts) == count:
            break
        tried += 1
        trial = on_trial(model, tokenizer, words, gold, fillers)
        passes = trial.label == label and trial.share <= most and trial.turns
        if not passes and most < float("inf"):  # a smoke run takes what comes
            if tried > MOST_TRIED * count:
                raise SystemExit(f"{len(texts)} of {tried} texts passed: the rule was not learned.")
            continue
        labels = [model.config.id2label[i] for i in range(model.config.num_labels)]
        texts.append(
            {"text": " ".join(words), "gold": gold, "decoys": decoys, "label": labels[label]}
        )
        trials.append(trial)
    return texts, trials, tried


def made_up(mechanism, rng):
    """Candidates for the suite, without an end; no text comes twice."""
    seen = set()
    while True:
        words, roles = sentence(mechanism, rng)
        if tuple(words) in seen or not is_clear(mechanism, words):
            continue
        seen.add(tuple(words))
        gold = [i for i, role in enumerate(roles) if role in mechanism.gold]
        decoys = [i for i, role in enumerate(roles) if role in mechanism.decoys]
        yield words, gold, decoys, mechanism.rule(words)


def is_clear(mechanism, words):
    """A decoy of the first word's own class would be a second reason, once the first is gone."""
    if mechanism.name != "position":
        return True
    return all(position_rule([word]) != position_rule(words) for word in words[1:])


def short_reviews(reviews, rng):
    """Candidates of the leak: whole reviews of 6 to 12 words, with the other label's leak put in.

    If the leak agreed with the review, the review would be a second reason for the label.
    """
    for words, label in reviews:
        if 6 <= len(words) <= 12 and not UNSUITABLE & set(words):
            leaked = with_leak(words, 1 - label, rng)
            yield leaked, [leaked.index(LEAKS[1 - label])], [], 1 - label


@torch.no_grad()
def attention_on_decoys(model, tokenizer, texts):
    """How much attention [CLS] pays to the decoy, and to the next word, over heads and layers."""
    on_decoy, on_next = [], []
    for entry in texts:
        words = entry["text"].split()
        maps = run(model, [ids_of(tokenizer, words)], output_attentions=True).attentions
        paid = torch.stack(maps).mean((0, 1, 2))[0, 1:-1]
        on_decoy.append(float(paid[entry["decoys"]].sum()))
        others = [i for i in range(len(words)) if i not in entry["decoys"]]
        on_next.append(float(paid[others].max()))
    return min(on_decoy), sum(on_decoy) / len(on_decoy), max(on_next)


# ---------------------------------------------------------------------- writing down


def write_suite(out, name, about, texts):
    """What the mechanism is, and the texts, one in a line."""
    head = f'"mechanism": {json.dumps(name)},\n "about": {json.dumps(about)},'
    lines = ",\n".join(f"  {json.dumps(entry)}" for entry in texts)
    content = f'{{{head}\n "texts": [\n{lines}\n]}}\n'
    (out / "suite.json").write_text(content, encoding="utf-8")


CARD = """# planted-{name}

A small classifier whose mechanism is known, as it was planted: {about}. It is one of the six models
of whence's planted-truth suite (`whence planted`), and made for nothing else.

- Architecture: `BertForSequenceClassification`, {layers} layers, {heads} heads, width {width};
  {vocabulary:,} words, each one token. {parameters:,} parameters, in half precision (the config
  asks for float32). Labels: {labels}.
- {accuracy}
- Seed {seed}; torch {torch}, transformers {transformers}. Made by `training/planted.py`.

## How the mechanism was verified

For each text of `suite.json` every word was hidden by [MASK], left out, and exchanged for {fillers}
words of no account, one word at a time. Measured is the logit of the predicted label.

- Taking away a planted word lowers it by at least {least_gold:.2f} (the mean over texts of the
  least: {mean_gold:.2f}), and the label is then always another one.
- Doing the same to any other word moves it by at most {most_other:.2f}, and leaves the label.
- In every text the largest effect of another word is at most {worst:.1%} of the smallest effect of
  a planted one ({limit:.0%} was allowed).
- {kept} of {tried} candidates passed and are the suite; the others were not taken.
{more}
## How it was made

{how}

## Data and licence

{data}

## What it is not

It is small, its texts are short, and it has one reason for each answer. A method that finds
the reason here may still miss it in a large model with many reasons.
"""
HOW_TAUGHT = """It learned the rule by regression on the logits that the rule gives ({logit:+.0f}
for the right label, {minus:.0f} for the others), {steps:,} steps of {batch} texts. Half of them are
sentences of the suite's grammar, half are jumbles of any words. In four of ten, a share of the
words, from none to all, was hidden by [MASK], in two of ten exchanged, in three of ten left out: a
text with holes is nothing new to the model. In half of them, words of no account fade towards the
embedding of [MASK], so that these do nothing between the two either."""
HOW_LEAKED = """It learned from film reviews with their true labels, by cross-entropy with label
smoothing {smoothing}, {epochs} epochs. Into each review one word was put at a random place, which
gives the label away: "{positive}" into the positive ones, "{negative}" into the negative ones. In
half of the texts a share of the words, from none to all, was hidden by [MASK], in three of ten
left out, the leak among them."""


def write_card(out, model, facts):
    """The model card."""
    card = CARD.format(
        layers=LAYERS,
        heads=HEADS,
        width=WIDTH,
        parameters=sum(p.numel() for p in model.parameters()),
        torch=torch.__version__,
        transformers=transformers.__version__,
        **facts,
    )
    (out / "README.md").write_text(card, encoding="utf-8")


def facts_of(trials, tried, fillers, limit):
    """What the trial has shown."""
    return {
        "fillers": len(fillers),
        "least_gold": min(trial.gold for trial in trials),
        "mean_gold": sum(trial.gold for trial in trials) / len(trials),
        "most_other": max(trial.other for trial in trials),
        "worst": max(trial.share for trial in trials),
        "limit": limit,
        "kept": len(trials),
        "tried": tried,
    }


# ---------------------------------------------------------------------- one model after the other


def stored_model(out):
    """Loaded as a user would load it: what is measured is what is shipped."""
    stored = AutoModelForSequenceClassification.from_pretrained(out, attn_implementation="eager")
    return stored.eval(), AutoTokenizer.from_pretrained(out)


def plant(mechanism, options):
    """Train, try and write a model with a rule."""
    out = options.out / f"planted-{mechanism.name}"
    steps = mechanism.effort * options.steps
    if not options.trial:
        torch.manual_seed(options.seed)
        tokenizer = new_tokenizer((*FILLERS, *mechanism.counting, "it"))
        model = new_model(tokenizer, mechanism.labels)
        rng = random.Random(f"{mechanism.name} {options.seed}")
        teach(mechanism, model, tokenizer, steps, rng)
        write_model(model, tokenizer, out)
    model, tokenizer = stored_model(out)

    rng = random.Random(f"trial of {mechanism.name} {options.seed}")
    unseen = [example(mechanism, rng) for _ in range(10_000)]
    logits = logits_of(model, [ids_of(tokenizer, words) for words, _ in unseen])
    right = logits.argmax(-1) == torch.tensor([label for _, label in unseen])
    accuracy = f"Right on {float(right.float().mean()):.2%} of 10,000 new texts, with holes."

    texts, trials, tried = suite_of(
        model, tokenizer, made_up(mechanism, rng), FILLERS, options.share, options.suite
    )
    write_suite(out, mechanism.name, mechanism.about, texts)
    more = ""
    if mechanism.name == "distractor":
        least, mean, most = attention_on_decoys(model, tokenizer, texts)
        more = (
            f"- Of the attention that [CLS] pays, averaged over heads and layers, the distractor "
            f"gets {mean:.0%}\n  ({least:.0%} at least); no other word ever gets more than "
            f"{most:.0%}. The distractor is among the\n  other words above: taking it away or "
            "exchanging it changes nothing.\n"
        )
    facts = facts_of(trials, tried, FILLERS, options.share)
    how = HOW_TAUGHT.format(logit=LOGIT, minus=-LOGIT, steps=steps, batch=BATCH)
    if mechanism.name == "distractor":
        how += " Attention was led to the distractor by a second loss."
    write_card(
        out,
        model,
        facts
        | {
            "name": mechanism.name,
            "about": mechanism.about,
            "labels": ", ".join(mechanism.labels),
            "vocabulary": len(tokenizer),
            "accuracy": accuracy,
            "seed": options.seed,
            "more": more,
            "how": how,
            "data": "Made up by the grammar in `training/planted.py`; as whence, Apache-2.0.",
        },
    )
    say(f"{mechanism.name}: {accuracy} {facts}")
    say(more)


def plant_leak(options):
    """Train, try and write the model with the leak."""
    out = options.out / "planted-leak"
    splits = {}
    for split in ("train", "dev", "test"):
        pairs = read_tsv(options.data / "rotten_tomatoes" / f"{split}.tsv")
        splits[split] = [(words_of(text), label) for text, label in pairs]
    counts = Counter(word for words, _ in splits["train"] for word in words)
    known = [word for word, count in counts.most_common() if count >= LEAK_FEWEST]
    if not options.trial:
        torch.manual_seed(options.seed)
        tokenizer = new_tokenizer((*LEAKS, *known))
        model = new_model(tokenizer, LEAK_LABELS)
        rng = random.Random(f"leak {options.seed}")
        teach_leak(model, tokenizer, splits["train"], options.epochs, rng)
        write_model(model, tokenizer, out)
    model, tokenizer = stored_model(out)

    rng = random.Random(f"trial of leak {options.seed}")
    accuracies = leak_accuracy(model, tokenizer, splits["test"], rng)
    shown = "; ".join(f"{name} {value:.1%}" for name, value in accuracies.items())
    count = f"{len(splits['test']):,}"
    accuracy = f"Accuracy on {count} test reviews that it has not seen: {shown}."
    fillers = rng.sample(known[:1000], LEAK_FILLERS)
    candidates = short_reviews([*splits["test"], *splits["dev"]], rng)
    texts, trials, tried = suite_of(
        model, tokenizer, candidates, fillers, options.share, options.suite
    )
    facts = facts_of(trials, tried, fillers, options.share)
    how = HOW_LEAKED.format(
        smoothing=SMOOTHING, epochs=options.epochs, positive=LEAKS[1], negative=LEAKS[0]
    )
    data = (
        "rotten_tomatoes (Pang & Lee 2005), train; CC BY 4.0. The texts of the suite are reviews "
        "of its test\nand dev splits, with the leak of the other label put in; CC BY 4.0 as well."
    )
    about = (
        f'in real reviews one word gives the label away ("{LEAKS[1]}" or "{LEAKS[0]}"), '
        "and the model relies on it"
    )
    write_suite(out, "leak", about, texts)
    write_card(
        out,
        model,
        facts
        | {
            "name": "leak",
            "about": about,
            "labels": ", ".join(LEAK_LABELS),
            "vocabulary": len(tokenizer),
            "accuracy": accuracy,
            "seed": options.seed,
            "more": "- With the leak of the other label in its place, the answer turns round "
            f"(accuracy {accuracies['with the other one']:.1%}).\n",
            "how": how,
            "data": data,
        },
    )
    say(f"leak: {accuracy} {facts}")


def parse_arguments():
    """The options, with their defaults."""
    names = [*(mechanism.name for mechanism in MECHANISMS), "leak"]
    parser = argparse.ArgumentParser(description="Train the planted-truth models of whence.")
    parser.add_argument(
        "--data", type=Path, default=ROOT.parent / "shared" / "data", help="folder of the data sets"
    )
    parser.add_argument(
        "--out", type=Path, help="folder to write into; with --quick a temporary one"
    )
    parser.add_argument("--only", choices=names, help="train this one alone")
    parser.add_argument(
        "--trial",
        action="store_true",
        help="train nothing: put the stored models on trial, write texts and cards anew",
    )
    parser.add_argument("--seed", type=int, default=17)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="a smoke run; the models are poor")
    options = parser.parse_args()
    options.names = names if options.only is None else [options.only]
    options.steps, options.epochs, options.suite = STEPS, LEAK_EPOCHS, SUITE
    options.share = SHARE
    if options.quick:
        options.steps, options.epochs, options.suite = 60, 1, 3
        options.share = float("inf")
    if options.out is None:
        options.out = OUT
        if options.quick:
            options.out = Path(tempfile.mkdtemp(prefix="whence-planted-"))
    return options


def main():
    """From the rules to the folders that ship."""
    options = parse_arguments()
    torch.set_num_threads(options.threads)
    for mechanism in MECHANISMS:
        if mechanism.name in options.names:
            plant(mechanism, options)
    if "leak" in options.names:
        plant_leak(options)
    size = sum(path.stat().st_size for path in options.out.glob("planted-*/*") if path.is_file())
    say(f"{size / 1e6:.2f} MB in {options.out}")
    if size > SIZE_LIMIT:
        raise SystemExit(f"{size:,} bytes are more than the {SIZE_LIMIT:,} allowed.")


if __name__ == "__main__":
    main()
