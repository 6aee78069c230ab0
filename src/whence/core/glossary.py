"""The words of the project, one plain sentence each.

The report's fold, ``docs/glossary.md`` and whoever else explains a word take it from here.
"""

from __future__ import annotations

# In the order in which a reader meets them. Said below every page of answers, whatever they are.
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
    "or against it (below zero), and of a loss, such as the cross-entropy, the other way round; an "
    "unsigned method only says how much the word matters.",
    "ranking": "The units in the order that a method gives them, the most important first.",
    "random ranking": "The same units in an order drawn by lot: "
    "what a method must beat before its ranking says anything.",
    "evidence": "A test of one ranking: the words are removed in its order, and the effect on "
    "the model is compared with removing them in random orders.",
    "better than random": "At most one random ranking in twenty does as well as the method's, "
    "under every way of removing words that was tried.",
    "taken together": "All methods in one test, which must be passed before words are named: the "
    "best third of them stand higher among the random rankings than rankings that know nothing, "
    "and are as much alike, do in nineteen texts of twenty.",
    "not separable from random": "Random rankings do about as well, so this text gives no reason "
    "to trust the method's ranking; it may still be right.",
    "worse than random": "At most one random ranking in twenty does as badly as the method's: "
    "what it puts last matters more than what it puts first.",
    "p-value": "The chance that a random ranking does at least as well as the method's; "
    "0.05 or less counts as better than random; beside a ranking that is worse it is the chance "
    "that a random one does no better (“p of worse”).",
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
    "conflict": "A word that some methods have for the target and others against it, or that is "
    "strong (half of a method's largest score or more) in some and weak (less than a tenth) in "
    "others.",
    "anchor": "A few words that are enough by themselves: while they stay in the text, the model "
    "nearly always gives the same answer, whichever other words are removed.",
    "window": "A part of a text that is too long for the model; each window is explained "
    "by itself, and the scores are joined.",
    "output": "One token that a model wrote; each of them can be explained by what stands "
    "before it.",
    "continuation": "What follows a prompt: written by the model just now, or given as written.",
    "section": "A part of a text with a name of its own, such as one message of a chat or one "
    "document.",
    "seed": "The number that random draws start from; the same seed gives the same result again.",
}

# What whence evaluate says beside these, in the order in which its table is read. Said below a page
# of an evaluation, whatever it found.
ON_TRIAL: dict[str, str] = {
    "metric": "A number for how good one explanation of one text is, by one question; "
    "a cell of the table is its mean over the texts.",
    "faithfulness": "Whether the model's output follows the words that an explanation names: "
    "metrics of this group remove words and look at the target.",
    "comprehensiveness": "How much the target falls when the words that a method ranks first are "
    "removed; high is good.",
    "sufficiency": "How much the target falls when only the words that a method ranks first are "
    "kept; low is good.",
    "gold": "The words that people marked as the reason (the rationale), or that are known to "
    "matter: metrics of this group ask whether an explanation names them.",
    "again": "Metrics of this group make the explanation once more, under another seed, on a "
    "changed model or a changed text, and ask whether it stays the same where it should and "
    "changes where it should.",
    "form": "What shape an explanation has, such as how few words carry it; "
    "it says nothing of its truth.",
    "own control": "The same metric of copies of a method's scores that are laid on other words "
    "by lot: + is better and − worse than these, text by text.",
    "beaten": "The mean share of its random copies that a method does better than; "
    "a half is chance.",
    "interval": "Where the mean of other texts of this kind would lie, in 95 of 100 cases; "
    "it is found by drawing the texts again and again (bootstrap).",
    "judged together": "All methods of a column are one family, so that the chance of even one "
    "false mark among them is about 5 %.",
    "group letters": "Two methods of a column that share a letter cannot be told apart by these "
    "texts; a is the best group.",
    "built in (°)": "The method was made by the very removal that the metric judges it by, so it "
    "should win there; the column of another removal tells more.",
    "gauge": "How much texts with words removed look like data to the model: the share of whole "
    "texts that lie further out than they do, where about a half looks like data and near zero "
    "does not.",
    "planted truth": "How often a method finds what a model was made to look at: "
    "the only place where the right explanation is known.",
    "mechanism": "What such a model was made to look at, for example one keyword, or a negation "
    "before it.",
    "decoy": "A word in a planted text that looks as if it mattered, and does nothing.",
}
