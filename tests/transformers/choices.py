"""Whether transformers chooses as `thinwire eval --choices` does, question by question.

    python choices.py MODEL FILE [N]

MODEL is exported and loaded by transformers, which chooses an answer to each of the first N questions of FILE (PIQA's, with
`question`, `options` as lines `A. ..` and `answer`). A copy of FILE in which these are the right answers is given to
`thinwire`: it chooses the same ones if its accuracy on the copy is 1.
"""

import json
import re
import sys
import tempfile
from pathlib import Path

import torch

from support import load, thinwire


def log_likelihood(model, tokenizer, prompt, choice):
    """Of the tokens that the choice adds to the prompt."""
    begin = len(tokenizer(prompt).input_ids)
    ids = torch.tensor([tokenizer(f"{prompt} {choice}").input_ids])
    with torch.no_grad():
        logits = model(ids).logits[0]
    chosen = logits.log_softmax(-1)[:-1].gather(1, ids[0, 1:, None])
    return chosen[begin - 1 :].double().sum().item()


def main(source, questions, limit=None):
    lines = [json.loads(line) for line in Path(questions).read_text().splitlines() if line.strip()][:limit]
    picks = {"acc": [], "acc_norm": []}
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        thinwire("export", "--model", source, "--out", folder / "model")
        model, tokenizer = load(folder / "model")
        for line in lines:
            texts = [re.sub(r"^[A-Z]\. ", "", option).strip() for option in line["options"].split("\n")]
            prompt = f"Question: {line['question']}\nAnswer:"
            found = [log_likelihood(model, tokenizer, prompt, text) for text in texts]
            norm = [value / len(text) for value, text in zip(found, texts)]
            picks["acc"].append(found.index(max(found)))
            picks["acc_norm"].append(norm.index(max(norm)))
        evaluate = ["eval", "--model", source, "--format", "piqa", "--limit", len(lines), "--choices"]
        own = thinwire(*evaluate, questions)
        for measure, chosen in picks.items():
            answers = [line["options"].split("\n")[pick] for line, pick in zip(lines, chosen)]
            right = sum(line["answer"] == answer for line, answer in zip(lines, answers)) / len(lines)
            copy = folder / f"{measure}.jsonl"
            copy.write_text("".join(json.dumps(line | {"answer": a}) + "\n" for line, a in zip(lines, answers)))
            same = thinwire(*evaluate, copy)[measure]
            print(f"{measure}: {right:.4f} in transformers, {own[measure]:.4f} here, the same choice in {same:.4f}")


if __name__ == "__main__":
    main(*sys.argv[1:3], *map(int, sys.argv[3:4]))
