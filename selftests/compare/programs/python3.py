import ast
import json
import re


def count(node):
    return 1 + sum(count(child) for child in ast.iter_child_nodes(node))


with open(ast.__file__) as source:
    text = source.read()
for _ in range(3):
    count(ast.parse(text))
    json.loads(json.dumps({str(k): [k] * 3 for k in range(20000)}))
    sorted(re.findall(r"\w+", text), key=lambda word: word[::-1])
