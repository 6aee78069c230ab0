"""Labs: experiments small enough to understand, each one file that reads from top to bottom, with the claims it puts to the test.

A lab is a module here with a ``TITLE`` and ``run(book, …)``, which writes into a Notebook. It uses whence as a user would.
"""

LABS = ("attention", "gpt2", "histogram", "dyck", "theorem", "figures", "judging")
