"""The compiling process: reads request.json in its folder, leaves answer.json, ptx and cubin there.

Started with `python -I -S`; imports nothing of ours. Talks to NVRTC's C interface directly: the bindings
would cost thirty milliseconds and be one more thing to let into the jail.
"""

import ctypes
import json
from pathlib import Path


def call(library: ctypes.CDLL, name: str, *arguments: object) -> None:
    status = getattr(library, name)(*arguments)
    if status != 0:
        raise SystemExit(f"{name} answers with status {status}")


def blob(library: ctypes.CDLL, what: str, program: ctypes.c_void_p) -> bytes:
    size = ctypes.c_size_t()
    call(library, f"nvrtcGet{what}Size", program, ctypes.byref(size))
    data = ctypes.create_string_buffer(size.value)
    call(library, f"nvrtcGet{what}", program, data)
    return data.raw


def main() -> None:
    request = json.loads(Path("request.json").read_text())
    library = ctypes.CDLL(request["library"])
    program = ctypes.c_void_p()
    source, name = request["source"].encode(), request["name"].encode()
    call(library, "nvrtcCreateProgram", ctypes.byref(program), source, name, 0, None, None)
    for kernel in request["kernels"]:
        call(library, "nvrtcAddNameExpression", program, kernel.encode())
    options = [option.encode() for option in request["options"]]
    status = library.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    log = blob(library, "ProgramLog", program).rstrip(b"\0").decode(errors="replace")
    names = {}
    if status == 0:
        Path("ptx").write_bytes(blob(library, "PTX", program).rstrip(b"\0"))
        Path("cubin").write_bytes(blob(library, "CUBIN", program))
        for kernel in request["kernels"]:
            lowered = ctypes.c_char_p()
            call(library, "nvrtcGetLoweredName", program, kernel.encode(), ctypes.byref(lowered))
            names[kernel] = (lowered.value or b"").decode()
    Path("answer.json").write_text(json.dumps({"ok": status == 0, "log": log, "names": names}))


main()
