"""Live runs through `Escalator` to endpoints good and bad: every question offered ends in exactly one way."""

from __future__ import annotations

import socket
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from escalation_material import ALL, BUDGET, Material
from scripted_server import Script, ScriptedServer, Skill

from prefixguard.escalate import (
    AsyncClient,
    CircuitBreaker,
    Endpoint,
    EscalationPolicy,
    Escalator,
    LlmAuditor,
    VerdictCache,
)
from prefixguard.runtime import Monitor


@dataclass(frozen=True, slots=True)
class Load:
    """One filling of the ledger. again: every run is watched twice (the second time the cache answers)."""

    name: str
    skill: Skill
    policy: EscalationPolicy = ALL
    workers: int = 8
    breaker: bool = False
    drain: bool = True
    again: bool = False
    dead: bool = False


LOADS = (
    Load("right", Skill()),
    Load("right, watch mark and default budgets", Skill(), EscalationPolicy()),
    Load("500 on 7 of 10 requests", Skill(fail=0.7)),
    Load("500 always, circuit breaker", Skill(fail=1.0), breaker=True),
    Load("unparsable, 3 of 10", Skill(broken=0.3)),
    Load("names a step that was not shown", Skill(beyond=0.3)),
    Load("other answers in the reply", Skill(inject=1.0)),
    Load("lies", Skill(lie=0.5, hit=0.5)),
    Load("slow, closed meanwhile", Skill(slow=0.3, slow_seconds=1.0), drain=False),
    Load("queue of one, one worker", Skill(slow=0.2, slow_seconds=0.05), replace(ALL, queue=1), 1),
    Load("3 questions a run, 100 a minute", Skill(), replace(ALL, calls_a_run=3, calls_a_minute=100)),
    Load("every run twice, with a cache", Skill(broken=0.2), again=True),
    Load("nobody listens, circuit breaker", Skill(), breaker=True, dead=True),
)


def ledger(load_: Load, monitor: Monitor, material: Material, events: Sequence[Sequence[Any]]) -> dict[str, Any]:
    """Live runs, some threads at once; the ledger after the close. SystemExit where its law does not hold."""
    with ScriptedServer(Script(material.truth, load_.skill)) as server, _dead_port() as dead, _folder() as folder:
        endpoint = Endpoint("scripted", dead if load_.dead else server.url, max_retries=1, first_wait=0.01, timeout=30)
        breaker = CircuitBreaker() if load_.breaker else None
        auditor = LlmAuditor(AsyncClient(endpoint, breaker=breaker or False), budget_tokens=BUDGET)
        cache = VerdictCache(folder) if load_.again else None
        escalator = Escalator(monitor, auditor, load_.policy, cache, workers=load_.workers, breaker=breaker)

        def watch(own: Sequence[Sequence[Any]]) -> None:
            for messages in own:
                session = escalator.start()
                for message in messages:
                    session.observe(message)
                session.end()
                if load_.drain:
                    session.wait(60.0)

        for _ in range(2 if load_.again else 1):
            threads = [threading.Thread(target=watch, args=(events[i::4],)) for i in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        counts = escalator.close(drain=load_.drain, seconds=60.0).as_json()
        ended = counts["answered"] + counts["cached"] + counts["dropped"] + counts["failed"]
        if counts["offered"] != ended or counts["pending"]:
            raise SystemExit(f"{load_.name}: questions were lost or counted twice: {counts}")
        # What is closed on its way may have been received all the same.
        exact = not (load_.dead or "closed" in counts["failed_by_reason"])
        if exact and counts["attempts"] != server.requests:
            raise SystemExit(
                f"{load_.name}: {counts['attempts']} attempts counted, {server.requests} requests received"
            )
        return {"load": load_.name, **counts, "requests": server.requests}


@contextmanager
def _dead_port() -> Iterator[str]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}/v1"


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)
