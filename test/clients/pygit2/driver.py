"""Drives libgit2 through pygit2. test/clients/driver-protocol.ts says how."""

import json
import sys

import pygit2

# GIT_FETCH_DEPTH_UNSHALLOW of libgit2.
WHOLE_HISTORY = 0x7FFFFFFF


class Callbacks(pygit2.RemoteCallbacks):
    """Gives the token, and keeps what the server says."""

    def __init__(self, request):
        super().__init__(credentials=pygit2.UserPass(request["username"], request["token"]))
        self.said = []
        self.refused = []

    def sideband_progress(self, string):
        self.said.append(string)

    def push_update_reference(self, refname, message):
        if message is not None:
            self.refused.append(f"{refname}: {message}")


def carry_out(request, callbacks):
    folder, url = request["folder"], request["url"]
    match request["operation"]:
        case "clone":
            pygit2.clone_repository(url, folder, callbacks=callbacks, depth=request.get("depth", 0))
        case "fetch":
            pygit2.Repository(folder).remotes["origin"].fetch(callbacks=callbacks)
        case "unshallow":
            pygit2.Repository(folder).remotes["origin"].fetch(callbacks=callbacks, depth=WHOLE_HISTORY)
        case "push":
            pygit2.Repository(folder).remotes["origin"].push([request["refspec"]], callbacks=callbacks)
            if callbacks.refused:
                raise pygit2.GitError("; ".join(callbacks.refused))


def main():
    request = json.load(sys.stdin)
    if request["operation"] == "version":
        return {"outcome": "ok", "version": f"{pygit2.__version__}, libgit2 {pygit2.LIBGIT2_VERSION}"}
    callbacks = Callbacks(request)
    try:
        carry_out(request, callbacks)
    except Exception as error:  # Whatever the library raises is what its user sees.
        return {"outcome": "refused", "words": f"{''.join(callbacks.said)}{error}"}
    return {"outcome": "ok"}


print(json.dumps(main()))
