"""Drives GitPython, which runs the machine's git. test/clients/driver-protocol.ts says how."""

import json
import os
import sys
from urllib.parse import quote, urlsplit, urlunsplit

import git

os.environ |= {
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C.UTF-8",
}


class RefRefused(Exception):
    pass


def with_credentials(request):
    parts = urlsplit(request["url"])
    user = f"{quote(request['username'])}:{quote(request['token'])}"
    return urlunsplit(parts._replace(netloc=f"{user}@{parts.netloc}"))


def origin(request):
    """The remote of the clone, with the credentials of this request."""
    remote = git.Repo(request["folder"]).remote("origin")
    remote.set_url(with_credentials(request))
    return remote


def carry_out(request):
    match request["operation"]:
        case "clone":
            depth = {"depth": request["depth"]} if "depth" in request else {}
            git.Repo.clone_from(with_credentials(request), request["folder"], **depth)
        case "fetch":
            origin(request).fetch()
        case "unshallow":
            origin(request).fetch(unshallow=True)
        case "push":
            pushed = origin(request).push(request["refspec"])
            # The words about a ref are in its summary, those about the whole push in the error.
            refused = [info.summary for info in pushed if info.flags & info.ERROR]
            if refused:
                raise RefRefused(" ".join(refused))
            pushed.raise_if_error()


def main():
    request = json.load(sys.stdin)
    if request["operation"] == "version":
        return {"outcome": "ok", "version": git.__version__}
    try:
        carry_out(request)
    except git.GitCommandError as error:
        # The rest of its text repeats the command.
        return {"outcome": "refused", "words": error.stderr}
    except RefRefused as error:
        return {"outcome": "refused", "words": str(error)}
    return {"outcome": "ok"}


print(json.dumps(main()))
