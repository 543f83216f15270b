// Calls the API with the client in Go that openapi-generator makes.
package main

import (
	"context"
	"encoding/json"
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

// The third result is the answer of HTTP, which the error describes as well.
func done[T, H any](value T, _ H, err error) T { return must(value, err) }

func clientOf(url, token string) *api.APIClient {
	configuration := api.NewConfiguration()
	configuration.Servers = api.ServerConfigurations{{URL: url}}
	configuration.AddDefaultHeader("Authorization", "Bearer "+token)
	return api.NewAPIClient(configuration)
}

func recorded(client *api.APIClient) object {
	engine := done(client.RepositoriesAPI.GetRepository(ctx, "ada", "engine").Execute())
	usage := done(client.AccountAPI.GetUsage(ctx).Execute())
	module := done(client.CodeAPI.GetContents(ctx, "ada", "engine", "module").Execute()).ContentsSubmodule
	tag := done(client.CodeAPI.ListTags(ctx, "ada", "engine").Execute()).Tags[0]
	return object{
		"size_bytes": engine.SizeBytes,
		"used":       usage.StorageBytes.Used,
		"quota":      usage.DeletedStorageBytes.Quota,
		"type":       module.Type,
		"size":       module.Size,
		"tagger":     tag.Tagger,
		"author":     tag.Commit.Get().Author.Name,
	}
}

// Begins a branch with a commit, then another branch and a tag there.
func written(client *api.APIClient, owner string) object {
	data := client.GitDataAPI
	file := api.NewPutFile("put")
	file.SetPath("README")
	file.SetContent("hello\n")
	put := []api.WriteCommitRequestChangesInner{api.PutFileAsWriteCommitRequestChangesInner(file)}
	begin := *api.NewWriteCommitRequest("main", nothing, "Begin", put)
	commit := done(data.WriteCommit(ctx, owner, "made").WriteCommitRequest(begin).Execute()).WrittenCommit
	after := *api.NewNullableString(&commit.After)
	update := *api.NewUpdateRefsRequestUpdatesInner("refs/heads/topic", nothing, after)
	updates := *api.NewUpdateRefsRequest([]api.UpdateRefsRequestUpdatesInner{update})
	refs := done(data.UpdateRefs(ctx, owner, "made").UpdateRefsRequest(updates).Execute())
	tag := *api.NewCreateTagRequest("v1", commit.After, nothing)
	tag.SetMessage("One")
	return object{
		"ref":       commit.Ref,
		"kind":      refs.Updates[0].Kind,
		"annotated": done(data.CreateTag(ctx, owner, "made").CreateTagRequest(tag).Execute()).Annotated,
	}
}

func calls(client *api.APIClient) object {
	repositories, code := client.RepositoriesAPI, client.CodeAPI
	owner := done(repositories.ListRepositories(ctx).Execute()).Repositories[0].Username
	made := api.NewCreateRepositoryRequest("made")
	created := done(repositories.CreateRepository(ctx).CreateRepositoryRequest(*made).Execute())
	changes := api.NewUpdateRepositoryRequest()
	changes.SetDescription("changed")
	changed := done(repositories.UpdateRepository(ctx, owner, "made").UpdateRepositoryRequest(*changes).Execute())
	body := api.NewNewAccessTokenForAll("other", "ALL_REPO", []string{"GIT_HTTP_READ"})
	wanted := api.NewAccessTokenForAllAsAccessTokenCreation(body)
	token := done(client.AccessTokensAPI.CreateAccessToken(ctx).AccessTokenCreation(wanted).Execute())
	raw := done(code.GetRawContents(ctx, owner, "engine", "README").Execute())
	_, taken, _ := repositories.CreateRepository(ctx).CreateRepositoryRequest(*made).Execute()
	found := object{
		"repos":       done(client.AccountAPI.GetUsage(ctx).Execute()).Repos.Used,
		"full_name":   created.FullName,
		"description": changed.Description,
		"again":       done(repositories.GetRepository(ctx, owner, "made").Execute()).Description,
		"total":       done(repositories.ListRepositories(ctx).Limit(1).Execute()).Pagination.Total,
		"scope":       token.Scope,
		"content":     done(code.GetContents(ctx, owner, "engine", "README").Execute()).ContentsFile.Content,
		"bytes":       must(raw.Stat()).Size(),
		"taken":       taken.StatusCode,
		"written":     written(client, owner),
	}
	must(repositories.DeleteRepository(ctx, owner, "made").Execute())
	found["left"] = done(repositories.ListRepositories(ctx).Execute()).Pagination.Total
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
