"""Labs: experiments small enough to understand, each with the claims that it puts to the test.

A lab is one file here that reads from top to bottom, with a ``TITLE`` and ``run(book, …)``, which
writes into a Notebook. It uses whence as a user would: it imports public names only
(tests/labs/test_imports.py).
"""

# each with what it is about, in a line: `whence lab` lists them
ABOUT = {
    "attention": "Self-attention step by step.",
    "gpt2": "From bytes to the next word.",
    "histogram": "Two solutions of one task, one of which attends to nothing in the text.",
    "dyck": "Brackets closed by models that do not look at them.",
    "theorem": "LIME on attention, by formula and exactly.",
    "figures": "The rest of the lectures' pictures.",
    "judging": "Recall, sensitivity, retraining and simulated users, where the truth is known.",
    "roar": "Remove the important words, retrain, and see what was lost.",
    "debate": "Is attention explanation? The figures of two papers, on small recurrent models.",
}
LABS = tuple(ABOUT)
