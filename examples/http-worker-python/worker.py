"""A FlowFabric worker in plain HTTP: no library but Python's own.

It writes a draft while people watch, stops until somebody approves, and goes on in the same attempt.
Usage: worker.py [TASKS]   ends after so many tasks, or never. FF_URL names the server."""
import base64, json, os, sys, threading, urllib.error, urllib.parse, urllib.request, uuid

URL = os.environ.get("FF_URL", "http://127.0.0.1:7171")
INSTANCE, BOOT = f"python-{os.getpid()}", uuid.uuid4().hex
held = {}  # leases under way, by execution: renewed by every heartbeat


def call(path, body, method="POST"):
    data = json.dumps(body).encode()
    request = urllib.request.Request(URL + path, data, {"content-type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=90) as answer:
            return json.loads(answer.read() or "null")
    except urllib.error.HTTPError as error:
        problem = json.loads(error.read())
        raise RuntimeError(f"{path}: {problem['code']}: {problem['detail']}") from None


def act(task, verb, **fields):
    path = f"/v1/executions/{urllib.parse.quote(task['execution_id'])}/{verb}"
    return call(path, {"handle": task["handle"], **fields})


def work(task):
    payload = json.loads(base64.b64decode(task["payload_b64"]) or "null")
    if not task["resume_signals"]:  # the first time: write, then wait for a person
        for line in (f"drafting {payload}", "done"):
            act(task, "frames", frames=[{"type": "stdout", "payload_json": line}])
        act(task, "suspend", bindings=[{"fresh": {"key": "approval"}}], reason_code="waiting_for_approval",
            condition={"single": {"waitpoint_key": "approval"}}, metadata="draft 1")
        return False
    decision = task["resume_signals"][0]["name"]
    act(task, "complete", result_json={"draft": task["metadata"], "decision": decision})
    return True


def live(stop):
    while not stop.wait(5):
        leases = [{"execution_id": id, "handle": handle} for id, handle in list(held.items())]
        call(f"/v1/workers/{INSTANCE}/heartbeat", {"boot_id": BOOT, "leases": leases})


def main(tasks):
    call("/v1/workers", {"worker_id": "python", "worker_instance_id": INSTANCE, "boot_id": BOOT, "lanes": ["drafts"]})
    stop = threading.Event()
    threading.Thread(target=live, args=(stop,), daemon=True).start()
    while tasks != 0:
        for task in call("/v1/leases", {"worker_id": "python", "worker_instance_id": INSTANCE, "wait_ms": 20000})["tasks"]:
            held[task["execution_id"]] = task["handle"]
            tasks -= work(task)
            del held[task["execution_id"]]
    stop.set()
    call(f"/v1/workers/{INSTANCE}", {}, "DELETE")


main(int(sys.argv[1]) if len(sys.argv) > 1 else -1)
