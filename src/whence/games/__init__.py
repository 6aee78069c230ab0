"""Looking from outside: the target's value when units are removed, and what follows from it."""
