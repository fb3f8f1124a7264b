#!/usr/bin/env python3
"""reckon-lsp-server speaks: a wrong module gets our verifier's message.

usage: test_lsp.py PATH_OF_RECKON_LSP_SERVER
"""

import json
import subprocess
import sys

WRONG = """train.program @p sequence(64) micro_batch(2) micro_batches(1)
    global_batch(3) {
  train.microbatch { train.yield }
}
"""


def message(content):
    body = json.dumps({"jsonrpc": "2.0", **content})
    return f"Content-Length: {len(body)}\r\n\r\n{body}"


def main():
    text = "".join([
        message({"id": 1, "method": "initialize",
                 "params": {"processId": None, "rootUri": None,
                            "capabilities": {}}}),
        message({"method": "textDocument/didOpen", "params": {"textDocument": {
            "uri": "test:///wrong.mlir", "languageId": "mlir", "version": 1,
            "text": WRONG}}}),
        message({"id": 2, "method": "shutdown"}),
        message({"method": "exit"})])
    done = subprocess.run([sys.argv[1]], input=text, capture_output=True,
                          text=True, timeout=60)
    said = "is not a multiple of"
    good = "publishDiagnostics" in done.stdout and said in done.stdout
    print("a diagnostic came back" if good else
          f"no diagnostic: exit {done.returncode}\n{done.stdout[-2000:]}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
