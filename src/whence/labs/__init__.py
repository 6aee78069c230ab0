"""Labs: experiments small enough to understand, each with the claims that it puts to the test.

A lab is one file here that reads from top to bottom, with a ``TITLE`` and ``run(book, …)``, which
writes into a Notebook. It uses whence as a user would: it imports public names only
(tests/labs/test_imports.py).
"""

LABS = (
    "attention",
    "gpt2",
    "histogram",
    "dyck",
    "theorem",
    "figures",
    "judging",
    "roar",
    "debate",
)
