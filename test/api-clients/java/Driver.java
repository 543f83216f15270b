/** Calls the API with the client in Java that openapi-generator makes. */
import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonObject;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.openapitools.client.ApiClient;
import org.openapitools.client.ApiException;
import org.openapitools.client.api.AccessTokensApi;
import org.openapitools.client.api.AccountApi;
import org.openapitools.client.api.CodeApi;
import org.openapitools.client.api.GitDataApi;
import org.openapitools.client.api.RepositoriesApi;
import org.openapitools.client.model.AccessTokenCreation;
import org.openapitools.client.model.CreateRepositoryRequest;
import org.openapitools.client.model.CreateTagRequest;
import org.openapitools.client.model.NewAccessTokenForAll;
import org.openapitools.client.model.PutFile;
import org.openapitools.client.model.UpdateRefsRequest;
import org.openapitools.client.model.UpdateRefsRequestUpdatesInner;
import org.openapitools.client.model.UpdateRepositoryRequest;
import org.openapitools.client.model.WriteCommitRequest;
import org.openapitools.client.model.WriteCommitRequestChangesInner;

public final class Driver {
  /** No ref. */
  private static final String NOTHING = "0".repeat(40);

  private static ApiClient clientOf(JsonObject request, String server) {
    ApiClient client = new ApiClient().setBasePath(request.get(server).getAsString());
    client.setBearerToken(request.get("token").getAsString());
    return client;
  }

  private static Map<String, Object> recorded(ApiClient client) throws ApiException {
    var engine = new RepositoriesApi(client).getRepository("ada", "engine");
    var usage = new AccountApi(client).getUsage();
    var code = new CodeApi(client);
    var module = code.getContents("ada", "engine", "module", null, null, null).getContentsSubmodule();
    var tag = code.listTags("ada", "engine", null, null).getTags().get(0);
    var found = new LinkedHashMap<String, Object>();
    found.put("size_bytes", engine.getSizeBytes());
    found.put("used", usage.getStorageBytes().getUsed());
    found.put("quota", usage.getDeletedStorageBytes().getQuota());
    found.put("type", module.getType().getValue());
    found.put("size", module.getSize());
    found.put("tagger", tag.getTagger());
    found.put("author", tag.getCommit().getAuthor().getName());
    return found;
  }

  /** Begins a branch with a commit, then another branch and a tag there. */
  private static Map<String, Object> written(ApiClient client, String owner) throws ApiException {
    var data = new GitDataApi(client);
    var file = new PutFile().action(PutFile.ActionEnum.PUT).path("README").content("hello\n");
    var begin = new WriteCommitRequest().branch("main").expected(NOTHING).message("Begin")
        .addChangesItem(new WriteCommitRequestChangesInner(file));
    var commit = data.writeCommit(owner, "made", begin, null).getWrittenCommit();
    var after = commit.getAfter();
    var update = new UpdateRefsRequestUpdatesInner().ref("refs/heads/topic").expected(NOTHING).after(after);
    var refs = data.updateRefs(owner, "made", new UpdateRefsRequest().addUpdatesItem(update), null);
    var tag = new CreateTagRequest().name("v1").target(after).expected(NOTHING).message("One");
    var annotated = data.createTag(owner, "made", tag, null).getAnnotated();
    return Map.of("ref", commit.getRef(), "kind", refs.getUpdates().get(0).getKind(), "annotated", annotated);
  }

  private static Map<String, Object> calls(ApiClient client) throws Exception {
    var repositories = new RepositoriesApi(client);
    var code = new CodeApi(client);
    var owner = repositories.listRepositories(null, null).getRepositories().get(0).getUsername();
    var made = new CreateRepositoryRequest().name("made");
    var found = new LinkedHashMap<String, Object>();
    found.put("full_name", repositories.createRepository(made).getFullName());
    var changes = new UpdateRepositoryRequest().description("changed");
    found.put("description", repositories.updateRepository(owner, "made", changes).getDescription());
    found.put("again", repositories.getRepository(owner, "made").getDescription());
    found.put("total", repositories.listRepositories(null, 1).getPagination().getTotal());
    var body = new NewAccessTokenForAll().name("other").scope(NewAccessTokenForAll.ScopeEnum.ALL_REPO)
        .grants(List.of(NewAccessTokenForAll.GrantsEnum.GIT_HTTP_READ));
    found.put("scope", new AccessTokensApi(client).createAccessToken(new AccessTokenCreation(body)).getScope());
    found.put("repos", new AccountApi(client).getUsage().getRepos().getUsed());
    var readme = code.getContents(owner, "engine", "README", null, null, null).getContentsFile();
    found.put("content", readme.getContent());
    found.put("bytes", Files.size(code.getRawContents(owner, "engine", "README", null).toPath()));
    try {
      repositories.createRepository(made);
      found.put("taken", 201);
    } catch (ApiException refusal) {
      found.put("taken", refusal.getCode());
    }
    found.put("written", written(client, owner));
    repositories.deleteRepository(owner, "made");
    found.put("left", repositories.listRepositories(null, null).getPagination().getTotal());
    return found;
  }

  public static void main(String[] args) throws Exception {
    Gson gson = new GsonBuilder().serializeNulls().create();
    var request = gson.fromJson(new InputStreamReader(System.in), JsonObject.class);
    var recorded = recorded(clientOf(request, "recorded"));
    var calls = calls(clientOf(request, "server"));
    System.out.print(gson.toJson(Map.of("recorded", recorded, "calls", calls)));
    // Idle connections would keep it alive for some minutes.
    System.exit(0);
  }
}
