// Calls the API with the client in Go that ogen makes.
package main

import (
	"context"
	"encoding/json"
	"io"
	"os"

	api "strata/client"
)

// No ref.
const nothing = "0000000000000000000000000000000000000000"

type request struct{ Server, Recorded, Token string }

type object map[string]any

var ctx = context.Background()

type bearer string

func (token bearer) Token(context.Context, api.OperationName) (api.Token, error) {
	return api.Token{Token: string(token)}, nil
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func clientOf(url, token string) *api.Client { return must(api.NewClient(url, bearer(token))) }

func recorded(client *api.Client) object {
	place := api.GetRepositoryParams{Username: "ada", Name: "engine"}
	engine := must(client.GetRepository(ctx, place)).(*api.Repository)
	usage := must(client.GetUsage(ctx)).(*api.Usage)
	at := api.GetContentsParams{Username: "ada", Name: "engine", Path: "module"}
	module := must(client.GetContents(ctx, at)).(*api.Contents).ContentsSubmodule
	tags := must(client.ListTags(ctx, api.ListTagsParams{Username: "ada", Name: "engine"})).(*api.TagList)
	return object{
		"size_bytes": engine.SizeBytes,
		"used":       usage.StorageBytes.Used,
		"quota":      usage.DeletedStorageBytes.Quota,
		"type":       module.Type,
		"size":       module.Size,
		"tagger":     tags.Tags[0].Tagger,
		"author":     tags.Tags[0].Commit.Value.Author.Name,
	}
}

// Begins a branch with a commit, then another branch and a tag there.
func written(client *api.Client, owner string) object {
	place := api.WriteCommitParams{Username: owner, Name: "made"}
	file := api.PutFile{Action: api.PutFileActionPut, Path: api.NewOptString("README"), Content: api.NewOptString("hello\n")}
	put := []api.WriteCommitReqChangesItem{api.NewPutFileWriteCommitReqChangesItem(file)}
	begin := &api.WriteCommitReq{Branch: "main", Expected: nothing, Message: "Begin", Changes: put}
	commit := must(client.WriteCommit(ctx, begin, place)).(*api.WrittenCommit)
	update := api.UpdateRefsReqUpdatesItem{
		Ref: "refs/heads/topic", Expected: nothing, After: api.NewNilString(commit.After),
	}
	updates := &api.UpdateRefsReq{Updates: []api.UpdateRefsReqUpdatesItem{update}}
	refs := must(client.UpdateRefs(ctx, updates, api.UpdateRefsParams(place))).(*api.ChangedRefs)
	tag := &api.CreateTagReq{Name: "v1", Target: commit.After, Expected: nothing, Message: api.NewOptString("One")}
	return object{
		"ref":       commit.Ref,
		"kind":      refs.Updates[0].Kind,
		"annotated": must(client.CreateTag(ctx, tag, api.CreateTagParams(place))).(*api.CreatedTag).Annotated,
	}
}

func calls(client *api.Client) object {
	list := func(limit api.OptInt) *api.RepositoryList {
		return must(client.ListRepositories(ctx, api.ListRepositoriesParams{Limit: limit})).(*api.RepositoryList)
	}
	owner := list(api.OptInt{}).Repositories[0].Username
	made := &api.CreateRepositoryReq{Name: "made"}
	created := must(client.CreateRepository(ctx, made)).(*api.Repository)
	changes := &api.UpdateRepositoryReq{Description: api.NewOptNilString("changed")}
	place := api.UpdateRepositoryParams{Username: owner, Name: "made"}
	changed := must(client.UpdateRepository(ctx, changes, place)).(*api.Repository)
	wanted := api.NewNewAccessTokenForAllAccessTokenCreation(api.NewAccessTokenForAll{
		Name: "other", Scope: "ALL_REPO", Grants: []api.NewAccessTokenForAllGrantsItem{"GIT_HTTP_READ"},
	})
	token := must(client.CreateAccessToken(ctx, wanted)).(*api.CreatedAccessToken)
	readme := api.GetContentsParams{Username: owner, Name: "engine", Path: "README"}
	raw := must(client.GetRawContents(ctx, api.GetRawContentsParams{Username: owner, Name: "engine", Path: "README"})).(*api.GetRawContentsOK)
	_, isTaken := must(client.CreateRepository(ctx, made)).(*api.CreateRepositoryConflict)
	taken := 201
	if isTaken {
		taken = 409
	}
	found := object{
		"repos":       must(client.GetUsage(ctx)).(*api.Usage).Repos.Used,
		"full_name":   created.FullName,
		"description": changed.Description,
		"again":       must(client.GetRepository(ctx, api.GetRepositoryParams(place))).(*api.Repository).Description,
		"total":       list(api.NewOptInt(1)).Pagination.Total,
		"scope":       token.Scope,
		"content":     must(client.GetContents(ctx, readme)).(*api.Contents).ContentsFile.Content,
		"bytes":       len(must(io.ReadAll(raw))),
		"taken":       taken,
	}
	found["written"] = written(client, owner)
	must(client.DeleteRepository(ctx, api.DeleteRepositoryParams(place)))
	found["left"] = list(api.OptInt{}).Pagination.Total
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
