"""What follows from readings and verdicts: counters, sinks, and at an alarm what the host asked for."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from time import time

from prefixguard.alarm import Level
from prefixguard.escalate import EscalatedReading, VerdictOutcome, nudge
from prefixguard.integrations.alarms import Alarm, OnAlarm, answer_of, is_asked
from prefixguard.integrations.registry import AgentStream, OpenRun
from prefixguard.integrations.sinks import SinkThreads, WatchedReading, current_span
from prefixguard.runtime import Reading, plain

logger = logging.getLogger("prefixguard")
#: Seconds between two looks of an event loop whether the host's function has answered.
_LOOKS = 0.005


class Reactions:
    """Acts on the readings of all runs of a guard. It never waits for the host's function: who needs its answer does.

    `take` is called by one thread at a time for a run.
    """

    def __init__(self, on_alarm: OnAlarm, shadow: bool, sinks: SinkThreads, count: Callable[[str], None]) -> None:
        """on_alarm, shadow : as of `Guard`. count : counts one more of a name."""
        self.on_alarm, self.shadow = on_alarm, shadow
        self._sinks, self._count = sinks, count
        self._asking: dict[threading.Thread, OpenRun] = {}
        self._is_silent = self._said_no_nudge = False

    def take(self, run: OpenRun, stream: AgentStream, given: Sequence[Reading | EscalatedReading]) -> list[Reading]:
        """The readings, with the level that verdicts make of them: counted, told to the sinks and acted upon."""
        return [self._one(run, stream, s if isinstance(s, EscalatedReading) else _alone(s)) for s in given]

    def wait(self, run: OpenRun | None = None) -> None:
        """Wait until the host's function has answered what it was asked of this run, or of all: about a second at
        most. Returns at once on the thread of that function."""
        for thread, of in tuple(self._asking.items()):
            if run in (None, of) and not is_asked():
                thread.join()
                self._asking.pop(thread, None)

    async def answered(self, run: OpenRun) -> None:
        """As `wait`, without holding up the event loop."""
        while any(of is run and thread.is_alive() for thread, of in tuple(self._asking.items())):
            await asyncio.sleep(_LOOKS)

    def _one(self, run: OpenRun, stream: AgentStream, said: EscalatedReading) -> Reading:
        reading = said.reading if said.level is said.reading.level else replace(said.reading, level=said.level)
        verdict = said.verdict if said.news else None
        blames = verdict is not None and verdict.outcome is VerdictOutcome.ALARM
        is_first = reading.level is Level.ALARM and stream.alarm is None
        is_second = blames and stream.alarm is not None and not stream.is_blamed
        stream.last, stream.is_blamed = reading, stream.is_blamed or blames
        if not said.again:
            self._count("readings")
            stream.span = current_span()
        if is_first:
            stream.alarm = reading
            self._count("alarms")
        if said.note and not self._is_silent:
            self._is_silent = True
            logger.warning("the auditor is silent, and the monitor goes on alone: %s; counters count on", said.note)
        told = WatchedReading(run.run, stream.path, stream.agent, time(), reading, "", is_first, stream.span)
        messages = [] if said.again else [told]
        if verdict is not None:
            is_alarm = is_first and said.again
            messages.append(replace(told, verdict=verdict, about=said.about, is_alarm=is_alarm))
        if (is_first or is_second) and not self.shadow:
            text = nudge(reading, verdict if blames else None)
            alarm = Alarm(run.run, stream.path, stream.agent, reading, text, verdict if blames else None)
            self._sound(run, stream, alarm, messages, -1 if is_second else 0)
        else:
            self._put(messages)
        return reading

    def _sound(
        self, run: OpenRun, stream: AgentStream, alarm: Alarm, messages: list[WatchedReading], place: int
    ) -> None:
        """Do what is to be done, and tell the sinks; where a function is asked, on a thread that waits for it.

        place : which of the messages says what was done.
        """

        def conclude(wanted: object) -> None:
            messages[place] = replace(messages[place], acted=self._do(run, stream, alarm, wanted))
            self._put(messages)

        function = self.on_alarm
        if isinstance(function, str):
            return conclude(function)

        def ask() -> None:
            conclude(answer_of(function, alarm, self._count))

        self._asking = {thread: of for thread, of in tuple(self._asking.items()) if thread.is_alive()}
        thread = threading.Thread(target=ask, name="prefixguard-alarm", daemon=True)
        try:
            thread.start()
            self._asking[thread] = run
        except RuntimeError:  # the process ends, or has too many threads
            conclude("warn")

    def _do(self, run: OpenRun, stream: AgentStream, alarm: Alarm, wanted: object) -> str:
        risk, reasons = alarm.reading.outcome_risk, alarm.reading.reasons
        why = f" ({plain(reasons[0], 300)})" if reasons else ""
        likely = "" if risk is None else f"{risk:.0%} risk of failure"  # rules have a level and no risk
        if wanted == "stop":
            where = f"run {plain(run.run, 80)}, step {alarm.reading.step}"
            run.stopped = f"{where}: stopped at {likely or 'ALARM'}{why}"
        if run.no_nudge and isinstance(wanted, str) and wanted not in ("", "warn", "stop"):
            wanted = "warn"
            if not self._said_no_nudge:
                self._said_no_nudge = True
                logger.warning("%s; alarms of such runs are warnings", run.no_nudge)
        if wanted not in ("stop", "warn", "") and isinstance(wanted, str):
            stream.nudges.append(alarm.nudge if wanted == "nudge" else wanted)
            return "nudge"
        if wanted not in ("warn", "stop"):
            return ""
        logger.warning(
            "run %s, agent %s, step %s: ALARM%s%s%s", plain(run.run, 80), plain(stream.path, 80),
            alarm.reading.step, likely and f", {likely}", why, _blamed(alarm),
        )  # fmt: skip
        return str(wanted)

    def _put(self, messages: Sequence[WatchedReading]) -> None:
        for message in messages:
            self._sinks.put(message)


def _alone(reading: Reading) -> EscalatedReading:
    return EscalatedReading(reading, reading.level)


def _blamed(alarm: Alarm) -> str:
    if alarm.verdict is None:
        return ""
    who = f" by {plain(alarm.verdict.agent, 80)}" if alarm.verdict.agent else ""
    return f"; an auditor blames step {alarm.verdict.step}{who}"
