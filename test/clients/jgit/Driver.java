// Drives JGit, git in Java, which shares no code with git. test/clients/driver-protocol.ts says how.
import com.google.gson.Gson;
import java.io.File;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import org.eclipse.jgit.api.CloneCommand;
import org.eclipse.jgit.api.Git;
import org.eclipse.jgit.transport.CredentialsProvider;
import org.eclipse.jgit.transport.PushResult;
import org.eclipse.jgit.transport.RefSpec;
import org.eclipse.jgit.transport.RemoteRefUpdate;
import org.eclipse.jgit.transport.UsernamePasswordCredentialsProvider;

public final class Driver {
  /** What `npm run clients` asks for; a member that the operation does not need is absent. */
  private static final class Request {
    String operation;
    String url;
    String username;
    String token;
    String folder;
    Integer depth;
    String refspec;
  }

  private static void cloneTo(Request asked, CredentialsProvider signIn) throws Exception {
    CloneCommand command =
        Git.cloneRepository().setURI(asked.url).setDirectory(new File(asked.folder)).setCredentialsProvider(signIn);
    if (asked.depth != null) command.setDepth(asked.depth);
    command.call().close();
  }

  private static void push(Git git, Request asked, CredentialsProvider signIn) throws Exception {
    StringBuilder refused = new StringBuilder();
    var command = git.push().setRemote("origin").setCredentialsProvider(signIn);
    for (PushResult result : command.setRefSpecs(new RefSpec(asked.refspec)).call()) {
      for (RemoteRefUpdate update : result.getRemoteUpdates()) {
        if (update.getStatus() == RemoteRefUpdate.Status.OK) continue;
        if (update.getStatus() == RemoteRefUpdate.Status.UP_TO_DATE) continue;
        refused.append(result.getMessages()).append(update.getStatus()).append(' ').append(update.getMessage());
      }
    }
    if (refused.length() > 0) throw new IllegalStateException(refused.toString());
  }

  private static void carryOut(Request asked) throws Exception {
    CredentialsProvider signIn = new UsernamePasswordCredentialsProvider(asked.username, asked.token);
    if (asked.operation.equals("clone")) {
      cloneTo(asked, signIn);
      return;
    }
    try (Git git = Git.open(new File(asked.folder))) {
      switch (asked.operation) {
        case "fetch" -> git.fetch().setCredentialsProvider(signIn).call();
        case "unshallow" -> git.fetch().setCredentialsProvider(signIn).setUnshallow(true).call();
        case "push" -> push(git, asked, signIn);
        default -> throw new IllegalArgumentException(asked.operation);
      }
    }
  }

  /** Its own message and those of its causes: a failed clone says what the server said only there. */
  private static String wordsOf(Throwable error) {
    StringBuilder words = new StringBuilder(String.valueOf(error.getMessage()));
    for (Throwable cause = error.getCause(); cause != null; cause = cause.getCause()) {
      if (words.indexOf(String.valueOf(cause.getMessage())) < 0) words.append(": ").append(cause.getMessage());
    }
    return words.toString();
  }

  public static void main(String[] args) {
    Gson json = new Gson();
    Request asked = json.fromJson(new InputStreamReader(System.in, StandardCharsets.UTF_8), Request.class);
    Map<String, String> answer = new LinkedHashMap<>();
    try {
      if (asked.operation.equals("version")) {
        answer.put("version", Git.class.getPackage().getImplementationVersion());
      } else {
        carryOut(asked);
      }
      answer.put("outcome", "ok");
    } catch (Exception error) {
      answer.put("outcome", "refused");
      answer.put("words", wordsOf(error));
    }
    System.out.println(json.toJson(answer));
  }
}
