"""What is needed to audit attention in a real language model, for docs/our-audits.md.

    python -m bench.audits smollm2 --out MODELS/smollm2       # SmolLM2-135M, unpacked
    python -m bench.audits pairs --data DATA --model MODELS/smollm2 --out pairs.jsonl
    python -m bench.audits table --audit audits/smollm2/audit.json --out table.md

DATA holds the folder blimp_subset. The classifiers and their sentences are those of bench.answer.
The audits themselves are runs of ``whence audit``, whose commands the page gives.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from bench.answer import GGUF, folder_of, json_lines

OF_EACH = 4  # pairs of each of the twelve paradigms of grammar
FEWEST_WORDS = 2  # before the word that is asked for


def smollm2(out: Path) -> None:
    """The whole language model, its weights unpacked from four bits."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaForCausalLM

    folder = folder_of("smollm2")
    packed = AutoModelForCausalLM.from_pretrained(folder, gguf_file=GGUF, dtype=torch.float32)
    del packed.config.quantization_config
    hf = LlamaForCausalLM(packed.config)  # one that does not remember that it was packed
    hf.load_state_dict(packed.state_dict())
    hf.save_pretrained(out, safe_serialization=True)
    AutoTokenizer.from_pretrained(folder, gguf_file=GGUF).save_pretrained(out)


def pairs(data: Path, model: Path, out: Path, of_each: int, fewest_words: int) -> None:
    """Beginnings of sentences, with the next word that is right and the one that is wrong.

    Only pairs whose words are single tokens, of which the model is asked for the next one. Readings
    of a few words say little: ``fewest_words`` leaves short beginnings out.
    """
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model)
    by_paradigm: dict[str, list[dict[str, Any]]] = {}
    for row in json_lines(data / "blimp_subset" / "pairs.jsonl.gz"):
        words = [f" {row['good_word']}", f" {row['bad_word']}"]
        is_single = all(len(tokenizer(w, add_special_tokens=False).input_ids) == 1 for w in words)
        if row["one_prefix"] and is_single and len(row["prefix"].split()) >= fewest_words:
            kept = {"text": row["prefix"], "right": words[0], "wrong": words[1]}
            by_paradigm.setdefault(row["paradigm"], []).append(kept | {"id": row["paradigm"]})
    with out.open("w", encoding="utf-8") as file:
        # one of each in turns: an audit that is ended early has seen every paradigm
        for number in range(of_each):
            for of_paradigm in by_paradigm.values():
                for kept in of_paradigm[number : number + 1]:
                    file.write(json.dumps(kept) + "\n")
    for name, of_paradigm in by_paradigm.items():
        taken = min(of_each, len(of_paradigm))
        print(f"{name}: {taken} of {len(of_paradigm)} pairs of single tokens are taken")


def table(audit: Path, out: Path) -> None:
    """What an audit says, and its layers as a table in Markdown, for the page."""
    import whence
    from whence.core.audited import Audit
    from whence.views.audit import audit_sentences, shown, shown_of_most

    result = whence.read(audit)
    assert isinstance(result, Audit), f"{audit} is no audit"
    lines = [f"- {sentence}" for sentence in audit_sentences(result)]
    lines += ["", "| attention of | shuffled | even | another | verdict |", "|---|---|---|---|---|"]
    for verdict in (*result.of_layers, *([result.of_all] if result.of_all else [])):
        effects = [shown(verdict.permutation), shown(verdict.uniform)]
        another = shown_of_most(verdict.adversary).replace("%", " %")
        cells = [str(verdict.place), *effects, another, str(verdict.may)]
        lines.append(f"| {' | '.join(cells)} |")
    out.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m bench.audits")
    parser.add_argument("what", choices=["smollm2", "pairs", "table"])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--audit", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--of-each", type=int, default=OF_EACH, help="pairs of each paradigm")
    parser.add_argument("--fewest-words", type=int, default=FEWEST_WORDS)
    given = parser.parse_args()
    if given.what == "smollm2":
        smollm2(given.out)
    elif given.what == "table":
        table(given.audit, given.out)
    else:
        pairs(given.data, given.model, given.out, given.of_each, given.fewest_words)


if __name__ == "__main__":
    main()
