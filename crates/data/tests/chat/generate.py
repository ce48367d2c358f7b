"""Writes what transformers makes of the conversations: token ids and the mask of the assistant's tokens, and the ids of
prompts for an answer.

    pip install transformers tokenizers
    python generate.py          # in this folder

The templates have the constructs of the models' own (ChatML as SmolLM2 has it, Llama 3.2, Qwen3), in few words, and
`{% generation %}` around answers, which transformers needs for the mask. The plain twin of each, without these blocks,
gives the same text. The tokenizer is trained on the conversations and the templates, so some tokens are long.
"""

import datetime
import json
import re
from pathlib import Path

import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast
from transformers.utils import chat_template_utils

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>",
           "<|eot_id|>"]
TEMPLATES = ["chatml", "llama3", "qwen3"]
PROMPTS = [{"user": "What is a pipeline?"}, {"system": "Be short.", "user": "Grüße auf 日本語 🙂<|im_end|>\n"}]
HERE = Path(__file__).parent
DATE = datetime.datetime(2024, 7, 26)


class FixedDate(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return DATE


def train(texts):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=420, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def main():
    chat_template_utils.datetime = FixedDate
    lines = (HERE / "conversations.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    templates = {name: (HERE / f"{name}.jinja").read_text() for name in TEMPLATES}
    tokenizer_file = HERE / "tokenizer.json"
    train(lines + list(templates.values())).save(str(tokenizer_file))
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(tokenizer_file), bos_token="<|begin_of_text|>",
                                        eos_token="<|endoftext|>")
    expected = {"transformers": transformers.__version__, "prompts": {}}
    for name, template in templates.items():
        plain = re.sub(r"{%-? *(end)?generation *-?%}", lambda tag: tag[0].replace(f"{tag[1] or ''}generation", "set _ = 0"),
                       template)
        (HERE / f"{name}.plain.jinja").write_text(plain)
        expected["prompts"][name] = []
        for prompt in PROMPTS:
            messages = [{"role": role, "content": content} for role, content in prompt.items()]
            ids = tokenizer.apply_chat_template(messages, chat_template=template, add_generation_prompt=True,
                                                return_dict=False)
            expected["prompts"][name].append(prompt | {"ids": ids})
        expected[name] = []
        for record in records:
            arguments = dict(tools=record.get("tools"), tokenize=True, return_dict=True)
            encoded = tokenizer.apply_chat_template(record["messages"], chat_template=template,
                                                    return_assistant_tokens_mask=True, **arguments)
            text = tokenizer.apply_chat_template(record["messages"], chat_template=plain, tools=record.get("tools"),
                                                 tokenize=False)
            assert tokenizer.decode(encoded["input_ids"]) == text, (name, text)
            assert any(encoded["assistant_masks"])
            expected[name].append({"ids": encoded["input_ids"], "mask": encoded["assistant_masks"]})
    (HERE / "expected.json").write_text(json.dumps(expected, separators=(",", ":")).replace('],"', '],\n"') + "\n")


if __name__ == "__main__":
    main()
