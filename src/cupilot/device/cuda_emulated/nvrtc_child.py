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


def compiled(library: ctypes.CDLL, request: dict, options: list[str]) -> tuple[ctypes.c_void_p, int, str]:  # type: ignore[type-arg]
    """The program, the compiler's status and its log."""
    program = ctypes.c_void_p()
    source, name = request["source"].encode(), request["name"].encode()
    call(library, "nvrtcCreateProgram", ctypes.byref(program), source, name, 0, None, None)
    for kernel in request["kernels"]:
        call(library, "nvrtcAddNameExpression", program, kernel.encode())
    given = [option.encode() for option in options]
    status = library.nvrtcCompileProgram(program, len(given), (ctypes.c_char_p * len(given))(*given))
    log = blob(library, "ProgramLog", program).replace(b"\0", b"").decode(errors="replace")
    return program, status, log


def write_ptx(library: ctypes.CDLL, program: ctypes.c_void_p) -> None:
    Path("ptx").write_bytes(blob(library, "PTX", program).rstrip(b"\0"))


def main() -> None:
    request = json.loads(Path("request.json").read_text())
    library = ctypes.CDLL(request["library"])
    program, status, log = compiled(library, request, request["options"])
    names = {}
    if status == 0:
        write_ptx(library, program)
        Path("cubin").write_bytes(blob(library, "CUBIN", program))
        for kernel in request["kernels"]:
            lowered = ctypes.c_char_p()
            call(library, "nvrtcGetLoweredName", program, kernel.encode(), ctypes.byref(lowered))
            names[kernel] = (lowered.value or b"").decode()
    elif "ptx input, line" in log:  # the assembler complains: its text knows the source's lines
        virtual = [option.replace("-arch=sm_", "-arch=compute_") for option in request["options"]]
        program, again, _ = compiled(library, request, virtual)
        if again == 0:
            write_ptx(library, program)
    Path("answer.json").write_text(json.dumps({"ok": status == 0, "log": log, "names": names}))


main()
