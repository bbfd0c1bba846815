# SPDX-License-Identifier: BSD-2-Clause
"""check_why.py JSON ID TEXT [busy|slow]: the largest cause of `why`'s JSON has an id and a text that match (regular expressions), and the
parts of each gap add up, and so does the critical path. With `slow` it is a cause that a slow step had more of. Waits for a CPU are left aside, as other programs run too: with `busy` they are what is looked for."""
import json
import re
import sys

with open(sys.argv[1]) as file:
    answer = json.load(file)
wanted, text = sys.argv[2], sys.argv[3]
busy = "busy" in sys.argv[4:]

if not answer["parts"]:
    sys.exit("no part")
for part in answer["parts"]:
    if part["idle_ns"] != sum(f["ns"] for f in part["findings"]):
        sys.exit(f"the causes do not add up to {part['idle_ns']}")
    if part["idle_ns"] + part["busy_ns"] != part["window_ns"]:
        sys.exit("busy and idle are not the window")
    if "device" in part and part["window_ns"] != sum(c["ns"] for c in part["critical_path"]):
        sys.exit("the critical path is not the window")
part = max(answer["parts"], key=lambda p: p["window_ns"])
if wanted == "none":
    share = part["idle_ns"] / part["window_ns"]
    sys.exit(f"idle {share:.3f}" if share > 0.2 else 0)
if "slow" in sys.argv[4:]:
    steps = part["steps"]["slowest"]
    causes = [c for s in steps for c in s["causes"]]
    if not any(re.fullmatch(wanted, c["id"]) and re.search(text, c["claim"]) for c in causes):
        sys.exit(f"slow steps: {causes} of {part['steps']['count']}")
    if any(sum(c["more_ns"] for c in s["causes"]) > 1.5 * s["more_ns"] for s in steps):
        sys.exit(f"more than there is: {steps}")
    sys.exit(0)
causes = [f for f in part["findings"] if busy or not re.search("ready, no CPU", f["claim"])]
# lines of one function are one cause; so is what it asked the kernel for
sums = {}
for f in causes:
    key = bool(re.fullmatch(wanted, f["id"]) and re.search(text, f["claim"])) or f["claim"]
    sums[key] = sums.get(key, 0) + f["ns"]
best = max(sums, key=lambda k: sums[k])
if best is not True:
    sys.exit(f"the largest cause is '{best}', {sums[best] / part['window_ns']:.3f}; the planted one {sums.get(True, 0) / part['window_ns']:.3f}")
