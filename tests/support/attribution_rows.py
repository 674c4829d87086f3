"""Invented runs in the layouts in which attribution sets are published; nothing of any set stands here.

Every row has the text ZZHIDDEN wherever the set holds what nobody knows while the run goes on.
"""

from __future__ import annotations

from typing import Any

HIDDEN = "ZZHIDDEN"

Row = dict[str, Any]


def _turn(role: str, content: str | None = None, thought: str | None = None, action: str | None = None) -> Row:
    return {"role": role, "thought": thought, "action": action, "content": content}


def aftraj_safe() -> list[Row]:
    """Rows of aftraj_safe.parquet: they have no columns of labels."""
    tools = [{"name": "search", "description": "Looks a word up."}]
    ferry = [
        _turn("user", "When does the last ferry leave?"),
        _turn("Manager", "I ask the searcher.", thought="A timetable is needed."),
        _turn("search_agent", thought="I look it up.", action='search("last ferry")'),
        _turn("environment", "The last ferry leaves at 21:40."),
        _turn("Manager", "It leaves at 21:40."),
    ]
    sum_ = [
        _turn("MathSolver", "17 and 26 make 43."),
        _turn("Verifier", "43 - 26 is 17. ANSWER_VERIFIED"),
    ]
    return [
        {
            "conv_id": "ferry-safe", "domain": "hotpotqa", "task": "When does the last ferry leave?",
            "gold_answer": HIDDEN, "num_turns": 5, "turns": ferry, "tools": tools,
        },
        {
            "conv_id": "sum-safe", "domain": "math", "task": "What is 17 + 26?",
            "gold_answer": HIDDEN, "num_turns": 9, "turns": sum_, "tools": [],
        },
    ]  # fmt: skip


def aftraj_unsafe() -> list[Row]:
    """Rows of aftraj_unsafe.parquet: a mistake each, the last one at a turn of the environment."""
    ferry, sum_ = (row["turns"] for row in aftraj_safe())
    wrong = [
        *ferry[:2],
        _turn("search_agent", thought="I look it up.", action='{"name": "search", "arguments": {"q": "first ferry"}}'),
        _turn("environment", "Error: no such word"),
        _turn("search_agent", "It leaves at 06:10."),
        _turn("Manager", "It leaves at 06:10."),
    ]
    code = [
        _turn("user", "Write a function that doubles."),
        _turn("CodeWriter", "def double(x): return x + x", action="write double.py"),
        _turn("CodeTester", "double(2) is 4. FINAL_VERIFIED_TESTS_PASSED"),
        _turn("environment", "Traceback: double.py is empty"),
    ]
    told = {"gold_answer": HIDDEN, "mistake_reason": HIDDEN, "unsafe_source": HIDDEN, "tools": []}
    return [
        {
            "conv_id": "ferry-injected", "domain": "hotpotqa", "task": "When does the last ferry leave?", **told,
            "num_turns": 6, "turns": wrong, "mistake_step": 2, "mistake_agent": "search_agent",
        },
        {
            "conv_id": "sum-injected", "domain": "math", "task": "What is 17 + 26?", **told,
            "num_turns": 2, "turns": [_turn("MathSolver", "17 and 26 make 33."), sum_[1]],
            "mistake_step": 0, "mistake_agent": "MathSolver",
        },
        {
            "conv_id": "double-diagnosed", "domain": "coding", "task": "Write a function that doubles.", **told,
            "num_turns": 4, "turns": code, "mistake_step": 3, "mistake_agent": "environment",
        },
    ]  # fmt: skip


def tracertraj() -> list[Row]:
    """Rows of a TracerTraj table: `step` from 0, mistake_step a text; role is the same for all."""

    def entry(step: int, name: str | None, content: str, role: str = "assistant") -> Row:
        return {"content": content, "name": name, "role": role, "step": step}

    lamp = [
        entry(0, "Team Leader", "The engineer writes lamp.py."),
        entry(1, "Product Manager", "It must switch off at night."),
        entry(2, "Engineer", "```python\nprint('on')\n```"),
        entry(3, "Data Analyst", "It never switches off."),
    ]
    door = [
        entry(0, None, "Build a door.", "user"),
        *(entry(k, "Architect", f"Hinge {k} is drawn.") for k in range(1, 11)),
        entry(11, "Computer_terminal", "Error: no hinge 11"),
        entry(12, None, "The door is built.", "Engineer"),
    ]
    told = {"ground_truth": HIDDEN, "mistake_reason": HIDDEN}
    return [
        {
            "question_ID": "lamp_I", "question": "Write a lamp.", "history": lamp, **told,
            "mistake_agent": "Engineer", "mistake_step": "2",
        },
        {
            "question_ID": "door_I", "question": "Build a door.", "history": door, **told,
            "mistake_agent": "Architect", "mistake_step": "10",
        },
    ]  # fmt: skip


def aegis() -> list[Row]:
    """Rows of an AEGIS file: steps from 1 with gaps, several faults, an agent that never spoke."""

    def turn(step: int, name: str, content: str, injected: bool | None = None, **more: Any) -> Row:
        return {
            "step": step, "agent_name": name, "agent_role": "solver", "content": content, "phase": "work",
            "is_injected": injected, **more,
        }  # fmt: skip

    def row(name: str, query: str, turns: list[Row], faulty: list[Row], success: Any) -> Row:
        strategy = {"injection_strategy": HIDDEN}
        return {
            "id": name,
            "metadata": {
                "framework": "macnet", "benchmark": "sums", "model": "m-1", "num_agents": 1,
                "num_injected_agents": len(faulty), "task_type": "math",
            },
            "input": {"query": query, "conversation_history": turns, "final_output": HIDDEN},
            "output": {"faulty_agents": [{**one, **strategy} for one in faulty]},
            "ground_truth": {
                "correct_answer": HIDDEN,
                "injected_agents": [{**one, **strategy, "malicious_action_description": HIDDEN} for one in faulty],
                "is_injection_successful": success,
            },
        }  # fmt: skip

    sums = [
        turn(1, "Node1", "17 and 26 make 33.", True),
        turn(10, "Node2", "I check it: 33.", False),
        turn(12, "Node3", "The answer is 33.", False, injection_strategy=HIDDEN),
    ]
    trip = [
        turn(1, "human", "Where is the museum?"),
        turn(2, "Orchestrator (thought)", "The surfer must look."),
        turn(3, "Orchestrator (-> WebSurfer)", "Look for it."),
        turn(4, "WebSurfer", "I am on the wrong page (again)."),
        turn(5, "Computer_terminal", "exitcode: 1"),
    ]
    return [
        row(
            "sums-1",
            "What is 17 + 26?",
            sums,
            [
                {"agent_name": "Node1", "error_type": "FM-2.6"},
                {"agent_name": "Node2", "error_type": "FM-3.3"},
                {"agent_name": "Node9", "error_type": "FM-1.2"},
                {"agent_name": "Node1", "error_type": "FM-2.6"},
            ],
            True,
        ),
        row(
            "trip-1",
            "Where is the museum?",
            trip,
            [{"agent_name": "Orchestrator", "error_type": "FM-1.1"}],
            None,
        ),
    ]


CHATDEV = """\
[2031-04-02 10:00:00 INFO] **[Preprocessing]**

**ChatDev Starts** with a lamp

[2031-04-02 10:00:01 INFO] Chief Executive Officer: **Programmer<->Chief Executive Officer on : Coding, turn 0**

Write lamp.py, please.

[2031-04-02 10:00:02 INFO] HTTP Request: POST /v1 "200"

[2031-04-02 10:00:03 INFO] Programmer: **Programmer<->Chief Executive Officer on : Coding, turn 0**

Here it is:
```python
print("on")
```

[2031-04-02 10:00:04 INFO] **[Software Info]**: one file
"""
METAGPT = """\
=== Log of a run ===
[2031-04-02 10:00:00] FROM: Human TO: {'<all>'}
ACTION: UserRequirement
CONTENT:
Write a lamp.
--------------------------------------------------------------------------------
[2031-04-02 10:00:09] NEW MESSAGES:

SimpleCoder: ```python
print("on")
```
--------------------------------------------------------------------------------
[2031-04-02 10:00:20] NEW MESSAGES:

SimpleTester: It is on: no test.
"""
MAGENTIC = """\
SCENARIO.PY STARTING !#!#
---------- user ----------
Where is the museum?
---------- MagenticOneOrchestrator ----------
We look for it.
---------- Orchestrator (-> WebSurfer) ----------
Look.
---------- ComputerTerminal ----------
Error: nothing there
"""
AG2 = """\
problem: how many lamps
trajectory:
  content: There are three rooms.

    How many lamps?
  role: user
  name: mathproxyagent
  content: Three rooms, so three lamps.
    ```python
    print(3)
    ```
  role: assistant
  name: assistant
"""
OPENMANUS = """\
2031-04-02 10:00:00.100 | INFO     | app.agent.base:run:140 - Executing step 1/20
2031-04-02 10:00:01.200 | INFO     | app.agent.toolcall:think:81 - ✨ Manus's thoughts: I open the page.
It may be slow.
2031-04-02 10:00:02.300 | INFO     | app.agent.toolcall:act:150 - 🎯 Tool 'browser' done! Result: opened
"""
APPWORLD = """\
******** Task 3/9 ********
Response from Supervisor Agent
I ask the player.

Message to spotify Agent
Play the song.

Reply from spotify Agent
It plays.

Code Execution Output

done
"""
HYPERAGENT = """\
HyperAgent_lamp-1 - INFO - Starting on lamp-1
HyperAgent_lamp-1 - INFO - Planner's Response: Find the lamp.
Then mend it.
HyperAgent_lamp-1 - INFO - Navigator's Response: It is in lamp.py.
"""
PLAIN = "Nothing here says who speaks.\nIt was switched on.\n"


def mast() -> list[Row]:
    """Rows of MAD_full_dataset.json: one number under several frameworks and models."""
    logs = [
        ("ChatDev", "m-1", 0, CHATDEV, ("1.1", "3.2")),
        ("ChatDev", "m-2", 0, PLAIN, ()),
        ("MetaGPT", "m-1", 0, METAGPT, ("3.2",)),
        ("Magentic", "m-1", 7, MAGENTIC, ("2.6",)),
        ("AG2", "m-1", 7, AG2, ("1.3",)),
        ("OpenManus", "m-1", 7, OPENMANUS, ("1.5",)),
        ("AppWorld", "m-1", 7, APPWORLD, ("2.2",)),
        ("HyperAgent", "m-1", 7, HYPERAGENT, ("2.4",)),
    ]
    codes = ["1.1", "1.2", "1.3", "1.4", "1.5", "2.1", "2.2", "2.3", "2.4", "2.5", "2.6", "3.1", "3.2", "3.3"]
    return [
        {
            "mas_name": framework,
            "llm_name": model,
            "benchmark_name": "lamps",
            "trace_id": number,
            "trace": {"key": HIDDEN, "index": 3, "trajectory": log},
            "mast_annotation": {code: int(code in modes) for code in codes},
        }
        for framework, model, number, log, modes in logs
    ]


def mast_human() -> list[Row]:
    """Rows of the human-labelled file, whose columns are others."""
    names = [{"failure mode": "1.1", "annotator_1": True}]
    return [{"round": 1, "mas_name": "AG2", "benchmark_name": "x", "trace": AG2, "annotations": names}]


def whoandwhen() -> dict[str, Row]:
    """Files of Who&When: the one with names, the other with roles alone."""
    told = {"ground_truth": HIDDEN, "mistake_reason": HIDDEN}
    by_name = [
        {"content": "You are given a task: how many lamps?", "name": "Lamp_Expert", "role": "assistant"},
        {"content": "I count.\n```python\nprint(lamp)\n```", "name": "Blu-Ray_Expert", "role": "assistant"},
        {"content": "exitcode: 1 (execution failed)", "name": "Computer_terminal", "role": "user"},
        {"content": "", "name": "Blu-Ray_Expert", "role": "assistant"},
        {"content": "It must be three.", "name": "Blu-Ray_Expert", "role": "assistant"},
    ]
    by_role = [
        {"content": "Where is the museum?", "role": "human"},
        {"content": "Initial plan: look.", "role": "Orchestrator (thought)"},
        {"content": "Please look.", "role": "Orchestrator (-> WebSurfer)"},
        {"content": "I typed it into the box.", "role": "WebSurfer"},
        {"content": "Run this.\n```sh\nls\n```", "role": "Orchestrator (-> ComputerTerminal)"},
        {"content": "then exited with Unix exit code: 1", "role": "ComputerTerminal"},
        {"content": f"Max rounds reached. {HIDDEN}", "role": "Orchestrator (termination condition)"},
    ]
    return {
        "Algorithm-Generated/1.json": {
            "is_correct": False, "question": "How many lamps?", "question_ID": "q-1", "level": HIDDEN, **told,
            "mistake_agent": "Blu-Ray_Expert", "mistake_step": "2", "system_prompt": {"Lamp_Expert": "Be brief."},
            "labels": [HIDDEN], "history": by_name,
        },
        "Hand-Crafted/1.json": {
            "is_corrected": False, "question": "Where is the museum?", "question_ID": "q-2", **told,
            "mistake_agent": "Orchestrator", "mistake_step": "4", "mistake_type": HIDDEN, "history": by_role,
        },
    }  # fmt: skip
