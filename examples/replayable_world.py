"""A world of one's own for `prefixguard factory`: a tool server over HTTP whose runs can be played again.

    python examples/replayable_world.py 9000 &
    prefixguard factory collect http://127.0.0.1:9000 runs.jsonl --agent careless --count 40 --tasks 8

Every question is POST /VERB with a JSON object and is answered by one. Sessions are numbered by the factory, which
makes one again by doing its actions again. Here a robot must put three boxes where they belong; a careless one forgets
some.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SESSIONS: dict = {}


def answer(verb: str, asked: dict) -> dict:
    if verb == "tasks":
        return {"tasks": [f"plan-{number}" for number in range(asked["count"])]}
    if verb == "reset":
        plan = [{"box": box, "shelf": f"{asked['task']}/{shelf}"} for shelf, box in enumerate(("red", "blue", "green"))]
        SESSIONS[asked["session"]] = {"plan": plan, "next": 0, "shelves": {}, **asked}
        return {"observation": f"Put the boxes where they belong: {json.dumps(plan)}"}
    world = SESSIONS[asked["session"]]
    if verb == "step":  # what an agent believes to have done instead is where it goes on from
        believed = asked["action"].get("instead_of") or asked["action"]
        world["next"] += believed.get("arguments") in world["plan"][world["next"] :]
        if asked["action"].get("tool") != "put":
            return {"answer": "", "changes": False}
        world["shelves"][asked["action"]["arguments"]["box"]] = asked["action"]["arguments"]["shelf"]
        return {"answer": f"done: {json.dumps(asked['action']['arguments'])}"}
    if verb == "act":  # what its own agent does next; null at the end
        while world["agent"] == "careless" and asked["salt"] is None and hash_of(world["seed"], world["next"]) == 0:
            world["next"] += 1
        rest = world["plan"][world["next"] :]
        return {"action": {"tool": "put", "arguments": rest[0]} if rest else None}
    if verb == "verify":  # by the state of the world, never by words
        right = world["shelves"] == {move["box"]: move["shelf"] for move in world["plan"]}
        return {"outcome": "success" if right else "failure"}
    SESSIONS.pop(asked["session"])  # the verb `end`
    return {}


def hash_of(seed: str, place: int) -> int:
    return sum(f"{seed}/{place}".encode()) % 4


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        data = json.dumps(answer(self.path.strip("/"), asked)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
