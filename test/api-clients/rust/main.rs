//! Calls the API with the client in Rust that openapi-generator makes.
use openapi::apis::configuration::Configuration;
use openapi::apis::{access_tokens_api, account_api, code_api, git_data_api, repositories_api, Error};
use openapi::models::{
    new_access_token_for_all, put_file, AccessTokenCreation, CommitOutcome, Contents, CreateRepositoryRequest,
    CreateTagRequest, NewAccessTokenForAll, PutFile, UpdateRefsRequest, UpdateRefsRequestUpdatesInner,
    UpdateRepositoryRequest, WriteCommitRequest, WriteCommitRequestChangesInner,
};
use serde_json::{json, Value};

/// No ref.
const NOTHING: &str = "0000000000000000000000000000000000000000";

type Outcome = Result<Value, Box<dyn std::error::Error>>;

fn client_of(request: &Value, server: &str) -> Configuration {
    Configuration {
        base_path: request[server].as_str().unwrap_or_default().to_owned(),
        bearer_access_token: request["token"].as_str().map(str::to_owned),
        ..Configuration::default()
    }
}

async fn recorded(client: Configuration) -> Outcome {
    let engine = repositories_api::get_repository(&client, "ada", "engine").await?;
    let usage = account_api::get_usage(&client).await?;
    let contents = code_api::get_contents(&client, "ada", "engine", "module", None, None, None).await?;
    let Contents::ContentsSubmodule(module) = contents else {
        return Err("the submodule is something else".into());
    };
    let tags = code_api::list_tags(&client, "ada", "engine", None, None).await?;
    let tag = tags.tags.first().ok_or("no tag")?;
    Ok(json!({
        "size_bytes": engine.size_bytes,
        "used": usage.storage_bytes.used,
        "quota": usage.deleted_storage_bytes.quota,
        "type": module.r#type,
        "size": module.size,
        "tagger": tag.tagger,
        "author": tag.commit.as_ref().map(|commit| &commit.author.name),
    }))
}

/// Begins a branch with a commit, then another branch and a tag there.
async fn written(client: &Configuration, owner: &str) -> Outcome {
    let file = PutFile {
        path: Some("README".to_owned()),
        content: Some("hello\n".to_owned()),
        ..PutFile::new(put_file::Action::Put)
    };
    let put = vec![WriteCommitRequestChangesInner::PutFile(Box::new(file))];
    let begin = WriteCommitRequest::new("main".to_owned(), NOTHING.to_owned(), "Begin".to_owned(), put);
    let CommitOutcome::WrittenCommit(commit) = git_data_api::write_commit(client, owner, "made", begin, None).await?
    else {
        return Err("the commit was not written".into());
    };
    let (topic, after) = ("refs/heads/topic".to_owned(), commit.after.clone());
    let update = UpdateRefsRequestUpdatesInner::new(topic, NOTHING.to_owned(), Some(after.clone()));
    let refs = git_data_api::update_refs(client, owner, "made", UpdateRefsRequest::new(vec![update]), None).await?;
    let mut tag = CreateTagRequest::new("v1".to_owned(), after, NOTHING.to_owned());
    tag.message = Some("One".to_owned());
    let tagged = git_data_api::create_tag(client, owner, "made", tag, None).await?;
    let kind = refs.updates.first().map(|update| &update.kind);
    Ok(json!({ "ref": commit.r#ref, "kind": kind, "annotated": tagged.annotated }))
}

async fn calls(client: Configuration) -> Outcome {
    let listed = repositories_api::list_repositories(&client, None, None).await?;
    let owner = &listed.repositories.first().ok_or("no repository")?.username;
    let made = || CreateRepositoryRequest::new("made".to_owned());
    let created = repositories_api::create_repository(&client, made()).await?;
    let changes = UpdateRepositoryRequest { description: Some(Some("changed".to_owned())), ..Default::default() };
    let changed = repositories_api::update_repository(&client, owner, "made", changes).await?;
    let grants = vec![new_access_token_for_all::Grants::GitHttpRead];
    let body = NewAccessTokenForAll::new("other".to_owned(), new_access_token_for_all::Scope::AllRepo, grants);
    let wanted = AccessTokenCreation::NewAccessTokenForAll(Box::new(body));
    let token = access_tokens_api::create_access_token(&client, wanted).await?;
    let contents = code_api::get_contents(&client, owner, "engine", "README", None, None, None).await?;
    let Contents::ContentsFile(readme) = contents else {
        return Err("the file is something else".into());
    };
    let raw = code_api::get_raw_contents(&client, owner, "engine", "README", None).await?.bytes().await?;
    let taken = match repositories_api::create_repository(&client, made()).await {
        Err(Error::ResponseError(refusal)) => refusal.status.as_u16(),
        _ => 201,
    };
    let again = repositories_api::get_repository(&client, owner, "made").await?;
    let one = repositories_api::list_repositories(&client, None, Some(1)).await?;
    let usage = account_api::get_usage(&client).await?;
    let written = written(&client, owner).await?;
    repositories_api::delete_repository(&client, owner, "made").await?;
    let left = repositories_api::list_repositories(&client, None, None).await?;
    Ok(json!({
        "repos": usage.repos.used,
        "full_name": created.full_name,
        "description": changed.description,
        "again": again.description,
        "total": one.pagination.total,
        "scope": token.scope,
        "content": readme.content,
        "bytes": raw.len(),
        "taken": taken,
        "written": written,
        "left": left.pagination.total,
    }))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let request: Value = serde_json::from_reader(std::io::stdin())?;
    let recorded = recorded(client_of(&request, "recorded")).await?;
    let calls = calls(client_of(&request, "server")).await?;
    println!("{}", json!({ "recorded": recorded, "calls": calls }));
    Ok(())
}
