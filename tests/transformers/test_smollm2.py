"""SmolLM2-135M, exported from its GGUF file and loaded by transformers."""

import tempfile
import unittest
from pathlib import Path

from support import asset, load, perplexity, thinwire

MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"
TEXT = "state-of-the-union-2021.txt"
TOKENS = 512


class SmolLM2(unittest.TestCase):
    def test_perplexity_and_chat(self):
        gguf, text = asset(MODEL), asset(TEXT)
        if gguf is None or text is None:
            self.skipTest(f"{MODEL} or {TEXT} is missing; `cargo xtask assets` fetches them")
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder) / "smollm2"
            thinwire("export", "--model", gguf, "--out", folder)
            evaluate = ["eval", "--text", text, "--tokens", TOKENS, "--boundaries", "none", "--model"]
            own = thinwire(*evaluate, gguf)["perplexity"]
            self.assertEqual(thinwire(*evaluate, folder)["perplexity"], own, "bit for bit")

            model, tokenizer = load(folder)
            ids = tokenizer(text.read_text()).input_ids[:TOKENS]
            theirs = perplexity(model, ids, TOKENS)
            print(f"SmolLM2-135M, {TOKENS} tokens: perplexity {own:.4f}, in transformers {theirs:.4f}")
            self.assertAlmostEqual(theirs / own, 1.0, delta=1e-4)

            turn = [{"role": "user", "content": "Hello"}]
            chat = tokenizer.apply_chat_template(turn, tokenize=False, add_generation_prompt=True)
            self.assertTrue(chat.endswith("<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n"), chat)
            self.assertEqual(model.generation_config.eos_token_id, tokenizer.eos_token_id)
            self.assertEqual(tokenizer.eos_token, "<|im_end|>")
