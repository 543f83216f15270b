/** `strata open`: the page of a repository, or the website, in a browser. */
import type { Context, Given } from '../session/context.ts';
import { findHost, signedIn } from '../session/host.ts';
import { type RepositoryName, repositoryNamed, repositoryOfFolder } from '../session/repositories.ts';
import { openBrowser } from '../terminal/browser.ts';

/** Without a name no login is needed: the page asks for one where it is. */
export async function open(context: Context, given: Given): Promise<void> {
  const { terminal, environment, globals } = context;
  const { webUrl } = await findHost(context);
  const found = await repositoryOf(context, given.optionalArgument('repository'), webUrl);
  const url = found === null ? `${webUrl}/` : `${webUrl}/${found.username}/${found.name}`;
  if (globals.json) terminal.out(`${JSON.stringify({ url })}\n`);
  else if (openBrowser(terminal, environment, url)) terminal.say(`Opened ${url}`);
  else terminal.out(`${url}\n`);
}

async function repositoryOf(
  context: Context,
  named: string | undefined,
  webUrl: string,
): Promise<RepositoryName | null> {
  if (named === undefined) return repositoryOfFolder(context, webUrl);
  return repositoryNamed(context, await signedIn(context), named);
}
