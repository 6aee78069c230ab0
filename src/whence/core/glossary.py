"""The words of the project, one plain sentence each.

The report's fold, ``docs/glossary.md`` and whoever else explains a word take it from here.
"""

from __future__ import annotations

# in the order in which a reader meets them
GLOSSARY: dict[str, str] = {
    "unit": "A piece of the text that gets one score: usually a word, or else a token, a sentence, "
    "or a patch of an image.",
    "token": "A piece of text as the model reads it: a word, or a part of one.",
    "special token": "A token that the model adds to every text, such as [CLS] or [SEP]; "
    "it is no part of what was written and gets no score.",
    "target": "The one number of the model's output that is explained, "
    "such as the score of the label “positive”.",
    "score (logit)": "The number that the model gives to a label before the numbers of all labels "
    "become probabilities; a higher score means a higher probability.",
    "attribution": "One number for each unit, by one method: "
    "how much this unit has to do with the target.",
    "signed / unsigned": "A signed method says whether a word speaks for the target (above zero) "
    "or against it (below zero); an unsigned method only says how much the word matters.",
    "ranking": "The units in the order that a method gives them, the most important first.",
    "random ranking": "The same units in an order drawn by lot: "
    "what a method must beat before its ranking says anything.",
    "evidence": "A test of one ranking: the words are removed in its order, and the effect on "
    "the model is compared with removing them in random orders.",
    "better than random": "At most one random ranking in twenty does as well as the method's, "
    "under every way of removing words that was tried.",
    "not separable from random": "Random rankings do about as well, so this text gives no reason "
    "to trust the method's ranking; it may still be right.",
    "worse than random": "At most one random ranking in twenty does as badly as the method's: "
    "what it puts last matters more than what it puts first.",
    "p-value": "The chance that a random ranking does at least as well as the method's; "
    "0.05 or less counts as better than random.",
    "removal": "The way in which a word is taken out of the text for a test: replaced by a mask "
    "token (mask), cut out (delete), replaced by padding (pad), by an average word (mean), "
    "by nothing (zero), or by words that another model writes (infill).",
    "deletion curve": "The target's value while the words are removed step by step, "
    "the most important first; with a good ranking it falls early.",
    "insertion curve": "The target's value while the words are put into an empty text "
    "step by step, the most important first; with a good ranking it rises early.",
    "control": "The same measurement on random rankings (or on another pair of texts), "
    "to see what comes out where there is nothing to find.",
    "pass": "One text sent once through the model: forward to get its output, or backward to get "
    "the gradients; passes are what a method costs.",
    "from memory": "A pass that was not needed, as the same text with the same words removed "
    "had been run before.",
    "gradient": "How fast the target changes when a token's embedding (its numbers inside "
    "the model) is changed a little.",
    "read-out token": "The token that the model's output is read from: [CLS] in BERT, the last "
    "token in GPT-2.",
    "attention": "The weights by which the model mixes the tokens into each other in each layer; "
    "they say where it looked, not what it concluded.",
    "standard error": "How far a sampled score would typically move "
    "if it were sampled again with another seed.",
    "completeness gap": "Some methods promise that their scores add up to the change of the target "
    "between the text and an empty one; the gap is how far they miss it, as a share "
    "of that change.",
    "agreement": "How alike the rankings of two methods are, as a rank correlation: 1 is the same "
    "order, 0 no relation, −1 the opposite order.",
    "conflict": "A word that some methods put at the top (or for the target) "
    "and others at the bottom (or against it).",
    "anchor": "A few words that are enough by themselves: while they stay in the text, the model "
    "nearly always gives the same answer, whichever other words are removed.",
    "window": "A part of a text that is too long for the model; each window is explained "
    "by itself, and the scores are joined.",
    "seed": "The number that random draws start from; the same seed gives the same result again.",
}
