"""An auditor made on the spot: does the wire hold with a real server and a real model architecture?

    pip install "transformers[serving]"
    python benchmarks/tiny_model.py

Makes a Qwen2 model of some hundred thousand weights and its tokenizer, serves it with `transformers serve` on loopback,
and audits simulated runs through it, post hoc and online: first with random weights, whose every reply must be an
error, then with weights fitted to one reply, whose every verdict must be that reply's. It says nothing about quality.
Prints a table, and JSON with --json. Leaves with status 1 where a verdict is another one.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from prefixguard.auditor import WalkProtocol, audit
from prefixguard.escalate import AsyncClient, Endpoint, LlmAuditor, PromptKind, ask_for_verdict
from prefixguard.simulation import write_runs
from prefixguard.stepview import StepRecord, load_adapter, read_runs
from prefixguard.trace import Run

BUDGET = 4000
#: Its pieces are tokens of their own: so small a model learns an order of nine tokens, not of a hundred.
REPLY = (
    "<think>\nStep 2 acts on an order",
    " that nobody named.",
    "\n</think>\n",
    "<answer>\n",
    '{"answer": 2,',
    ' "agent": "agent",',
    ' "reason": "The order was never asked for,',
    ' and no look-up shows it.",',
    ' "quote": null}\n</answer>',
)
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def prompts(runs: Sequence[Run[StepRecord]]) -> list[str]:
    """What the model will be asked, as text."""
    asked = [ask_for_verdict(PromptKind.POST_HOC, run.records, BUDGET).messages for run in runs]
    return ["".join(f"<|im_start|>{m['role']}\n{m['content']}<|im_end|>\n" for m in messages) for messages in asked]


def make(folder: Path, texts: Sequence[str], steps: int) -> int:
    """A model in a folder; the number of its weights. steps: of fitting to the one reply; 0: random weights."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    inner.train_from_iterator(
        texts, trainers.BpeTrainer(vocab_size=1500, special_tokens=special, initial_alphabet=alphabet)
    )
    tokens = PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    tokens.add_tokens(list(REPLY))
    tokens.chat_template = TEMPLATE
    torch.manual_seed(0)
    model = Qwen2ForCausalLM(
        Qwen2Config(
            vocab_size=len(tokens),
            hidden_size=64,
            intermediate_size=128,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=16_384,
            bos_token_id=None,
            eos_token_id=tokens.eos_token_id,
            pad_token_id=tokens.pad_token_id,
        )
    )
    fit = torch.optim.AdamW(model.parameters(), lr=4e-3)
    falling = torch.optim.lr_scheduler.OneCycleLR(fit, max_lr=4e-3, total_steps=max(steps, 1))
    reply = tokens("<|im_start|>assistant\n" + "".join(REPLY) + "<|im_end|>")["input_ids"]
    asked = [tokens(text)["input_ids"] for text in texts]
    for step in range(steps):
        # First the reply itself, then the reply after a whole question.
        question = asked[step % len(asked)]
        row = torch.tensor([(question[-50:] if step < steps * 0.8 else question) + reply])
        labels = row.clone()
        labels[:, : -len(reply) + 3] = -100
        loss = model(input_ids=row, labels=labels).loss
        fit.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        fit.step()
        falling.step()
    model.save_pretrained(folder)
    tokens.save_pretrained(folder)
    return sum(weights.numel() for weights in model.parameters())


@contextmanager
def served(log: Path) -> Iterator[str]:
    """`transformers serve` on a free port; its base URL."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(Path(sys.executable).parent / "transformers"), "serve", "--host", "127.0.0.1", "--port", str(port)]
    with log.open("wb") as file:
        server = subprocess.Popen(
            command, stdout=file, stderr=file, env={**os.environ, "HF_HUB_OFFLINE": "1"}, start_new_session=True
        )
        try:
            for _ in range(240):
                try:
                    with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2):
                        break
                except OSError:
                    if server.poll() is not None:
                        raise SystemExit(f"transformers serve ended: {log.read_text()[-800:]}") from None
                    time.sleep(0.5)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            os.killpg(server.pid, signal.SIGTERM)
            server.wait(20)


def outcomes(runs: Sequence[Run[StepRecord]], kind: PromptKind, model: Path, url: str) -> dict[str, int]:
    """How often each verdict came, over whole audits."""
    endpoint = Endpoint(str(model), url, max_reply_tokens=160, temperature=0.0, timeout=300.0)
    auditor = LlmAuditor(AsyncClient(endpoint, concurrency=2), kind, budget_tokens=BUDGET)
    lines = audit(runs, WalkProtocol(auditor), workers=2)
    said = Counter(
        f"{line.verdict['outcome']}"
        + (f" at step {line.verdict['step']}" if line.verdict["step"] is not None else "")
        + (f" ({line.verdict['fault']})" if line.verdict["fault"] else "")
        for line in lines
    )
    return dict(sorted(said.items()))


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=4, help="runs of the simulation (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=150, help="of fitting (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="JSON instead of a table")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_runs(folder / "runs.jsonl", options.runs, seed=5)
        runs = [
            Run(run.run_id, run.task_id, run.outcome, run.records[:4], run.source)  # four questions a walk at most
            for run in read_runs(folder / "runs.jsonl", load_adapter("openai_chat"))
        ]
        texts = prompts(runs)
        found: dict[str, dict[str, dict[str, int]]] = {}
        weights = make(folder / "random", texts, 0)
        make(folder / "fitted", texts, options.steps)
        with served(folder / "serve.log") as url:
            for model in ("random", "fitted"):
                found[model] = {
                    kind.value: outcomes(runs, kind, folder / model, url)
                    for kind in (PromptKind.POST_HOC, PromptKind.ONLINE)
                }
    if options.json:
        print(json.dumps({"weights": weights, "runs": len(runs), "verdicts": found}))
    else:
        print(f"Qwen2 of {weights:,} weights, {len(runs)} runs of the simulation\n")
        print("| weights | question | verdicts |\n|---|---|---|")
        for model, by_kind in found.items():
            for kind, said in by_kind.items():
                print(f"| {model} | {kind} | {', '.join(f'{n} {what}' for what, n in said.items())} |")
    right = all(
        all(what.startswith("error") for what in found["random"][kind])
        and set(found["fitted"][kind]) == {"alarm at step 2"}
        for kind in found["fitted"]
    )
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
