"""One file per method; each reads like its formula and is found by itself."""
