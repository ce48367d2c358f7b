"""SmolLM2-135M, exported from its GGUF file and loaded by transformers."""

import tempfile
import unittest
from pathlib import Path

from support import asset, load, perplexity, thinwire

MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"
TEXT = "state-of-the-union-2021.txt"
TOKENS = 512


class SmolLM2(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.gguf, cls.text = asset(MODEL), asset(TEXT)
        if cls.gguf is None or cls.text is None:
            raise unittest.SkipTest(f"{MODEL} or {TEXT} is missing; `cargo xtask assets` fetches them")
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name) / "smollm2"
        thinwire("export", "--model", cls.gguf, "--out", cls.folder)
        cls.model, cls.tokenizer = load(cls.folder)

    def test_perplexity(self):
        evaluate = ["eval", "--text", self.text, "--tokens", TOKENS, "--boundaries", "none", "--model"]
        own = thinwire(*evaluate, self.gguf)["perplexity"]
        self.assertEqual(thinwire(*evaluate, self.folder)["perplexity"], own, "bit for bit")
        ids = self.tokenizer(self.text.read_text()).input_ids[:TOKENS]
        theirs = perplexity(self.model, ids, TOKENS)
        print(f"SmolLM2-135M, {TOKENS} tokens: perplexity {own:.4f}, in transformers {theirs:.4f}")
        self.assertAlmostEqual(theirs / own, 1.0, delta=1e-4)

        own = thinwire(*evaluate, self.gguf, "--sequence", 128, "--stride", 48)["perplexity"]
        theirs = perplexity(self.model, ids, 128, 48)
        print(f"in windows of 128, one every 48: {own:.4f}, in transformers {theirs:.4f}")
        self.assertAlmostEqual(theirs / own, 1.0, delta=1e-4)

    def test_chat(self):
        self.assertEqual(self.model.generation_config.eos_token_id, self.tokenizer.eos_token_id)
        self.assertEqual(self.tokenizer.eos_token, "<|im_end|>")
        for system, user in [(None, "What is the capital of France?"), ("Answer in one word.", "Is 7 a prime? 日本語 🙂")]:
            turns = [{"role": "user", "content": user}]
            if system is not None:
                turns.insert(0, {"role": "system", "content": system})
            chat = self.tokenizer.apply_chat_template(
                turns, add_generation_prompt=True, return_dict=True, return_tensors="pt"
            )
            prompt = chat["input_ids"].shape[1]
            theirs = self.model.generate(**chat, max_new_tokens=24, do_sample=False)[0, prompt:].tolist()
            ended = theirs[-1] == self.tokenizer.eos_token_id
            command = ["generate", "--model", self.gguf, "--chat", "--prompt", user, "--max-tokens", 24]
            own = thinwire(*command, *(["--system", system] if system else []))
            self.assertEqual(own["prompt_tokens"], prompt)
            self.assertEqual(own["text"], self.tokenizer.decode(theirs[:-1] if ended else theirs))
            self.assertEqual(own["end"], "stop" if ended else "length")
            print(f"SmolLM2-135M on {user!r}: {own['text']!r}")
