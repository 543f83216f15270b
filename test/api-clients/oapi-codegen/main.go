// Calls the API with the client in Go that oapi-codegen makes.
package main

import (
	"context"
	"encoding/json"
	"net/http"
	"os"

	api "strata/client"
)

// No ref.
const nothing = "0000000000000000000000000000000000000000"

type request struct{ Server, Recorded, Token string }

type object map[string]any

var ctx = context.Background()

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func clientOf(url, token string) *api.ClientWithResponses {
	bearer := func(_ context.Context, request *http.Request) error {
		request.Header.Set("Authorization", "Bearer "+token)
		return nil
	}
	return must(api.NewClientWithResponses(url, api.WithRequestEditorFn(bearer)))
}

func recorded(client *api.ClientWithResponses) object {
	engine := must(client.GetRepositoryWithResponse(ctx, "ada", "engine")).JSON200
	usage := must(client.GetUsageWithResponse(ctx)).JSON200
	contents := must(client.GetContentsWithResponse(ctx, "ada", "engine", "module", nil)).JSON200
	module := must(contents.AsContentsSubmodule())
	tag := must(client.ListTagsWithResponse(ctx, "ada", "engine", nil)).JSON200.Tags[0]
	return object{
		"size_bytes": engine.SizeBytes,
		"used":       usage.StorageBytes.Used,
		"quota":      usage.DeletedStorageBytes.Quota,
		"type":       module.Type,
		"size":       module.Size,
		"tagger":     tag.Tagger,
		"author":     tag.Commit.Author.Name,
	}
}

// Begins a branch with a commit, then another branch and a tag there.
func written(client *api.ClientWithResponses, owner string) object {
	path, content, message := "README", "hello\n", "One"
	var put api.WriteCommitJSONBody_Changes_Item
	must(0, put.FromPutFile(api.PutFile{Action: "put", Path: &path, Content: &content}))
	begin := api.WriteCommitJSONRequestBody{Branch: "main", Expected: nothing, Message: "Begin"}
	begin.Changes = append(begin.Changes, put)
	commit := must(client.WriteCommitWithResponse(ctx, owner, "made", nil, begin)).JSON201
	var updates api.UpdateRefsJSONRequestBody
	must(0, json.Unmarshal(must(json.Marshal(object{
		"updates": []object{{"ref": "refs/heads/topic", "expected": nothing, "after": commit.After}},
	})), &updates))
	refs := must(client.UpdateRefsWithResponse(ctx, owner, "made", nil, updates)).JSON200
	tag := api.CreateTagJSONRequestBody{Name: "v1", Target: commit.After, Expected: nothing, Message: &message}
	return object{
		"ref":       commit.Ref,
		"kind":      refs.Updates[0].Kind,
		"annotated": must(client.CreateTagWithResponse(ctx, owner, "made", nil, tag)).JSON201.Annotated,
	}
}

func calls(client *api.ClientWithResponses) object {
	list := func(limit *int) *api.RepositoryList {
		return must(client.ListRepositoriesWithResponse(ctx, &api.ListRepositoriesParams{Limit: limit})).JSON200
	}
	owner := list(nil).Repositories[0].Username
	made := api.CreateRepositoryJSONRequestBody{Name: "made"}
	created := must(client.CreateRepositoryWithResponse(ctx, made)).JSON201
	description := "changed"
	changes := api.UpdateRepositoryJSONRequestBody{Description: &description}
	changed := must(client.UpdateRepositoryWithResponse(ctx, owner, "made", changes)).JSON200
	var wanted api.AccessTokenCreation
	must(0, wanted.FromNewAccessTokenForAll(api.NewAccessTokenForAll{
		Name: "other", Scope: "ALL_REPO", Grants: []api.NewAccessTokenForAllGrants{"GIT_HTTP_READ"},
	}))
	token := must(client.CreateAccessTokenWithResponse(ctx, wanted)).JSON201
	contents := must(client.GetContentsWithResponse(ctx, owner, "engine", "README", nil)).JSON200
	one := 1
	found := object{
		"repos":       must(client.GetUsageWithResponse(ctx)).JSON200.Repos.Used,
		"full_name":   created.FullName,
		"description": changed.Description,
		"again":       must(client.GetRepositoryWithResponse(ctx, owner, "made")).JSON200.Description,
		"total":       list(&one).Pagination.Total,
		"scope":       token.Scope,
		"content":     must(contents.AsContentsFile()).Content,
		"bytes":       len(must(client.GetRawContentsWithResponse(ctx, owner, "engine", "README", nil)).Body),
		"taken":       must(client.CreateRepositoryWithResponse(ctx, made)).StatusCode(),
	}
	found["written"] = written(client, owner)
	must(client.DeleteRepositoryWithResponse(ctx, owner, "made"))
	found["left"] = list(nil).Pagination.Total
	return found
}

func main() {
	var asked request
	must(0, json.NewDecoder(os.Stdin).Decode(&asked))
	must(0, json.NewEncoder(os.Stdout).Encode(object{
		"recorded": recorded(clientOf(asked.Recorded, asked.Token)),
		"calls":    calls(clientOf(asked.Server, asked.Token)),
	}))
}
