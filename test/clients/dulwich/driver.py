"""Drives dulwich, git in Python, which shares no code with git. test/clients/driver-protocol.ts says how."""

import io
import json
import sys

import dulwich
from dulwich import porcelain


def carry_out(request, said):
    sign_in = {"username": request["username"], "password": request["token"]}
    folder, url = request["folder"], request["url"]
    match request["operation"]:
        case "clone":
            depth = request.get("depth")
            porcelain.clone(url, folder, checkout=True, depth=depth, errstream=said, **sign_in).close()
        case "fetch":
            porcelain.fetch(folder, "origin", include_tags=True, errstream=said, **sign_in)
        case "unshallow":
            porcelain.fetch(folder, "origin", include_tags=True, unshallow=True, errstream=said, **sign_in)
        case "push":
            refspec = request["refspec"]
            streams = {"outstream": said, "errstream": said}
            result = porcelain.push(folder, url, refspec, force=refspec.startswith("+"), **streams, **sign_in)
            refused = {ref: status for ref, status in (result.ref_status or {}).items() if status is not None}
            if refused:
                raise porcelain.Error(repr(refused))


def main():
    request = json.load(sys.stdin)
    if request["operation"] == "version":
        return {"outcome": "ok", "version": ".".join(map(str, dulwich.__version__))}
    said = io.BytesIO()
    try:
        carry_out(request, said)
    except Exception as error:  # Whatever the library raises is what its user sees.
        words = said.getvalue().decode(errors="replace")
        return {"outcome": "refused", "words": f"{words}{type(error).__name__}: {error}"}
    return {"outcome": "ok"}


print(json.dumps(main()))
