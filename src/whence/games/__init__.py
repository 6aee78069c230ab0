"""Looking from outside: the target's value when units of the text are removed, and what can be estimated from it."""
