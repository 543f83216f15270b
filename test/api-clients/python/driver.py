"""Calls the API with the client in Python that openapi-generator makes."""

import json
import sys

import openapi_client as api

# No ref.
NOTHING = "0" * 40


def client_of(url, token):
    return api.ApiClient(api.Configuration(host=url, access_token=token))


def recorded(client):
    engine = api.RepositoriesApi(client).get_repository("ada", "engine")
    usage = api.AccountApi(client).get_usage()
    module = api.CodeApi(client).get_contents("ada", "engine", "module").actual_instance
    tag = api.CodeApi(client).list_tags("ada", "engine").tags[0]
    return {
        "size_bytes": engine.size_bytes,
        "used": usage.storage_bytes.used,
        "quota": usage.deleted_storage_bytes.quota,
        "type": module.type,
        "size": module.size,
        "tagger": tag.tagger,
        "author": tag.commit.author.name,
    }


def written(client, owner):
    """Begins a branch with a commit, then another branch and a tag there."""
    data = api.GitDataApi(client)
    change = api.WriteCommitRequestChangesInner(api.PutFile(action="put", path="README", content="hello\n"))
    request = api.WriteCommitRequest(branch="main", expected=NOTHING, message="Begin", changes=[change])
    commit = data.write_commit(owner, "made", request)
    update = api.UpdateRefsRequestUpdatesInner(ref="refs/heads/topic", expected=NOTHING, after=commit.after)
    refs = data.update_refs(owner, "made", api.UpdateRefsRequest(updates=[update]))
    tag = api.CreateTagRequest(name="v1", target=commit.after, expected=NOTHING, message="One")
    return {
        "ref": commit.ref,
        "kind": refs.updates[0].kind,
        "annotated": data.create_tag(owner, "made", tag).annotated,
    }


def calls(client):
    repositories, code = api.RepositoriesApi(client), api.CodeApi(client)
    owner = repositories.list_repositories().repositories[0].username
    made = repositories.create_repository(api.CreateRepositoryRequest(name="made"))
    changed = repositories.update_repository(owner, "made", api.UpdateRepositoryRequest(description="changed"))
    body = api.NewAccessTokenForAll(name="other", scope="ALL_REPO", grants=["GIT_HTTP_READ"])
    token = api.AccessTokensApi(client).create_access_token(api.AccessTokenCreation(body))
    try:
        repositories.create_repository(api.CreateRepositoryRequest(name="made"))
        taken = 201
    except api.ApiException as refusal:
        taken = refusal.status
    found = {
        "repos": api.AccountApi(client).get_usage().repos.used,
        "full_name": made.full_name,
        "description": changed.description,
        "again": repositories.get_repository(owner, "made").description,
        "total": repositories.list_repositories(limit=1).pagination.total,
        "scope": token.scope,
        "content": code.get_contents(owner, "engine", "README").actual_instance.content,
        "bytes": len(code.get_raw_contents(owner, "engine", "README")),
        "taken": taken,
    }
    found["written"] = written(client, owner)
    repositories.delete_repository(owner, "made")
    found["left"] = repositories.list_repositories().pagination.total
    return found


request = json.load(sys.stdin)
answer = {
    "recorded": recorded(client_of(request["recorded"], request["token"])),
    "calls": calls(client_of(request["server"], request["token"])),
}
json.dump(answer, sys.stdout)
