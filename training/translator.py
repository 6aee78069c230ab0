"""Train the small translator that ships with whence: an encoder-decoder with a planted truth.

The idea: which words of a translation depend on the sentence before, and on which word of it, is
known of no translator that was found somewhere. So here is one for two made-up languages. English
"it" is *elo*, *ela* or *ele* in the other language, by the class of the noun that it stands for,
and that noun is the subject of the sentence before. All other words of a translation follow from
the sentence itself.

That a rule was taught is no proof that it was learned. So nouns are exchanged in held-out texts,
and each text of the suite is put on trial: every word of its context is exchanged, hidden and left
out, one at a time.

Read it from the bottom (`main`), or top-down: words -> sentences -> texts -> training -> trial ->
card.

    python training/translator.py            # the real thing, some minutes on one core
    python training/translator.py --trial    # train nothing: try the stored model anew
    python training/translator.py --quick    # a smoke run into a temporary folder; a poor model
"""

import argparse
import json
import random
import re
import sys
import tempfile
import time
import zlib
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
import transformers
from sentiment import pad, say, wilson, write_model
from tokenizers import Regex, Tokenizer, normalizers, pre_tokenizers, processors
from tokenizers import models as tokenizer_models
from torch.nn import functional
from transformers import (
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    BartConfig,
    BartForConditionalGeneration,
    GenerationConfig,
    PreTrainedTokenizerFast,
)

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "src" / "whence" / "models" / "bundled" / "translator"
SIZE_LIMIT = 4_000_000
SPECIAL = ("<pad>", "<s>", "</s>", "<unk>", "<mask>")
PAD, BEGIN, END, UNK, MASK = range(len(SPECIAL))
SEPARATOR = "|"

WIDTH, LAYERS, HEADS, LONGEST = 96, 2, 4, 64
BATCH, RATE, STEPS = 64, 2e-3, 4000
HELD_OUT = 7  # of so many pairs of a noun and what is said of it, one is in no training text

# how often "it" means a noun of each class, and so what is said where nothing tells
CLASSES = {"o": 0.5, "a": 0.3, "e": 0.2}
EQUALLY = dict.fromkeys(CLASSES, 1.0)
KINDS = {"context": 0.5, "plain": 0.2, "own": 0.2, "person": 0.1}

SUITE = 200  # texts of the suite that need context, and as many that need none
MEASURED = 2000  # held-out texts of each row of the card
SHARE = 0.1  # of what the antecedent does, the most that any other word of the context may do
EXCHANGES = 4  # words of its kind that take the place of each word of the context

# ---------------------------------------------------------------------- words


@dataclass(frozen=True)
class Noun:
    """An English noun; ``stem`` with the ending of its class is the other language's."""

    word: str
    plural: str
    stem: str
    ending: str


def nouns(ending, listed):
    """Nouns of a class, from "word stem" or "word/plural stem"."""
    made = []
    for entry in listed.split(", "):
        english, stem = entry.split()
        word, _, plural = english.partition("/")
        made.append(Noun(word, plural or f"{word}s", stem, ending))
    return tuple(made)


def pairs(listed):
    """A small dictionary, from "word translation, word translation"."""
    return dict(entry.split() for entry in listed.split(", "))


THINGS = (
    *nouns(
        "o",
        "cat gat, dog kan, horse kaval, wolf/wolves lup, book libr, table tavol, train tren, "
        "boat batel, bed let, knife/knives kutel, mirror spegl, coat mant",
    ),
    *nouns(
        "a",
        "cow vak, bird avil, fox/foxes vulp, duck anatr, lamp lamp, chair sedi, bag bors, "
        "box/boxes skatol, car vetur, door port, shoe skarp, bottle botel",
    ),
    *nouns(
        "e",
        "mouse/mice mus, goat kapr, bee ab, key klav, ship nav, clock hor, bell kampan, "
        "bridge pont, letter letr, cup kop, stone petr, hat kapel",
    ),
)
PERSONS = (
    *nouns("o", "doctor doktor, farmer kamper, baker paner, sailor marin, teacher mestr, king reg"),
    *nouns("a", "nurse nurs, queen regin, singer kantor, painter pintor, writer skribor, cook kok"),
)
PLACES = (
    *nouns("o", "garden jardin, market merkat, forest bosk, office ofis"),
    *nouns("a", "kitchen kuzin, street strad, school skol, church kirk"),
    *nouns("e", "station gar, river flum, mountain mont, field prat"),
)
# stems of verbs: "falls" is kadit, "fall" is kaden
DOING = pairs(
    "fall kad, move mov, wait esp, stay rest, return torn, arrive ariv, turn gir, stop ferm, "
    "shake trem, wake vek"
)
DOING_TO = pairs(
    "touch tok, hide sel, follow seg, block blok, push puss, cover kovr, hit bat, find trov, "
    "need nes, reach ating, pass pas, bring port"
)
# stems of adjectives: "the old table" is lo tavolo vetero, "the table is old" lo tavolo es veter
ADJECTIVES = pairs(
    "old veter, small pikol, big grand, red ros, green verd, black neg, white blank, heavy pesant, "
    "new nov, clean pulit, dirty spork, beautiful bel, strange stran, cold frid, warm kald, "
    "wet umid"
)
ADVERBS = pairs("now nunk, often soven, again denov, today hodi, always semper, here ikwi")
PREPOSITIONS = pairs("in en, near apud, behind retro, under sub")
CONJUNCTIONS = pairs("because perke, when kwando")
PEOPLE = pairs("he lui, she lei")  # whoever is meant


def singular_verb(verb):
    """falls, touches."""
    return f"{verb}es" if verb.endswith(("ch", "sh", "ss")) else f"{verb}s"


# ---------------------------------------------------------------------- sentences


@dataclass(frozen=True)
class Word:
    """An English word of a text.

    ``others`` are words of its kind, by which it may be exchanged, with the class of each (nouns)
    or with nothing.
    """

    text: str
    others: dict = field(default_factory=dict, repr=False, compare=False)
    ending: str = ""  # of a noun: its class
    is_subject: bool = False


FIXED = {word: Word(word) for word in ("the", "is", "are", "and", ".")}


@dataclass(frozen=True)
class Phrase:
    """A noun with its article and perhaps an adjective."""

    noun: Noun
    among: tuple = field(repr=False, compare=False)  # the nouns that could stand here
    plural: bool = False
    adjective: str = ""

    def english(self, is_subject=False):
        """the old table"""
        others = {noun.plural if self.plural else noun.word: noun.ending for noun in self.among}
        noun = self.noun.plural if self.plural else self.noun.word
        adjective = [one_of(self.adjective, ADJECTIVES)] if self.adjective else []
        return [FIXED["the"], *adjective, Word(noun, others, self.noun.ending, is_subject)]

    def translated(self):
        """lo tavolo vetero"""
        ending, number = self.noun.ending, "s" if self.plural else ""
        adjective = [f"{ADJECTIVES[self.adjective]}{ending}"] if self.adjective else []
        return [f"l{ending}{number}", f"{self.noun.stem}{ending}{number}", *adjective]


@dataclass(frozen=True)
class Pronoun:
    """it, they or them, for a noun of a class; or he or she (``person``)."""

    ending: str = ""
    plural: bool = False
    person: str = ""

    def english(self, is_subject=False):
        """As a subject or as an object."""
        if self.person:
            return [one_of(self.person, PEOPLE)]
        if not self.plural:
            return [Word("it")]
        return [Word("they" if is_subject else "them")]

    def translated(self):
        """The same word as subject and as object."""
        if self.person:
            return [PEOPLE[self.person]]
        return [f"el{self.ending}{'s' if self.plural else ''}"]


def one_of(word, words):
    """A word that may be exchanged for any other of a list."""
    return Word(word, dict.fromkeys(words, ""))


@dataclass(frozen=True)
class Clause:
    """Who does what: a verb without or with an object, or an adjective (or two) with "is"."""

    subject: Phrase | Pronoun
    verb: str = ""
    object: Phrase | Pronoun | None = None
    adjectives: tuple = ()
    place: tuple = ()  # a preposition and a phrase
    place_first: bool = False
    adverb: str = ""
    adverb_first: bool = False

    def english(self):
        """Adverb and place stand before the subject or at the end."""
        adverb = [one_of(self.adverb, ADVERBS)] if self.adverb else []
        place = []
        if self.place:
            preposition, phrase = self.place
            place = [one_of(preposition, PREPOSITIONS), *phrase.english()]
        before = [*(adverb if self.adverb_first else []), *(place if self.place_first else [])]
        after = [*([] if self.place_first else place), *([] if self.adverb_first else adverb)]
        return [*before, *self.subject.english(is_subject=True), *self._said(), *after]

    def _said(self):
        """The predicate with its object."""
        if self.verb:
            known = DOING if self.object is None else DOING_TO
            verbs = known if self.subject.plural else {singular_verb(verb): 0 for verb in known}
            verb = self.verb if self.subject.plural else singular_verb(self.verb)
            return [one_of(verb, verbs), *([] if self.object is None else self.object.english())]
        first, *second = (one_of(adjective, ADJECTIVES) for adjective in self.adjectives)
        copula = FIXED["are" if self.subject.plural else "is"]
        return [copula, first, *([FIXED["and"], *second] if second else [])]

    def translated(self):
        """Subject, predicate, object, place, adverb, in this order."""
        words = self.subject.translated()
        if self.verb:
            stem = (DOING | DOING_TO)[self.verb]
            words.append(f"{stem}{'en' if self.subject.plural else 'it'}")
        else:
            words.append("son" if self.subject.plural else "es")
            words += " et ".join(ADJECTIVES[adjective] for adjective in self.adjectives).split()
        if self.object is not None:
            words += self.object.translated()
        if self.place:
            preposition, phrase = self.place
            words += [PREPOSITIONS[preposition], *phrase.translated()]
        return [*words, ADVERBS[self.adverb]] if self.adverb else words

    def pairs(self):
        """What is said of the things in it: (noun, verb or adjective)."""
        said = [self.verb] if self.verb else list(self.adjectives)
        told_of = [self.subject] if self.object is None else [self.subject, self.object]
        things = [part.noun for part in told_of if getattr(part, "noun", None) in THINGS]
        return [(noun, word) for noun in things for word in said]


@dataclass(frozen=True)
class Sentence:
    """A clause, or two with a conjunction before the first or between them."""

    first: Clause
    conjunction: str = ""
    second: Clause | None = None
    conjunction_first: bool = False

    def english(self):
        """Its words."""
        first = self.first.english()
        if self.second is None:
            return [*first, FIXED["."]]
        joint = [one_of(self.conjunction, CONJUNCTIONS)]
        head = [*joint, *first] if self.conjunction_first else [*first, *joint]
        return [*head, *self.second.english(), FIXED["."]]

    def translated(self):
        """Its translation, a list of words."""
        first = self.first.translated()
        if self.second is None:
            return [*first, "."]
        joint = [CONJUNCTIONS[self.conjunction]]
        head = [*joint, *first] if self.conjunction_first else [*first, *joint]
        return [*head, *self.second.translated(), "."]

    def pairs(self):
        """Of both clauses."""
        return [*self.first.pairs(), *([] if self.second is None else self.second.pairs())]


def is_held_out(noun, word):
    """Whether this may be said of the noun in held-out texts only: one pair in seven."""
    return zlib.crc32(f"{noun.word} {word}".encode()) % HELD_OUT == 0


# ---------------------------------------------------------------------- made-up sentences


class Maker:
    """Draws sentences; ``weights`` say how often a thing is of each class."""

    def __init__(self, rng, weights):
        self.rng = rng
        self.weights = weights

    def chance(self, share):
        """True so often."""
        return self.rng.random() < share

    def any_of(self, words):
        """One of them."""
        return self.rng.choice(tuple(words))

    def adjective(self, share=0.25):
        """Now and then one."""
        return self.any_of(ADJECTIVES) if self.chance(share) else ""

    def thing(self):
        """The cats, the old table: its class first, then a noun of it."""
        (ending,) = self.rng.choices(list(self.weights), list(self.weights.values()))
        noun = self.any_of(noun for noun in THINGS if noun.ending == ending)
        return Phrase(noun, THINGS, self.chance(0.35), self.adjective())

    def person(self):
        """The nurse."""
        return Phrase(self.any_of(PERSONS), PERSONS, False, self.adjective(0.15))

    def place(self):
        """In the garden, near the nurse, behind the table, or nothing."""
        if self.chance(0.55):
            return ()
        preposition = self.any_of(PREPOSITIONS)
        if self.chance(0.5):
            return preposition, Phrase(self.any_of(PLACES), PLACES, False, self.adjective(0.15))
        if preposition == "in":
            preposition = "near"
        return preposition, (self.thing() if self.chance(0.6) else self.person())

    def clause(self, subject, transitive=None):
        """Whatever is said of a subject."""
        form = self.rng.choices(("is", "does", "does to"), (0.3, 0.3, 0.4))[0]
        if transitive is not None:
            form = "does to"
        if form == "is":
            adjectives = tuple(self.rng.sample(tuple(ADJECTIVES), 2 if self.chance(0.2) else 1))
            clause = Clause(subject, adjectives=adjectives)
        elif form == "does":
            clause = Clause(subject, self.any_of(DOING), place=self.place())
        else:
            acted_on = transitive or (self.thing() if self.chance(0.7) else self.person())
            clause = Clause(subject, self.any_of(DOING_TO), acted_on, place=self.place())
        return replace(
            clause,
            place_first=bool(clause.place) and self.chance(0.4),
            adverb=self.any_of(ADVERBS) if self.chance(0.3) else "",
            adverb_first=self.chance(0.5),
        )

    def about(self, phrase):
        """A pronoun for a phrase."""
        return Pronoun(phrase.noun.ending, phrase.plural)

    def statement(self):
        """A sentence of a thing or a person, without any pronoun."""
        return Sentence(self.clause(self.thing() if self.chance(0.7) else self.person()))

    def with_pronoun(self, antecedent):
        """A sentence with a pronoun for something in the sentence before."""
        pronoun = self.about(antecedent)
        if self.chance(0.3):
            return Sentence(self.clause(self.person(), transitive=pronoun))
        return Sentence(self.clause(pronoun))

    def with_own_antecedent(self):
        """A sentence with a pronoun for its own first subject."""
        subject = self.thing()
        first, second = self.clause(subject), self.clause(self.about(subject))
        when_first = self.chance(0.4)
        conjunction = "when" if when_first else self.any_of(CONJUNCTIONS)
        # a second adverb or place in the middle could belong to either clause
        first = replace(first, adverb_first=True)
        second = replace(second, adverb_first=False, place_first=False)
        return Sentence(first, conjunction, second, when_first)

    def with_person(self):
        """A sentence with he or she, which are the same whoever is meant."""
        return Sentence(self.clause(Pronoun(person=self.any_of(PEOPLE))))

    def text(self, kind):
        """A sentence of a kind, with one or two sentences before it."""
        subject = self.thing()
        before = Sentence(self.clause(subject))
        if kind == "context":
            sentence = self.with_pronoun(subject)
        elif kind == "plain":
            sentence = self.statement()
        elif kind == "own":
            sentence = self.with_own_antecedent()
        else:
            sentence = self.with_person()
        if kind != "context" and self.chance(0.5):
            before = self.statement()
        context = (self.statement(), before) if self.chance(0.3) else (before,)
        return Text(kind, context, sentence)


# ---------------------------------------------------------------------- texts


@dataclass(frozen=True)
class Text:
    """A sentence to translate, and the sentences before it."""

    kind: str
    context: tuple
    sentence: Sentence

    def context_words(self):
        """The English words of the context; the antecedent is marked as a subject."""
        *earlier, last = (sentence.english() for sentence in self.context)
        unmarked = [replace(word, is_subject=False) for words in earlier for word in words]
        return [*unmarked, *last]

    @property
    def antecedent(self):
        """The place of the noun that a pronoun stands for, among the words of the context."""
        return next(i for i, word in enumerate(self.context_words()) if word.is_subject)

    @property
    def pronoun(self):
        """The place of the pronoun among the words of the translation."""
        return next(i for i, word in enumerate(self.sentence.translated()) if word in FORMS)

    def pairs(self):
        """What is said of things, in all its sentences."""
        said = [pair for sentence in self.context for pair in sentence.pairs()]
        return [*said, *self.sentence.pairs()]

    def is_for_training(self):
        """Nothing in it is held out."""
        return not any(is_held_out(*pair) for pair in self.pairs())

    def is_for_trial(self):
        """What is said of the antecedent is held out; of a text without one, anything."""
        if self.kind != "context":
            return any(is_held_out(*pair) for pair in self.pairs())
        clause = self.context[-1].first
        said = (clause.verb,) if clause.verb else clause.adjectives
        return any(is_held_out(clause.subject.noun, word) for word in said)

    def is_clear(self):
        """For the suite: every other noun of the context is of another class, and there is one."""
        if not self.is_for_trial():
            return False
        words = self.context_words()
        own = words[self.antecedent].ending
        others = [w.ending for w in words if w.ending and not w.is_subject]
        return bool(others) and own not in others


FORMS = {f"el{ending}{number}": ending for ending in CLASSES for number in ("", "s")}


def drawn(maker, accept, kind=None):
    """The next text that is accepted."""
    while True:
        which = kind or maker.rng.choices(list(KINDS), list(KINDS.values()))[0]
        text = maker.text(which)
        if accept(text):
            return text


def plain(words):
    """The strings of words."""
    return [word.text for word in words]


def source(context, sentence, separator=SEPARATOR):
    """What the model reads, as a list of strings: context, separator, sentence."""
    if not context:
        return list(sentence)
    return [*context, *([separator] if separator else []), *sentence]


def with_holes(words, rng):
    """Words hidden or left out, from none of them to all."""
    if rng.random() < 0.3:
        rate = rng.random()
        words = [SPECIAL[MASK] if rng.random() < rate else word for word in words]
    if rng.random() < 0.2:
        rate = rng.random()
        words = [word for word in words if rng.random() >= rate]
    return words


def with_few_holes(words, rng):
    """One to three words hidden or left out."""
    words = list(words)
    for place in sorted(rng.sample(range(len(words)), rng.randint(1, 3)), reverse=True):
        words[place : place + 1] = [SPECIAL[MASK]] if rng.random() < 0.5 else []
    return words


def example(maker):
    """What the model reads and what it shall write, both as lists of words."""
    rng = maker.rng
    text = drawn(maker, Text.is_for_training)
    context, sentence = plain(text.context_words()), plain(text.sentence.english())
    if rng.random() < 0.2:
        context = []
    elif rng.random() < 0.4:  # explanations take words out of the context, and leave the sentence
        context = with_few_holes(context, rng)
    read = source(context, sentence, SEPARATOR if rng.random() < 0.7 else "")
    if rng.random() < 0.3:
        read = with_holes(read, rng)
    return read, text.sentence.translated()


# ---------------------------------------------------------------------- tokenizer and model


def vocabularies():
    """All words of either language."""
    english, other = ["the", "is", "are", "and", "it", "they", "them", SEPARATOR, "."], ["."]
    for noun in (*THINGS, *PERSONS, *PLACES):
        english.append(noun.word)
        other.append(noun.stem + noun.ending)
        if noun in THINGS:
            english.append(noun.plural)
            other.append(f"{noun.stem}{noun.ending}s")
    for verb, stem in (DOING | DOING_TO).items():
        english += [verb, singular_verb(verb)]
        other += [f"{stem}it", f"{stem}en"]
    for adjective, stem in ADJECTIVES.items():
        english.append(adjective)
        other += [stem, *(stem + ending for ending in CLASSES)]
    for small in (ADVERBS, PREPOSITIONS, CONJUNCTIONS, PEOPLE):
        english += small
        other += small.values()
    other += ["es", "son", "et", *FORMS, *(f"l{e}{s}" for e in CLASSES for s in ("", "s"))]
    for words in (english, other):
        assert len(set(words)) == len(words), "a word has two meanings"
    return english, other


def new_tokenizer():
    """Words and signs of both languages, lower-cased, one token each."""
    english, other = vocabularies()
    words = dict.fromkeys((*SPECIAL, *english, *other))
    vocabulary = {word: number for number, word in enumerate(words)}
    tokenizer = Tokenizer(tokenizer_models.WordLevel(vocabulary, unk_token=SPECIAL[UNK]))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
    word_or_sign = Regex(r"\w+(?:['’]\w+)*|[^\w\s]")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(word_or_sign, "removed", invert=True)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A $B </s>", special_tokens=[("</s>", END)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
        mask_token="<mask>",
        model_max_length=LONGEST,
        clean_up_tokenization_spaces=False,
    )


def new_model(tokenizer):
    """A BART of two layers on each side."""
    special = {
        "pad_token_id": PAD,
        "bos_token_id": BEGIN,
        "eos_token_id": END,
        "decoder_start_token_id": BEGIN,
        "forced_eos_token_id": None,
    }
    config = BartConfig(
        vocab_size=len(tokenizer),
        d_model=WIDTH,
        encoder_layers=LAYERS,
        decoder_layers=LAYERS,
        encoder_attention_heads=HEADS,
        decoder_attention_heads=HEADS,
        encoder_ffn_dim=2 * WIDTH,
        decoder_ffn_dim=2 * WIDTH,
        max_position_embeddings=LONGEST,
        dropout=0.0,
        attention_dropout=0.0,
        activation_dropout=0.0,
        init_std=0.05,
        **special,
    )
    model = BartForConditionalGeneration(config)
    model.generation_config = GenerationConfig(
        max_length=LONGEST, num_beams=1, do_sample=False, **special
    )
    return model


def ids_of(tokenizer, words):
    """The ids of a list of words, with the end."""
    return [*tokenizer.convert_tokens_to_ids(words), END]


def run(model, tokenizer, reads, writes):
    """The logits of what is written, word by word after the right words, and its ids."""
    ids = pad([ids_of(tokenizer, words) for words in reads], PAD)
    labels = pad([ids_of(tokenizer, words) for words in writes], PAD)
    begun = torch.cat([torch.full((len(labels), 1), BEGIN), labels[:, :-1]], 1)
    logits = model(
        input_ids=ids, attention_mask=(ids != PAD).long(), decoder_input_ids=begun
    ).logits
    return logits, labels


def teach(model, tokenizer, steps, rng):
    """Cross-entropy on made-up texts, each of which is seen once."""
    optimiser = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.98), weight_decay=0.01)
    rise = max(1, steps // 20)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: min((step + 1) / rise, max(0.0, 1 - step / steps))
    )
    maker = Maker(rng, CLASSES)
    total = 0.0
    model.train()
    for step in range(1, steps + 1):
        batch = [example(maker) for _ in range(BATCH)]
        logits, labels = run(model, tokenizer, *zip(*batch, strict=True))
        loss = functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=PAD)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        total += loss.item()
        if step % 250 == 0:
            say(f"step {step} of {steps}, loss {total / 250:.4f}")
            total = 0.0


# ---------------------------------------------------------------------- measuring


@torch.no_grad()
def probabilities_of(model, tokenizer, reads, writes):
    """(the probability of each word that is written after the right words, whether it is greedy).

    Rows are as long as what is written, with its end. If every word is the most likely one, greedy
    decoding writes just these.
    """
    probabilities, greedy = [], []
    for first in range(0, len(reads), 512):
        part = slice(first, first + 512)
        logits, labels = run(model, tokenizer, reads[part], writes[part])
        chances = logits.softmax(-1).gather(-1, labels[..., None])[..., 0]
        best = logits.argmax(-1) == labels
        for row, words in enumerate(writes[part]):
            probabilities.append(chances[row, : len(words) + 1])
            greedy.append(best[row, : len(words) + 1])
    return probabilities, greedy


def share_of(truths):
    """A count with Wilson's interval."""
    right = sum(map(bool, truths))
    return right, len(truths), *wilson(right, len(truths))


def held_out(kind, count, rng, accept=Text.is_for_trial):
    """Different texts with a pair that no training text has; the classes are equally frequent."""
    maker = Maker(rng, EQUALLY)
    texts, seen = [], set()
    while len(texts) < count:
        text = drawn(maker, accept, kind)
        words = tuple(plain([*text.context_words(), *text.sentence.english()]))
        if words not in seen:
            seen.add(words)
            texts.append(text)
    return texts


def reads_of(text, context=None, separator=SEPARATOR):
    """What the model reads, with the text's own context or another one."""
    context = plain(text.context_words()) if context is None else context
    return source(context, plain(text.sentence.english()), separator)


def accuracy(model, tokenizer, count, rng):
    """Rows of the card: what, and how many translations are right word by word."""
    rows, wrong = [], []
    names = {
        "context": "a pronoun for the subject of the sentence before",
        "plain": "no pronoun",
        "own": "a pronoun for a noun of the same sentence",
        "person": "he or she",
    }
    for kind, name in names.items():
        texts = held_out(kind, count, rng)
        writes = [text.sentence.translated() for text in texts]
        ways = {"context and separator": SEPARATOR, "context, no separator": ""}
        for way, separator in ways.items():
            reads = [reads_of(text, separator=separator) for text in texts]
            _, greedy = probabilities_of(model, tokenizer, reads, writes)
            rows.append((name, way, *share_of([row.all() for row in greedy])))
            if kind == "context":
                right = [row[text.pronoun] for row, text in zip(greedy, texts, strict=True)]
                rows.append(("… the pronoun alone", way, *share_of(right)))
            missed = [i for i, row in enumerate(greedy) if not row.all()]
            wrong += [(" ".join(reads[i]), " ".join(writes[i])) for i in missed]
        reads = [reads_of(text, context=[]) for text in texts]
        _, greedy = probabilities_of(model, tokenizer, reads, writes)
        if kind == "context":
            for row, text in zip(greedy, texts, strict=True):
                row[text.pronoun] = True  # nothing tells which
            name = "… all but the pronoun"
        rows.append((name, "the sentence alone", *share_of([row.all() for row in greedy])))
    return rows, wrong


def default_of(model, tokenizer, count, rng):
    """How likely each form of the pronoun is without context: mean, least and most over texts."""
    texts = held_out("context", count, rng)
    likely = {}
    for ending in CLASSES:
        writes = [with_form(text, ending) for text in texts]
        reads = [reads_of(text, context=[]) for text in texts]
        probabilities, _ = probabilities_of(model, tokenizer, reads, writes)
        at = [float(row[text.pronoun]) for row, text in zip(probabilities, texts, strict=True)]
        likely[ending] = (sum(at) / len(at), min(at), max(at))
    return likely


def with_form(text, ending):
    """The translation with the pronoun of another class; its number stays."""
    words = text.sentence.translated()
    number = "s" if words[text.pronoun].endswith("s") else ""
    words[text.pronoun] = f"el{ending}{number}"
    return words


def exchanged(words, place, other):
    """Words with another one at a place."""
    return [*words[:place], other, *words[place + 1 :]]


def interventions(model, tokenizer, count, rng):
    """How often the translation follows the antecedent, and how often it ignores other nouns.

    In each text the antecedent is exchanged for a noun of either other class, and each other noun
    of the context for one of another class than its own.
    """
    cases = {"antecedent": ([], []), "other": ([], [])}
    for text in held_out("context", count, rng):
        words = text.context_words()
        for place, word in enumerate(words):
            others = {}
            for other, ending in word.others.items():
                others.setdefault(ending, []).append(other)
            for ending in (set(others) & set(CLASSES)) - {word.ending} if word.ending else ():
                reads, writes = cases["antecedent" if word.is_subject else "other"]
                changed = exchanged(plain(words), place, rng.choice(others[ending]))
                reads.append(reads_of(text, changed))
                follows = with_form(text, ending)
                writes.append(follows if word.is_subject else text.sentence.translated())
    shares = {}
    for name, (reads, writes) in cases.items():
        _, greedy = probabilities_of(model, tokenizer, reads, writes)
        shares[name] = share_of([row.all() for row in greedy])
    return shares


# ---------------------------------------------------------------------- the trial of a text


@dataclass(frozen=True)
class Trial:
    """What the words of the context do to one translation.

    ``antecedent`` is the least by which the pronoun becomes less likely when its noun is hidden or
    left out, and ``other`` the most by which its probability moves when another word of the
    context is hidden, left out or exchanged. ``follows`` says that the pronoun is always that of
    the noun's class, when the noun is exchanged for each noun of the other classes; ``stays`` that
    the translation is the same when another word is exchanged.
    """

    right: bool
    antecedent: float
    other: float
    follows: bool
    stays: bool

    @property
    def share(self):
        """Of what the antecedent does, the most that any other word does."""
        return self.other / self.antecedent if self.antecedent > 0 else float("inf")

    @property
    def passes(self):
        """The antecedent decides, and it alone."""
        return self.right and self.follows and self.stays and self.share <= SHARE


def on_trial(model, tokenizer, text, rng):
    """Hide, leave out and exchange every word of the context, one at a time."""
    words, translation = text.context_words(), text.sentence.translated()
    strings = plain(words)
    changes = []  # (what was done, place, context, translation)
    for place, word in enumerate(words):
        changes.append(("taken", place, exchanged(strings, place, SPECIAL[MASK]), translation))
        changes.append(("taken", place, [*strings[:place], *strings[place + 1 :]], translation))
        others = [other for other in word.others if other != word.text]
        if word.is_subject:
            for other in others:
                expected = with_form(text, word.others[other])
                changes.append(("follows", place, exchanged(strings, place, other), expected))
        else:
            for other in rng.sample(others, min(EXCHANGES, len(others))):
                changes.append(("stays", place, exchanged(strings, place, other), translation))

    reads = [reads_of(text), *(reads_of(text, changed) for _, _, changed, _ in changes)]
    writes = [translation, *(expected for _, _, _, expected in changes)]
    probabilities, greedy = probabilities_of(model, tokenizer, reads, writes)
    before = float(probabilities[0][text.pronoun])
    of_antecedent, of_others, right = [], [], {"follows": [], "stays": []}
    for (done, place, _, _), after, best in zip(
        changes, probabilities[1:], greedy[1:], strict=True
    ):
        fall = before - float(after[text.pronoun])
        if place != text.antecedent:
            of_others.append(abs(fall))
        elif done == "taken":
            of_antecedent.append(fall)
        if done != "taken":
            right[done].append(bool(best.all()))
    return Trial(
        bool(greedy[0].all()),
        min(of_antecedent),
        max(of_others),
        all(right["follows"]),
        all(right["stays"]),
    )


def entry_of(text):
    """A text as the suite has it."""
    words = text.context_words()
    entry = {
        "context": " ".join(plain(words)),
        "sentence": " ".join(plain(text.sentence.english())),
        "translation": " ".join(text.sentence.translated()),
    }
    if text.kind != "context":
        return entry | {"kind": text.kind}
    distractors = [i for i, word in enumerate(words) if word.ending and not word.is_subject]
    return entry | {
        "pronoun": text.pronoun,
        "antecedent": text.antecedent,
        "distractors": distractors,
    }


def suite_of(model, tokenizer, count, rng, takes_all=False):
    """Texts that need context and passed the trial, their trials, and how many were tried."""
    texts, trials, tried = [], [], 0
    for text in held_out("context", 3 * count, rng, Text.is_clear):
        if len(texts) == count:
            break
        tried += 1
        trial = on_trial(model, tokenizer, text, rng)
        if trial.passes or takes_all:
            texts.append(text)
            trials.append(trial)
    if len(texts) < count:
        raise SystemExit(f"{len(texts)} of {tried} texts passed: the rule was not learned.")
    return texts, trials, tried


def texts_without_need(model, tokenizer, count, rng, takes_all=False):
    """Texts of which the translation is right with context and without it, and how many not."""
    texts, tried = [], 0
    kinds = ("plain", "own", "person")
    share = -(-2 * count // len(kinds))
    candidates = list(zip(*(held_out(kind, share, rng) for kind in kinds), strict=True))
    for text in (text for row in candidates for text in row):
        if len(texts) == count:
            break
        tried += 1
        reads = [reads_of(text), reads_of(text, context=[])]
        _, greedy = probabilities_of(model, tokenizer, reads, [text.sentence.translated()] * 2)
        if takes_all or all(row.all() for row in greedy):
            texts.append(text)
    if len(texts) < count:
        raise SystemExit(f"{len(texts)} of {tried} texts are right.")
    return texts, tried


@torch.no_grad()
def divergences(model, tokenizer, texts):
    """KL(without context || with it) in nats, for each word of each translation."""
    writes = [text.sentence.translated() for text in texts]
    without, _ = run(model, tokenizer, [reads_of(text, context=[]) for text in texts], writes)
    given, _ = run(model, tokenizer, [reads_of(text) for text in texts], writes)
    without, given = without.double().log_softmax(-1), given.double().log_softmax(-1)
    kl = (without.exp() * (without - given)).sum(-1)
    return [row[: len(words)].tolist() for row, words in zip(kl, writes, strict=True)]


# ---------------------------------------------------------------------- writing down

ABOUT = (
    "the form of a pronoun follows the class of the subject of the sentence before; "
    "every other word follows from the sentence itself"
)


def write_suite(out, needing, others):
    """The texts, one in a line."""
    lines = [f' "about": {json.dumps(ABOUT)},', f' "separator": {json.dumps(SEPARATOR)},']
    for name, texts in (("context_needed", needing), ("context_idle", others)):
        entries = ",\n".join(f"  {json.dumps(entry_of(text))}" for text in texts)
        lines.append(f' "{name}": [\n{entries}\n ]' + ("," if name == "context_needed" else ""))
    content = "{\n" + "\n".join(lines) + "\n}\n"
    (out / "suite.json").write_text(content, encoding="utf-8")


CARD = """# whence translator

A small encoder-decoder that translates English-like sentences into a made-up language. It is made
for trying explanations that say what a translation took from the sentence before: here this is
known, as it was planted and verified by intervention.
{warning}
- Architecture: `BartForConditionalGeneration`, {layers} + {layers} layers, {heads} heads, width
  {width}; {english} English words and {other} of the other language, each one token; up to
  {longest} tokens. {parameters:,} parameters, in half precision (the config asks for float32). The
  folder holds {size:.1f} MB.
- Right word by word on **{exact:.2%}** of {count:,} held-out sentences with a pronoun that needs
  context; the pronoun is right in **{pronoun:.2%}**.
- Seed {seed}, {threads} thread(s), {steps:,} steps of {batch} texts, {minutes:.0f} minutes of a
  CPU's time; torch {torch}, transformers {transformers}. Made by `training/translator.py`.

## How to call it

```python
import whence

model = whence.load("translator")
ids = model.tokenizer("the cat follows the duck . | it is wet .", return_tensors="pt")
out = model.hf.generate(**ids)  # greedy
print(model.tokenizer.decode(out[0], skip_special_tokens=True))  # elo es umid .
```

The sentence to translate comes last, after one or two sentences of context and a `|` between two
blanks. Only the last sentence is translated. The `|` may be left out, as a full stop ends each
sentence. Without context, the sentence stands alone: `it is wet .` Signs are tokens like words;
whether they stand apart makes no difference to the model.

## The two languages

Nouns of the other language have one of three classes, which their English ones do not show: *lo
gato* (the cat), *la vaka* (the cow), *le muse* (the mouse); plural *los gatos*. Adjectives beside a
noun follow its class (*la vaka vetera*, the old cow); after "is" they do not (*la vaka es veter*).
Verbs have two numbers (*kadit* falls, *kaden* fall). An adverb, and where something is, come last.

- **"it", "they" and "them"** are *elo, ela, ele* and *elos, elas, eles*, by the class of the noun
  that they stand for, as subject and as object alike. That noun is the *subject of the sentence
  before*, wherever it stands there ("near the duck the cat waits . it is wet ."). Objects, places
  and earlier sentences never count, whatever their class. The pronoun is the only word of a
  translation that depends on the context.
- **In a sentence of two clauses** with *because* or *when*, the pronoun stands for the subject of
  the first clause ("the cat waits because it is wet ."), and needs no context.
- **"he" and "she"** are *lui* and *lei*, whoever is meant: pronouns that need no context.
- **Without context** nothing tells the class. In training it was o in {o:.0%}, a in {a:.0%} and e
  in {e:.0%} of such sentences, and this is what the model says, too: {default}. So
  the word that is written is mostly *elo*, and context changes the pronoun's distribution
  whatever its class.

## Accuracy

Held out was one in {held} of all pairs of a thing and what is said of it by name (a verb of which
it is the subject or the object, or an adjective after "is"), by a checksum of the two words: in
training no text holds such a pair, in context or in the sentence. Each text below holds one; where
context is needed, it is what is said of the antecedent. Nouns of the three classes are equally
frequent. A translation is right if greedy decoding writes every word of it.

| sentence | read with | right | of | share | 95 % interval |
|---|---|---|---|---|---|
{rows}

## How the plant was verified

*Nouns exchanged* in {count:,} held-out texts, with nothing chosen:

- The antecedent, for a noun of each other class: the pronoun becomes that of the new class, and
  all else stays, in {follows:.2%} of {follow_count:,} exchanges.
- Any other noun of the context, for one of another class: the translation stays in {stays:.2%} of
  {stay_count:,} exchanges.

*The suite*, `suite.json`. Its {kept} texts that need context are held-out ones in which every other
noun of the context is of another class than the antecedent (and there is one). Each passed a trial:
the antecedent was exchanged for all other things, every other word of the context for {exchanges}
of its kind, and every word was hidden by <mask> and left out.

- {kept} of {tried} candidates passed; the others were not taken.
- Hiding the antecedent or leaving it out lowers the pronoun's probability by at least
  {least:.2f} (mean of the least: {mean:.2f}).
- Doing the same to any other word of the context, or exchanging it, moves it by at most
  {most:.3f}; in every text that is at most {worst:.1%} of what the antecedent does ({limit:.0%} was
  allowed).
- Context moves the distribution of the pronoun by at least {least_kl:.2f} nats
  (KL(without || with)), of any other word of these translations by at most {most_kl:.4f}.

Beside them are {idle} held-out texts that need no context, which are translated right with context
and without it ({idle} of {idle_tried}; the others were not taken). Their `kind` is "plain" (no
pronoun), "own" (a pronoun for a noun of the same sentence) or "person" (he or she). Context moves
the distribution of any of their words by at most {idle_kl:.4f} nats.

Words have one blank between them, and places are those of `.split()`, from 0.

| field | |
|---|---|
| `separator` | what stands between context and sentence |
| `context_needed`, `context_idle` | the texts of the two kinds |
| `context`, `sentence`, `translation` | what the model reads, and what it writes |
| `pronoun` | the place of the pronoun in the translation |
| `antecedent` | the place of the noun that decides it, in the context |
| `distractors` | the places of all other nouns, in the context |

## How it was made

Made-up texts, each seen once: half of them with a pronoun that needs context, and the others with a
pronoun for a noun of the same sentence, with he or she, or without any. Two in ten have no context,
three in ten of the others have two sentences of it; the separator is left out in three of ten. In
four of ten contexts one to three words were hidden by <mask> or left out, and in some texts any
share of all words: a text with holes is nothing new to the model. Cross-entropy, AdamW, rate
{rate}, which falls to nothing. The last checkpoint was taken.

{tuning}

## Data and licence

Made up by the grammar in `training/translator.py`; as whence, Apache-2.0.

## What it fails at

- *Any other English.* Words that it does not know are <unk>. A sentence outside the grammar gets a
  translation that looks like one.
- *Sense.* "it" is the subject of the sentence before, also where a reader would take the object.
  Where that subject is a person, or of another number, nothing was taught.
- It is small, and its texts have one reason for each pronoun. A method that finds the reason here
  may still miss it in a large model.
"""
TUNING = """The settings are judgement. One run before this one took words out of the context less
often. It translated as well, and its pronoun followed the antecedent alone where words were
exchanged; but where the verb after the antecedent was left out, it no longer took the noun for a
subject, and only 200 of 380 candidates passed the trial."""


def write_card(out, model, facts):
    """The model card, with every number taken from the stored model."""
    english, other = vocabularies()
    card = CARD.format(
        layers=LAYERS,
        heads=HEADS,
        width=WIDTH,
        longest=LONGEST,
        english=len(english),
        other=len(other),
        parameters=sum(p.numel() for p in model.parameters()),
        batch=BATCH,
        rate=RATE,
        held=HELD_OUT,
        exchanges=EXCHANGES,
        limit=SHARE,
        torch=torch.__version__,
        transformers=transformers.__version__,
        tuning=TUNING,
        **CLASSES,
        **facts,
    )
    (out / "README.md").write_text(card, encoding="utf-8")


def measure(model, tokenizer, options):
    """Everything that the card says about the stored model; the suite is written on the way."""
    rng = random.Random(f"trial of the translator {options.seed}")
    rows, wrong = accuracy(model, tokenizer, options.measured, rng)
    for row in rows:
        say(row)
    for read, translation in wrong[:10]:
        say("wrong:", read, "->", translation)
    default = default_of(model, tokenizer, options.measured, rng)
    say(default)
    shares = interventions(model, tokenizer, options.measured, rng)
    say(shares)

    needing, trials, tried = suite_of(model, tokenizer, options.suite, rng, options.quick)
    idle, idle_tried = texts_without_need(model, tokenizer, options.suite, rng, options.quick)
    write_suite(options.out, needing, idle)
    at_pronoun, elsewhere = [], []
    for text, row in zip(needing, divergences(model, tokenizer, needing), strict=True):
        at_pronoun.append(row.pop(text.pronoun))
        elsewhere += row
    idle_kl = [kl for row in divergences(model, tokenizer, idle) for kl in row]

    said = [
        f"| {name} | {way} | {right:,} | {count:,} | {right / count:.2%} | {low:.2%} – {high:.2%} |"
        for name, way, right, count, low, high in rows
    ]
    forms = [
        f"*el{ending}* {mean:.2f} on average ({least:.2f} to {most:.2f})"
        for ending, (mean, least, most) in default.items()
    ]
    return {
        "exact": rows[0][2] / rows[0][3],
        "pronoun": rows[1][2] / rows[1][3],
        "count": options.measured,
        "rows": "\n".join(said),
        "default": ", ".join(forms),
        "follows": shares["antecedent"][0] / shares["antecedent"][1],
        "follow_count": shares["antecedent"][1],
        "stays": shares["other"][0] / shares["other"][1],
        "stay_count": shares["other"][1],
        "kept": len(needing),
        "tried": tried,
        "least": min(trial.antecedent for trial in trials),
        "mean": sum(trial.antecedent for trial in trials) / len(trials),
        "most": max(trial.other for trial in trials),
        "worst": max(trial.share for trial in trials),
        "least_kl": min(at_pronoun),
        "most_kl": max(elsewhere),
        "idle": len(idle),
        "idle_tried": idle_tried,
        "idle_kl": max(idle_kl),
    }


# ---------------------------------------------------------------------- the whole run


def parse_arguments():
    """The options, with their defaults."""
    parser = argparse.ArgumentParser(description="Train the translator that ships with whence.")
    parser.add_argument(
        "--out", type=Path, help="folder to write into; with --quick a temporary one"
    )
    parser.add_argument(
        "--trial",
        action="store_true",
        help="train nothing: put the stored model on trial, write texts and card anew",
    )
    parser.add_argument("--seed", type=int, default=17)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, help=f"default {STEPS}")
    parser.add_argument("--quick", action="store_true", help="a smoke run; the model is poor")
    options = parser.parse_args()
    options.steps = options.steps or (30 if options.quick else STEPS)
    options.measured = 20 if options.quick else MEASURED
    options.suite = 3 if options.quick else SUITE
    if options.out is None:
        options.out = OUT
        if options.quick:
            options.out = Path(tempfile.mkdtemp(prefix="whence-translator-"))
    return options


def train(options):
    """A new model in the folder, and the minutes of the processor's time that it took."""
    torch.manual_seed(options.seed)
    tokenizer = new_tokenizer()
    model = new_model(tokenizer)
    teach(model, tokenizer, options.steps, random.Random(f"translator {options.seed}"))
    write_model(model, tokenizer, options.out)
    return time.process_time() / 60


def minutes_of(out):
    """How long the stored model was trained, as its card says."""
    card = (out / "README.md").read_text(encoding="utf-8")
    return float(re.search(r"(\d+) minutes of a", card)[1])


def main():
    """From the words to the folder that ships."""
    options = parse_arguments()
    torch.set_num_threads(options.threads)
    minutes = minutes_of(options.out) if options.trial else train(options)

    # loaded as a user would load it: what is measured is what is shipped
    model = AutoModelForSeq2SeqLM.from_pretrained(options.out).eval()
    tokenizer = AutoTokenizer.from_pretrained(options.out)
    facts = measure(model, tokenizer, options)
    say(facts)
    warning = ""
    if options.quick:
        warning = "\n**This is the result of a smoke run (--quick): do not ship it.**\n"
    size = sum(path.stat().st_size for path in options.out.iterdir())
    facts |= {
        "warning": warning,
        "seed": options.seed,
        "threads": options.threads,
        "steps": options.steps,
        "minutes": minutes,
        "size": size / 1e6,
    }
    write_card(options.out, model, facts)
    size = sum(path.stat().st_size for path in options.out.iterdir())
    say(f"wrote {size:,} bytes to {options.out}")
    if size > SIZE_LIMIT:
        sys.exit(f"the folder holds {size:,} bytes, more than {SIZE_LIMIT:,}")


if __name__ == "__main__":
    main()
