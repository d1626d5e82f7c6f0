"""A reward of your own: is the row's answer in the completion? One JSON object a line comes in, one
number a line goes out (docs/train-rewards.md)."""
import json
import sys

for line in sys.stdin:
    row = json.loads(line)
    print(1.0 if row["record"]["answer"] in row["completion"] else 0.0)
